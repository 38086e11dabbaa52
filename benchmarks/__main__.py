"""Measure all of it within some minutes: every benchmark in its own process, a file, a page.

What fails is told on the page, and the others go on. Peers that are not installed are left out.
What benchmarks work on, Multi30k in subwords and a trained model, is made first where it lacks,
which takes minutes of its own; see docs/guides/speed.md.
"""

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

from benchmarks import FOLDER
from benchmarks.results import RESULTS, child, record
from benchmarks.results.page import write_page
from benchmarks.steps import STEPS, Step
from headcount.base import command
from headcount.base.errors import HeadcountError

MODEL = Path("results/bench/train/multi30k.en-de/baseline/seed1/model")
TEXT = Path("data/text/bench/multi30k.en-de/dev.src")
OVER = 120  # seconds that a benchmark may take beyond all minutes before it is killed


class Measuring:
    """All benchmarks one after the other, and their file of results."""

    def __init__(self, args: argparse.Namespace, steps: list[Step], gpu: str):
        """`gpu`: its name; empty: all is measured on the CPU."""
        self.args, self.steps, self.gpu = args, steps, gpu
        name = re.sub(r"\([^)]*\)|[^a-zA-Z0-9]+", " ", gpu or record.processor())
        self.results = args.results or RESULTS / f"{'-'.join(name.lower().split())}.jsonl"
        self.unfinished = self.results.with_name(f"{self.results.name}.part")

    def run(self) -> None:
        """Measure what there is time for. An older file of results gives way when all is done.

        Until then what was measured lies beside it, where it stays if this is stopped.
        """
        self.unfinished.unlink(missing_ok=True)
        start, whole = time.monotonic(), sum(step.minutes for step in self.steps)
        for number, step in enumerate(self.steps, start=1):
            left = 60 * self.args.minutes - (time.monotonic() - start)
            print(f"[{number}/{len(self.steps)}, {left / 60:.1f} min left] {step}", flush=True)
            if left <= 0:
                self._tell(step, f"all {self.args.minutes:g} minutes were over")
                continue
            share = 60 * self.args.minutes * step.minutes / whole
            self._measure(step, share, left + OVER)
        self.unfinished.replace(self.results)

    def _measure(self, step: Step, seconds: float, limit: float) -> None:
        """Run a benchmark; if it fails, once more without peers and compiler."""
        given = {
            "data": self.args.data.resolve(),
            "model": self.args.model.resolve(),
            "source": self.args.source.resolve(),
            "device": "cuda" if self.gpu else "cpu",
            "at-most": round(seconds),
            "peers": "installed",
            "results": self.unfinished.resolve(),
        }
        for each in (step, step.alone()) if step.takes("peers") else (step,):
            ended = child.python(["-m", *each.words(given)], record.ROOT, limit)
            print(ended.printed, flush=True)
            if not ended.code:
                return
            self._tell(each, f"exit code {ended.code}, {ended.last_line}")

    def _tell(self, step: Step, why: str) -> None:
        why = why.replace(f"{record.ROOT}/", "")  # folders of this machine are nobody's business
        print(f"not measured: {why}", flush=True)
        where = record.where(step.threads, self.gpu)
        found = {"benchmark": step.benchmark, "title": f"{step}.", "where": where}
        record.append(self.unfinished, found | {"failed": why})


def make(files: list[Path]) -> None:
    """Have the workflow make those files that lack. Raises HeadcountError if it does not."""
    lacking = [str(file) for file in files if not file.exists()]
    if not lacking:
        return
    words = ["-m", "snakemake", "--cores", "all", "--config", "experiment=bench", "--", *lacking]
    print("made first:", *lacking, flush=True)
    if subprocess.run([sys.executable, *words]).returncode:
        raise HeadcountError(f"the workflow did not make {', '.join(lacking)}; see above")


def gpu_of(device: str) -> str:
    """The name of the GPU that benchmarks use on a device; empty where that is the CPU.

    A process of its own asks torch, for this one stays small.
    """
    code = "from headcount.model.machine import pick_device as p; import torch; d = p('{}'); "
    code += "print(torch.cuda.get_device_name(d) if d.type == 'cuda' else '')"
    ended = child.python(["-c", code.format(device)], record.ROOT)
    if ended.code:
        raise HeadcountError(ended.last_line)
    return ended.printed.strip()


def main() -> None:
    """Make what lacks, measure, and write the page of all files beside that of the results."""
    args = _flags().parse_args()
    make([args.data / "segmentation.json", args.model / "weights.safetensors", args.source])
    gpu = gpu_of(args.device)
    steps = STEPS["cuda" if gpu else "cpu"]
    args.minutes = args.minutes or sum(step.minutes for step in steps)
    measuring = Measuring(args, steps, gpu)
    measuring.run()
    files = sorted(measuring.results.parent.glob("*.jsonl"))
    out = measuring.results.parent.with_suffix(".md")
    write_page(files, out)
    print(f"{measuring.results}\n{out}")


def _flags() -> argparse.ArgumentParser:
    parser = command.parser(__doc__)
    parser.add_argument("--minutes", type=float, help="for all; by default 25, on a GPU 10")
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--data", type=Path, default=FOLDER, help="folder of the segmented pair")
    parser.add_argument("--model", type=Path, default=MODEL, help="folder of the model")
    parser.add_argument("--source", type=Path, default=TEXT, help="cleaned text to translate")
    words = f"file to write; by default one named after the machine in {RESULTS}"
    parser.add_argument("--results", type=Path, help=words)
    return parser


if __name__ == "__main__":
    command.run(main)

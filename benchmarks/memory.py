"""Peak memory of training and of search by size: this project's own commands, and HF Marian.

The commands of the workflow train and translate with the sizes of experiments; the pair's
vocabulary is cut, or filled up with pieces that no text has, to as many as a size asks for. Models
that have learnt nothing translate as long sentences as allowed: the worst case. `with HF Marian`
compares one training, and one search, in a process of its own each, which says how much it held
before.

Torch is not imported here: a child process counts the memory that its parent held.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from benchmarks import FOLDER, RUNS
from benchmarks.peers import add_peers_flag, chosen_peers
from benchmarks.results import child, record
from benchmarks.results.record import ROOT
from benchmarks.results.timings import markdown
from headcount.base import command
from headcount.base.errors import HeadcountError
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.experiment import Experiment, load_experiment
from headcount.base.settings.flags import as_flags
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.train import GatesSettings, TrainSettings

PEERS = {"marian": "transformers"}
TASKS = ("training", "decoding")
LEARNING_RATE = 1e-9  # so small that the model learns no ends, and translates as long as it may
SPECIALS = 4  # entries of a vocabulary that are no pieces

Row = dict[str, Any]


def experiment(name: str) -> Experiment:
    """Return the settings of an experiment of this folder or of the project."""
    here = Path(__file__).parent
    return load_experiment(name, here if (here / f"{name}.yaml").exists() else ROOT / "config")


@dataclass(frozen=True)
class Size:
    """An experiment's model, and what it has in place of the experiment's own settings."""

    experiment: str
    precision: str  # number format of trainings
    pieces: int  # of the joint vocabulary, special ones counted
    batch_tokens: int

    @property
    def model(self) -> ModelSettings:
        """Sizes of the model."""
        return experiment(self.experiment).model

    def row(self, job: str, threads: int, megabytes: float) -> Row:
        """What the results keep of one job of this size."""
        sizes = vars(self) | {"threads": threads}
        return {"job": job} | sizes | {"megabytes": round(megabytes)}


def sizes(args: argparse.Namespace) -> Iterator[tuple[Size, Sequence[str]]]:
    """Sizes, and the runs whose memory is measured at each."""
    last = max(args.batch_tokens)
    for name in args.experiments:
        pieces = experiment(name).assumed_pieces
        for tokens in args.batch_tokens:
            runs = (*RUNS, "translate")
            yield (
                Size(name, "fp32", pieces, tokens),
                runs if tokens == last else runs[:1] + runs[3:],
            )
        yield Size(name, "bf16", pieces, last), ("baseline",)
    for pieces in args.pieces:
        yield Size(args.experiments[-1], "fp32", pieces, last), ("baseline", "translate")


class Jobs:
    """Jobs of the workflow, in a folder that they write into."""

    def __init__(self, args: argparse.Namespace, folder: Path):
        """`args` have data, device, threads and updates."""
        self.args, self.folder = args, folder

    def rows(self, size: Size, runs: Sequence[str]) -> Iterator[Row]:
        """What the results keep of each run. The first is that which others begin from."""
        threads = self.args.threads
        pair = with_pieces(self.args.data, size.pieces, self.folder / f"pair.{size.pieces}")
        start = self.folder / "-".join(map(str, vars(size).values()))
        for run in runs:
            if run != "translate":
                yield size.row(run, threads, self._train(size, run, pair, start))
                continue
            for several in sorted({1, threads}):
                yield size.row(run, several, self._translate(size, pair, start, several))

    def _train(self, size: Size, run: str, pair: Path, start: Path) -> float:
        out, updates = start / run, self.args.updates
        length = {"updates": updates, "dev_interval": updates, "warmup_updates": 1}
        train = TrainSettings(
            **length,
            batch_tokens=size.batch_tokens, precision=size.precision,
            threads=self.args.threads, device=self.args.device, peak_lr=LEARNING_RATE,
        )  # fmt: skip
        flags = ["--run", RUNS[run], *as_flags(train), "--bpe", pair, "--seed", 1]
        flags += ["--out", out, "--state", out / "state", "--save-seconds", 0.1]
        if not run.startswith("gates"):
            return self._megabytes("train", [*flags, *as_flags(size.model)])
        flags += ["--init-from", start / "baseline/model", *as_flags(GatesSettings(**length))]
        return self._megabytes("prune", flags)

    def _translate(self, size: Size, pair: Path, start: Path, threads: int) -> float:
        source = start / "lines.src"
        lines = enough((pair / "dev.src").read_text("utf-8"), (threads + 1) * size.batch_tokens)
        source.write_text("".join(lines).replace("@@ ", ""), encoding="utf-8")
        search = DecodeSettings(
            beam=5, batch_tokens=size.batch_tokens, threads=threads, device=self.args.device
        )
        flags = ["--model", start / "baseline/model", "--bpe", pair, "--source", source]
        flags += ["--out", start / "out.txt", "--facts", start / "out.json", *as_flags(search)]
        return self._megabytes("translate", flags)

    def _megabytes(self, script: str, flags: Sequence[object]) -> float:
        """The most that a script held. Raises HeadcountError with its last line if it failed."""
        ended = child.python([ROOT / "scripts" / f"{script}.py", *flags], ROOT)
        if ended.code:
            raise HeadcountError(f"{script}.py: {ended.last_line}")
        return ended.megabytes


def enough(text: str, positions: int) -> list[str]:
    """The first lines of a text in subwords that have so many with their ends, or all."""
    lines = text.splitlines(keepends=True)
    ends = accumulate(len(line.split()) + 1 for line in lines)
    return lines[: 1 + sum(end < positions for end in ends)]


def with_pieces(pair: Path, pieces: int, folder: Path) -> Path:
    """A folder of a segmented pair with so many entries in its joint vocabulary.

    Frequent pieces come first, so that those which go are rare, and are unknown in the text.
    """
    if folder.exists():
        return folder
    folder.mkdir(parents=True)
    for file in pair.resolve().iterdir():
        if file.suffix == ".vocab":
            lines = file.read_text(encoding="utf-8").splitlines()[: pieces - SPECIALS]
            more = (f"⟨{number}⟩ 1" for number in range(pieces - SPECIALS - len(lines)))
            text = "".join(f"{line}\n" for line in (*lines, *more))
            (folder / file.name).write_text(text, encoding="utf-8")
        else:
            (folder / file.name).symlink_to(file)
    return folder


def beside_marian(args: argparse.Namespace, peers: Sequence[str]) -> Iterator[Row]:
    """Megabytes before the work and at the highest of each task, ours first; on a GPU its own."""
    for task in TASKS:
        for who in ("ours", *peers):
            words = ["-m", "benchmarks.peers.memory", "--task", task, "--who", who]
            words += ["--data", args.data.resolve(), "--preset", args.preset]
            words += ["--batch-tokens", max(args.batch_tokens), "--device", args.device]
            ended = child.python([*words, "--threads", args.threads], ROOT)
            if ended.code:
                raise HeadcountError(f"{who} {task}: {ended.last_line}")
            found = json.loads(ended.printed.splitlines()[-1])
            yield {"task": task, "who": who, **{key: round(mb) for key, mb in found.items()}}


def main() -> None:
    """Measure, and print two tables."""
    args = _flags().parse_args()
    peers = chosen_peers(args.peers, PEERS)
    where = record.where(args.threads)
    found = {"benchmark": "memory", "where": where, "flags": record.told(args)}
    with tempfile.TemporaryDirectory() as folder:
        jobs = Jobs(args, Path(folder))
        rows = [row for size, runs in sizes(args) for row in jobs.rows(size, runs)]
    title = f"Peak memory of jobs of the workflow, {args.updates} updates, beam 5."
    record.append(args.results, found | {"title": title, "rows": rows})
    print(f"{title}\n\n{table(rows)}\n")
    rows = list(beside_marian(args, peers))
    title = f"Peak memory with HF Marian, {args.preset}, {max(args.batch_tokens)} tokens, MB."
    record.append(args.results, found | {"title": title, "rows": rows})
    print(f"{title}\n\n{table(rows)}")


def table(rows: Sequence[Row]) -> str:
    """Markdown table of rows that have the same cells."""
    cells = [[f"{v:,}" if isinstance(v, int) else v for v in row.values()] for row in rows]
    texts = sum(isinstance(value, str) for value in rows[0].values())
    return markdown([name.replace("_", " ") for name in rows[0]], cells, texts)


def _flags() -> argparse.ArgumentParser:
    parser = command.parser(__doc__)
    add_peers_flag(parser, PEERS)
    parser.add_argument("--data", type=Path, default=FOLDER, help="folder of the segmented pair")
    named = ["quickstart", "multi30k_short", "bench", "bench_base"]
    words = "whose models are trained, smallest first"
    parser.add_argument("--experiments", nargs="+", default=named, help=words)
    words = "budgets of one batch"
    parser.add_argument("--batch-tokens", type=int, nargs="+", default=[1000, 4096], help=words)
    words = "entries of other vocabularies for the last experiment"
    parser.add_argument("--pieces", type=int, nargs="*", default=[32000], help=words)
    parser.add_argument("--preset", default="small", help="sizes beside HF Marian")
    parser.add_argument("--updates", type=int, default=3, help="updates of training")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="CPU threads")
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    record.add_results_flag(parser)
    return parser


if __name__ == "__main__":
    command.run(main)

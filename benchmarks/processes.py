"""Trainings on several processes beside the same trainings on one: losses, and time of an update.

The commands of the workflow train, in turns, each update on as many batches as there are processes;
the first validation is left out of the time. Wanted: the same losses but for rounding, and a ratio
near the number of processes where each has a core or a GPU of its own.
"""

import argparse
import csv
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import FOLDER, RUNS
from benchmarks.results import record
from benchmarks.results.timings import markdown
from headcount.base import command
from headcount.base.errors import EnvironmentFault
from headcount.base.settings.flags import as_flags
from headcount.base.settings.model import PRESETS, ModelSettings
from headcount.base.settings.train import GatesSettings, TrainSettings

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Curve:
    """What a training tells at its validations."""

    losses: tuple[float, float]  # of training and of dev at the last one, nats per token
    seconds: float  # of an update between the first and the last


class Trainings:
    """Trainings of some updates by this project's commands, in a folder."""

    def __init__(self, args: argparse.Namespace, folder: Path):
        self.args, self.folder = args, folder
        self.model = ModelSettings(preset=args.preset)

    def curve(self, run: str, processes: int) -> Curve:
        """Train, and read the curve. Raises EnvironmentFault with the last line of a failure."""
        out = self.folder / f"{run}.{processes}"
        args, gates = self.args, run.startswith("gates")
        length = {"updates": 2 * args.updates, "dev_interval": args.updates, "warmup_updates": 1}
        train = TrainSettings(
            **length,
            batch_tokens=args.batch_tokens, accumulate=args.processes, processes=processes,
            threads=args.threads, device=args.device,
        )  # fmt: skip
        words = [ROOT / "scripts" / ("prune.py" if gates else "train.py"), "--run", RUNS[run]]
        if gates:
            start = self.folder / f"baseline.{processes}" / "model"
            words += ["--init-from", start, *as_flags(GatesSettings(**length))]
        else:
            words += as_flags(self.model)
        words += [*as_flags(train), "--bpe", args.data, "--seed", 1, "--out", out]
        ended = subprocess.run(
            [sys.executable, *map(str, words), "--state", str(out / "state")],
            capture_output=True,
            text=True,
        )
        if ended.returncode:
            raise EnvironmentFault(f"{run}: {ended.stderr.strip().splitlines()[-1]}")
        return _read(out / "curves.csv", args.updates)


def _read(path: Path, updates: int) -> Curve:
    with path.open(encoding="utf-8", newline="") as file:
        first, last = csv.DictReader(file)
    seconds = float(last["seconds"]) - float(first["seconds"])
    return Curve((float(last["train_loss"]), float(last["dev_loss"])), seconds / updates)


def rows(trainings: Trainings, repeats: int) -> Iterator[dict[str, Any]]:
    """What is found of each kind of run: losses in nats a token, seconds of an update."""
    several = trainings.args.processes
    for run in RUNS:
        turns = [
            tuple(trainings.curve(run, count) for count in (1, several)) for _ in range(repeats)
        ]
        alone, shared = turns[-1]
        yield {
            "run": run,
            "losses_alone": alone.losses,
            "losses_shared": shared.losses,
            "seconds_alone": [one.seconds for one, _ in turns],
            "seconds_shared": [other.seconds for _, other in turns],
        }


def table(found: Sequence[dict[str, Any]]) -> str:
    """Markdown table with a line for each kind of run, times and ratio at the median."""
    heads = ["run", "loss, 1 process", "loss, several", "largest relative difference"]
    lines = []
    for row in found:
        losses = list(zip(row["losses_alone"], row["losses_shared"], strict=True))
        seconds = row["seconds_alone"], row["seconds_shared"]
        alone, shared = map(statistics.median, seconds)
        ratio = statistics.median(one / other for one, other in zip(*seconds, strict=True))
        lines.append(
            [
                row["run"],
                *(f"{loss:.9f}" for loss in losses[0]),
                f"{max(abs(one / other - 1) for one, other in losses):.1e}",
                *(f"{1000 * value:.0f}" for value in (alone, shared)),
                f"{ratio:.2f}",
            ]
        )
    return markdown([*heads, "ms an update, 1", "ms, several", "ratio"], lines)


def main() -> None:
    """Measure, and print one table."""
    args = _flags().parse_args()
    count = args.processes
    title = (
        f"{count} processes, {args.preset}: {args.updates} updates of {count} batches of "
        f"{args.batch_tokens} tokens."
    )
    with tempfile.TemporaryDirectory() as folder:
        found = list(rows(Trainings(args, Path(folder)), args.repeats))
    about = {"benchmark": "processes", "title": title, "where": record.where(args.threads)}
    record.append(args.results, about | {"flags": record.told(args), "rows": found})
    print(f"{title}\n\n{table(found)}")


def _flags() -> argparse.ArgumentParser:
    parser = command.parser(__doc__)
    parser.add_argument("--data", type=Path, default=FOLDER, help="folder of the segmented pair")
    parser.add_argument("--preset", default="small", choices=PRESETS, help="sizes of the model")
    parser.add_argument("--processes", type=int, default=2, help="processes of one training")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of each process")
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--updates", type=int, default=10, help="updates between two validations")
    parser.add_argument("--batch-tokens", type=int, default=2000, help="budget of one batch")
    parser.add_argument("--repeats", type=int, default=3, help="trainings of each kind")
    record.add_results_flag(parser)
    return parser


if __name__ == "__main__":
    command.run(main)

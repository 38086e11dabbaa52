"""What a plan costs: seconds and peak memory of `snakemake -n`, by the number of jobs.

Each plan is that of one experiment with more and more seeds, or prices of a head, before anything
is made, in a process of its own. The least of several repeats counts: others that use the machine
only add to it.
"""

import argparse
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from benchmarks.results import record
from benchmarks.results.child import python
from benchmarks.results.timings import markdown
from headcount.base import command
from headcount.base.errors import UserError

ROOT = Path(__file__).resolve().parents[1]
_READ = ("workflow", "scripts", "src", "dvc.yaml")  # by a plan, beside config


class Cost(NamedTuple):
    """What one plan took."""

    jobs: int
    wall: float  # seconds
    cpu: float  # seconds of processors
    megabytes: float


def project_with(folder: Path, experiment: str, **changed: object) -> Path:
    """The folder, with what a plan reads, and with other settings in place of an experiment's own.

    Raises UserError if there is no experiment of that name.
    """
    settings = ROOT / "config" / f"{experiment}.yaml"
    if not settings.is_file():
        raise UserError(f"--experiment {experiment}: expected {settings}, found no such file")
    for name in _READ:
        (folder / name).symlink_to(ROOT / name)
    (folder / "config").mkdir()
    (folder / "config/corpora.yaml").symlink_to(ROOT / "config/corpora.yaml")
    told = yaml.safe_load(settings.read_text(encoding="utf-8")) | changed
    (folder / f"config/{experiment}.yaml").write_text(yaml.safe_dump(told), encoding="utf-8")
    return folder


def cost(experiment: str, **changed: object) -> Cost:
    """What the plan of an experiment with other settings takes, where nothing is made.

    Raises UserError with Snakemake's own words if it makes no plan.
    """
    dry_run = ["-m", "snakemake", "--dry-run", "--config", f"experiment={experiment}"]
    with tempfile.TemporaryDirectory() as name:
        ended = python(dry_run, project_with(Path(name), experiment, **changed))
    total = re.search(r"^total +(\d+)$", ended.printed, re.MULTILINE)
    if ended.code or not total:
        raise UserError(f"expected a plan of {experiment}, found:\n{ended.printed[-2000:]}")
    return Cost(int(total[1]), ended.wall, ended.cpu, ended.megabytes)


class Size(NamedTuple):
    """How large an experiment is."""

    seeds: int
    prices: int = 0  # λ of gates, in place of its own pruned runs; 0: these stay

    @classmethod
    def of(cls, text: str) -> "Size":
        """The size that a flag names: `75`, or `50x25` with 25 prices."""
        return cls(*(int(part) for part in text.split("x")))

    def __str__(self) -> str:
        """In words."""
        more = f", {self.prices} prices of a head" if self.prices else ""
        return f"{self.seeds} seed{'s' * (self.seeds > 1)}{more}"

    def settings(self) -> dict[str, object]:
        """What an experiment of this size has in place of its own settings."""
        found: dict[str, object] = {"seeds": [*range(1, self.seeds + 1)]}
        if self.prices:
            steps = [step / 1000 for step in range(self.prices)]
            found["pruned"] = [{"method": "gates", "scope": "all", "lambda": steps}]
        return found


SIZES = [Size(1), Size(8), Size(75), Size(5, 21), Size(46, 25)]
"""About 80, 500 and 5,000 jobs of quickstart, by seeds and by prices."""


def main() -> None:
    """Print a table with a row for each size."""
    args = _parser().parse_args()
    rows = []
    for size in args.sizes:
        costs = [cost(args.experiment, **size.settings()) for _ in range(args.repeats)]
        least = min(costs, key=lambda each: each.cpu)
        rows.append({"plan": str(size)} | least._asdict())
    title = f"Planning {args.experiment}: `snakemake -n`, the least of {args.repeats} plans."
    found = {"benchmark": "planning", "title": title, "flags": record.told(args)}
    record.append(args.results, found | {"where": record.where(1), "rows": rows})
    print(table(rows))


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Markdown table with a row for each plan."""
    cells = [
        [
            row["plan"],
            f"{row['jobs']:,}",
            f"{row['wall']:.1f}",
            f"{row['cpu']:.1f}",
            f"{row['megabytes']:.0f}",
        ]
        for row in rows
    ]
    return markdown(["", "jobs", "s", "CPU s", "MB"], cells)


def _parser() -> argparse.ArgumentParser:
    parser = command.parser(__doc__)
    parser.add_argument("--experiment", default="quickstart", help="whose plan")
    words = "seeds of an experiment, or seeds and prices λ of a head, such as 50x25; a plan of each"
    parser.add_argument("--sizes", type=Size.of, nargs="+", default=SIZES, help=words)
    parser.add_argument("--repeats", type=int, default=3, help="plans of each size")
    record.add_results_flag(parser)
    return parser


if __name__ == "__main__":
    command.run(main)

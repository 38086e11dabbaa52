"""Compare every table and figure with its golden sum, from frozen measurements.

python -m tests.golden [EXPERIMENT ...]           compare; exit code 1 if a file differs
python -m tests.golden --write [EXPERIMENT ...]   replace the golden sums
python -m tests.golden --freeze EXPERIMENT ...    replace the measurements by those in results/

`sums.csv` has the SHA-256 of every file. Where a sum differs, the command compares the values with
those that the code of the last golden commit makes here, and counts values within a relative 1e-9
as equal. It says so. The archived experiments need the history of Git. They, `savings` and
`many_pairs` need the text of their corpora: from the network, or from the folder that
HEADCOUNT_MIRROR names.
"""

import argparse
import subprocess
import sys
from functools import partial

import yaml

from tests.golden.compare import SUMS, read_copy, verdicts, write_archive, write_golden
from tests.golden.frozen import INPUTS, ROOT, archived, files, has_history, small
from tests.golden.outputs import made_by_commit, make_outputs, measurements


def main() -> int:
    """Read the arguments, make the outputs, and compare or write them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help="default: all")
    parser.add_argument("--write", action="store_true", help="replace the golden sums")
    parser.add_argument("--freeze", action="store_true", help="replace the frozen measurements")
    args = parser.parse_args()
    differing = 0
    for experiment in args.experiments if args.freeze else []:
        write_archive(INPUTS / f"{experiment}.tar.xz", measurements(experiment))
    for experiment in args.experiments or _available():
        made = make_outputs(experiment, files(experiment))
        if args.write or args.freeze:
            write_golden(experiment, made, made if experiment in small() else _in_summary())
            print(f"{experiment}: {len(made)} files", flush=True)
        else:
            differing += _compare(experiment, made)
    return int(differing > 0)


def _compare(experiment: str, made: dict[str, bytes]) -> bool:
    """Print how an experiment's files compare; return whether one differs."""
    faults, notes = verdicts(experiment, made, partial(_golden, experiment))
    print(f"{experiment}: {len(made)} files, {len(faults)} differ", flush=True)
    for line in [*faults, *notes]:
        print(f"  {line}", flush=True)
    return bool(faults)


def _golden(experiment: str) -> dict[str, bytes]:
    """Return the golden content: the committed copy, or what the last golden commit makes."""
    if experiment in small():
        return read_copy(experiment)
    words = ["git", "log", "-1", "--format=%H", "--", str(SUMS)]
    commit = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return made_by_commit(experiment, files(experiment), commit.strip())


def _in_summary() -> set[str]:
    """Return the tables that the result pages read."""
    entries = yaml.safe_load((ROOT / "docs/results/summary.yaml").read_text(encoding="utf-8"))
    tables = ((entry["experiment"], entry["table"]) for entry in entries.values())
    return {f"{name}/{t if '/' in t else f'tables/{t}'}.csv" for name, t in tables}


def _available() -> list[str]:
    """Return all experiments with frozen measurements that this clone can read."""
    if has_history():
        return [*small(), *archived()]
    print("Archived experiments are skipped: this clone lacks the commits that hold them.")
    return small()


if __name__ == "__main__":
    sys.exit(main())

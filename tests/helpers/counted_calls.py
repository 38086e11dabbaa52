"""Runs Snakemake and counts what it calls: work that is the same on every machine.

`python tests/helpers/counted_calls.py OUT ARGUMENT...` writes the calls of Python functions to OUT:
of all there are, of the project's own, and of each of these by its name.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from types import CodeType

from snakemake.cli import main

_CALLS: Counter[CodeType] = Counter()


def _count(frame, event, argument) -> None:
    if event == "call":  # or the next round of a generator
        _CALLS[frame.f_code] += 1


def _is_own(code: CodeType) -> bool:
    path = Path(code.co_filename)
    return "headcount" in path.parts or {"workflow", "snakemake"} & {*path.parts} == {"workflow"}


def _named() -> dict[str, int]:
    found = Counter(all=_CALLS.total())
    for code, calls in _CALLS.items():
        if _is_own(code):
            found["own"] += calls
            found[f"{Path(code.co_filename).stem}.{code.co_name}"] += calls
    return found


if __name__ == "__main__":
    out, sys.argv = Path(sys.argv[1]), ["snakemake", *sys.argv[2:]]
    sys.setprofile(_count)
    try:
        main()
    finally:
        sys.setprofile(None)
        out.write_text(json.dumps(_named()))

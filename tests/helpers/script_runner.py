"""Runs a script of the project in this process, as `python scripts/<name>.py` would."""

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run_script(name: str, arguments: Sequence[object]) -> int:
    """Exit code of the script."""
    return run_file(f"scripts/{name}.py", arguments)


def run_file(file: str, arguments: Sequence[object]) -> int:
    """Exit code of another file of the project that is a command; words to end with are printed."""
    before = sys.argv
    sys.argv = [file, *map(str, arguments)]
    try:
        runpy.run_path(str(ROOT / file), run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
            return 1
        return end.code or 0
    finally:
        sys.argv = before
    return 0

"""Runs a script of the project in this process, as `python scripts/<name>.py` would."""

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def run_script(name: str, arguments: Sequence[object]) -> int:
    """Exit code of the script."""
    before = sys.argv
    sys.argv = [f"scripts/{name}.py", *map(str, arguments)]
    try:
        runpy.run_path(str(SCRIPTS / f"{name}.py"), run_name="__main__")
    except SystemExit as end:
        return end.code or 0
    finally:
        sys.argv = before
    return 0

"""Draw the figures of HeadMask: the paper's five, importance of every head, and mask frequency.

Files of runs are found by their folders, `<pair>/<run>/seed<k>/`; the order of runs is that of the
files of importance.
"""

from pathlib import Path

from headcount.base import command
from headcount.base.results import provenance
from headcount.base.settings.flags import add_flags, from_flags
from headcount.base.settings.importance import ImportanceSettings
from headcount.base.settings.model import ModelSettings
from headcount.findings.headmask_figures import FigureFiles, write_figures

_FILES = {
    "masks": "masks.csv",
    "importance": "importance.csv",
    "masking": "headmask.csv",
    "facts": "headmask.json",
}


def main() -> None:
    """Read the flags and write the figures with their numbers."""
    parser = command.parser(__doc__)
    for flag, name in _FILES.items():
        words = f"{name} of runs"
        parser.add_argument(f"--{flag}", required=True, nargs="+", type=Path, help=words)
    parser.add_argument("--out", required=True, type=Path, help="folder to write the figures to")
    add_flags(parser, ModelSettings)
    add_flags(parser, ImportanceSettings)
    args = parser.parse_args()
    files = FigureFiles(*(getattr(args, flag) for flag in _FILES))
    model, importance = (from_flags(args, kind) for kind in (ModelSettings, ImportanceSettings))
    settings = {"model": model.model_dump(), "importance": importance.model_dump()}
    inputs = [path for flag in _FILES for path in getattr(args, flag)]
    origin = provenance("scripts/headmask_figures.py", settings, None, inputs)
    write_figures(files, model, importance, args.out, origin)


if __name__ == "__main__":
    command.run(main)

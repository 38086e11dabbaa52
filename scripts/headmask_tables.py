"""Write the tables of HeadMask: the paper's six, and two on stability and collapse.

Files of runs are found by their folders, `<pair>/<run>/seed<k>/`; the order of runs is that of the
files of importance.
"""

from dataclasses import fields
from pathlib import Path

from headcount.base import command
from headcount.base.results import provenance
from headcount.base.settings.flags import add_flags, from_flags
from headcount.base.settings.importance import ImportanceSettings
from headcount.base.settings.model import ModelSettings
from headcount.findings.headmask_tables import TableFiles, write_tables

_FILES = {
    "counts": "<pair>/<split>.json beside the cleaned text",
    "references": "<pair>/<test>.tgt",
    "scores": "bleu.json of runs",
    "translations": "translations/<test>.txt of runs",
    "curves": "curves.csv of runs",
    "masks": "masks.csv of runs",
    "importance": "importance.csv of runs",
    "masking": "headmask.csv of runs",
    "facts": "headmask.json of runs",
}


def main() -> None:
    """Read the flags and write the tables."""
    parser = command.parser(__doc__)
    for field in fields(TableFiles):
        words = _FILES[field.name]
        parser.add_argument(f"--{field.name}", required=True, nargs="+", type=Path, help=words)
    parser.add_argument("--out", required=True, type=Path, help="folder to write the tables to")
    add_flags(parser, ModelSettings)
    add_flags(parser, ImportanceSettings)
    args = parser.parse_args()
    files = TableFiles(*(getattr(args, field.name) for field in fields(TableFiles)))
    model, importance = (from_flags(args, kind) for kind in (ModelSettings, ImportanceSettings))
    settings = {"model": model.model_dump(), "importance": importance.model_dump()}
    inputs = [path for field in fields(TableFiles) for path in getattr(files, field.name)]
    origin = provenance("scripts/headmask_tables.py", settings, None, inputs)
    write_tables(files, model, importance, args.out, origin)


if __name__ == "__main__":
    command.run(main)

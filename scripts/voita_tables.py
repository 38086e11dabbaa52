"""Write the tables of head pruning: Voita's Table 2, and four that the paper lacks.

Files of runs are found by their folders, `<pair>/<run>/seed<k>/`; the order of runs is that of the
files of heads.
"""

from dataclasses import fields
from pathlib import Path

from headcount.base import command
from headcount.base.results import provenance
from headcount.base.settings.flags import add_flags, from_flags
from headcount.base.settings.gates import GatesSettings
from headcount.base.settings.model import ModelSettings
from headcount.findings.voita_tables import TableFiles, write_tables

_FILES = {
    "kept": "heads.csv of every pruned run",
    "scores": "bleu.json of every pruned run and of every run that one starts from",
    "translations": "translations/<test>.txt of every pruned run",
    "references": "<pair>/<test>.tgt",
    "removal": "removal.csv of start models",
    "facts": "removal.json, beside it",
    "speed": "speed.csv of pairs and seeds",
}

_NONE_IF_FROM_OTHERS = ("removal", "facts")  # where no gates run starts from the baseline


def main() -> None:
    """Read the flags and write the tables."""
    parser = command.parser(__doc__)
    for field in fields(TableFiles):
        words = _FILES[field.name]
        many = "*" if field.name in _NONE_IF_FROM_OTHERS else "+"
        parser.add_argument(f"--{field.name}", required=True, nargs=many, type=Path, help=words)
    parser.add_argument("--out", required=True, type=Path, help="folder to write the tables to")
    add_flags(parser, ModelSettings)
    add_flags(parser, GatesSettings)
    args = parser.parse_args()
    files = TableFiles(*(getattr(args, field.name) for field in fields(TableFiles)))
    model, gates = (from_flags(args, kind) for kind in (ModelSettings, GatesSettings))
    settings = {"model": model.model_dump(), "gates": gates.model_dump()}
    inputs = [path for field in fields(files) for path in getattr(files, field.name)]
    origin = provenance("scripts/voita_tables.py", settings, None, inputs)
    write_tables(files, model, gates, args.out, origin)


if __name__ == "__main__":
    command.run(main)

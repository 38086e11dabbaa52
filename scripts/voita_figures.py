"""Draw the figures of head pruning: Voita's 6, 7, 9 and 10, methods, gates, speed.

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
from headcount.findings.voita_figures import FigureFiles, write_figures

_FILES = {
    "kept": "heads.csv of every pruned run",
    "gates": "gates.csv of every gates run",
    "scores": "bleu.json of every pruned run and of every run that one starts from",
    "translations": "translations/<test>.txt of every pruned run",
    "references": "<pair>/<test>.tgt",
    "removal": "removal.csv of start models",
    "facts": "removal.json, beside it",
    "speed": "speed.csv of pairs and seeds",
}

_NONE_IF_FROM_OTHERS = ("removal", "facts")  # where no gates run starts from the baseline


def main() -> None:
    """Read the flags and write the figures with their numbers."""
    parser = command.parser(__doc__)
    for field in fields(FigureFiles):
        words = _FILES[field.name]
        many = "*" if field.name in _NONE_IF_FROM_OTHERS else "+"
        parser.add_argument(f"--{field.name}", required=True, nargs=many, type=Path, help=words)
    parser.add_argument("--out", required=True, type=Path, help="folder to write the figures to")
    add_flags(parser, ModelSettings)
    add_flags(parser, GatesSettings)
    args = parser.parse_args()
    files = FigureFiles(*(getattr(args, field.name) for field in fields(FigureFiles)))
    model, gates = (from_flags(args, kind) for kind in (ModelSettings, GatesSettings))
    settings = {"model": model.model_dump(), "gates": gates.model_dump()}
    inputs = [path for field in fields(files) for path in getattr(files, field.name)]
    origin = provenance("scripts/voita_figures.py", settings, None, inputs)
    write_figures(files, model, gates, args.out, origin)


if __name__ == "__main__":
    command.run(main)

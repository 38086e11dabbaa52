"""Draw the figures of heads removed from trained models (Michel et al.).

Files of runs are found by their folders, `<pair>/<run>/seed<k>/`.
"""

from dataclasses import fields
from pathlib import Path

from headcount.base import command
from headcount.base.results import provenance
from headcount.base.settings.ablation import AblationSettings, RerankSettings
from headcount.base.settings.flags import add_flags, from_flags
from headcount.base.settings.model import ModelSettings
from headcount.findings.michel_figures import FigureFiles, write_figures

_FILES = {
    "ablation": "ablation.csv of runs",
    "facts": "ablation.json, beside it",
    "profiles": "pruning_profile.csv of runs",
    "speed": "share_speed.csv of runs",
    "training": "training_profile.csv of runs",
}

_NONE_IF_NOT_ASKED = ("training",)  # where no run is pruned during its training


def main() -> None:
    """Read the flags and write the figures with their numbers."""
    parser = command.parser(__doc__)
    for field in fields(FigureFiles):
        many = "*" if field.name in _NONE_IF_NOT_ASKED else "+"
        words = _FILES[field.name]
        parser.add_argument(f"--{field.name}", required=True, nargs=many, type=Path, help=words)
    parser.add_argument("--out", required=True, type=Path, help="folder to write the figures to")
    kinds = (ModelSettings, AblationSettings, RerankSettings)
    for section in kinds:
        add_flags(parser, section)
    args = parser.parse_args()
    files = FigureFiles(*(getattr(args, field.name) for field in fields(FigureFiles)))
    sections = [from_flags(args, kind) for kind in kinds]
    names = ("model", "ablation", "importance")
    settings = {n: s.model_dump() for n, s in zip(names, sections, strict=True)}
    inputs = [path for field in fields(files) for path in getattr(files, field.name)]
    origin = provenance("scripts/michel_figures.py", settings, None, inputs)
    write_figures(files, *sections, args.out, origin)


if __name__ == "__main__":
    command.run(main)

"""Draw what heads do: Voita's Figures 1 to 5 and 8.

Files of runs are found by their folders, `<pair>/<run>/seed<k>/`.
"""

from dataclasses import fields
from pathlib import Path

from headcount.base import command
from headcount.base.results import provenance
from headcount.base.settings.flags import add_flags, from_flags
from headcount.base.settings.lrp import LrpSettings
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.roles import RolesSettings
from headcount.findings.roles_figures import write_roles_figures
from headcount.findings.roles_files import RolesFiles


def main() -> None:
    """Read the flags and write the figures with their numbers."""
    parser = command.parser(__doc__)
    for field in fields(RolesFiles):
        flag = f"--{field.name.replace('_', '-')}"
        parser.add_argument(flag, required=True, nargs="*", type=Path, help=field.metadata["help"])
    parser.add_argument("--out", required=True, type=Path, help="folder to write to")
    sections = (ModelSettings, RolesSettings, LrpSettings)
    for section in sections:
        add_flags(parser, section)
    args = parser.parse_args()
    files = RolesFiles(**{field.name: getattr(args, field.name) for field in fields(RolesFiles)})
    settings = [from_flags(args, section) for section in sections]
    shown = {n: s.model_dump() for n, s in zip(("model", "roles", "lrp"), settings, strict=True)}
    inputs = [path for field in fields(files) for path in getattr(files, field.name)]
    origin = provenance("scripts/roles_figures.py", shown, None, inputs)
    write_roles_figures(files, *settings, args.out, origin)


if __name__ == "__main__":
    command.run(main)

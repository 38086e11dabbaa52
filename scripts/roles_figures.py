"""Draw what heads do: Voita's Figures 1 to 5 and 8.

Files of runs are found by their folders, `<pair>/<run>/seed<k>/`.
"""

from headcount.base import command
from headcount.base.settings.lrp import LrpSettings
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.roles import RolesSettings
from headcount.findings.file_lists import write_findings
from headcount.findings.roles.figures import write_roles_figures
from headcount.findings.roles.files import RolesFiles

_SECTIONS = {"model": ModelSettings, "roles": RolesSettings, "lrp": LrpSettings}


def main() -> None:
    """Read the flags and write."""
    write_findings("scripts/roles_figures.py", __doc__, RolesFiles, _SECTIONS, write_roles_figures)


if __name__ == "__main__":
    command.run(main)

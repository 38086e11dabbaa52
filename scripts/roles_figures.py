"""Draw what heads do: Voita's Figures 1 to 5 and 8.

Files of runs are found by their folders, `<pair>/<run>/seed<k>/`.
"""

from headcount.base import command
from headcount.base.settings.lrp import LrpSettings
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.roles import RolesSettings
from headcount.findings.figures import use_style, write_figures
from headcount.findings.file_lists import write_findings
from headcount.findings.voita.roles.figures import roles_figures
from headcount.findings.voita.roles.files import RolesFiles

_SECTIONS = {"model": ModelSettings, "roles": RolesSettings, "lrp": LrpSettings}


def main() -> None:
    """Read the flags and write."""
    use_style()
    write_findings(
        "scripts/roles_figures.py", __doc__, RolesFiles, _SECTIONS, roles_figures, write_figures
    )


if __name__ == "__main__":
    command.run(main)

"""Write the tables of what heads do: Voita's Table 1, every head, agreement of measures.

Files of runs are found by their folders, `<pair>/<run>/seed<k>/`.
"""

from headcount.base import command
from headcount.base.settings.lrp import LrpSettings
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.roles import RolesSettings
from headcount.findings.file_lists import write_findings
from headcount.findings.tables import write_tables
from headcount.findings.voita.roles.files import RolesFiles
from headcount.findings.voita.roles.tables import roles_tables

_SECTIONS = {"model": ModelSettings, "roles": RolesSettings, "lrp": LrpSettings}


def main() -> None:
    """Read the flags and write."""
    write_findings(
        "scripts/roles_tables.py", __doc__, RolesFiles, _SECTIONS, roles_tables, write_tables
    )


if __name__ == "__main__":
    command.run(main)

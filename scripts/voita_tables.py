"""Write the tables of head pruning: Voita's Table 2, and four that the paper lacks.

Files of runs are found by their folders, `<pair>/<run>/seed<k>/`; the order of runs is that of the
files of heads.
"""

from headcount.base import command
from headcount.base.settings.gates import GatesSettings
from headcount.base.settings.model import ModelSettings
from headcount.findings.file_lists import write_findings
from headcount.findings.tables import write_tables
from headcount.findings.voita.pruning.files import PruningFiles
from headcount.findings.voita.pruning.tables import voita_tables

_SECTIONS = {"model": ModelSettings, "gates": GatesSettings}


def main() -> None:
    """Read the flags and write."""
    write_findings(
        "scripts/voita_tables.py", __doc__, PruningFiles, _SECTIONS, voita_tables, write_tables
    )


if __name__ == "__main__":
    command.run(main)

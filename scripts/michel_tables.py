"""Write the tables of heads removed from trained models (Michel et al.).

Files of runs are found by their folders, `<pair>/<run>/seed<k>/`.
"""

from headcount.base import command
from headcount.base.settings.ablation import AblationSettings, RerankSettings
from headcount.base.settings.model import ModelSettings
from headcount.findings.file_lists import write_findings
from headcount.findings.michel.tables import TableFiles, michel_tables
from headcount.findings.tables import write_tables

_SECTIONS = {"model": ModelSettings, "ablation": AblationSettings, "importance": RerankSettings}


def main() -> None:
    """Read the flags and write."""
    write_findings(
        "scripts/michel_tables.py", __doc__, TableFiles, _SECTIONS, michel_tables, write_tables
    )


if __name__ == "__main__":
    command.run(main)

"""Write the tables of HeadMask: the paper's six, and two on stability and collapse.

Files of runs are found by their folders, `<pair>/<run>/seed<k>/`; the order of runs is that of the
files of importance.
"""

from headcount.base import command
from headcount.base.settings.importance import ImportanceSettings
from headcount.base.settings.model import ModelSettings
from headcount.findings.file_lists import write_findings
from headcount.findings.headmask.tables import TableFiles, headmask_tables
from headcount.findings.tables import write_tables

_SECTIONS = {"model": ModelSettings, "importance": ImportanceSettings}


def main() -> None:
    """Read the flags and write."""
    write_findings(
        "scripts/headmask_tables.py", __doc__, TableFiles, _SECTIONS, headmask_tables, write_tables
    )


if __name__ == "__main__":
    command.run(main)

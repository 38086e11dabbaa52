"""Draw the figures of HeadMask: the paper's five, importance of every head, and mask frequency.

Files of runs are found by their folders, `<pair>/<run>/seed<k>/`; the order of runs is that of the
files of importance.
"""

from headcount.base import command
from headcount.base.settings.importance import ImportanceSettings
from headcount.base.settings.model import ModelSettings
from headcount.findings.figures import use_style, write_figures
from headcount.findings.file_lists import write_findings
from headcount.findings.headmask.figures import FigureFiles, headmask_figures

_SECTIONS = {"model": ModelSettings, "importance": ImportanceSettings}


def main() -> None:
    """Read the flags and write."""
    use_style()
    write_findings(
        "scripts/headmask_figures.py",
        __doc__,
        FigureFiles,
        _SECTIONS,
        headmask_figures,
        write_figures,
    )


if __name__ == "__main__":
    command.run(main)

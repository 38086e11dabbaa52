"""Draw the figures of head pruning: Voita's 6, 7, 9 and 10, methods, gates, speed.

Files of runs are found by their folders, `<pair>/<run>/seed<k>/`; the order of runs is that of the
files of heads.
"""

from headcount.base import command
from headcount.base.settings.gates import GatesSettings
from headcount.base.settings.model import ModelSettings
from headcount.findings.figures import use_style, write_figures
from headcount.findings.file_lists import write_findings
from headcount.findings.voita.pruning.figures import voita_figures
from headcount.findings.voita.pruning.files import PruningFiles

_SECTIONS = {"model": ModelSettings, "gates": GatesSettings}


def main() -> None:
    """Read the flags and write."""
    use_style()
    write_findings(
        "scripts/voita_figures.py", __doc__, PruningFiles, _SECTIONS, voita_figures, write_figures
    )


if __name__ == "__main__":
    command.run(main)

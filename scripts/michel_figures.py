"""Draw the figures of heads removed from trained models (Michel et al.).

Files of runs are found by their folders, `<pair>/<run>/seed<k>/`.
"""

from headcount.base import command
from headcount.base.settings.ablation import AblationSettings, RerankSettings
from headcount.base.settings.model import ModelSettings
from headcount.findings.figures import use_style, write_figures
from headcount.findings.file_lists import write_findings
from headcount.findings.michel.figures import FigureFiles, michel_figures

_SECTIONS = {"model": ModelSettings, "ablation": AblationSettings, "importance": RerankSettings}


def main() -> None:
    """Read the flags and write."""
    use_style()
    write_findings(
        "scripts/michel_figures.py", __doc__, FigureFiles, _SECTIONS, michel_figures, write_figures
    )


if __name__ == "__main__":
    command.run(main)

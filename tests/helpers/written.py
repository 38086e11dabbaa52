"""One table or figure as files, from its parts."""

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from headcount.findings.figures import Drawn, write_figures
from headcount.findings.tables import Table, write_tables


def write_table(
    frame: pd.DataFrame,
    stem: Path,
    caption: str,
    origin: dict[str, Any],
    shown: pd.DataFrame | None = None,
) -> None:
    """Write a table, which people read as it is unless `shown` is given."""
    table = Table(frame, frame if shown is None else shown, caption)
    write_tables({stem.name: table}, stem.parent, origin)


def write_figure(
    drawing: Figure, data: pd.DataFrame, stem: Path, caption: str, origin: dict[str, Any]
) -> None:
    """Write a figure and its numbers."""
    write_figures({stem.name: Drawn(drawing, data, caption)}, stem.parent, origin)

"""Work of the jobs that make tables and figures, and the time of a figure on this machine."""

import tempfile
import time
from pathlib import Path

import pandas as pd
from engine import Job

from headcount.analysis.figures.style import grid, use_style, write_figure
from headcount.analysis.outputs import Output
from headcount.analysis.writer import Text
from headcount.estimate.work import Units

LARGER = {"voita_pruning": 2.2, "voita_roles": 2.7}
"""Time of a chapter's mean figure over that of three panels, as in `quickstart`; 1 for others."""
COMPARED = 2
"""Approximate number of times that a chapter resamples a translation."""
READ = 0.4
"""Work of reading the text for the table of corpora, over that of cleaning it."""

_MEASURED = Output(
    name="measured", module="", chapter="", form="figure", title="Measured", function=""
)


def output_units(job: Job, sizes: dict[str, dict[str, int]]) -> Units:
    """Return the work of the job of a chapter, of the report, or of another without wildcards.

    `sizes`: sentence pairs by pair and split. A figure has panels for every pair.
    """
    drawn = sum(path.endswith(".pdf") for path in job["output"])
    translated = (Path(path) for path in job["input"] if "/translations/" in path)
    lines = [_lines(path, sizes) for path in translated if path.suffix == ".txt"]
    units = {"starts": 1.0, "tables": sum(path.endswith(".md") for path in job["output"])}
    units["figures"] = drawn * LARGER.get(job["rule"], 1) * max(1, len(sizes))
    if lines:
        units["resamples"] = COMPARED * sum(lines)
    if job["rule"] == "general":
        units["lines"] = READ * sum(sum(splits.values()) for splits in sizes.values())
    return units


def _lines(path: Path, sizes: dict[str, dict[str, int]]) -> int:
    """Return the lines of a translation, <pair>/<run>/seed<k>/translations/<test>.txt."""
    return sizes[path.parts[-5]][path.stem]


def seconds_to_draw() -> float:
    """Return the seconds of one figure of three panels in all formats, after fonts are loaded."""
    use_style()
    for _ in range(2):
        begun = time.perf_counter()
        figure, axes = grid(1, 3, (3.2, 2.9), (0, 0))
        for panel in axes[0]:
            for start in range(3):
                panel.plot(range(start, start + 10), marker="o", label=f"run {start}")
            panel.legend()
        frame = pd.DataFrame({"value": range(90)})
        with tempfile.TemporaryDirectory() as folder:
            write_figure(figure, _MEASURED, frame, Text("", [], []), Path(folder), {})
    return time.perf_counter() - begun

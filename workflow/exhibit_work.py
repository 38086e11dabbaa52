"""What chapters of tables and figures have to do, and how long a figure takes here."""

import tempfile
import time
from pathlib import Path

import pandas as pd
from engine import Job

from headcount.estimate.work import Units
from headcount.findings.figures import Drawn, panels, use_style, write_figures

LARGER = {"voita_pruning": 2.2, "voita_roles": 2.7}
"""Times a figure of three panels that one of a chapter takes, as of `quickstart`; else once."""
COMPARED = 2
"""Times that a translation is resampled in a chapter that compares some, about."""
READ = 0.4
"""Of cleaning: reading the text once more, for the table of corpora."""


def exhibit_units(job: Job, sizes: dict[str, dict[str, int]]) -> Units:
    """What the job of a chapter has to do, or of the report, or any other that has no wildcards.

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
    """Of a translation, <pair>/<run>/seed<k>/translations/<test>.txt."""
    return sizes[path.parts[-5]][path.stem]


def seconds_to_draw() -> float:
    """Seconds of one figure of three panels in all its formats, once fonts are known."""
    use_style()
    for _ in range(2):
        begun = time.perf_counter()
        figure, axes = panels(3)
        for each in axes:
            for start in range(3):
                each.plot(range(start, start + 10), marker="o", label=f"run {start}")
            each.legend()
        drawn = Drawn(figure, pd.DataFrame({"value": range(90)}), "")
        with tempfile.TemporaryDirectory() as folder:
            write_figures({"measured": drawn}, Path(folder), {})
    return time.perf_counter() - begun

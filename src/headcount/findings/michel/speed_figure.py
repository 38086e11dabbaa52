"""Speed by share of heads removed."""

import pandas as pd
from matplotlib.figure import Figure

from headcount.findings.figures import colours
from headcount.findings.panels import legend_above, panels
from headcount.findings.run_tables import KEYS


def draw_speed(table: pd.DataFrame) -> Figure:
    """A panel per model and phase, a line per batch size: steps per second relative to all heads.

    `table`: our rows of `speed_table`. Bars are a standard deviation of the repeats on either side.
    """
    tasks = list(table.groupby([*KEYS, "phase"], sort=False))
    figure, axes = panels(len(tasks), width=4.0, height=3.2)
    sizes = sorted(table["batch_size"].unique())
    for panel, ((pair, run, seed, phase), rows) in zip(axes, tasks, strict=True):
        for colour, size in zip(colours(len(sizes)), sizes, strict=True):
            of_size = rows[rows["batch_size"] == size].sort_values("percent")
            faster, mean = of_size["speedup"].astype(float), of_size["mean"].astype(float)
            bars = faster * pd.to_numeric(of_size["sd"], errors="coerce") / mean
            style = {"color": colour, "marker": "o", "markersize": 4, "capsize": 2}
            panel.errorbar(of_size["percent"], faster, bars, label=f"batch {size}", **style)
        panel.axhline(1, color="#6E6E6E", linewidth=0.8, linestyle=":")
        panel.set_title(f"{pair}, {run}, seed {seed}: {phase}", loc="left", fontsize="small")
        panel.set_xlabel("percent of heads removed")
        panel.set_ylabel("speed ÷ that with all heads")
        panel.set_ylim(bottom=0)
    legend_above(figure, axes, len(sizes))
    return figure

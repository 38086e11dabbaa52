"""Speed of models without a share of their heads, and the time that importance takes."""

import numpy as np
import pandas as pd

from headcount.analysis.captions import note
from headcount.analysis.frames import RUN, Data, with_paper
from headcount.analysis.published import michel
from headcount.analysis.stats import paired_t, speedups
from headcount.base.files import read_json

_SETUP = [*RUN, "phase", "batch_size"]


def speed(share_speed: pd.DataFrame) -> pd.DataFrame:
    """Return sentences per second by percent of heads removed, phase and batch size."""
    raw = share_speed.assign(
        rate=share_speed["sentences"] / share_speed["seconds"],
        steps=share_speed["steps"] / share_speed["sentences"],
    )
    model = [*_SETUP, "model", "heads_left", "parameters", "steps"]
    rates = raw.groupby(model, sort=False)["rate"]
    table = rates.agg(repeats="size", mean="mean", sd="std").reset_index()
    table["speed"] = table["mean"] * table["steps"]
    table = speedups(table, raw, _SETUP, 0)
    columns = [*_SETUP, "percent", "heads_left", "parameters", "repeats", "mean", "sd", "steps"]
    columns += ["speedup", "speedup_low", "speedup_high"]
    return table.rename(columns={"model": "percent"})[columns].assign(source="ours")


def speed_with_paper(share_speed: pd.DataFrame) -> pd.DataFrame:
    """Return speeds, then the speeds of the paper's BERT."""
    paper = michel.speed()
    whole = paper[paper["percent"] == 0].set_index("batch_size")["mean"]
    gains = paper["mean"] / paper["batch_size"].map(whole)
    return with_paper(speed(share_speed), paper.assign(speedup=gains))


def importance_time(importance_speed: pd.DataFrame) -> pd.DataFrame:
    """Return geometric means of seconds for importance and for training on the same batches."""
    rows = []
    for key, times in importance_speed.groupby(RUN, sort=False):
        logs = np.log(times.pivot(index="repeat", columns="work", values="seconds"))
        gaps = (logs["importance"] - logs["training"]).to_numpy()
        ends = paired_t(gaps)[:2]
        rows.append((*key, len(gaps), *np.exp([*logs.mean(), gaps.mean(), *ends])))
    columns = [*RUN, "repeats", "importance", "training", "ratio", "ratio_low", "ratio_high"]
    return pd.DataFrame(rows, columns=columns)


@note
def timed_on(data: Data) -> str:
    """Return a sentence on the text and the machines that speeds were measured with."""
    facts = (read_json(path.with_suffix(".json")) for path in data.files("share_speed"))
    text = "{sentences} sentences of dev, {threads} thread(s) of a {device}, beam {beam}"
    return f"Timed on {'; '.join(sorted({text.format(**run) for run in facts}))}."

"""Savings of pruned models and number formats, at a loss of BLEU that a reader accepts."""

import numpy as np
import pandas as pd

from headcount.analysis.captions import note
from headcount.analysis.frames import Facts, FrameOf, Runs, Settings
from headcount.base.settings.decode import FP32

_WAYS = {"": "whole model", "enc_self": "heads", "all": "heads", "ffn": "feed-forward units"}
_WAYS |= {"layers": "layers", "heads_ffn": "heads and feed-forward units"}  # by scope
_PLACES = {way: place for place, way in enumerate(_WAYS.values())} | {"everything": 9}
_MODEL = ["pair", "test_set", "way", "run", "compute_type"]
_TURN = ["pair", "seed", "program", "batch_size", "repeat"]
_MEANS = ["parameters", "multiply_adds", "weight_bytes", "memory_bytes"]
_MEANS += ["score", "delta", "delta_low", "delta_high", "chrf"]


def points(savings: pd.DataFrame, smaller_runs: Runs) -> pd.DataFrame:
    """Return one model in CTranslate2 a row, means over seeds, with speed-ups of both programs.

    A speed-up is the time of the whole model in float32 over the time of the model, in one program,
    seed and round: median, least and largest. `_single` is the smallest batch size.
    """
    raw = savings.drop(columns="run").rename(columns={"model": "run"})
    scopes = [getattr(smaller_runs.get(run), "scope", "") for run in raw["run"]]
    raw["way"] = [*map(_way, scopes, raw["compute_type"])]
    raw["ms"] = 1000 * raw["seconds"] / raw["sentences"]
    whole = raw[raw["way"] == "whole model"].set_index(_TURN)["ms"].rename("whole")
    raw["speedup"] = raw.join(whole, on=_TURN)["whole"] / raw["ms"]
    sizes = raw.groupby("pair")["batch_size"]
    ends = [raw["batch_size"] == sizes.transform(name) for name in ("max", "min")]
    program = raw["program"].map({"headcount": "ours", "ctranslate2": "ct2"})
    raw["timing"] = program + np.select(ends, ["_large", "_single"], "")
    raw = raw[(raw["way"] != "") & (ends[0] | ends[1])]
    times = raw.groupby([*_MODEL, "timing"])["speedup"].agg(["median", "min", "max"])
    times.columns = ["", "_low", "_high"]
    times["_ms"] = raw.groupby([*_MODEL, "timing"])["ms"].median()
    times = times.unstack()
    times.columns = [f"{timing}{part}" for part, timing in times.columns]
    models = raw[raw["program"] == "ctranslate2"].groupby(_MODEL)
    table = models[_MEANS].mean().assign(seeds=models["seed"].nunique()).join(times).reset_index()
    place = table["way"].map(_PLACES).fillna(8)  # number formats stand before everything
    return table.assign(_place=place).sort_values(["pair", "_place", "ct2_large"])


def _way(scope: str, compute_type: str) -> str:
    """Return the name of a way to save, or nothing for combinations that are left out."""
    if compute_type == FP32:
        return _WAYS.get(scope, "")
    return "everything" * (scope in ("heads_ffn", "units")) if scope else compute_type


def savings(points: FrameOf[points], settings: Settings) -> pd.DataFrame:
    """Return the fastest model of every way whose interval does not reach below a loss."""
    rows, losses = [], settings["savings"].losses
    for key, models in points.groupby(_MODEL[:3], sort=False):
        for loss in losses[:1] if key[2] == "whole model" else losses:
            fits = models[models["delta_low"] >= -loss].nlargest(1, "ct2_large")
            row = fits if len(fits) else pd.DataFrame([key], columns=_MODEL[:3])
            rows.append(row.assign(loss=loss))
    return pd.concat(rows, ignore_index=True)


@note
def savings_measured(savings_facts: Facts) -> str:
    """Return a sentence on the text and the threads of the measurement."""
    text = "{sentences} sentences of dev, {threads} thread(s) of a CPU, beam {beam}"
    return f"Timed on {'; '.join(sorted({text.format(**run) for run in savings_facts}))}."

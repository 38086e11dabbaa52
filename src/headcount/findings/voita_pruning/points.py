"""Points of the figures of pruning: means over seeds, with what lies between their ends."""

import pandas as pd

from headcount.base.addresses import KINDS, HeadGrid
from headcount.findings.masking import DRAWS, SEEDS, TEST
from headcount.findings.published import voita
from headcount.findings.run_tables import BASE, KEYS

_ENCODER = ["pair", "test_set", "run", "lambda", "heads_left", "bleu", "low", "high", "spread"]
_ENCODER += ["seeds", "start_bleu", "control_bleu", "source"]
PAPER_HEADS = 48  # of each kind
_POINT = [*KEYS, "lambda", "point", "kind", "pruned", "heads_left", "source"]
_PER_GROUP = 2  # layers, where a decoder has more than three, as in the paper


def encoder_points(records: pd.DataFrame) -> pd.DataFrame:
    """Figure 7: a gates run on encoder self-attention a row, then the paper's points.

    Columns: pair, test_set, run, lambda, heads_left (mean over seeds), bleu (mean), low, high,
    spread, seeds, start_bleu, control_bleu, source. `low` and `high` bound what `spread` names:
    the standard deviation over seeds, or with one seed the bootstrap interval of the difference to
    the control, laid around the control. Empty in the paper's rows.
    """
    gates = (records["how"] == "gates") & (records["scope"] == "enc_self")
    chosen = records[gates & (records["start"] == BASE)]
    rows = []
    for key, found in chosen.groupby(["pair", "test_set", "run", "lambda"], sort=False):
        names = ["heads_left", "bleu", "start_bleu", "control_bleu"]
        means = found.assign(heads_left=found["scope_left"])[names].mean()
        row = dict(zip(_ENCODER, key, strict=False)) | means.to_dict() | {"seeds": len(found)}
        rows.append(row | spread(found, "bleu", found["control_bleu"].iloc[0]))
    rows.sort(key=lambda row: -row["heads_left"])
    printed = voita.bleu_by_heads().rename(columns={"value": "bleu"})
    return _joined(rows, printed, _ENCODER)


def spread(found: pd.DataFrame, name: str, around: float = 0.0) -> dict[str, float | str]:
    """`low`, `high` and `spread`, which says what they bound, of a column of rows of one point.

    The range of draws where a seed has several rows; the standard deviation over seeds; with one
    seed the bootstrap interval of the delta, laid around a value.
    """
    values = found[name].astype(float)
    if found["seed"].duplicated().any():
        return {"low": values.min(), "high": values.max(), "spread": DRAWS}
    if len(found) > 1:
        mean, sd = values.mean(), values.std()
        return {"low": mean - sd, "high": mean + sd, "spread": SEEDS}
    low, high = (around + float(found[side].iloc[0]) for side in ("delta_low", "delta_high"))
    return {"low": low, "high": high, "spread": TEST}


def kind_points(models: pd.DataFrame) -> pd.DataFrame:
    """Figure 9: heads left of each kind, a gates run on all kinds and kind a row.

    `models` comes from `read_pruned`. Columns: pair, run, seed, lambda, point (what belongs
    together over seeds: the run, or a place in the paper's drawing), kind, pruned (in the whole
    model), heads_left, source.
    """
    rows = [
        model
        | {"kind": kind, "pruned": model["heads"] - model["heads_left"]}
        | {"heads_left": model[kind]}
        for model in _sweep_of_all(models)
        for kind in KINDS
    ]
    printed = voita.heads_by_kind().rename(columns={"value": "heads_left"})
    return _joined(rows, printed.assign(point=printed["pruned"]), _POINT)


def layer_points(models: pd.DataFrame, grid: HeadGrid) -> pd.DataFrame:
    """Figure 10: heads left in the decoder's layers, a gates run, kind and group of layers a row.

    `grid` has the heads of the models that were pruned. Columns: as `kind_points`, with layers
    (two neighbours where a decoder has more than three) after kind; here pruned counts
    heads of this kind.
    """
    rows = [
        model
        | {"kind": kind, "pruned": sum(grid.counts[kind]) - model[kind]}
        | {"layers": words, "heads_left": left}
        for model in _sweep_of_all(models)
        for kind in KINDS[1:]
        for words, left in _by_layers(model[f"{kind}_layers"])
    ]
    printed = voita.decoder_heads_by_layers().rename(columns={"value": "heads_left"})
    # The paper's axis: heads of this kind, not of the whole model as in Figure 9.
    left = printed.groupby(["kind", "pruned"], sort=False)["heads_left"].transform("sum")
    layers = printed["layers"].map(_from_zero)
    printed = printed.assign(point=printed["pruned"], pruned=PAPER_HEADS - left, layers=layers)
    return _joined(rows, printed, [*_POINT[:6], "layers", *_POINT[6:]])


def _from_zero(layers: str) -> str:
    """The paper's name of a group of layers, as in 3–4, which counts from 1."""
    return "–".join(str(int(number) - 1) for number in layers.split("–"))


def _sweep_of_all(models: pd.DataFrame) -> list[dict]:
    """Gates runs on all kinds from the baseline, fewest heads pruned first."""
    gates = (models["how"] == "gates") & (models["scope"] == "all")
    chosen = models.assign(point=models["run"])[gates & (models["start"] == BASE)]
    return sorted(chosen.to_dict("records"), key=lambda model: -model["heads_left"])


def _by_layers(left: tuple[int, ...]) -> list[tuple[str, int]]:
    """Names of groups of layers, and the heads left in each."""
    size = _PER_GROUP if len(left) > _PER_GROUP + 1 else 1
    groups = []
    for first in range(0, len(left), size):
        last = min(first + size, len(left))
        words = f"{first}–{last - 1}" if last > first + 1 else str(first)
        groups.append((words, sum(left[first:last])))
    return groups


def _joined(ours: list[dict], printed: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Our rows, then the paper's; cells are empty where the paper tells nothing."""
    both = [pd.DataFrame(ours).assign(source="ours"), printed.assign(source="paper")]
    cells = [rows.reindex(columns=columns).astype(object) for rows in both]
    return pd.concat(cells, ignore_index=True).fillna("")

"""Scores as more and more heads are pruned without retraining (Michel et al.)."""

import numpy as np
import pandas as pd

from headcount.analysis import frames
from headcount.analysis.captions import note
from headcount.analysis.frames import HEAD, RUN, Facts, FrameOf, Runs, Settings
from headcount.analysis.inputs import BLEU
from headcount.analysis.published import michel
from headcount.analysis.scores import main_scores
from headcount.analysis.stats import ALPHA
from headcount.analysis.tables.michel.heads import SCORES, TASK, beside_paper, masked_heads
from headcount.base.addresses import Head

KEPT = 0.95  # share of the score with all heads that counts as kept
FLOOR = 2.0  # a checkpoint with less BLEU has no profile: shares of it mean nothing
SHARES = (20, 40, 60)  # percent of heads pruned at which profiles of checkpoints are compared
_ENDS = 15  # percentage points from 0 and 100
_CURVE = [*TASK, "scope", "order", "draw"]
_POINT = [*_CURVE, "index", "percent", "heads_masked", *SCORES]
_STEP = {"heads_masked": "heads", "percent": "percent", "delta": "delta", "delta_low": "low"}
_STEP |= {"delta_high": "high", "p": "p"}
_BY_IMPORTANCE = "scope == 'all' and order == 'importance'"


def profile(profiles: pd.DataFrame, classifier_profiles: pd.DataFrame) -> pd.DataFrame:
    """Return scores by percent of the scope's heads pruned, of translation or of classifiers."""
    # Classifiers have one attention type, so curves over it equal the curves over all heads.
    table = profiles if len(profiles) else classifier_profiles.query("scope == 'all'")
    in_scope = table.groupby([*RUN, "scope"])["heads_masked"].transform("max")
    steps = table.groupby([*RUN, "scope", "order"])["index"].transform("max")
    alone = table["order"] == "one_per_layer"  # which has no steps
    share = (table["index"] / steps).where(~alone, table["heads_masked"] / in_scope)
    return table.assign(percent=100 * share, scope_heads=in_scope)


def curves(points: FrameOf[profile], where: str = "") -> pd.DataFrame:
    """Return the points of curves. `where` is a query that chooses rows."""
    rows = points.query(where) if where else points
    return rows[_POINT].assign(source="ours")


def curves_beside_masks(
    points: FrameOf[profile],
    subset_runs: Runs,
    subset_heads: pd.DataFrame,
    subset_start_scores: Facts,
    subset_scores: Facts,
) -> pd.DataFrame:
    """Return the points of curves, then learnt masks of K heads as the order `subset`.

    A learnt mask is a run of `subset`. The point without pruning is the model that it started from,
    which translates the whole test set, too.
    """
    gates = subset_heads[subset_heads["statistic"] == "gate"]
    gates = gates.assign(masked=gates["value"] == 0).groupby(RUN)["masked"]
    heads = gates.agg(heads_masked="sum", size="size").reset_index()
    scores = main_scores([*subset_start_scores, *subset_scores])[[*TASK, "score"]]
    masks = heads.merge(scores, on=RUN).assign(order="subset", scope="all")
    if masks.empty:
        return curves(points)
    masks["run"] = masks["run"].map({name: run.start for name, run in subset_runs.items()})
    whole = scores.rename(columns={"score": "whole"})
    masks = masks.merge(whole, on=TASK).merge(points[TASK].drop_duplicates(), on=TASK)
    none = masks.drop_duplicates(TASK).assign(heads_masked=0, score=lambda rows: rows["whole"])
    masks = pd.concat([none, masks]).sort_values("heads_masked", kind="stable")
    masks["delta"] = masks["score"] - masks["whole"]
    masks["percent"] = 100 * masks["heads_masked"] / masks["size"]
    return pd.concat([curves(points), masks.reindex(columns=_POINT).assign(source="ours")])


@note
def learnt_masks(frame: pd.DataFrame) -> str:
    """Return a sentence on learnt masks, if the figure has any."""
    if "subset" not in frame["order"].values:
        return ""
    return (
        "Learnt mask: runs of `subset`, which learn the mask and fine-tune the weights. It is the "
        "reference above the orders, as random is the reference below."
    )


def drawn_curves(frame: pd.DataFrame, percent: bool = True, metric: str = BLEU) -> pd.DataFrame:
    """Return our curves, then the paper's. `percent`: of the score `whole` with all heads."""
    rows = frames.with_paper(frame, michel.curves().assign(run="paper"), metric)
    whole = rows["score"] - rows["delta"]
    unit = 100 / whole.where(whole > 0) if percent else 1
    ends = {side: unit * (whole + rows[f"delta_{side}"]).clip(lower=0) for side in ("low", "high")}
    return rows.assign(score=rows["score"] * unit, whole=whole, **ends)


def judged(points: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each curve, with its first significant loss and the step before.

    `first_loss_*` is the first loss with p < `ALPHA`, `last_ok_*` the last step before it. Every
    step up to `retained_percent` keeps `KEPT` of the score. `step` is the percentage of one step.
    """
    curves = frames.grouped(points.sort_values("percent", kind="stable"), _CURVE)
    order = points[_CURVE].drop_duplicates()
    return order.merge(curves.apply(_judge).reset_index(), on=_CURVE)


def _judge(curve: pd.DataFrame) -> pd.Series:
    known = curve.dropna(subset="p")
    lost = ((known["delta"] < 0) & (known["p"] < ALPHA)).cummax()
    percent = curve["percent"].to_numpy(float)
    cells = {"heads": curve["scope_heads"].iloc[0], "step": np.diff(percent[:2]).sum() or np.nan}
    for name, row in {"last_ok": known[~lost].tail(1), "first_loss": known[lost].head(1)}.items():
        cells |= {f"{name}_{new}": row[old].max() for old, new in _STEP.items()}
    kept = percent[(curve["score"] >= KEPT * curve["score"].iloc[0]).cummin()]
    return pd.Series(
        cells | {"retained_percent": kept[-1] if len(curve) > 1 else np.nan}, dtype=float
    )


def pruning(
    points: FrameOf[profile], ablation_facts: Facts, classifier_facts: Facts
) -> pd.DataFrame:
    """Return how far every order prunes without a significant loss, beside the paper."""
    sizes = [
        {name: run[name] for name in RUN} | {"test_set": test, "size": size}
        for run in [*ablation_facts, *classifier_facts]
        for test, size in (run.get("sentences") or run["pairs"]).items()
    ]
    table = judged(points).merge(pd.DataFrame(sizes), how="left")
    drawn = judged(michel.curves().reindex(columns=points.columns)).assign(metric=BLEU)
    paper = pd.concat([drawn, michel.prunable()], ignore_index=True)
    return beside_paper(table.assign(metric=points["metric"].iloc[0]), paper)


def areas(
    areas: pd.DataFrame, classifier_areas: pd.DataFrame, points: FrameOf[profile]
) -> pd.DataFrame:
    """Return mean scores over the steps of pruning, beside means over the paper's curves."""
    ours = areas if len(areas) else classifier_areas.query("scope == 'all'")
    metric = points["metric"].iloc[0]
    kept = 1 - points["heads_masked"] / points["scope_heads"]
    ours = ours.assign(metric=metric).merge(circuit_areas(points.assign(kept=kept)), "left")
    curves = michel.curves()
    paper = frames.grouped(curves, ["pair", "run", "test_set", "scope", "order"])
    paper = paper[["score", "percent"]].apply(
        lambda curve: np.trapezoid(curve["score"], curve["percent"]) / np.ptp(curve["percent"])
    )
    circuits = circuit_areas(curves.assign(kept=1 - curves["percent"] / 100, seed=0, draw=0))
    paper = paper.rename("area").reset_index().merge(circuits.drop(columns="seed"))
    return beside_paper(ours, paper.assign(metric=BLEU))


def circuit_areas(points: pd.DataFrame) -> pd.DataFrame:
    """Return `cpr` and `cmd` of every curve over the share `kept` of heads, means over draws.

    With score m, all heads N, heads kept C and no heads ∅, faithfulness is
    f = (m(C) − m(∅)) / (m(N) − m(∅)). The circuit performance ratio is CPR = ∫ f dk and the
    circuit-model distance CMD = ∫ |1 − f| dk over the share k kept, by trapezoids. Both are
    missing where the score without heads is no lower. Source: Mueller et al. 2025 (MIB,
    arXiv 2504.13151), section 3, equations of f, CPR and CMD.
    """
    points = points[points["order"] != "one_per_layer"].sort_values("kept", kind="stable")
    curves = frames.grouped(points, _CURVE)
    none, whole = (curves["score"].transform(name) for name in ("first", "last"))
    faithful = (points["score"] - none) / (whole - none).where(whole > none)
    points = points.assign(cpr=faithful, cmd=(1 - faithful).abs())
    areas = frames.grouped(points, _CURVE)[["kept", "cpr", "cmd"]].apply(
        lambda curve: curve[["cpr", "cmd"]].apply(np.trapezoid, x=curve["kept"])
    )
    return frames.grouped(areas.reset_index(), _CURVE[:-1])[["cpr", "cmd"]].mean().reset_index()


def as_compared(importance: pd.DataFrame, keys: list[str], settings: Settings) -> pd.Series:
    """Return the importance by which heads are ranked: divided by the norm of its layer, or not."""
    if settings["ablation"].normalise != "layer_l2":
        return importance["value"]
    norms = importance.groupby([*keys, "kind", "layer"])["value"].transform(np.linalg.norm)
    return importance["value"] / norms.where(norms > 0, 1)


def removal(
    importance: pd.DataFrame,
    loss_change: pd.DataFrame,
    masked: FrameOf[masked_heads],
    points: FrameOf[profile],
    settings: Settings,
) -> pd.DataFrame:
    """Return all heads in the order in which pruning by importance removes them."""
    heads = importance[importance["statistic"] == "importance"]
    heads = heads.assign(importance_compared=as_compared(heads, RUN, settings))
    heads = heads.rename(columns={"value": "importance"}).drop(columns="statistic")
    heads["address"] = [Head(*head).name() for head in heads[HEAD].itertuples(index=False)]
    changes = loss_change.pivot(index=[*RUN, *HEAD], columns="statistic", values="value")
    single = masked[masked["order"] == "single"][[*TASK, *HEAD, *SCORES[1:]]]
    table = heads.merge(single, on=[*RUN, *HEAD]).merge(changes.reset_index(), on=[*RUN, *HEAD])
    table = table.merge(_steps(points), on=[*TASK, "address"])
    table = table.assign(place=table.groupby(TASK, sort=False).ngroup())
    # Of equally important heads the last one is pruned first.
    order = ["place", "removed_at_step", "importance_compared"]
    table = table[::-1].sort_values(order, kind="stable", ignore_index=True)
    table["rank"] = table.groupby("place").cumcount() + 1
    columns = [*TASK, "rank", "address", *HEAD, "importance_compared", "importance", *SCORES[1:]]
    columns += ["loss_change", "loss_rise", "removed_at_step", "removed_percent", "before_loss"]
    return table[columns]


def _steps(points: pd.DataFrame) -> pd.DataFrame:
    """Return, by the address of a head, the step of pruning by importance that removes it."""
    points = points.query(_BY_IMPORTANCE)
    steps = points.assign(address=points["heads"].str.split()).explode("address")
    first = steps.dropna(subset="address").drop_duplicates([*TASK, "address"])
    first = first.merge(judged(points)[[*TASK, "last_ok_percent"]], on=TASK)
    first["before_loss"] = np.where(first["percent"] <= first["last_ok_percent"], "yes", "no")
    names = {"heads_masked": "removed_at_step", "percent": "removed_percent"}
    return first.rename(columns=names)[[*TASK, "address", *names.values(), "before_loss"]]


def checkpoints(training: pd.DataFrame) -> pd.DataFrame:
    """Return scores as heads of checkpoints are pruned, no percentage for BLEU below `FLOOR`."""
    groups = training.groupby([*RUN, "update"], sort=False)
    whole = groups["score"].transform("first")
    ends = {"kept": training["score"]}
    ends |= {f"kept_{side}": whole + training[f"delta_{side}"] for side in ("low", "high")}
    kept = {k: 100 * v.clip(lower=0) / whole.where(whole >= FLOOR) for k, v in ends.items()}
    percent = 100 * training["index"] / groups["index"].transform("max")
    columns = [*RUN, "update", "test_set", "index", "percent", "heads_masked", "score", *kept]
    return training.assign(percent=percent, **kept)[columns].assign(_alike=100 - percent)


def training(
    points: FrameOf[checkpoints],
    training_heads: pd.DataFrame,
    settings: Settings,
    metric: str = BLEU,
) -> pd.DataFrame:
    """Return statistics of the profile and of the importance of every checkpoint."""
    keys = [*RUN, "update"]
    first = points.drop_duplicates(keys)[[*keys, "test_set", "score"]]
    profiles = points.groupby(keys).apply(_statistics)
    compared = as_compared(training_heads, keys, settings)
    importance = _of_importance(training_heads.assign(compared=compared))
    table = first.join(profiles, on=keys).merge(importance, on=keys, how="left", indicator=True)
    frames.refuse(
        table[table["_merge"] != "both"],
        "training_profile_heads.csv of {pair}, {run}, seed {seed}: expected importance at update "
        "{update}, found none; run scripts/training_profile.py again",
    )
    epochs = michel.training().groupby(["pair", "run", "update"], sort=False)
    epochs = epochs.apply(_statistics).reset_index()
    return frames.with_paper(table.drop(columns="_merge"), epochs, metric)


def _of_importance(heads: pd.DataFrame) -> pd.DataFrame:
    """Return the variation of importance at every update and its correlation with the last."""
    parts = []
    for key, rows in heads.groupby(RUN, sort=False):
        compared, raw = (
            rows.pivot(index=HEAD, columns="update", values=name) for name in ("compared", "value")
        )
        spread = compared.std(ddof=0) / compared.mean()
        table = pd.DataFrame({"cv": spread.where(compared.min() >= 0)})
        for name, values in {"spearman": compared, "spearman_raw": raw}.items():
            last = values[values.columns.max()]
            table[f"{name}_with_last"] = values.corrwith(last, method="spearman")
        parts.append(table.reset_index().assign(**dict(zip(RUN, key, strict=True))))
    return pd.concat(parts)


def _statistics(profile: pd.DataFrame) -> pd.Series:
    """Return what one profile keeps at `SHARES`, and how it differs from a straight line."""
    x = profile["percent"].to_numpy(float)
    names = [name for name in ("kept", "kept_low", "kept_high") if name in profile]
    cells = {
        f"{name}_{share}": np.interp(share, x, profile[name].to_numpy(float))
        for share in SHARES
        for name in names
    }
    kept = profile["kept"].to_numpy(float)
    if np.isnan(kept).any():
        return pd.Series(dict.fromkeys([*cells, "r_squared", "end_mass"], np.nan))
    residual, total = ((kept - np.polyval(np.polyfit(x, kept, 1), x)) ** 2).sum(), kept.var()
    cells["r_squared"] = 1 - residual / (len(kept) * total) if total else 1.0
    inner = kept[1:-1]
    near = (abs(inner - 100) <= _ENDS) | (abs(inner) <= _ENDS)
    return pd.Series(cells | {"end_mass": near.mean() if len(near) else np.nan})

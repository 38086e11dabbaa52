"""Decisions on which heads gates leave: their functions, kinds and layers."""

from math import nan, sqrt

import numpy as np
import pandas as pd

from headcount.base.addresses import KINDS
from headcount.findings.claims.estimates import ranks_agree, with_error
from headcount.findings.claims.evidence import MODEL, Evidence
from headcount.findings.claims.roles import heads_of_baseline, label_effect
from headcount.findings.claims.verdicts import (
    NOT_APPLICABLE,
    UNIT,
    Decision,
    between_corpora,
    by_model,
    judge,
    undecided,
)
from headcount.findings.results import BASE
from headcount.findings.significance import ALPHA

_CLASSES = ("positional", "syntactic", "rare")
_DRAWS = 9999


def functions_survive(evidence: Evidence) -> Decision:
    """Whether heads with a known function are left by more gates runs than others.

    Than others of their layers. Value: difference of mean survival, -1 to 1; p by shuffling
    functions within layers.
    """
    rows = heads_of_baseline(evidence).dropna(subset="survival")

    def decide(model: pd.DataFrame) -> Decision:
        marked = model["function"] != ""
        if marked.all() or not marked.any():
            return Decision(NOT_APPLICABLE, f"{marked.sum()} heads have a function", seeds=1)
        effect, p = label_effect(marked, model["survival"], model["layer"])
        reason = f"{marked.sum()} of {len(model)} heads have a function"
        found = (effect, nan, nan, p)
        return judge(effect > 0 and p < ALPHA, effect < 0 and p < ALPHA, reason, found)

    return by_model(rows, MODEL, decide)


def _retained(evidence: Evidence) -> pd.DataFrame:
    """Heads with each function in the baseline (no scope) and in what gates leave of it."""
    columns = ["scope", "start", "heads_left", "function", "heads", "labels"]
    rows = evidence.rows("figures/voita_fig8.csv", columns)
    return rows[rows["start"] == BASE].fillna({"scope": ""})


def _types(model: pd.DataFrame) -> set[str]:
    """Functions of Voita et al. that some head of a model has."""
    found = model[model["heads"].astype(int) > 0]["function"]
    words = set(" ".join(found.astype(str)).replace("unknown", "").split())
    # "rare or unknown" is the paper's; ours tell the two apart.
    return words & set(_CLASSES)


def functions_stay(evidence: Evidence, left: float, near: float) -> Decision:
    """Whether all functions of the full encoder are there with this share of its heads left.

    In the run nearest to it, no further than `near`. Value: share of the functions. P, of a verdict
    that it holds: that as many heads drawn at random would keep all of them.
    """
    rows = _retained(evidence)
    gated = (rows["scope"] != "").groupby([rows[name] for name in UNIT]).transform("any")

    def decide(model: pd.DataFrame) -> Decision:
        full, pruned = model[model["scope"] == ""], model[model["scope"] != ""]
        if full.empty:
            return undecided("the full model's functions are in no file", 1)
        whole, size = _types(full), int(full["heads_left"].iloc[0])
        apart = (pruned["heads_left"].astype(float) / size - left).abs()
        if not whole:
            return Decision(NOT_APPLICABLE, "no head has a function", seeds=1)
        if not (apart <= near).any():
            return undecided(f"no run leaves about {left:.0%} of the encoder's heads", 1)
        run = pruned[pruned["run"] == pruned.loc[apart.idxmin(), "run"]]
        count = int(run["heads_left"].iloc[0])
        kept, by_chance = _types(run) & whole, _kept_by_chance(full, whole, size, count)
        reason = f"{run['run'].iloc[0]}, {count} of {size} heads; {len(kept)} of {len(whole)} "
        reason += f"functions; by chance all with probability {by_chance:.2f}"
        share, p = len(kept) / len(whole), by_chance if kept == whole else nan
        return judge(p < ALPHA, kept != whole, reason, (share, nan, nan, p))

    return by_model(rows[gated.astype(bool)], UNIT, decide)


def _kept_by_chance(full: pd.DataFrame, whole: set[str], size: int, count: int) -> float:
    """Probability that `count` heads drawn from the full model have all of its functions."""
    heads = [
        {name for name in whole if name in row["function"].split()}
        for row in full.to_dict("records")
        for _ in range(int(row["heads"]))
    ]
    heads += [set()] * (size - len(heads))
    has = np.array([[name in head for name in sorted(whole)] for head in heads])
    order = np.random.default_rng(1).permuted(np.tile(np.arange(size), (_DRAWS, 1)), axis=1)
    return float(has[order[:, :count]].any(axis=1).all(axis=1).mean())


def functions_drift(evidence: Evidence) -> Decision:
    """Whether the labels per head rise as heads go, and some class of function gains heads.

    Value: rank correlation of labels per head with heads left, over a sweep. Fails if no pruned
    model has any label: a gain that a loss hides cannot be told from the counts. Not applicable if
    the full model has none either.
    """
    rows = _retained(evidence)

    def decide(sweep: pd.DataFrame) -> Decision:
        models = sweep.groupby("run", sort=False).agg(
            left=("heads_left", "first"), labels=("labels", "sum"), scope=("scope", "first")
        )
        models = models[models["left"].astype(int) > 0].astype({"left": float, "labels": float})
        pruned = models[models["scope"] != ""]
        if (models["labels"] == 0).all():
            return Decision(NOT_APPLICABLE, "no head has a function", seeds=1)
        if len(pruned) < 3:
            return undecided(f"{len(pruned)} pruned models", 1)
        counts = sweep.assign(heads=sweep["heads"].astype(int)).groupby(["function", "run"])
        table = counts["heads"].sum().unstack(fill_value=0)
        known = table.loc[[f for f in table.index if set(f.split()) & set(_CLASSES)]]
        full = models.index[models["scope"] == ""]
        gained = any(known[pruned.index].gt(known[run], axis=0).any(axis=None) for run in full)
        density, together = models["labels"] / models["left"], models["left"] * 0
        rho, p = ranks_agree(models["left"], density, together)
        none = bool((pruned["labels"] == 0).all())
        reason = f"{len(pruned)} pruned models; {'some' if gained else 'no'} class gains heads"
        return judge(gained and rho[0] < 0 and p < ALPHA, none, reason, (rho[0], nan, nan, p))

    pruned = rows[rows["scope"] != ""].assign(sweep=lambda found: found["scope"])
    full = rows[rows["scope"] == ""].merge(pruned[[*UNIT, "sweep"]].drop_duplicates(), on=UNIT)
    return by_model(pd.concat([full, pruned]), [*UNIT, "sweep"], decide)


def _priced(evidence: Evidence, name: str, columns: list[str]) -> pd.DataFrame:
    """Rows of a figure without controls (λ = 0), which may lose heads as well."""
    rows = evidence.rows(name, [*columns, "lambda"])
    return rows[rows["lambda"].astype(float) > 0]


def _kinds_left(evidence: Evidence, least: float) -> pd.DataFrame:
    """Share left of each kind where at least this share of all heads is gone: a run a row.

    `error`: standard error of the difference between encoder–decoder and encoder self-attention if
    as many were drawn from all heads, without replacement: of n drawn of N, and kinds of a and b
    heads, n (N - n) / (N (N - 1)) · (1 / a + 1 / b) is the variance.
    """
    columns = ["kind", "pruned", "heads", "heads_left"]
    rows = _priced(evidence, "figures/voita_fig9.csv", columns)
    if rows.empty:
        return pd.DataFrame(columns=[*MODEL, "pruned", *KINDS, "error"])
    rows = rows.astype(dict.fromkeys(columns[1:], float))
    rows["share"] = rows["heads_left"] / rows["heads"]
    wide = rows.pivot_table(["share", "heads"], [*MODEL, "pruned"], "kind")
    sizes, pruned = wide["heads"], wide.index.get_level_values("pruned")
    whole = sizes.sum(axis=1)
    variance = (whole - pruned) * pruned / (whole * (whole - 1))
    variance *= 1 / sizes["dec_enc"] + 1 / sizes["enc_self"]
    found = wide["share"].assign(error=variance**0.5)
    return found[pruned >= least * whole - 1e-9].reset_index()


def kinds_in_order(evidence: Evidence, pruned: float, points: int) -> Decision:
    """Whether encoder self-attention loses most heads, and decoder-encoder attention fewest.

    At most points of the sweep with at least the share `pruned` gone, and by the means over them.
    By the share of each kind that is left. Value: decoder-encoder minus encoder self-attention,
    mean; the interval is that of heads drawn at random, as wide as at the widest point, since
    points of a sweep hang together. Fewer than `points` decide nothing.
    """

    def decide(sweep: pd.DataFrame) -> Decision:
        if len(sweep) < points:
            return undecided(f"{len(sweep)} points with {pruned:.0%} of the heads gone", 1)
        enc, dec, cross = (sweep[kind] for kind in KINDS)
        ordered = (enc < sweep[["dec_self", "dec_enc"]].min(axis=1)) & (cross >= dec)
        mean = sweep[list(KINDS)].mean()
        straight = mean["enc_self"] < mean["dec_self"] <= mean["dec_enc"]
        turned = mean.idxmin() == "dec_enc" or mean.idxmax() == "enc_self"
        reason = f"in order at {ordered.sum()} of {len(sweep)} points"
        found = with_error(float(mean["dec_enc"] - mean["enc_self"]), float(sweep["error"].max()))
        holds = ordered.mean() > 0.5 and straight and found.p < ALPHA
        return judge(bool(holds), bool(turned and found.p < ALPHA), reason, found)

    return by_model(_kinds_left(evidence, pruned), UNIT, decide)


def place_of_decoder_self(evidence: Evidence, long: str, short: str, pruned: float) -> Decision:
    """Whether decoder self-attention stands higher between the others on the long corpus.

    Value: place of its share of heads left between those of encoder (0) and decoder-encoder
    attention (1), long minus short corpus, which pairs' names begin with; Welch's t over seeds.
    """
    rows = _kinds_left(evidence, pruned)
    place = (rows["dec_self"] - rows["enc_self"]) / (rows["dec_enc"] - rows["enc_self"])
    known = rows.assign(place=place.replace([np.inf, -np.inf], nan)).dropna(subset="place")
    by_seed = known.groupby(UNIT)["place"].mean().reset_index()
    return between_corpora(by_seed, "place", long, short)


def decoder_layers_in_order(evidence: Evidence) -> Decision:
    """Whether decoder self-attention is left in lower layers than decoder-encoder attention.

    Value: mean layer of heads left, decoder-encoder minus self, mean over the sweep's points; the
    interval is that of heads drawn at random from the layers, as wide as at the widest point, since
    points of a sweep hang together. Also needs self-attention below, and the other above, the
    middle.
    """
    columns = ["kind", "layers", "pruned", "heads_left"]
    rows = _priced(evidence, "figures/voita_fig10.csv", columns)
    ends = [[int(part) for part in str(cell).split("–")] for cell in rows["layers"]]  # 2, or 2–3
    rows = rows.assign(place=[np.mean(each) for each in ends], size=[len(each) for each in ends])
    return by_model(rows.astype({"heads_left": float, "pruned": float}), UNIT, _layers_in_order)


def _layers_in_order(sweep: pd.DataFrame) -> Decision:
    """As `decoder_layers_in_order`, of one sweep."""
    groups = sweep.drop_duplicates("place")
    points, middle = [], np.average(groups["place"], weights=groups["size"])
    for _, run in sweep.groupby("run", sort=False):
        sides = [run[run["kind"] == kind] for kind in ("dec_self", "dec_enc")]
        if all(side["heads_left"].sum() and side["pruned"].iloc[0] for side in sides):
            means = [np.average(side["place"], weights=side["heads_left"]) for side in sides]
            points.append((*means, sqrt(sum(map(_variance, sides)))))
    if not points:
        return undecided("no point prunes both kinds of the decoder and leaves some of each", 1)
    low, high, errors = map(np.array, zip(*points, strict=True))
    found = with_error(float((high - low).mean()), float(errors.max()))
    apart = low.mean() < middle < high.mean()
    reason = f"{len(points)} points; mean layers {low.mean():.2f} and {high.mean():.2f}"
    sure = found.p < ALPHA
    return judge(found.value > 0 and sure and apart, found.value < 0 and sure, reason, found)


def _variance(side: pd.DataFrame) -> float:
    """Of the mean place of as many heads, drawn from layers that all had equally many."""
    left = side["heads_left"].sum()
    whole = left + side["pruned"].iloc[0]
    apart = side["place"] - np.average(side["place"], weights=side["size"])
    spread = np.average(apart**2, weights=side["size"])
    return float(spread / left * (whole - left) / (whole - 1))

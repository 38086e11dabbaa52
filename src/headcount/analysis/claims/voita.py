"""Numbers of the claims of Voita et al.: relevance and functions of heads, heads left by gates."""

from collections.abc import Iterator
from math import comb

import numpy as np
import pandas as pd

from headcount.analysis.claims import estimates as est
from headcount.analysis.claims.claims import MODEL, UNIT
from headcount.analysis.claims.estimates import BOUNDS
from headcount.analysis.frames import BASE
from headcount.analysis.stats import shuffled_p

SWEEP, LAYER = [*UNIT, "test_set"], [*MODEL, "layer"]
_SHUFFLES = 9999


def relevant_heads(roles: pd.DataFrame) -> pd.DataFrame:
    """Return the top head's relevance over the layer's mean, of the layer that makes a majority."""
    mean = roles.groupby(LAYER)["value"].transform("mean")
    heads = roles.assign(**roles[BOUNDS].div(mean, axis=0))
    tops = est.largest(heads, "value", LAYER).sort_values("value", ascending=False)
    places, sizes = tops.groupby(MODEL).cumcount(), tops.groupby(MODEL)["value"].transform("size")
    return tops[places == sizes // 2]


def _leaders(roles: pd.DataFrame, by: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the most relevant head of every first layer, and of the others there the best."""
    first = roles[roles["layer"] == 0]
    lead = est.largest(first, "value", MODEL)
    return lead, est.largest(first.drop(lead.index), by, MODEL)


def dominant_head(roles: pd.DataFrame) -> pd.DataFrame:
    """Return the relevance of the first layer's most relevant head over that of the next."""
    return est.contrast(*_leaders(roles, "value"), MODEL, ratio=True)


def rare_head_leads(roles: pd.DataFrame, quantile: float) -> pd.DataFrame:
    """Return 1 if the first layer's most relevant head leads in rare words and is unsure."""
    lead, other = _leaders(roles, "rare_two_rarest")
    rows = lead.merge(other, on=MODEL, suffixes=("", "_other"))
    bar = roles.groupby(MODEL)["confidence"].quantile(quantile).rename("bar")
    rare = rows["rare_two_rarest"] > rows["rare_two_rarest_other"]
    unsure = rows["confidence"] < rows.join(bar, on=MODEL)["bar"]
    return est.exact(rows, (rare & unsure).astype(float))


def best_share(
    rows: pd.DataFrame, role_facts: pd.DataFrame, by: str, sentences: str, part: str = ""
) -> pd.DataFrame:
    """Return the largest share of cases of all heads (of parts), with intervals by sentences."""
    best = est.largest(rows, by, [*MODEL, part] if part else MODEL).merge(role_facts, on=MODEL)
    named = best.assign(part=best[part].map("{:+g}".format)) if part else best
    return est.of_trials(named, named[by], named[sentences])


def marked_heads(roles: pd.DataFrame, label: str, measures: list[str]) -> pd.DataFrame:
    """Return mean ranks (0 to 1) of heads with a label minus the others', above layer means."""

    def leads(model: pd.DataFrame) -> Iterator[dict]:
        marked, layers = model[label].astype(bool), model["layer"]
        for name in measures if marked.nunique() > 1 else ():
            ranks = model[name].rank(pct=True)
            above = ranks - ranks.groupby(layers).transform("mean")
            p = shuffled_p(marked.to_numpy(float), above.to_numpy(), layers.to_numpy(), _SHUFFLES)
            gap = above[marked].mean() - above[~marked].mean()
            yield {"value": gap, "shuffled_p": p, "part": name}

    return est.by_group(roles.dropna(subset=measures), MODEL, leads)


def known_heads(roles: pd.DataFrame) -> pd.DataFrame:
    """Return the share of the most relevant heads with a function, and of the most confident."""
    size = roles.groupby(MODEL)["known"].transform("sum")
    ranks = roles.groupby(MODEL)[["value", "confidence"]].rank("first", ascending=False)
    heads = roles.assign(size=size, confidence=ranks["confidence"] <= size)
    top = heads[ranks["value"] <= size].groupby([*MODEL, "size"])[["known", "confidence"]].mean()
    rows = top.reset_index().melt([*MODEL, "size"], var_name="part", value_name="share")
    return est.of_trials(rows, rows["share"], rows["size"])


def relation_margin(relations: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Return the accuracy of a relation's best head above the positional baseline."""
    rows = relations[relations["relation"].isin(names)]
    rows = est.of_trials(rows, rows["held_out"], rows["trials"] / 2)
    margins = rows[BOUNDS].sub(rows["baseline"], axis=0)
    return rows.assign(**margins, part=rows["relation"] + " " + rows["direction"])


def unlabelled_cost(encoder_gates: pd.DataFrame, roles: pd.DataFrame) -> pd.DataFrame:
    """Return the score change with as many encoder heads as have a function in the full model."""
    known = roles[roles["run"] == BASE].groupby(UNIT)["known"].mean().rename("known")
    rows = encoder_gates.join(known, on=UNIT)
    rows = rows.assign(place=1 - rows["known"])[rows["known"] > 0]
    return est.at_share(rows, "gone", SWEEP)


def settled_gates(gates: pd.DataFrame, history: pd.DataFrame, moving: float) -> pd.DataFrame:
    """Return the smallest share of gates nearly open or closed, of runs with settled gates."""
    probabilities = history.sort_values("step").groupby([*MODEL, "kind", "layer", "head"])["p_open"]
    moved = probabilities.agg(lambda p: p.diff().abs().iloc[-1]).groupby(MODEL).mean()
    rows = gates.join(moved.rename("moved"), on=MODEL)
    least = rows[rows["moved"] < moving].sort_values("polarised").drop_duplicates([*UNIT, "scope"])
    return est.exact(least, least["polarised"])


def penalty_rank(sweeps: pd.DataFrame) -> pd.DataFrame:
    """Return the rank correlation of λ and heads left in every sweep, with p by shuffling λ."""

    def correlation(sweep: pd.DataFrame) -> Iterator[dict]:
        sides = [sweep[name].rank().to_numpy() for name in ("lambda", "scope_left")]
        if len(sweep) > 2 and np.ptp(sides[1]):
            p = shuffled_p(*sides, np.zeros(len(sweep)), _SHUFFLES)
            yield {"value": np.corrcoef(*sides)[0, 1], "shuffled_p": p}

    return est.by_group(sweeps.drop_duplicates(MODEL), [*UNIT, "scope"], correlation)


def start_gain(gates: pd.DataFrame, random_gates: pd.DataFrame, near: float) -> pd.DataFrame:
    """Return scores of gates on a trained model minus gates on random weights, as many closed."""
    both = gates.merge(random_gates, on=[*SWEEP, "scope"], suffixes=("", "_2"))
    alike = both[(both["gone"] - both["gone_2"]).abs() <= near]
    return alike.assign(value=alike["score"] - alike["score_2"], low=np.nan, high=np.nan)


def scratch_gain(contenders: pd.DataFrame, sweeps: pd.DataFrame) -> pd.DataFrame:
    """Return scores of a twin from scratch minus the pruned model's, with the fewest heads."""
    rows = _beside_gates(contenders[contenders["contender"] == "scratch"], sweeps)
    return rows[rows["heads_left"] == rows.groupby(SWEEP)["heads_left"].transform("min")]


def ranking_gain(contenders: pd.DataFrame, sweeps: pd.DataFrame, near: float) -> pd.DataFrame:
    """Return scores of pruning by importance minus gates, at a half and three quarters pruned."""
    rows = _beside_gates(contenders[contenders["contender"] == "ranked"], sweeps)
    gone = 1 - rows["heads_left"] / rows["heads"]
    parts = [rows[(gone - s).abs() <= near].assign(part=f"{s:.0%}") for s in (0.5, 0.75)]
    return pd.concat(parts)


def _beside_gates(contenders: pd.DataFrame, sweeps: pd.DataFrame) -> pd.DataFrame:
    """Return contenders of gates on the baseline, with the number of all heads."""
    runs = sweeps.drop_duplicates(MODEL).rename(columns={"run": "gates_run"})
    return contenders.merge(runs[[*UNIT, "gates_run", "heads"]], on=[*UNIT, "gates_run"])


def _pruned_functions(functions: pd.DataFrame) -> pd.DataFrame:
    """Return heads by function of pruned models, beside the columns `_full` of the full model."""
    full, keys = functions[functions["scope"].isna()], [*UNIT, "function"]
    pruned = functions[functions["scope"].notna() & (functions["heads_left"] > 0)]
    rows = pruned.merge(full[[*keys, "heads", "heads_left"]], on=keys, suffixes=("", "_full"))
    return rows[rows.groupby(MODEL)["heads_full"].transform("sum") > 0]


def functions_left(functions: pd.DataFrame, left: float, near: float) -> pd.DataFrame:
    """Return the share of functions in the model whose heads left are nearest to a share."""
    rows = _pruned_functions(functions)
    names = rows["function"].str.split(" and ")
    apart = (rows["heads_left"] / rows["heads_left_full"] - left).abs()
    closest = apart.groupby([rows[key] for key in UNIT]).transform("min")
    single = rows.assign(name=names)[(apart <= near) & (apart == closest)].explode("name")
    counts = single.groupby([*MODEL, "name"])[["heads_full", "heads"]].sum()
    kept = (counts["heads"] > 0)[counts["heads_full"] > 0].groupby(MODEL).mean().reset_index()
    return est.exact(kept, kept["heads"])


def new_functions(functions: pd.DataFrame, pruned: float) -> pd.DataFrame:
    """Return the share of heads left by which groups with the same functions grew."""
    rows = _pruned_functions(functions)
    rows = rows[rows["heads_left"] <= (1 - pruned) * rows["heads_left_full"]]
    grown = rows.assign(grown=(rows["heads"] - rows["heads_full"]).clip(lower=0))
    models = grown.groupby(MODEL).agg({"grown": "sum", "heads_left": "first"}).reset_index()
    return est.of_trials(models, models["grown"] / models["heads_left"], models["heads_left"])


def kinds_in_order(kinds_left: pd.DataFrame, pruned: float, points: int) -> pd.DataFrame:
    """Return the share of cross-attention heads left minus that of encoder self-attention."""
    heads, left = _by_kind(kinds_left, pruned)
    total, whole = left.sum(axis=1), heads.sum(axis=1)
    drawn = (whole - total) * total / (whole * (whole - 1))  # variance of heads drawn at random
    error = (drawn * (1 / heads["dec_enc"] + 1 / heads["enc_self"])) ** 0.5
    apart = left["dec_enc"] / heads["dec_enc"] - left["enc_self"] / heads["enc_self"]
    rows = pd.DataFrame({"apart": apart, "error": error}).reset_index()
    rows = est.exact(rows, rows["apart"], rows["error"])
    return rows[rows.groupby(UNIT)["value"].transform("size") >= points]


def place_of_decoder(kinds_left: pd.DataFrame, pruned: float) -> pd.DataFrame:
    """Return where decoder self-attention stands between encoder (0) and cross-attention (1)."""
    heads, left = _by_kind(kinds_left, pruned)
    place = (left / heads).eval("(dec_self - enc_self) / (dec_enc - enc_self)")
    rows = place[np.isfinite(place)].rename("value").reset_index()
    return rows.assign(low=np.nan, high=np.nan)


def _by_kind(kinds_left: pd.DataFrame, least: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return heads, and heads left, by attention type, of runs that lost this share of all."""
    heads, left = (kinds_left.pivot_table(name, MODEL, "kind") for name in ("heads", "heads_left"))
    enough = 1 - left.sum(axis=1) / heads.sum(axis=1) >= least - 1e-9
    return heads[enough], left[enough]


def layers_in_order(layers_left: pd.DataFrame) -> pd.DataFrame:
    """Return the mean layer of cross-attention heads left minus that of decoder self-attention."""
    ends = layers_left["layers"].astype(str).str.extract(r"^(\d+)\D*(\d*)$").apply(pd.to_numeric)
    rows = layers_left.assign(place=ends.mean(axis=1))
    rows["moment"] = rows["place"] * rows["heads_left"]
    sums = rows.groupby([*MODEL, "kind"])[["moment", "heads_left"]].sum()
    means = (sums["moment"] / sums["heads_left"]).unstack().reindex(columns=["dec_enc", "dec_self"])
    spread = rows.groupby([*MODEL, "kind"])["place"].var(ddof=0)  # of heads drawn at random
    error = (spread / sums["heads_left"]).unstack().sum(axis=1) ** 0.5
    apart = pd.DataFrame({"apart": means["dec_enc"] - means["dec_self"], "error": error})
    rows = apart.dropna().reset_index()
    return est.exact(rows, rows["apart"], rows["error"])


def all_measures(agreement: pd.DataFrame, measures: list[str]) -> pd.DataFrame:
    """Return rank correlations of every two measures of encoder heads, where all were measured."""
    rows = agreement[agreement["first"].isin(measures) & agreement["second"].isin(measures)]
    whole = rows[rows.groupby(MODEL)["value"].transform("size") == comb(len(measures), 2)]
    return whole.assign(part=whole["first"] + " and " + whole["second"])


def copy_share(copied: pd.DataFrame) -> pd.DataFrame:
    """Return the share of copied rare subwords at which the best head points."""
    counts = copied.reindex(columns=[*MODEL, "copy_hits", "copy_trials"])
    rows = counts[counts["copy_trials"] > 0]  # older files have no counts
    return est.of_trials(rows, rows["copy_hits"] / rows["copy_trials"], rows["copy_trials"])

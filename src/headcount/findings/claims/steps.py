"""Decisions on heads pruned in steps: how many, in which order, how early, how fast."""

from math import exp, log

import pandas as pd

from headcount.findings.claims.estimates import EFFECT, change_of, small_loss, sum_of_means
from headcount.findings.claims.evidence import MODEL, TEST, Evidence
from headcount.findings.claims.verdicts import Decision, by_model, contrasts, judge, undecided
from headcount.findings.kinds import SCOPES
from headcount.findings.significance import ALPHA

_ORDERS = {
    "importance": "importance",
    "importance_raw": "importance not normalised",
    "importance_signed": "signed importance",
    "single": "the effect of each alone",
}


def _curves(evidence: Evidence) -> pd.DataFrame:
    """BLEU as heads of all kinds are pruned, in every order."""
    columns = ["test_set", "scope", "order", "percent", "bleu", *EFFECT]
    rows = evidence.baseline("figures/michel_pruning.csv", columns)
    return rows[rows["scope"] == "all"].astype({"percent": float})


def prunable_share(
    evidence: Evidence, percent: float, limit: float, bound: float, early: float
) -> Decision:
    """Whether at least `percent` of the heads can go by importance with a small loss of BLEU.

    Value: the BLEU change there. Fails if that clearly loses more than `bound`, and so does a step
    of `early` percent or fewer.
    """
    rows = _curves(evidence)

    def decide(model: pd.DataFrame) -> Decision:
        far = model[model["percent"] >= percent - 1e-9]
        row = far.loc[far["percent"].idxmin()]
        first = model[(model["percent"] > 0) & (model["percent"] <= early + 1e-9)]
        lost = first[first["delta_high"] < -bound]
        fails = bool(len(lost) and row["delta_high"] < -bound)
        reason = f"at {row['percent']:.0f} % of the heads pruned"
        found = change_of(row, tested=False)
        found += [max(row["p"], lost["p"].min())] * fails
        return judge(small_loss(row, limit, bound), fails, reason, found)

    return by_model(rows[rows["order"] == "importance"], TEST, decide)


def one_per_layer_fails(evidence: Evidence, share: float, loss: float, small: float) -> Decision:
    """Whether one head in every layer loses more than `share` of BLEU, or more than `loss`.

    Value: the BLEU change. Fails if it loses less than `small`.
    """
    rows = _curves(evidence)

    def decide(model: pd.DataFrame) -> Decision:
        row = model.iloc[0]
        most = max(-loss, -share * (row["bleu"] - row["delta"]))
        reason = f"{row['percent']:.0f} % of the heads gone"
        fails = row["delta_low"] > -small
        holds = row["delta_high"] < most
        return judge(holds, fails, reason, change_of(row, tested=holds))

    return by_model(rows[rows["order"] == "one_per_layer"], TEST, decide)


def area_compared(evidence: Evidence, others: list[str], against: str, below: bool) -> Decision:
    """Whether areas under the pruning curve lie below (or above) that of `against`, all of them.

    Curves are named `<scope>/<order>`. Value: difference to it, of the one that is nearest, or
    furthest on the other side; where the claim fails, of those that fail it.
    """
    columns = ["test_set", "scope", "order", "against", *EFFECT]
    rows = evidence.baseline("tables/michel_areas.csv", columns)
    rows = rows[(rows["against"] == against) & (rows["scope"] + "/" + rows["order"]).isin(others)]

    def decide(model: pd.DataFrame) -> Decision:
        if len(model) < len(others):
            return undecided("a curve is missing", 1)
        gaps = model["delta"] * (-1 if below else 1)
        low = -model["delta_high"] if below else model["delta_low"]
        high = -model["delta_low"] if below else model["delta_high"]
        holds = (low > 0) & (model["p"] < ALPHA)
        tests = len(others) if (high < 0).any() else 1
        fails = (high < 0) & (model["p"] * tests < ALPHA)
        nearest = model.loc[(gaps[fails] if fails.any() else gaps).idxmin()]
        reason = f"{_curve(nearest['scope'], nearest['order'])} against "
        reason += _curve(*against.split("/"))
        p = nearest["p"] if fails.any() else model["p"].max()
        found = (*nearest[EFFECT[:3]], p)
        return judge(bool(holds.all()), bool(fails.any()), reason, found, tests=tests)

    return by_model(rows, TEST, decide)


def _curve(scope: str, order: str) -> str:
    """What is pruned in which order, in words."""
    return f"{SCOPES[scope]} by {_ORDERS[order]}"


def concentrates(evidence: Evidence, floor: float) -> Decision:
    """Whether the pruning profile is less of a line, and nearer its ends, late than early.

    First against last checkpoint, over trainings; those whose first has BLEU below `floor`, and so
    no profile in the table, are left out, since nothing can fall there.
    """
    names = ["r_squared", "end_mass"]
    rows = evidence.baseline("tables/michel_training.csv", ["update", "bleu", *names])
    by_time = rows.astype({"update": int, "bleu": float}).sort_values("update")
    first, last = (
        by_time.drop_duplicates(MODEL, keep=end).set_index(MODEL).sort_index()
        for end in ("first", "last")
    )
    kept = first["bleu"] >= floor
    if len(first) and not kept.any():
        return undecided(f"the first checkpoint has BLEU below {floor:g}", len(first))
    changes = last[kept][names].astype(float) - first[kept][names].astype(float)
    return contrasts({"R² of a line": changes["r_squared"], "end mass": -changes["end_mass"]})


def early_distinction(evidence: Evidence, kept: float, first: float, early: float) -> Decision:
    """Whether `kept` percent of BLEU stay at 40 % pruned within the share `early` of the training.

    And fewer than `first` percent at the first checkpoint, which has learnt least. Value: percent
    kept at the best of the early checkpoints after it; without one nothing is decided. Fails if of
    those up to half of the training no interval reaches `kept`. A checkpoint without a profile has
    learnt too little to tell.
    """
    names = ["kept_40", "kept_low_40", "kept_high_40"]
    rows = evidence.baseline("tables/michel_training.csv", ["test_set", "update", *names])
    rows = rows.astype({"update": int} | dict.fromkeys(names, float)).sort_values("update")

    def decide(model: pd.DataFrame) -> Decision:
        start, last = model.iloc[0], model["update"].max()
        known = model.dropna(subset=names)
        if known.empty:
            return undecided("no checkpoint has a profile", 1)
        share = known["update"] / last
        later = known["update"] > start["update"]
        soon, half = known[later & (share <= early)], known[share <= 0.5]
        if soon.empty:
            return undecided(f"no checkpoint after the first within {early:.0%} of the training", 1)
        best = soon.nlargest(1, "kept_40").iloc[0]
        holds = best["kept_low_40"] >= kept and start["kept_high_40"] < first
        fails = (half["kept_high_40"] < kept).all() and share[half.index[-1]] > 0.25
        reason = f"update {best['update']:.0f} of {last}"
        return judge(bool(holds), bool(fails), reason, best[names])

    return by_model(rows, TEST, decide)


def faster_without(evidence: Evidence, percent: float) -> Decision:
    """Whether a model without `percent` of its heads is faster at the largest batch.

    And gains more there than at the smallest, by a test as well. Value: sentences per second over
    those of the whole model, Welch's t on the logarithms of the repeats' means; of encoding and
    decoding each. Fails if it is slower at the largest batch.
    """
    columns = ["phase", "batch_size", "percent", "repeats", "mean", "sd"]
    rows = evidence.baseline("figures/michel_speed.csv", columns)

    def decide(model: pd.DataFrame) -> Decision:
        sizes = sorted(model["batch_size"].unique())
        logs = [_log_rates(model[model["batch_size"] == size], percent) for size in sizes]
        if min(map(len, logs)) < 2 or len(sizes) < 2:
            return undecided(f"{percent:g} % at two batch sizes is not timed", 1)
        if any(count < 2 for each in logs for *_, count in each):
            return undecided("one repeat has no interval", 1)
        most, less = (sum_of_means(each) for each in (logs[-1], logs[0]))
        growth = sum_of_means([*logs[-1], *((-mean, square, n) for mean, square, n in logs[0])])
        reason = f"{model['phase'].iloc[0]}: {exp(most.value):.2f} at batch {sizes[-1]}, "
        reason += f"{exp(less.value):.2f} at batch {sizes[0]}"
        fails = most.high < 0
        found = (*map(exp, most[:3]), most.p if fails else max(most.p, growth.p))
        return judge(most.low > 0 and growth.low > 0, fails, reason, found)

    return by_model(rows, [*MODEL, "phase"], decide)


def importance_is_cheap(evidence: Evidence, most: float, fail: float) -> Decision:
    """Whether importance takes at most `most` times as long as training on the same sentences.

    Value: the ratio, with its interval over repeats. Fails if all of that is above `fail`.
    """
    columns = ["repeats", "importance", "training", "ratio", "ratio_low", "ratio_high"]
    rows = evidence.baseline("tables/michel_importance_speed.csv", columns).dropna(subset=columns)

    def decide(model: pd.DataFrame) -> Decision:
        repeats, ours, theirs, *found = model[columns].iloc[0].astype(float)
        reason = f"{ours:.3g} s beside {theirs:.3g} s, {repeats:.0f} repeats"
        return judge(found[2] <= most, found[1] > fail, reason, found)

    return by_model(rows, MODEL, decide)


def _log_rates(rows: pd.DataFrame, percent: float) -> list[tuple[float, float, int]]:
    """Log speed without `percent` of the heads, and minus that with all; see `sum_of_means`."""
    return [
        (sign * log(row["mean"]), (row["sd"] / row["mean"]) ** 2 / row["repeats"], row["repeats"])
        for share, sign in ((percent, 1), (0, -1))
        for row in rows[rows["percent"] == share].to_dict("records")
    ]


def attention_share(evidence: Evidence, least: float, most: float) -> Decision:
    """Whether the heads hold a share of a model's parameters between `least` and `most`.

    By what a model without some heads lacks; embeddings count among all parameters.
    """
    columns = ["percent", "heads_left", "parameters"]
    rows = evidence.baseline("figures/michel_speed.csv", columns).dropna(subset=columns)

    def decide(model: pd.DataFrame) -> Decision:
        found = model.astype({"heads_left": int, "parameters": int})
        sizes = found["heads_left"]
        whole, few = found.loc[sizes.idxmax()], found.loc[sizes.idxmin()]
        gone = whole["heads_left"] - few["heads_left"]
        if not gone:
            return undecided("no model without some heads", 1)
        each = (whole["parameters"] - few["parameters"]) / gone
        share = float(each * whole["heads_left"] / whole["parameters"])
        reason = f"{each:.0f} of {whole['parameters']} parameters a head, embeddings counted"
        inside = least <= share <= most
        return judge(inside, not inside, reason, (share,))

    return by_model(rows, MODEL, decide)

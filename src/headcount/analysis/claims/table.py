"""The table of claims: a verdict on every claim that the results measure."""

import inspect
from collections.abc import Callable
from math import erfc, isnan, nan, sqrt
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from headcount.analysis.captions import note
from headcount.analysis.claims import claims as papers
from headcount.analysis.claims import estimates, voita
from headcount.analysis.claims.claims import MODEL, UNIT, Evidence, ledger
from headcount.analysis.claims.estimates import BOUNDS
from headcount.analysis.stats import ALPHA, Z, paired_t
from headcount.analysis.writer import bounds

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"
COLUMNS = ["claim", "paper", "place", "statement", "printed", "verdict", "reason_code", "reason"]
COLUMNS += ["statistic", "part", "value", "low", "high", "side", "limit", "limits_from", "p"]
COLUMNS += ["p_adjusted", "tests", "scope", "seeds", "about", "collapsed", "paper_value"]
COLUMNS += ["difference", "experiments", "files", "needs", "run_by"]
_SMALLEST_P = 1 / 1001  # of 1,000 resamples
_SCALES = {
    "difference": (lambda number: number, lambda number: number),
    "ratio": (lambda number: np.log(np.maximum(number, 1e-9)), np.exp),
    "correlation": (lambda number: np.arctanh(np.clip(number, -0.9999, 0.9999)), np.tanh),
}


def metric_of(claim: papers.Claim) -> tuple[Callable, dict[str, Any], list[str]]:
    """Return the function of a claim's number, its arguments, and the sources that it reads."""
    ((metric, given),) = claim.metric.items()
    modules = (module for module in (estimates, voita) if hasattr(module, metric))
    function = getattr(next(modules), metric)
    frames = {
        parameter.name: given.get(parameter.name, parameter.name)
        for parameter in inspect.signature(function).parameters.values()
        if parameter.annotation is pd.DataFrame
    }
    compares = ["runs", "sizes"] if claim.test.compare else []
    return function, given | frames, [*frames.values(), *compares]


def measure(claim: papers.Claim, evidence: Evidence) -> pd.DataFrame:
    """Return a claim's number for every model, without rows if its runs are not there."""
    function, arguments, sources = metric_of(claim)
    frames = {key: evidence.frame(key, claim.needs.structure) for key in sources}
    if any(frame.empty for frame in frames.values()):
        return pd.DataFrame()
    rows = function(**{key: frames.get(str(given), given) for key, given in arguments.items()})
    if claim.test.compare and len(rows):
        names = ["experiment", "pair", "run"]  # seeds that are not measured have the same heads
        sizes = frames["sizes"][[*names, "heads"]].drop_duplicates()
        runs = frames["runs"].merge(sizes, on=names)
        rows = estimates.compared(rows, runs, claim.test.compare, claim.test.scale == "ratio")
    if "value" not in rows or rows["value"].isna().all():
        return pd.DataFrame()
    one_model = evidence.frame("shared_heads", structure=True).get("experiment", pd.Series())
    return rows.assign(training=_trainings(rows, set(one_model)))


def _trainings(rows: pd.DataFrame, one_model: set[str]) -> pd.Series:
    """Return the training behind each number: a pair's and seed's, or a seed's of one model."""
    owners = rows["pair"].mask(rows["experiment"].isin(one_model), rows["experiment"])
    return owners.astype(str) + ", seed " + rows["seed"].astype(str)


def claims_table(evidence: Evidence) -> pd.DataFrame:
    """Return a row with columns of `COLUMNS` for every claim that the results measure."""
    rows = []
    for name, claim in ledger().claims.items():
        numbers = measure(claim, evidence)
        decision = None if numbers.empty else decide(numbers, claim.test)
        if decision:
            rows.append(decision | _about(name, numbers, evidence))
    if not rows:
        return pd.DataFrame(columns=COLUMNS)
    table = pd.DataFrame(rows)
    table["difference"] = table["value"] - table["paper_value"]
    table["p_adjusted"] = table.groupby(table["claim"].map(papers.paper_of))["p"].transform(
        corrected
    )
    table[["verdict", "reason_code"]] = [_verdict(row) for row in table.to_dict("records")]
    table["reason"] = [_reason(row) for row in table.to_dict("records")]
    return table[~table["missing"] | (table["verdict"] == FAILS)].reindex(columns=COLUMNS)


def _about(name: str, numbers: pd.DataFrame, evidence: Evidence) -> dict[str, Any]:
    """Return the cells of a claim that do not depend on the decision."""
    claim = ledger().claims[name]
    paths = evidence.files(metric_of(claim)[2])
    places = [papers.place_of(path) for path in paths]
    names = [columns for columns in (MODEL, [*UNIT, "run_2"]) if set(columns) <= set(numbers)]
    models = {tuple(row) for columns in names for row in numbers[columns].to_numpy()}
    failed = evidence.frame("collapse", structure=True)[MODEL].itertuples(index=False, name=None)
    return {
        "claim": name, "paper": papers.PAPERS[papers.paper_of(name)], "place": claim.place,
        "statement": claim.statement, "statistic": claim.statistic, "about": claim.test.about,
        "limits_from": claim.test.source, "printed": papers.printed_line(name),
        "paper_value": papers.paper_value(name), "needs": claim.needs.run,
        "collapsed": "; ".join("{3}, seed {2} of {1}".format(*m) for m in failed if m in models),
        "experiments": " ".join(sorted({experiment for _, experiment, *_ in places})),
        "files": " ".join("/".join(path.parts[-3 if len(place) == 2 else -6 :])
                          for path, place in zip(paths, places, strict=True)),
        "run_by": " ".join(claim.needs.experiments),
    }  # fmt: skip


def corrected(p: pd.Series) -> pd.Series:
    """Return p of several claims, corrected for false discoveries (Benjamini & Hochberg 1995)."""
    known = p.dropna().sort_values(ascending=False)
    ranks = np.arange(len(known), 0, -1)
    return (known * len(known) / ranks).cummin().reindex(p.index)


def _verdict(row: dict[str, Any]) -> tuple[str, str]:
    """Return verdict and reason code of a decision."""
    if row["sure"] if isnan(row["p"]) else row["p_adjusted"] < ALPHA:
        return (HOLDS if row["holds"] else FAILS), "beyond_limit"
    if row["p"] < ALPHA:
        return UNDECIDED, "after_correction"
    inside = not row["opposed"] or row["low"] <= row["limit"] <= row["high"]
    return UNDECIDED, "limit_in_interval" if inside else "models_disagree"


def _reason(row: dict[str, Any]) -> str:
    """Return the reason for a verdict as a sentence, from its code and numbers."""
    number = bounds(*(pd.Series([row[end]]) for end in ("value", "low", "high")))
    word = ("at", "above", "below")[int(np.sign(row["value"] - row["limit"]))]
    text = ledger().reasons[row["reason_code"]].format(number=number, word=word, limit=row["limit"])
    part = f"{row['part']}: " if row["part"] else ""
    collapsed = f"; collapsed: {row['collapsed']}" if row["collapsed"] else ""
    return f"{part}{text} ({row['scope']}){collapsed}"


@note
def verdict_counts(frame: pd.DataFrame) -> str:
    """Return how many claims hold, and how many need other experiments."""
    counts = {verdict: sum(frame["verdict"] == verdict) for verdict in (HOLDS, FAILS, UNDECIDED)}
    shown = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    others = len(ledger().claims) - len(frame)
    return f"Claims of the papers: {shown}. {others} more need other experiments."


def claims_page() -> str:
    """Return the list of all claims, with the numbers and limits that decide them."""
    text = "# The claims of the papers\n\n[Claims](claims.md) explains numbers and limits.\n"
    for paper, title in papers.PAPERS.items():
        text += f"\n## {title[0].upper()}{title[1:]}\n"
        claims = {
            name: claim for name, claim in ledger().claims.items() if papers.paper_of(name) == paper
        }
        for name, claim in claims.items():
            limits = claim.test.model_dump(include={"above", "below"}, exclude_none=True).items()
            holds = " and ".join(f"{side} {str(limit).strip('{}')}" for side, limit in limits)
            source = f" ({claim.test.source})" if claim.test.source else ""
            text += f"\n**{name}**, {claim.place}: {claim.statement}\n\n"
            text += f"- Number: {claim.statistic}\n- Holds: {holds}{source}\n"
            text += f"- Needs: {claim.needs.run}\n"
    return text


def decide(rows: pd.DataFrame, test: papers.Rule) -> dict[str, Any] | None:
    """Return the direction in which the numbers point, and the part and numbers that decide it.

    All parts must hold, or one must fail, by Bonferroni's p. None if no number has an interval.
    """
    parts = dict(list(rows.groupby("part"))) if "part" in rows else {"": rows}
    given = test.model_dump(include={"above", "below"}, exclude_none=True)
    limits = [(side, part, limit[part] if isinstance(limit, dict) else limit)
              for side, limit in given.items()
              for part in (limit if isinstance(limit, dict) else parts)]  # fmt: skip
    known = {part: group.dropna(subset="value") for part, group in parts.items()}
    estimates = [estimate(known[part], limit, side, test) | {"part": part}
             for side, part, limit in limits if len(known.get(part, ""))]  # fmt: skip
    table = pd.DataFrame(estimates)
    if table.empty or table["q"].isna().all():
        return None
    table = table.iloc[(table["value"] - table["limit"]).abs().argsort()].fillna({"q": 1.0})
    against, favour = (table["q"].where(table["right"] == side, 1) for side in (False, True))
    missing = len(estimates) < len(limits)
    p_fails, p_holds = against.min() * len(table), 1.0 if missing else favour.max()
    part = table.loc[against.idxmin() if p_fails < p_holds else favour.idxmax()].to_dict()
    p = min(p_fails, p_holds, 1.0)
    numbers = {"sure": p == 0, "p": p if part["tested"] else nan, "tests": len(table)}
    return part | numbers | {"holds": p_holds <= p_fails, "missing": missing}


def estimate(rows: pd.DataFrame, limit: float, side: str, test: papers.Rule) -> dict[str, Any]:
    """Return the mean of the models with its interval, and q, its p against the limit."""
    to, back = _SCALES[test.scale]
    scaled = to(rows.reindex(columns=BOUNDS).astype(float)) - to(limit)
    models = scaled.groupby([rows["pair"], rows["seed"]]).mean(skipna=False)
    seeds = _by_seed(models["value"])
    value, low, high = models.mean(skipna=False)
    if over_seeds := test.about == "trainings" and len(seeds) > 1:
        value, (low, high, q), tested = seeds.mean(), paired_t(seeds.to_numpy()), True
    elif tested := low != high and bool(rows.get("tested", pd.Series([True])).all()):
        q = stouffer(rows) if "shuffled_p" in rows else p_of_interval(value, low, high)
    else:
        q = float(low <= 0 <= high)
    against = models["high"] < 0 if value > 0 else models["low"] > 0
    opposed = bool(against.any()) and not over_seeds
    trainings = rows["training"].nunique()
    scope = "trainings" if over_seeds else "one training" if trainings == 1 else "these models"
    numbers = back(np.array([value, low, high]) + to(limit)).tolist()
    return dict(zip(BOUNDS, numbers, strict=True)) | {
        "q": 1.0 if opposed else q, "opposed": opposed,
        "right": bool(value and (value > 0) == (side == "above")), "side": side, "limit": limit,
        "tested": tested, "scope": scope, "seeds": len(seeds) if over_seeds else trainings,
    }  # fmt: skip


def _by_seed(models: pd.Series) -> pd.Series:
    """Return means over pairs with several seeds, because pairs of a seed draw the same masks."""
    wide = models.unstack("pair")
    whole = wide.loc[:, wide.count() > 1].dropna()
    return (whole if len(whole.columns) else wide).mean(axis=1)


def stouffer(rows: pd.DataFrame) -> float:
    """Return the two-sided p that all values are 0, from their p. A training has their mean z."""
    z = np.sign(rows["value"]) * ndtri(1 - rows["shuffled_p"].clip(1e-12) / 2)
    z = z.groupby(rows["training"]).mean()
    return erfc(abs(z.sum()) / sqrt(2 * len(z)))


def p_of_interval(value: float, low: float, high: float) -> float:
    """Return the two-sided p that a number with this 95 % interval is 0 (Altman & Bland 2011).

    The error is that of the half on the side of 0. p is not below what the resamples can show.
    """
    reach = value - low if value > 0 else high - value
    if isnan(reach) or not reach:
        return nan if isnan(reach) else _SMALLEST_P
    return max(erfc(abs(value) / (reach / Z) / sqrt(2)), _SMALLEST_P)

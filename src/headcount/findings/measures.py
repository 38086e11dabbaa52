"""Every number that an experiment has of a head, in one table, and what each of them means."""

from pathlib import Path
from typing import NamedTuple

import pandas as pd

from headcount.findings.masked_training import frequencies, read_masks
from headcount.findings.results import HEAD, KEYS, Results, at_start, gather, read_runs_of
from headcount.findings.voita_roles.labels import (
    HEAD_KEYS,
    POSITIONS,
    SYNTAX,
    VALUES,
    arrow,
    preferred,
)
from headcount.findings.voita_roles.measured import gate_survival, subset_survival

COLUMNS = [*HEAD_KEYS, "measure", "of", "value", "note"]
AS_THEY_STAND = ("measures", "loss_change", "more_measures", "pruned_attention")
"""Kinds of files whose statistics are measures."""

RELEVANCE = ["relevance", "relevance_ratio", "relevance_alpha_beta"]


class Measure(NamedTuple):
    """One number that a head has."""

    title: str
    unit: str
    more: str
    """What a larger value means."""

    source: str
    """The files that it is read from."""

    group: str = "What it is worth"
    around_zero: bool = False
    """Whether values above and below 0 mean opposite things."""


_DELTA = ("delta", "delta_low", "delta_high")
_SHARE = "share of its layer"
_MORE = "masking/…/measures.csv"
_ATTENTION, _GATES = "What it attends to", "Training and gates"
MEASURES = {
    "importance": Measure(
        "importance", "nats", "the loss depends more on it", "heads/…/importance.csv"
    ),
    "relevance": Measure(
        "relevance", _SHARE, "predictions depend more on it", "heads/…/relevance.csv"
    ),
    "relevance_ratio": Measure(
        "relevance (ratio rule, size)",
        _SHARE,
        "predictions depend more on it, for or against",
        "heads/…/relevance.csv",
    ),
    "relevance_alpha_beta": Measure(
        "relevance (alpha-beta rule)",
        _SHARE,
        "predictions depend more on it",
        "heads/…/relevance.csv",
    ),
    "confidence": Measure(
        "confidence", "mean largest weight", "surer", "attention.csv", _ATTENTION
    ),
    "survival": Measure(
        "survival under gates",
        "share of the gates runs with λ above 0",
        "more of them keep it",
        "prune/…/heads.csv",
    ),
    "subset_survival": Measure(
        "survival under subset pruning",
        "share of the runs that keep exactly K heads",
        "more of them keep it",
        "prune/…/heads.csv",
    ),
    "bleu_lost": Measure(
        "BLEU lost without it",
        "points on the first test set",
        "BLEU falls further when it alone is masked; below 0, BLEU rises",
        "masking/…/ablation.csv",
        around_zero=True,
    ),
    "loss_change": Measure(
        "loss change without it",
        "nats",
        "a sentence's loss changes more, up or down, when it alone is masked",
        "masking/…/loss_change.csv",
    ),
    "loss_rise": Measure(
        "loss added without it",
        "nats",
        "the loss rises further when it alone is masked; below 0, it falls",
        "masking/…/loss_change.csv",
        around_zero=True,
    ),
    "fisher": Measure(
        "Fisher information", "nats²", "the loss of a sentence changes faster with it", _MORE
    ),
    "fisher_rearranged": Measure(
        "Fisher information, rearranged in layers",
        "share of the numbers of heads pruned at which it stays",
        "it stays longer",
        _MORE,
    ),
    "integrated_gradients": Measure(
        "integrated gradients",
        "nats",
        "it takes more off the loss on the way from no head to all; below 0, it adds to it",
        _MORE,
        around_zero=True,
    ),
    "shapley": Measure(
        "Shapley value",
        "nats",
        "it takes more off the loss, whichever heads are on; below 0, it adds to it",
        _MORE,
        around_zero=True,
    ),
    "mean_ablation": Measure(
        "loss added by its mean output",
        "nats",
        "the loss rises further when its output is its mean everywhere; below 0, it falls",
        _MORE,
        around_zero=True,
    ),
    "output_norm": Measure("output norm", "mean length", "it writes more, useful or not", _MORE),
    "entropy": Measure("entropy", "nats", "attention more spread", "attention.csv", _ATTENTION),
    "rare_two_rarest": Measure(
        "attention to rare words",
        "share of largest weights at the two rarest subwords",
        "more often at rare words",
        "attention.csv",
        _ATTENTION,
    ),
    "position": Measure(
        "attention to one relative position",
        "share of largest weights at the position it prefers",
        "more often there",
        "positions.csv",
        _ATTENTION,
    ),
    "syntax": Measure(
        "accuracy for a relation",
        "points above the positional baseline",
        "finds the relation more often than the baseline; below 0, less often",
        "syntax.csv",
        _ATTENTION,
        around_zero=True,
    ),
    "masked": Measure(
        "masked in training", "share of updates", "masked more often", "train/…/masks.csv", _GATES
    ),
    "open": Measure(
        "chance that its gate is open", "probability", "likelier kept", "prune/…/heads.csv", _GATES
    ),
    "subset_w": Measure(
        "w of subset pruning",
        "number that ranks the heads of one run",
        "it stays before the others",
        "prune/…/heads.csv",
        _GATES,
    ),
}
"""By the statistic's name in its file where it is read as it stands."""


def all_measures(results: Results) -> pd.DataFrame:
    """A head and measure a row, of every trained and every pruned model: `COLUMNS`.

    What was not measured has no row. `of`: the relation, or the gates run; empty for measures that
    a head has once. `note`: words beside the number, such as the position that is preferred.
    """
    kept, runs = results.files("kept"), results.files("pruned_runs")
    found = [
        *(statistics(results.files(kind)) for kind in AS_THEY_STAND),
        survival(kept, runs),
        bleu_lost(results.files("ablation")),
        positions(of_all_models(results, "positions")),
        syntax(of_all_models(results, "syntax")),
        masked(results.files("masks")),
        openness(kept, runs),
        subset_weights(kept, runs),
    ]
    return pd.concat([frame for frame in found if not frame.empty] or found, ignore_index=True)


def of_all_models(results: Results, kind: str) -> list[Path]:
    """Files of a kind, such as `positions`, of trained models and then of pruned ones."""
    return [*results.files(kind), *results.files(f"pruned_{kind}")]


def statistics(files: list[Path]) -> pd.DataFrame:
    """Measures that stand in files as they are; of relevance the size: `COLUMNS`."""
    rows = gather(files, VALUES)
    rows = rows[rows["statistic"].isin(list(MEASURES))].rename(columns={"statistic": "measure"})
    values = rows["value"].astype(float)
    # The ratio rule's sign says for or against the word, not how much.
    return _told(rows.assign(value=values.mask(rows["measure"].isin(RELEVANCE), values.abs())))


def survival(kept: list[Path], runs: list[Path]) -> pd.DataFrame:
    """In what share of the gates runs, and of the subset runs, on a model each head is left."""
    ways = {"survival": gate_survival, "subset_survival": subset_survival}
    found = [
        _told(share(kept, runs).rename(columns={"survival": "value"}), name)
        for name, share in ways.items()
    ]
    return pd.concat([frame for frame in found if not frame.empty] or found, ignore_index=True)


def bleu_lost(ablation: list[Path]) -> pd.DataFrame:
    """BLEU points lost with that head masked alone, larger: more was lost: `COLUMNS`.

    On the first test set of each model's ablation.csv that is not dev; the note is its interval.
    """
    rows = gather(ablation, [*HEAD, "test_set", "order", *_DELTA])
    single = rows[(rows["order"] == "single") & (rows["test_set"] != "dev")]
    first = single.groupby(KEYS, sort=False)["test_set"].transform("first")
    effects = single[single["test_set"] == first]
    delta, low, high = (effects[name].astype(float) for name in _DELTA)
    notes = [
        f"95\u00a0%: {0 - top:.2g} to {0 - end:.2g}" for end, top in zip(low, high, strict=True)
    ]
    return _told(effects.assign(value=-delta, note=notes), "bleu_lost")


def positions(files: list[Path]) -> pd.DataFrame:
    """Share, 0 to 1, of a self-attention head's largest weights at the position it prefers.

    The note is that position: key minus query, in subwords.
    """
    most = preferred(gather(files, POSITIONS))
    notes = [f"at {offset:+d}" if offset else "at 0" for offset in most["offset"]]
    return _told(most.assign(note=notes), "position")


def syntax(files: list[Path]) -> pd.DataFrame:
    """Points of accuracy above the positional baseline, by relation, direction and treebank."""
    rows = gather(files, SYNTAX)
    for name in ("hits", "baseline_hits", "trials"):
        rows[name] = rows[name].astype(float)
    ends = zip(rows["relation"], rows["direction"], rows["treebank"], strict=True)
    named = [f"{relation} {arrow(relation, way)} ({bank})" for relation, way, bank in ends]
    above = 100 * (rows["hits"] - rows["baseline_hits"]) / rows["trials"]
    notes = [
        f"accuracy {share:.0%}".replace("%", "\u00a0%") for share in rows["hits"] / rows["trials"]
    ]
    return _told(rows.assign(of=named, value=above, note=notes), "syntax")


def masked(files: list[Path]) -> pd.DataFrame:
    """Share, 0 to 1, of a training's updates that masked a head; nothing of runs that mask none."""
    rows = read_masks(files)
    return _told(frequencies(rows).rename("value").reset_index(), "masked")


def openness(kept: list[Path], runs: list[Path]) -> pd.DataFrame:
    """Chance that a gate is not 0 when a gates run ends, for the heads of its scope."""
    closed = _learnt(kept, runs, "gates", "p_zero")
    return _told(closed.assign(value=1 - closed["value"].astype(float)), "open")


def subset_weights(kept: list[Path], runs: list[Path]) -> pd.DataFrame:
    """w of the heads of its scope when a subset run ends: the K largest stay."""
    found = _learnt(kept, runs, "subset", "w")
    return _told(found.assign(value=found["value"].astype(float)), "subset_w")


def _learnt(kept: list[Path], runs: list[Path], method: str, statistic: str) -> pd.DataFrame:
    """A statistic of the heads in the scope of each pruned run of a method.

    Told of the run's own model, and of the model that it began with.
    """
    rows = gather(kept, VALUES)
    of_run = rows["run"].map(read_runs_of(kept, runs))
    chosen = [
        name == statistic and run.method == method and kind in run.kinds
        for name, run, kind in zip(rows["statistic"], of_run, rows["kind"], strict=True)
    ]
    own = rows[pd.Series(chosen, dtype=bool)]
    own = own.assign(of=own["run"])
    return pd.concat([own, at_start(own, of_run)], ignore_index=True)


def _told(rows: pd.DataFrame, measure: str | None = None) -> pd.DataFrame:
    """Rows with all of `COLUMNS` and no others; `of` and `note` are empty where they lack them."""
    named = rows if measure is None else rows.assign(measure=measure)
    return named.reindex(columns=COLUMNS, fill_value="")

"""Do measures of a head agree? Rank correlations between all of them, head by head."""

from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd

from headcount.base.addresses import KINDS
from headcount.base.files import read_json
from headcount.findings import exhibits
from headcount.findings.measures import MEASURES, RELEVANCE, bleu_lost, statistics, survival
from headcount.findings.results import HEAD, KEYS, Results
from headcount.findings.setting import of_one_training
from headcount.findings.significance import bootstrap_correlation, ranks_within, shuffled_p
from headcount.findings.tables import NONE, Table, with_bounds
from headcount.findings.voita_roles.measured import describe_roles

MORE = ["fisher", "fisher_rearranged", "integrated_gradients", "shapley", "mean_ablation"]
MORE += ["output_norm"]
COMPARED = ["importance", *RELEVANCE, "confidence", *MORE, "survival", "subset_survival"]
COMPARED += ["loss_change", "bleu_lost"]
COLUMNS = [*KEYS, "kind", "scope", "first", "second", "heads", "spearman", "low", "high", "p"]
WITHIN, ALL = "within layers", "all heads"
_SHOWN = {
    "all heads": ("all", ALL),
    "within layers": ("all", WITHIN),
    "encoder, within layers": ("enc_self", WITHIN),
}
_AS_THEY_STAND = ("measures", "loss_change", "more_measures")
_SHUFFLES = 1999

CAPTION = (
    "Rank correlation (Spearman) of measures over the heads of a model, with 95 % bootstrap "
    "intervals over heads. {removed} come of removing heads; to be compared with measures that do "
    "not."
)
_REMOVED = "Survival, loss change and BLEU lost"
_MORE_REMOVED = "Survival, loss change, Shapley value, loss added by its mean output and BLEU lost"
NOTES = (
    "Survival: in how many of the gates runs on this model with λ above 0 a head is left; loss "
    "change: mean size of the change of a sentence's loss when that head alone is masked, on the "
    "pairs of importance; BLEU lost: on the first test set, so more is worse. Within "
    "layers: of the ranks that heads have in their layers, as relevance is a share of its layer: "
    "of two measures on one scale for all layers, such as importance, all heads tells more. "
    "p, in the CSV: by shuffling heads, for that scope within their layers. A dash: one of the two "
    "has the same value for every head.",
    of_one_training("heads"),
)

SUBSETS = (
    "Survival under subset pruning: in how many of the runs on this model that keep exactly K "
    "heads a head is left."
)


@exhibits.table(
    "voita_agreement",
    needs=("roles", "measures", "importance_facts"),
    uses=("pruned_heads", "loss_change", "more_measures", "more_measures_facts", "ablated"),
    question="agreement",
)
def agreement(results: Results) -> Table:
    """How far measures of a head agree."""
    found = measures(results)
    table = _table(found)
    sizes = describe_sizes(results.files("ablation_facts"), results.files("importance_facts"))
    sums = describe_sums(results.files("more_measures_facts"))
    subsets = SUBSETS if "subset_survival" in found else ""
    notes = (*NOTES, subsets, sums, sizes, *describe_roles(results))
    caption = CAPTION.format(removed=_MORE_REMOVED if sums else _REMOVED)
    return Table(table, _summary(table), caption, notes)


def measures(results: Results) -> pd.DataFrame:
    """A head of any kind a row, with a column for each of `COMPARED`; of relevance the size."""
    rows = pd.concat(
        [
            *(statistics(results.files(kind)) for kind in _AS_THEY_STAND),
            survival(results.files("kept"), results.files("pruned_runs")),
            bleu_lost(results.files("ablation")),
        ]
    )
    found = rows.pivot_table("value", [*KEYS, *HEAD], "measure", sort=False).reset_index()
    named = [name for name in COMPARED if name in found]
    return found[[*KEYS, *HEAD, *named]]


def describe_sizes(ablation: list[Path], importance: list[Path]) -> str:
    """A sentence: on how many sentences BLEU lost and importance were measured.

    Arguments: ablation.json and importance.json of runs. Empty without either.
    """
    lost = [list(read_json(path)["sentences"].items()) for path in ablation]
    tests = [next((each for each in sizes if each[0] != "dev"), None) for sizes in lost]
    tested = {f"{size} of {test}" for test, size in filter(None, tests)}
    drawn = {f"{found['sentences']} of {found['data']}" for found in map(read_json, importance)}
    named = (("BLEU lost", tested), ("importance", drawn))
    parts = [f"{name}: {', '.join(sorted(sizes))}" for name, sizes in named if sizes]
    return f"Sentences: {'; '.join(parts)}." if parts else ""


def describe_sums(facts: list[Path]) -> str:
    """Sentences on what was measured in more ways: measures.json of runs; empty without any.

    The sum of integrated gradients is that of the loss but for the error of the quadrature, so the
    largest gap over the runs tells whether the points were enough.
    """
    found = [read_json(path) for path in facts]
    if not found:
        return ""
    sums, shapley = ([each[name] for each in found] for name in ("integrated_gradients", "shapley"))
    gap = max(
        abs(each["sum"] - each["loss_taken_off"]) / (abs(each["loss_taken_off"]) or 1)
        for each in sums
    )
    told = {f"{each['orders']} orders on {each['sentences']} sentences" for each in shapley}
    return (
        "Integrated gradients and Shapley values each add up to what all heads together take off "
        f"the loss: integrated gradients to within {100 * gap:.1f} % of it, by "
        f"{', '.join(sorted({str(each['points']) for each in sums}))} points; Shapley values "
        f"exactly, over {', '.join(sorted(told))}."
    )


def _table(measures: pd.DataFrame) -> pd.DataFrame:
    """A pair of measures a row, for each model, kind (and all kinds) and scope: `COLUMNS`.

    `measures` has a head a row with columns of `COMPARED`, NaN where one was not measured;
    heads that lack either measure are left out, and so are fewer than three heads.
    """
    rows = []
    names = [name for name in COMPARED if name in measures]
    for key, of_model in measures.groupby(KEYS, sort=False):
        groups = {"all": of_model} | {k: of_model[of_model["kind"] == k] for k in KINDS}
        for (kind, group), pair in product(groups.items(), combinations(names, 2)):
            both = group.dropna(subset=list(pair))
            for scope in (WITHIN, ALL) if len(both) > 2 else ():
                found = _compared(both, *pair, scope)
                rows.append((*key, kind, scope, *pair, len(both), *found))
    return pd.DataFrame(rows, columns=COLUMNS)


def _summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: all heads, and within layers, where the encoder is apart too."""
    rows = []
    for (*run, first, second), found in table.groupby([*KEYS, "first", "second"], sort=False):
        row = dict(zip(KEYS, run, strict=True))
        row |= {"first": MEASURES[first].title, "second": MEASURES[second].title}
        cells = found.set_index(["kind", "scope"])[["spearman", "low", "high"]]
        for title, which in _SHOWN.items():
            row[title] = with_bounds(*cells.loc[which]) if which in cells.index else NONE
        rows.append(row)
    return pd.DataFrame(rows)


def _compared(both: pd.DataFrame, first: str, second: str, scope: str) -> tuple:
    """Rank correlation, its interval and p; empty where it has no value.

    Within layers it is Pearson's of the ranks that heads have in their layers: in layers of as many
    heads and without ties, the mean of the layers' own.
    """
    within = scope == WITHIN
    blocks = both["kind"] + both["layer"].astype(str) if within else both["run"]  # one for all
    sides = [ranks_within(both[name].astype(float), blocks) for name in (first, second)]
    if any(np.ptp(side) == 0 for side in sides):
        return "", "", "", ""
    arrays = [side.to_numpy() for side in sides]
    rho = float(np.corrcoef(*arrays)[0, 1])
    p = shuffled_p(*arrays, blocks.to_numpy(str), _SHUFFLES)
    return rho, *bootstrap_correlation(*arrays, ranks=not within), p

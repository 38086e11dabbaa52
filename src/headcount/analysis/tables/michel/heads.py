"""Effects of single heads: each head masked alone, or alone in its layer (Michel et al.)."""

import pandas as pd

from headcount.analysis.captions import note, scored, setting
from headcount.analysis.frames import HEAD, RUN, Facts, FrameOf, Settings, with_paper
from headcount.analysis.outputs import Output
from headcount.analysis.published import michel
from headcount.analysis.stats import correlate, holm
from headcount.base.addresses import KINDS

LEVEL = 0.01  # significance level of the paper for masking one head
TASK = [*RUN, "test_set"]  # columns that identify the scores of one model
SCORES = ["score", "delta", "delta_low", "delta_high", "p"]
_TESTS = [*TASK, "other_test_set"]


def masked_heads(ablation: pd.DataFrame, classifier_ablation: pd.DataFrame) -> pd.DataFrame:
    """Return scores with masked heads, of translation or else of classifiers."""
    rows = ablation if len(ablation) else classifier_ablation
    return rows[rows["order"] != "none"].astype({"layer": int, "head": int})


def beside_paper(rows: pd.DataFrame, printed: pd.DataFrame) -> pd.DataFrame:
    """Return our rows, then the paper's rows with the same metric, without the column `metric`."""
    same = printed["metric"] == rows["metric"].iloc[0]
    return with_paper(rows.drop(columns="metric"), printed[same])


def single_heads(masked: FrameOf[masked_heads]) -> pd.DataFrame:
    """Return the effect of masking every head alone."""
    single = masked[masked["order"] == "single"]
    single = single.assign(
        p_holm=single.groupby(TASK, sort=False)["p"].transform(holm),
        significant=(single["p"] < LEVEL).astype(int),
    )
    columns = [*TASK, *HEAD, *SCORES, "p_holm", "significant", "metric"]
    return beside_paper(single[columns], michel.single_heads())


def heads_on_tests(heads: FrameOf[single_heads]) -> pd.DataFrame:
    """Return the effects of our single heads on the test sets."""
    return heads.query("source == 'ours' and test_set != 'dev'").astype({"seed": int})


def lone_heads(masked: FrameOf[masked_heads]) -> pd.DataFrame:
    """Return the change if a layer keeps one head of an attention type: the best one on dev."""
    alone = masked[masked["order"] == "all_but_one"].sort_values("index", kind="stable")
    dev = alone[alone["test_set"] == "dev"].set_index([*RUN, *HEAD])[["delta", "p"]]
    tested = alone[alone["test_set"] != "dev"].join(dev.add_prefix("dev_"), on=[*RUN, *HEAD])
    tested = tested.assign(
        heads=tested["heads_masked"] + 1, significant=(tested["p"] < LEVEL).astype(int)
    )
    columns = [*TASK, *HEAD, "heads", "dev_delta", "dev_p", *SCORES[1:], "significant", "metric"]
    order = masked[TASK].drop_duplicates()
    return beside_paper(order.merge(tested[columns], on=TASK), michel.lone_heads())


def effects(masked: FrameOf[masked_heads]) -> pd.DataFrame:
    """Return the effects of every head on two test sets, for all pairs of test sets, dev last."""
    single = masked[masked["order"] == "single"]
    place = single.groupby(RUN)["test_set"].transform(lambda tests: pd.factorize(tests)[0])
    single = single.assign(place=place.mask(place == 0, len(single)))  # dev is the first in files
    other = single[[*RUN, *HEAD, "test_set", "delta", "place"]]
    both = single.merge(other, on=[*RUN, *HEAD], suffixes=("", "_2")).query("place < place_2")
    both["model"] = both.groupby(RUN, sort=False).ngroup()
    both = both.sort_values(["model", "place", "place_2"], kind="stable", ignore_index=True)
    both = both.rename(columns={"test_set_2": "other_test_set", "delta_2": "other_delta"})
    return both[[*_TESTS, *HEAD, "delta", "other_delta"]]


def with_correlation(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the effects of heads on two test sets with their Pearson correlation `r`."""
    models = frame.groupby(_TESTS)[["delta", "other_delta"]]
    r = models.apply(lambda heads: heads["delta"].corr(heads["other_delta"])).rename("r")
    return frame.join(r, on=_TESTS)


def transfer(heads: FrameOf[effects], masked: FrameOf[masked_heads]) -> pd.DataFrame:
    """Return correlations of the effects on two test sets: all heads, and types of four or more."""
    rows = []
    for key, model in heads.groupby(_TESTS, sort=False):
        for kind in ("all", *KINDS):
            part = model if kind == "all" else model[model["kind"] == kind]
            if kind == "all" or 4 <= len(part) < len(model):
                sides = part["delta"].to_numpy(), part["other_delta"].to_numpy()
                both = (*correlate(*sides, ranks=False), *correlate(*sides, ranks=True))
                rows.append((*key, kind, len(part), *both))
    names = [
        f"{name}{end}" for name in ("pearson", "spearman") for end in ("", "_low", "_high", "_p")
    ]
    table = pd.DataFrame(rows, columns=[*_TESTS, "kind", "heads", *names])
    return beside_paper(table.assign(metric=masked["metric"].iloc[0]), michel.correlations())


def units(masked_ffn: pd.DataFrame, masked_layers: pd.DataFrame) -> pd.DataFrame:
    """Return scores without blocks of feed-forward units and without layers, and at random."""
    parts = {"feed-forward units": masked_ffn, "layers": masked_layers}
    rows = pd.concat([part.assign(units=name) for name, part in parts.items()])
    rows = rows[rows["order"] != "none"].rename(columns={"heads": "addresses"})
    rows["addresses"] = rows["addresses"].where(rows["units"] == "layers")  # else a long list
    columns = [*TASK, "units", "order", "draw", "index", "heads_masked", "addresses", *SCORES]
    return rows[columns]


@note
def counted(output: Output) -> str:
    """Return the name of the things in a test set."""
    return "pairs" if output.metric == "accuracy" else "sentences"


@note
def ablated_on(
    frame: pd.DataFrame, ablation_facts: Facts, classifier_facts: Facts, settings: Settings
) -> list[str]:
    """Return sentences on the test sets, their sizes and the models."""
    if ablation_facts:
        return [scored(ablation_facts), *setting(frame, settings)]
    sizes = [f"{test} ({n} pairs)" for run in classifier_facts for test, n in run["pairs"].items()]
    return [f"Accuracy in percent on {', '.join(dict.fromkeys(sizes))}; changes in points."]

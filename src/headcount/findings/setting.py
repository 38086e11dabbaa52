"""What every caption says of an experiment: sizes, data, seeds, N, and what intervals cover."""

import pandas as pd

from headcount.base.settings.ablation import AblationSettings
from headcount.base.settings.importance import ImportanceSettings
from headcount.findings.results import BASE, Results

OVER_SEEDS = "± and intervals over seeds say how far trainings differ."

MASKED_OR_GATED = (
    "Tables michel_pruning and voita_falls have different numbers, for michel_pruning masks heads "
    "of the trained model in a given order, retrains nothing, scores the sentences that it names "
    "and ends at a significant loss, while voita_falls counts heads that gates took out of a model "
    "as it was fine-tuned, scores whole test sets and ends where BLEU lies more than a limit below "
    "the λ = 0 control."
)
"""Why two tables that say how many heads can go do not agree."""

PHASES = (
    "Encode: one pass of the encoder over a batch, with the keys and values that the decoder "
    "takes from it, one step a sentence; decode: beam search of whole sentences, encoder "
    "included, after the comma its steps a sentence, for a damaged model makes other and longer "
    "ones."
)
"""What is timed, for notes of tables of speed."""

_ABS = {"none": "signed, above 0 where the head lowers the loss", "batch": "size for each batch"}
_ABS |= {kind: f"size for each {kind}" for kind in ("sentence", "token")}
_ABS |= {"position": "size for each query position", "square": "squared for each sentence"}


def of_one_training(what: str) -> str:
    """A sentence on intervals and p for which `what` was drawn anew, but the model was not."""
    return (
        f"Intervals and p over {what} are of one trained model: they say what other {what} would "
        "give, not what another training would."
    )


def seeds_of(rows: pd.DataFrame) -> pd.DataFrame:
    """How many seeds each run of rows with pair, run and seed has: pair, run, seeds."""
    return rows.groupby(["pair", "run"], sort=False)["seed"].nunique().rename("seeds").reset_index()


def warn_of_unlike_seeds(points: pd.DataFrame) -> tuple[str, ...]:
    """A sentence for each pair some of whose runs are means over fewer seeds than others.

    `points`: a drawn mean a row, with pair, run and seeds, the number of them; empty where there is
    none, as of a paper.
    """
    found = []
    counts = points.assign(seeds=pd.to_numeric(points["seeds"])).dropna(subset="seeds")
    for pair, of_pair in counts.groupby("pair", sort=False):
        seeds = of_pair.groupby("run", sort=False)["seeds"].max()
        if few := [f"{run} ({n:.0f})" for run, n in seeds[seeds < seeds.max()].items()]:
            found.append(
                f"{pair}: means over fewer seeds than {seeds.max():.0f}: {', '.join(few)}. How "
                "they lie beside others may be due to their seeds; differences, where there are "
                "any, are of the same seeds."
            )
    return tuple(found)


def describe_setting(results: Results, rows: pd.DataFrame) -> tuple[str, str]:
    """A sentence on the model and one on the data, from the pair, run and seed of each row."""
    model, heads = results.model, results.model.grid.size
    pairs, seeds = ", ".join(rows["pair"].unique()), rows["seed"].unique()
    runs = {run: results.runs[run] for run in rows["run"].unique() if run != BASE}
    counts = [run.heads for run in runs.values() if run.heads is not None]
    wider = [
        f"; {name}: {run.own_model(model).grid.size} heads, together as wide"
        for name, run in runs.items()
        if run.attention_heads is not None
    ]
    trained = "as it is" if model.as_it_is else "fine-tuned here"
    imported = f"{model.imported}, imported, {trained}: " if model.imported else ""
    masked = f"; N = {', '.join(map(str, dict.fromkeys(counts)))} of {heads} heads"
    return (
        f"Model: {imported}{model.encoder_layers} encoder and {model.decoder_layers} decoder "
        f"layers, d_model {model.d_model}, d_ff {model.d_ff}, {heads} heads, {model.norm}-norm.",
        f"Data: {pairs}; {'seeds' if len(seeds) > 1 else 'seed'} "
        f"{', '.join(map(str, seeds))}{masked if counts else ''}{''.join(wider)}.",
    )


def describe_importance(importance: ImportanceSettings) -> str:
    """A sentence: what importance is here, and on which data."""
    layer = (
        "" if importance.normalise == "none" else ", divided by the L2 norm of its layer and kind"
    )
    return (
        f"Importance: derivative of the loss ({importance.loss}, {importance.reduction} over a "
        f"sentence's tokens) by a head's multiplier, {_ABS[importance.abs]}, mean over up to "
        f"{importance.sentences} sentence pairs of {importance.data}{layer}."
    )


def describe_ranking(ablation: AblationSettings, importance: ImportanceSettings) -> str:
    """Sentences: by which importance heads are pruned, and whether it is measured anew."""
    by_layer = "layer_l2" in (ablation.normalise, importance.normalise)
    scaled = importance.model_copy(update={"normalise": "layer_l2" if by_layer else "none"})
    again = " It is measured anew after each step." if ablation.reestimate else ""
    return f"{describe_importance(scaled)}{again}"


def importance_unit(importance: ImportanceSettings) -> str:
    """Unit of the importance for axes and captions."""
    if importance.normalise != "none":
        return "share of its layer's L2 norm"
    nats = "nats²" if importance.abs == "square" else "nats"
    return f"{nats} per {'sentence' if importance.reduction == 'sum' else 'token'}"

"""Captions, notes and warnings of outputs, from their declarations and the data."""

from collections.abc import Callable, Iterable
from functools import cache
from string import Formatter

import pandas as pd

from headcount.analysis import read_beside
from headcount.analysis.collapse import collapses
from headcount.analysis.frames import Data, Facts, FrameOf, Settings
from headcount.analysis.outputs import Output, shown_metric
from headcount.analysis.scores import BOOTSTRAP, SEEDS
from headcount.analysis.writer import Text

_ABS = {"none": "signed, above 0 where the head lowers the loss", "batch": "size for each batch"}
_ABS |= {kind: f"size for each {kind}" for kind in ("sentence", "token")}
_ABS |= {"position": "size for each query position", "square": "squared for each sentence"}

# Functions that declarations name: they return one text or several.
NOTES: dict[str, Callable[..., str | Iterable[str]]] = {}


def note(function: Callable) -> Callable:
    """Register a function as a note, warning or placeholder of declarations."""
    NOTES[function.__name__] = function
    return function


@cache
def shared_notes() -> dict[str, str]:
    """Return the notes of `captions.yaml` by name."""
    return read_beside(__file__, dict[str, str])


def describe(output: Output, frame: pd.DataFrame, data: Data) -> Text:
    """Return caption, warnings and notes of an output whose data is `frame`."""

    def expand(entries: list[str]) -> list[str]:
        texts = [text for entry in entries for text in _texts(entry, output, frame, data)]
        return list(dict.fromkeys(filter(None, texts)))

    (caption,) = expand([output.caption])
    return Text(caption, expand(output.warnings), expand(output.notes))


def _texts(entry: str, output: Output, frame: pd.DataFrame, data: Data) -> list[str]:
    if entry in shared_notes():
        return [fill(shared_notes()[entry], output, frame, data)]
    if entry in NOTES:
        value = data.call(NOTES[entry], {"frame": frame, "output": output})
        return [value] if isinstance(value, str) else list(value)
    if " " not in entry:
        raise KeyError(f"{output.name}: no note is named {entry!r}")
    return [fill(entry, output, frame, data)]


def fill(text: str, output: Output, frame: pd.DataFrame, data: Data) -> str:
    """Return a text with its placeholders replaced, such as the label of an axis."""
    names = [name for _, name, *_ in Formatter().parse(text) if name]
    notes = [name for name in names if not name.startswith("settings")]
    values = {name: " ".join(_texts(name, output, frame, data)) for name in notes}
    return text.format(settings=data.settings, **values)


def ours(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a frame that are ours, not a paper's."""
    return frame[frame["source"] == "ours"] if "source" in frame else frame


@note
def setting(frame: pd.DataFrame, settings: Settings) -> list[str]:
    """Return a sentence on the model and one on the data."""
    model, rows = settings["model"], ours(frame)
    if rows.empty:
        return ["This experiment has nothing to show here."]
    trained = "without training" if model.frozen else "fine-tuned here"
    imported = f"{model.imported}, imported, {trained}: " if model.imported else ""
    seeds = rows["seed"].dropna().astype(int).unique() if "seed" in rows else []
    pairs = pd.unique(rows[["pair", *rows.columns.intersection(["other_pair"])]].to_numpy().ravel())
    names = f"; {'seeds' if len(seeds) > 1 else 'seed'} {', '.join(map(str, seeds))}"
    layers = f"{model.encoder_layers} encoder and {model.decoder_layers} decoder layers"
    return [
        f"Model: {imported}{layers}, d_model {model.d_model}, d_ff {model.d_ff}, "
        f"{model.grid.size} heads, {model.norm}-norm.",
        f"Data: {', '.join(pairs)}{names if len(seeds) else ''}.",
    ]


@note
def metric(output: Output) -> str:
    """Return the name of the metric of an output."""
    return shown_metric(output.metric)


@note
def importance_measure(settings: Settings) -> str:
    """Return a sentence on how the importance of heads was measured."""
    used, ablation = settings["importance"], settings.get("ablation")
    by_layer = getattr(ablation, "normalise", "") == "layer_l2"
    layer = ", divided by the L2 norm of its layer and type" * by_layer
    return (
        "Importance: derivative of the loss of a sentence (sum over its tokens) by the multiplier "
        f"of a head, {_ABS[used.abs]}, mean over up to {used.sentences} sentence pairs of "
        f"{used.data}{layer}."
    )


@note
def importance_unit(settings: Settings) -> str:
    """Return the unit of importance."""
    used = settings["importance"]
    return f"{'nats²' if used.abs == 'square' else 'nats'} per sentence"


@note
def group_size(frame: pd.DataFrame) -> str:
    """Return the number of heads in a group, or the smallest and the largest number."""
    sizes = frame.loc[frame["order"] == "group", "heads_masked"]
    return "–".join(dict.fromkeys(f"{size:.0f}" for size in (sizes.min(), sizes.max())))


@note
def intervals(frame: pd.DataFrame) -> list[str]:
    """Return sentences on the intervals that the column `spread` names."""
    names, most = list(frame["spread"].dropna().unique()), frame["seeds"].max()
    shared = shared_notes()
    return [
        f"Bars and bands: {'; '.join(names)}." * bool(names),
        f"Points: means over {most:.0f} seeds." * bool(most > 1),
        shared["over_seeds"] * (SEEDS in names),
        shared["one_training"] * any(name.startswith(BOOTSTRAP) for name in names),
    ]


@note
def scored_sentences(masking_facts: Facts) -> str:
    """Return the sentences of `scored` on masked models."""
    return scored(masking_facts)


def scored(facts: Facts) -> str:
    """Return sentences on test sets, their size and the search, from the facts of runs."""
    sizes = {f"{test} ({n} sentences)" for run in facts for test, n in run["sentences"].items()}
    searches = {f"beam {run['beam']}, length penalty {run['length_penalty']}" for run in facts}
    return (
        f"Scored on {', '.join(sorted(sizes))}, by {'; '.join(sorted(searches))}. These scores are "
        "of these sentences; table bleu has whole test sets."
    )


@note
def search(scores: Facts, pruned_scores: Facts) -> str:
    """Return a sentence on the beam search behind the scores of runs."""
    text = "beam {beam}, length penalty {length_penalty}, by {engine}"
    rows = [row for run in [*scores, *pruned_scores] for row in run["scores"]]
    searches = {text.format(**row).removesuffix(", by headcount") for row in rows}
    return f"Translated with {'; '.join(sorted(searches))}." if searches else ""


@note
def signatures(frame: pd.DataFrame) -> str:
    """Return the signatures of our scores."""
    names = ours(frame)["signature"].dropna().unique()
    return f"Signatures: {'; '.join(names)}." if len(names) else ""


@note
def collapse(frame: pd.DataFrame, collapsed: FrameOf[collapses]) -> list[str]:
    """Return a warning for every run of the frame's pairs that collapsed with some seeds."""
    rows = collapsed[collapsed["pair"].isin(ours(frame)["pair"])]
    return [
        f"{run} of {pair} collapsed in training with seed{'s' * (len(seeds) > 1)} "
        f"{', '.join(map(str, seeds))} (table headmask_collapse). Heads that were masked nearly "
        "always hurt the model that uses them."
        for (pair, run), seeds in rows.groupby(["pair", "run"])["seed"]
    ]


@note
def unequal_seeds(frame: pd.DataFrame) -> list[str]:
    """Return a warning for every run that is a mean over fewer seeds than others of its pair."""
    rows, runs = ours(frame), ["pair", "run"]
    groups = rows.groupby(runs, sort=False)
    seeds = groups["seeds"].max().dropna() if "seeds" in rows else groups["seed"].nunique()
    fewer = seeds[seeds < seeds.groupby("pair").transform("max")]
    text = "{} of {}: a mean over fewer seeds ({:.0f}) than others. A distance may be due to these."
    return [text.format(run, pair, count) for (pair, run), count in fewer.items()]

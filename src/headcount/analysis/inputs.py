"""Kinds of files that tables and figures read: their owners, folders and names."""

from collections.abc import Iterable
from typing import NamedTuple

from headcount.base import folders


class Input(NamedTuple):
    """One kind of files, with a file for every owner, test set and so on."""

    owner: str
    """Pairs or runs that have such a file, one of `OWNERS`."""

    folder: str
    """The phase of the runs, or of a pair `text` or `bpe`."""

    names: tuple[str, ...]
    """Names in the folder of an owner; `<test>` and the like stand for all names of the pair."""

    columns: tuple[str, ...] = ()
    """Columns that every CSV must have."""

    rows: str = ""
    """A query for rows of which every CSV must have one."""

    metric: str = ""
    """The column with scores; readers call it `score` and put its name into the column `metric`."""

    def describe(self) -> str:
        """Return a description for the help of a flag."""
        return f"{', '.join(self.names)} of {OWNERS[self.owner]}"


_SCORED = ("delta", "delta_low", "delta_high", "p")
_ABLATION = ("test_set", "order", "index", "kind", "layer", "head", "heads_masked", *_SCORED)
_PROFILE = ("test_set", "scope", "order", "index", "draw", "heads_masked", *_SCORED)
_AREAS = ("test_set", "scope", "order", "area", "low", "high", "against", *_SCORED)
_TIMES = ("phase", "batch_size", "repeat", "sentences", "steps", "seconds")
_VALUES = ("kind", "layer", "head", "statistic", "value")
_POSITIONS = (*_VALUES, "offset", "hits", "trials")
_SYNTAX = (*_POSITIONS, "treebank", "relation", "direction", "baseline_hits", "head_only")
_SYNTAX += ("baseline_only", "half_trials", "half_hits")
_MASKS = ("step", "kind", "layer", "head", "masked")
_SLOPES = ("step", "kind", "layer", "head", "slope_mean", "slope_sd", "importance")
_GATES = ("step", "kind", "layer", "head", "p_zero", "gate")
_UNTUNED = ("test_set", "order", "as_run", "draw", "heads_masked", "bleu", "signature", *_SCORED)
_TIMED = ("model", "heads_left", "parameters", "file_bytes", *_TIMES)
_SINGLE = "order == 'single'"

OWNERS = {
    "jobs": "every job; no input of a rule, since they change at every run",
    "outputs": "every other chapter",
    "pairs": "every pair",
    "runs": "training runs",
    "same_heads": "training runs with as many heads as the settings' model",
    "by_heads": "the baseline and training runs with other heads, where there are such",
    "by_dropout": "training runs with as many heads, where some mask none and differ in dropout",
    "by_variant": "training runs with as many heads, where runs of importance choose in other ways",
    "starts": "training runs that pruned runs start from",
    "compared": "training runs that pruned runs start from; the baseline for random weights",
    "pruned": "pruned runs",
    "gates": "gates runs",
    "penalised": "gates runs with λ above 0",
    "timed": "training runs that are timed with fewer and fewer heads",
    "timed_pruned": "the timing of pruned runs",
    "ablated": "training runs that are ablated",
    "measured": "training runs that are ablated and measured in more ways",
    "profiled": "training runs that are pruned during their training",
    "classifiers": "classifiers of sentence pairs",
}

_CURVE = ("step", "train_loss", "dev_loss", "tokens_per_s", "seconds")

INPUTS = {
    "benchmarks": Input("jobs", "benchmarks", ("<rule>/<job>.tsv",)),
    "outputs": Input("outputs", "tables, figures", ("<name>.csv",)),
    "counts": Input("pairs", "text", ("<split>.json",)),
    "text": Input("pairs", "text", ("<split>.src", "<split>.tgt")),
    "references": Input("pairs", "text", ("<test>.tgt",)),
    "segmented": Input("pairs", "bpe", folders.TRAINING),
    "trees": Input("pairs", "bpe", ("trees/<treebank>.csv",)),
    "trained_runs": Input("runs", "train", ("run.json",)),
    "models_by_heads": Input("by_heads", "train", (f"model/{folders.DESCRIPTION}",)),
    "models_by_dropout": Input("by_dropout", "train", (f"model/{folders.DESCRIPTION}",)),
    "variants": Input("by_variant", "train", ("run.json",)),
    "scores": Input("runs", "train", ("bleu.json",)),
    "translations": Input("runs", "train", ("translations/<test>.txt",)),
    "curves": Input("runs", "train", ("curves.csv",), _CURVE, "step > 0"),
    "masks": Input("runs", "train", ("masks.csv",), _MASKS),
    "slopes": Input("runs", "train", ("slopes.csv",), _SLOPES),
    "measures": Input("runs", "heads", ("<measure>.csv",), _VALUES),  # all rules that measure heads
    "importance": Input("runs", "heads", ("importance.csv",), _VALUES),
    "importance_facts": Input("runs", "heads", ("importance.json",)),
    "relevance": Input("runs", "heads", ("relevance.csv",), _VALUES),
    "attention": Input("runs", "heads", ("attention.csv",), _VALUES),
    "positions": Input("runs", "heads", ("positions.csv",), _POSITIONS),
    "syntax": Input("runs", "heads", ("syntax.csv",), _SYNTAX),
    "role_facts": Input("runs", "heads", ("roles.json",)),
    "sentence_maps": Input("runs", "heads", ("sentences.jsonl",)),
    "masking": Input(
        "same_heads",
        "masking",
        ("headmask.csv",),
        ("test_set", "ranking", "order", "index", "draw", "heads_masked", "bleu", "delta")
        + ("delta_low", "delta_high"),
        "ranking == 'own' and order == 'none'",
        "bleu",
    ),
    "masking_facts": Input("same_heads", "masking", ("headmask.json",)),
    "start_scores": Input("compared", "train", ("bleu.json",)),
    "start_curves": Input("compared", "train", ("curves.csv",), ("step",)),
    "untuned": Input("starts", "masking", ("untuned_masking.csv",), _UNTUNED, metric="bleu"),
    "untuned_facts": Input("starts", "masking", ("untuned_masking.json",)),
    "pruned_runs": Input("pruned", "prune", ("run.json",)),
    "kept": Input("pruned", "prune", ("heads.csv",), _VALUES, "statistic == 'gate'"),
    "pruned_scores": Input("pruned", "prune", ("bleu.json",)),
    "pruned_translations": Input("pruned", "prune", ("translations/<test>.txt",)),
    "pruned_curves": Input("pruned", "prune", ("curves.csv",), ("step",)),
    "gates": Input("gates", "prune", ("gates.csv",), _GATES),
    "pruned_attention": Input("penalised", "prune", ("attention.csv",), _VALUES),
    "pruned_positions": Input("penalised", "prune", ("positions.csv",), _POSITIONS),
    "pruned_syntax": Input("penalised", "prune", ("syntax.csv",), _SYNTAX),
    "pruned_sentence_maps": Input("penalised", "prune", ("sentences.jsonl",)),
    "pruned_speed": Input("timed_pruned", "prune", ("speed.csv",), _TIMED),
    "loss_change": Input("ablated", "masking", ("loss_change.csv",), _VALUES),
    "more_measures": Input("measured", "masking", ("measures.csv",), _VALUES),
    "more_measures_facts": Input("measured", "masking", ("measures.json",)),
    "fisher": Input("measured", "masking", ("measures_fisher.csv",)),
    "means": Input("measured", "masking", ("measures_means.csv",)),
    "ablation": Input(
        "ablated", "masking", ("ablation.csv",), ("bleu", *_ABLATION), _SINGLE, "bleu"
    ),
    "ablation_facts": Input("ablated", "masking", ("ablation.json",)),
    "profiles": Input(
        "ablated", "masking", ("pruning_profile.csv",), ("bleu", "heads", *_PROFILE), metric="bleu"
    ),
    "areas": Input("ablated", "masking", ("pruning_profile_areas.csv",), _AREAS),
    "share_speed": Input("timed", "masking", ("share_speed.csv",), ("model", *_TIMES)),
    "importance_speed": Input(
        "timed", "masking", ("importance_speed.csv",), ("work", "repeat", "seconds")
    ),
    "training": Input(
        "profiled", "masking", ("training_profile.csv",), ("update", "bleu"), metric="bleu"
    ),
    "training_heads": Input(
        "profiled", "masking", ("training_profile_heads.csv",), ("update", *_VALUES)
    ),
    "classifier_ablation": Input(
        "classifiers",
        "masking",
        ("classifier_ablation.csv",),
        ("accuracy", *_ABLATION),
        _SINGLE,
        "accuracy",
    ),
    "classifier_facts": Input("classifiers", "masking", ("classifier_ablation.json",)),
    "classifier_profiles": Input(
        "classifiers",
        "masking",
        ("classifier_profile.csv",),
        ("accuracy", *_PROFILE),
        metric="accuracy",
    ),
    "classifier_areas": Input("classifiers", "masking", ("classifier_profile_areas.csv",), _AREAS),
}

OF_TRAINING = ("curves", "masks", "slopes")
"""Kinds that record a training. An imported model that is not trained has none."""

GROUPS = {
    "scored": ("scores", "translations", "references"),
    "masked": ("masking", "masking_facts", "importance"),
    "roles": ("attention", "positions", "syntax", "relevance", "importance"),
    "ablated": ("ablation", "ablation_facts"),
    "classified": ("classifier_ablation", "classifier_facts"),
    "pruned_bleu": ("pruned_runs", "kept", "start_scores", "pruned_scores")
    + ("pruned_translations", "references"),
    "pruned_heads": ("pruned_runs", "kept"),
    "pruned_roles": ("pruned_attention", "pruned_positions", "pruned_syntax"),
    "updates": ("start_curves", "pruned_curves"),
    "untuned_scores": ("untuned", "untuned_facts"),
}
"""Names in declarations for kinds that are read together."""


def with_groups(kinds: tuple[str, ...]) -> list[str]:
    """Return these kinds, with the name of a group in place of its kinds where all are given."""
    names = list(kinds)
    for group, members in GROUPS.items():
        if set(members) <= set(names):
            names[names.index(members[0])] = group
            names = [name for name in names if name not in members[1:]]
    return names


def without_groups(kinds: Iterable[str]) -> tuple[str, ...]:
    """Return these kinds, with the kinds of a group in place of its name.

    Raises ValueError for a name that is in neither `INPUTS` nor `GROUPS`.
    """
    found = tuple(kind for name in kinds for kind in GROUPS.get(name, (name,)))
    unknown = set(found).difference(INPUTS)
    if unknown:
        raise ValueError(f"expected kinds of INPUTS or names of GROUPS, found {sorted(unknown)}")
    return found


def file_flag(kind: str) -> str:
    """Return the flag that names files of one kind on a command line."""
    return f"--{kind.replace('_', '-')}"

"""Which jobs an experiment consists of: every rule that has wildcards, and what these stand for."""

from collections.abc import Iterable, Iterator
from typing import Any

from plan import Plan

Values = dict[str, list[Any]]


def measuring(plan: Plan, rules: Iterable[Any]) -> list[Any]:
    """Those of Snakemake's rules whose first file lies in <heads>: they measure trained models."""
    heads = plan.layout.run("heads")
    return [rule for rule in rules if rule.output and rule.output[0].startswith(heads)]


def jobs(plan: Plan, measures: Iterable[str]) -> Iterator[tuple[str, Values]]:
    """Names of rules, each with a list of values for every wildcard; jobs are their product.

    A rule may come several times. One without any job comes with an empty list. `measures`: names
    of those that measure trained models.
    """
    settings, named = plan.settings, plan.pruning.named
    of_seeds: Values = {"pair": settings.pairs, "seed": settings.seeds}
    yield "bpe", {"pair": [] if plan.imported.name else settings.pairs}
    yield "segment", {"pair": plan.imported.segmented(settings.pairs)}
    for rule, runs in (
        ("train", plan.imported.trained(plan.runs)),
        ("imported_run", plan.imported.as_it_is(plan.runs)),
        *((rule, plan.runs) for rule in measures),
        ("masking", plan.same_heads),
        *(("gates", plan.pruning.fine_tuned()), ("scratch", named("scratch"))),
        ("subset", named("subset")),
        ("gates_from_none", plan.pruning.gates_from_none()),
        ("fine_tune", named("importance", "random")),
        ("untuned_masking", plan.pruning.starts()),
        *((rule, plan.ablated) for rule in ("loss_change", "ablation", "pruning_profile")),
        ("more_measures", plan.measured),
        ("training_profile", plan.profiled),
        *((rule, plan.timed) for rule in ("share_speed", "importance_speed")),
    ):
        yield rule, of_seeds | {"run": runs}
    for rule, needed in (
        ("pruned_roles", plan.pruning.penalised()),
        ("speed", plan.pruning.timed()),
    ):
        yield rule, of_seeds | {"seed": settings.seeds if needed else []}
    for phase, runs in (("train", plan.runs), ("prune", plan.pruned)):
        of_phase = of_seeds | {"phase": [phase], "run": runs}
        yield "bleu", of_phase
        for pair in settings.pairs:
            yield "translate", of_phase | {"pair": [pair], "test": plan.tests(pair)}
    classifiers: Values = {"pair": plan.classifiers.corpora, "seed": settings.seeds}
    yield "entailment", {"pair": plan.classifiers.corpora}
    yield "fine_tune_classifier", classifiers | {"run": plan.classifiers.fine_tuned}
    yield "classifier_ablation", classifiers | {"run": [*plan.classifiers.models]}
    for pair in settings.pairs:
        yield "text", {"pair": [pair], "split": plan.splits(pair)}
        yield "trees", {"pair": [pair], "treebank": plan.raw.treebanks(pair)}

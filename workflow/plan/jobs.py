"""All jobs of an experiment: the values of the wildcards of every rule."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any

from plan.plan import Plan

Values = dict[str, list[Any]]


def measuring(plan: Plan, rules: Iterable[Any]) -> list[Any]:
    """Return the rules whose first output is in <heads>: they measure all trained models."""
    heads = plan.layout.run("heads")
    return [rule for rule in rules if rule.output and rule.output[0].startswith(heads)]


def jobs(plan: Plan, rules: Iterable[Any]) -> Iterator[tuple[str, Values]]:
    """Yield the name of every rule for pairs, with a list of values for each of its wildcards.

    The jobs are the product of the lists. A rule may come several times.
    """
    runs, pairs = _runs(plan), _pairs(plan)
    for rule in rules:
        names = rule.wildcard_names
        if "pair" not in names:
            continue
        phases = {"": runs.get(rule.name, plan.runs)}
        if "phase" in names:
            phases = {"train": plan.runs, "prune": plan.pruned}
        owners = product(pairs.get(rule.name, plan.settings.pairs), phases.items())
        for pair, (phase, own) in owners:
            values = _values(plan, pair, names) | {"pair": [pair], "phase": [phase], "run": own}
            yield rule.name, {name: values[name] for name in names}


def values_by_rule(
    rules: Iterable[Any], all_jobs: Iterable[tuple[str, Values]]
) -> dict[str, dict[str, set]]:
    """Return the values of every wildcard of the rules for pairs, over all jobs."""
    rules = [rule for rule in rules if "pair" in rule.wildcard_names]
    known = {rule.name: {name: set() for name in rule.wildcard_names} for rule in rules}
    for rule, values in all_jobs:
        for name, more in values.items():
            known[rule][name] |= set(more)
    return known


def _values(plan: Plan, pair: str, names: Iterable[str]) -> Values:
    """Return the values of wildcards whose values depend on the pair, and seeds."""
    of_pair = {"split": plan.splits, "test": plan.tests, "treebank": plan.raw.treebanks}
    return {"seed": plan.settings.seeds} | {
        name: of_pair[name]({"pair": pair}) for name in names if name in of_pair
    }


def _pairs(plan: Plan) -> Mapping[str, list[str]]:
    """Return the pairs, or corpora, of the rules that have not all pairs."""
    pairs, corpora = plan.settings.pairs, plan.classifiers.corpora
    return {
        "bpe": [] if plan.imported.name else pairs,
        "segment": plan.imported.segmented(pairs),
        "speed": pairs if plan.pruning.timed() else [],
        "entailment": corpora,
        "fine_tune_classifier": corpora,
        "classifier_ablation": corpora,
    }


def _runs(plan: Plan) -> Mapping[str, list[str]]:
    """Return the runs of the rules that have not all training runs."""
    named = plan.pruning.named
    return {
        "train": plan.imported.trained(plan.runs),
        "imported_run": plan.imported.frozen(plan.runs),
        "masking": plan.same_heads,
        "gates": plan.pruning.fine_tuned(),
        "gates_from_none": plan.pruning.gates_from_none(),
        "scratch": named("scratch"),
        "subset": named("subset"),
        "fine_tune": named("importance", "random"),
        "untuned_masking": plan.pruning.starts(),
        **dict.fromkeys(("loss_change", "ablation", "pruning_profile"), plan.ablated),
        "more_measures": plan.measured,
        "training_profile": plan.profiled,
        **dict.fromkeys(("share_speed", "importance_speed"), plan.timed),
        "fine_tune_classifier": plan.classifiers.fine_tuned,
        "classifier_ablation": [*plan.classifiers.models],
    }

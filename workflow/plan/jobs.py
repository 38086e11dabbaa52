"""All jobs of an experiment, and parts of rules that follow from their names."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from plan.layout import SHARED, alternatives
from plan.plan import Plan

from headcount.analysis.outputs import ON_REQUEST
from headcount.base.fingerprint import code
from headcount.base.settings.runs import RANDOM_WEIGHTS

Values = dict[str, list[Any]]


def jobs(plan: Plan, rules: Iterable[Any]) -> Iterator[tuple[str, Values]]:
    """Yield every rule for pairs, once or more, and lists of values: its jobs are their product."""
    runs, pairs = _runs(plan), _pairs(plan)
    for rule in rules:
        names = rule.wildcard_names
        if "pair" not in names:
            continue
        phases = {_phase(plan, rule): runs.get(rule.name, plan.runs)}
        if "phase" in names:
            phases = {"train": plan.runs, "prune": plan.pruned}
        owners = product(pairs.get(rule.name, plan.settings.pairs), phases.items())
        for pair, (phase, own) in owners:
            values = _values(plan, pair, names) | {"pair": [pair], "phase": [phase]}
            for run in own if "run" in names else [""]:
                values |= {"run": [run], "seed": plan.layout.seeds_of(phase, run)}
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
    """Return the values of wildcards whose values depend on the pair."""
    of_pair = {"split": plan.splits, "test": plan.tests, "treebank": plan.raw.treebanks}
    of_pair |= {"metric": lambda _: plan.metrics.names}
    of_pair |= {"aligned": plan.linked_splits, "links": lambda _: [plan.settings.alignment.links]}
    return {name: of_pair[name]({"pair": pair}) for name in names if name in of_pair}


def _phase(plan: Plan, rule: Any) -> str:
    """Return the phase of a rule whose files are in one phase."""
    first = rule.output[0] if rule.output else ""
    return first.removeprefix(f"{plan.layout.results}/").partition("/")[0]


def _pairs(plan: Plan) -> Mapping[str, list[str]]:
    """Return the pairs, or corpora, of the rules that have not all pairs."""
    pairs, corpora = plan.settings.pairs, plan.classifiers.corpora
    silver = plan.settings.alignment.links == "silver"
    return {
        "bpe": [] if plan.imported.name or plan.one_model else pairs,
        "train": [SHARED] if plan.one_model else pairs,
        "pair_run": pairs if plan.one_model else [],
        "segment": pairs if plan.imported.name else [],
        "speed": pairs if plan.pruning.timed() else [],
        "savings": pairs if plan.pruning.saving() else [],
        **dict.fromkeys(("alignment", "pruned_alignment", "silver_links"), plan.aligned()),
        **dict.fromkeys(("silver_pieces", "silver_alignment"), [] if silver else plan.aligned()),
        "entailment": corpora,
        "fine_tune_classifier": corpora,
        "classifier_ablation": corpora,
    }


def _runs(plan: Plan) -> Mapping[str, list[str]]:
    """Return the runs of the rules that have not all training runs."""
    named, unchanged = plan.pruning.named, plan.settings.model.frozen
    return {
        "train": [] if unchanged else plan.runs,
        "imported_run": plan.runs if unchanged else [],
        "masking": plan.same_heads,
        "pair_transfer": plan.transferred,
        "gates": plan.pruning.fine_tuned(),
        "gates_from_none": plan.pruning.gates_from(RANDOM_WEIGHTS),
        "scratch": named("scratch"),
        "subset": named("subset"),
        "fine_tune": named("importance", "random"),
        "untuned_masking": plan.pruning.starts(),
        **dict.fromkeys(("loss_change", "ablation", "pruning_profile"), plan.ablated),
        "more_measures": plan.measured,
        "unit_importance": plan.ranked_units,
        **dict.fromkeys(("mask_feed_forward", "mask_layers"), plan.cut),
        "training_profile": plan.profiled,
        **dict.fromkeys(("share_speed", "importance_speed"), plan.timed),
        "fine_tune_classifier": plan.classifiers.fine_tuned,
        "classifier_ablation": [*plan.classifiers.models],
    }


def on_request(plan: Plan) -> set[str]:
    """Return the rules whose files are made only where somebody asks for them."""
    silver = plan.settings.alignment.links == "silver"
    return {"silver_pieces", "silver_alignment", *["silver_links"] * (not silver), *ON_REQUEST}


CODE: dict[str, Any] = {}
"""Fingerprints of the code of every rule of the workflow that was read last."""


def complete(rules: Iterable[Any], all_jobs: Iterable[tuple[str, Values]]) -> None:
    """Give Snakemake's rules script, code, log, benchmark, message and wildcard constraints.

    The param `code` is the fingerprints of the script and of the modules it imports: when one of
    them changes, the rule's jobs run again. A rule with another script, or with more code, says so.
    Log and benchmark are no outputs, so no phase of DVC has them. Wildcards have only the values of
    `all_jobs`.
    """
    values = values_by_rule(rules, all_jobs)
    CODE.clear()
    for rule in rules:
        if rule.norun or not rule.output:  # a chapter whose outputs need other runs
            continue
        params = dict(rule.params.items())
        script = params.get("script", f"scripts/{rule.name}.py")
        CODE[rule.name] = params.get("code") or code(script)
        missing = {"script": script, "code": CODE[rule.name], "settings": [], "more": []}
        rule.set_params(**{name: value for name, value in missing.items() if name not in params})
        # Snakemake documents none of these setters. They are tested with 9.27.1: without one of
        # them every plan fails, and with it tests/workflow/test_rules.py.
        rule.log_modifier = rule.benchmark_modifier = rule.output_modifier
        rule.set_log(f"<logs>/{rule.name}/{_job(rule)}.log")
        rule.benchmark = f"<benchmarks>/{rule.name}/{_job(rule)}.tsv"
        rule.message = rule.message or f"{rule.docstring.splitlines()[0]} Log: {{log}}"
        known = values.get(rule.name, {}).items()
        rule.set_wildcard_constraints(**{name: alternatives(some) for name, some in known})
        rule.update_wildcard_constraints()


def _job(rule: Any) -> str:
    """Return the wildcards in the order of the outputs, as {pair}.seed{seed}, or the name."""
    path = rule.output[0]
    names = sorted(rule.wildcard_names, key=lambda name: path.index(f"{{{name}"))
    parts = [f"seed{{{name}}}" if name == "seed" else f"{{{name}}}" for name in names]
    return ".".join(parts) or rule.name


def given(*names: str) -> Callable[..., list[str]]:
    """Return a function for wildcards, inputs and outputs by their names, as flags.

    `model/` gives the folders of the files of `model`, each once. A name without files gives no
    flag. An output has precedence over an input of its name.
    """

    def flags(wildcards, input, output) -> list[str]:
        known = dict(wildcards.items()) | dict(input.items()) | dict(output.items())
        words: list[str] = []
        for name in names:
            value = known[name.rstrip("/")]
            values = [value] if isinstance(value, str) else list(value)
            if name.endswith("/"):
                values = list(dict.fromkeys(str(Path(file).parent) for file in values))
            words += [f"--{name.rstrip('/').replace('_', '-')}", *values] if values else []
        return words

    return flags

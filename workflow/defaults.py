"""What every rule has by its name and need not say: its script, a log and a benchmark."""

from collections.abc import Callable, Iterable
from typing import Any

from headcount.base.fingerprint import code


def add_defaults(rules: Iterable[Any]) -> None:
    """Give each of Snakemake's rules that runs a command what follows from its name.

    Params: `script`, its path, and `code`, the fingerprints of that and of the modules it imports:
    when one of them changes, the rule's jobs run again. A rule with another script, or with more
    code, says so. Log and benchmark lie below <logs>/<rule> and <benchmarks>/<rule>; neither is an
    output, so no phase of DVC has it.
    """
    for rule in rules:
        if rule.norun:
            continue
        said = dict(rule.params.items())
        script = said.get("script", f"scripts/{rule.name}.py")
        own = {"script": script, "code": said.get("code") or code(script)}
        rule.set_params(**{name: value for name, value in own.items() if name not in said})
        rule.log_modifier = rule.benchmark_modifier = rule.output_modifier
        rule.set_log(f"<logs>/{_job(rule)}.log")
        rule.benchmark = f"<benchmarks>/{_job(rule)}.tsv"
        rule.update_wildcard_constraints()  # Snakemake forgets them where a pathvar has wildcards


def _job(rule: Any) -> str:
    """The rule's name and its wildcards in the order of its outputs, as train/{pair}.seed{seed}."""
    path = rule.output[0]
    names = sorted(rule.wildcard_names, key=lambda name: path.index(f"{{{name}"))
    parts = [f"seed{{{name}}}" if name == "seed" else f"{{{name}}}" for name in names]
    if parts[:1] == ["{phase}"]:
        return f"{rule.name}/{{phase}}/{'.'.join(parts[1:])}"
    return "/".join([rule.name, *([".".join(parts)] if parts else [])])


def given(*names: str) -> Callable[..., list[str]]:
    """A function for `params:` that gives wildcards and inputs by their names, as flags.

    A name of which a job has no file gives no flag.
    """

    def flags(wildcards, input) -> list[str]:
        known = dict(input.items()) | dict(wildcards.items())
        found: list[str] = []
        for name in names:
            value = known[name]
            words = [value] if isinstance(value, str) else list(value)
            found += [f"--{name.replace('_', '-')}", *words] if words else []
        return found

    return flags

"""What every rule has by its name and need not say: script, log, benchmark, message."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from snakemake.io import expand

from headcount.base.fingerprint import code


def add_defaults(rules: Iterable[Any]) -> None:
    """Give each of Snakemake's rules that runs a command what follows from its name.

    Params: `script`, its path, and `code`, the fingerprints of that and of the modules it imports:
    when one of them changes, the rule's jobs run again. A rule with another script, or with more
    code, says so. Log and benchmark lie below <logs>/<rule> and <benchmarks>/<rule>; neither is an
    output, so no phase of DVC has it. What is told as a job begins is the rule's docstring.
    """
    for rule in rules:
        if rule.norun or not rule.output:  # a chapter whose outputs need other runs
            continue
        said = dict(rule.params.items())
        script = said.get("script", f"scripts/{rule.name}.py")
        params = {"script": script, "code": said.get("code") or code(script)}
        rule.set_params(**{name: value for name, value in params.items() if name not in said})
        rule.log_modifier = rule.benchmark_modifier = rule.output_modifier
        rule.set_log(f"<logs>/{rule.name}/{_job(rule)}.log")
        rule.benchmark = f"<benchmarks>/{rule.name}/{_job(rule)}.tsv"
        rule.message = rule.message or f"{rule.docstring.splitlines()[0]} Log: {{log}}"
        rule.update_wildcard_constraints()  # Snakemake forgets them where a pathvar has wildcards


def _job(rule: Any) -> str:
    """The wildcards in the order of the rule's outputs, as {pair}.seed{seed}, or its name."""
    path = rule.output[0]
    names = sorted(rule.wildcard_names, key=lambda name: path.index(f"{{{name}"))
    parts = [f"seed{{{name}}}" if name == "seed" else f"{{{name}}}" for name in names]
    return ".".join(parts) or rule.name


def forget_benchmarks(folder: Path, rules: Iterable[Any], jobs: Iterable[tuple[str, dict]]) -> None:
    """Remove from <benchmarks> what was measured of jobs that the experiment has no more.

    Table `cost` would count them. `jobs`: rules, and the values of their wildcards.
    """
    patterns = {rule.name: f"{rule.name}/{_job(rule)}.tsv" for rule in rules if rule.benchmark}
    known: dict[str, set[str]] = {}
    for rule, values in jobs:
        pattern = patterns.get(rule, rule)  # a rule that makes no file here has no benchmark
        known.setdefault(rule, set()).update(expand(f"{folder}/{pattern}", **values))
    for rule, files in known.items():
        for path in (folder / rule).glob("*.tsv"):
            if str(path) not in files:
                path.unlink()


def folders(files: Iterable[str]) -> list[str]:
    """The folders of these files, each once."""
    return list(dict.fromkeys(str(Path(file).parent) for file in files))


def folder_above(file: str) -> Callable[..., str]:
    """A function for `params:` that gives the folder below which a job's first output is `file`."""

    def folder(wildcards, output) -> str:
        return output[0].removesuffix(f"/{file}")

    return folder


def given(*names: str) -> Callable[..., list[str]]:
    """A function for `params:` that gives wildcards and inputs by their names, as flags.

    `model/` gives the folder of the input `model`, or the folders of its files. A name of which a
    job has no file gives no flag.
    """

    def flags(wildcards, input) -> list[str]:
        known = dict(input.items()) | dict(wildcards.items())
        found: list[str] = []
        for name in names:
            value = known[name.rstrip("/")]
            words = [value] if isinstance(value, str) else list(value)
            words = folders(words) if name.endswith("/") else words
            found += [f"--{name.rstrip('/').replace('_', '-')}", *words] if words else []
        return found

    return flags


def made_in(flag: str, *names: str) -> Callable[..., list[str]]:
    """A function for `params:` that gives the folders of the outputs as a flag, after `given`'s."""
    read = given(*names)

    def flags(wildcards, input, output) -> list[str]:
        return [*read(wildcards, input), flag, *folders(output)]

    return flags

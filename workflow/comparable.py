"""Which kept runs belong into the same tables, and where those that do were made differently."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from archive import (
    Archive,
    Run,
    checksums,
    is_kept,
    listed_runs,
    made_from_others,
    run_of_result,
)
from engine import Job, Record
from plan import BASE, CONFIG
from raw import CORPORA

from headcount.base.errors import UserError
from headcount.base.files import sha256
from headcount.base.settings.corpora import Corpus, load_corpora, test_sets
from headcount.base.settings.experiment import Experiment, load_experiment
from headcount.base.settings.names import parse_pair

Archives = dict[Run, Archive]

LISTS = {"title", "pairs", "seeds", "runs", "pruned", "train.keep_updates", "ablation.runs"}
HARDWARE = {"device", "threads", "processes"}
"""Keys that say which runs there are, and on what they are made: kept runs may differ in them.

The first are whole addresses: `classifier_ablation.pairs` is how many sentences are scored.
"""


def settings_of(experiment: str) -> dict[str, Any]:
    """All settings of an experiment but such keys, as `section.key`."""
    return dict(_flat(load_experiment(experiment, CONFIG).model_dump(mode="json"), ""))


def changed_settings(then: dict[str, Any], now: dict[str, Any], run: Run) -> str:
    """What a kept run's settings were where today's are others, in words; empty if none is.

    A setting that the kept run does not know came later: it counts as the schema's default. What is
    of other classifiers, or of test sets that its pair does not have, does not count.
    """
    before, after = _of_run(_defaults(now) | then, run), _of_run(now, run)
    told = [
        f"{key} was {before.get(key)!r} and is {value!r}"
        for key, value in after.items()
        if before.get(key) != value
    ]
    lists = dict.fromkeys(key.rpartition(".")[0] for key in then if key not in now)
    told += [f"{key} was a mapping and is {now[key]!r}" for key in lists if key in now]
    return "; ".join(told)


def _of_run(settings: dict[str, Any], run: Run) -> dict[str, Any]:
    """The settings that a run goes by: its own classifier, and its pair's test sets as chosen."""
    others, own = "classifiers.models.", f"classifiers.models.{run.run}."
    found = {k: v for k, v in settings.items() if not k.startswith(others) or k.startswith(own)}
    corpora = _corpora()
    corpus, _, _ = run.pair.rpartition(".")
    return found | (_chosen_tests(settings, run, corpora[corpus]) if corpus in corpora else {})


@cache  # asked of every kept run
def _corpora() -> dict[str, Corpus]:
    return load_corpora(Path(CORPORA))


def _chosen_tests(settings: dict[str, Any], run: Run, corpus: Corpus) -> dict[str, list[str]]:
    """Test sets that are scored under masks, and in ablation, of those that a pair has."""
    pair = parse_pair(run.pair)
    tests = test_sets(corpus, pair.src, pair.tgt)
    masked, ablated = (settings.get(f"{key}.test_sets") for key in ("masking", "ablation"))
    of_ablation = dict.fromkeys(ablated or [*tests, "dev"])
    return {
        "masking.test_sets": [test for test in tests if test in (masked or tests[:1])],
        "ablation.test_sets": [test for test in of_ablation if test in {*tests, "dev"}][:2],
    }


def comparable(
    archives: Archives, experiment: str, planned: set[Run]
) -> tuple[Archives, list[str]]:
    """Those that belong into one table, and why others do not.

    They are runs of the experiment of today, with its settings, and with a baseline of their pair
    and seed; a training that patience ended may have been planned longer or shorter. Raises
    UserError if two were made from different text or downloaded models, or from another text than
    is here, or one from another model than the one that is kept.
    """
    settings = settings_of(experiment)
    reasons = {run: _reason(run, archive, settings, planned) for run, archive in archives.items()}
    based = {run._replace(run="") for run, why in reasons.items() if run.run == BASE and not why}
    for run, reason in reasons.items():
        if not reason and run._replace(run=BASE) in planned and run._replace(run="") not in based:
            reasons[run] = f"no {BASE} of this pair and seed is kept"
    left_out = [f"left out: {run}: {reason}" for run, reason in reasons.items() if reason]
    used = {run: archive for run, archive in archives.items() if not reasons[run]}
    if not used:
        raise UserError("\n".join(["expected kept runs to make tables of, found none:", *left_out]))
    _check_sources(used)
    _check_inputs(used)
    return used, left_out


def _check_inputs(archives: Archives) -> None:
    """Raise UserError for a file that was made from another version of one that a run has."""
    known: dict[str, str] = {}
    for archive in archives.values():
        known |= checksums(archive.records)
    for run, archive in archives.items():
        for path, read in made_from_others(archive.records, known):
            raise UserError(
                f"{path}: expected that {run} was made from the {read} that is kept, found that it "
                "was made from another; keep both runs from the machine that made them, or delete "
                "one of the two archives and make it again"
            )


def code_versions(archives: Archives) -> list[str]:
    """Where jobs of one rule ran with different code, a line for rules that differ alike."""
    alike: dict[tuple, list[str]] = {}
    for rule, versions in sorted(_runs_by_code(archives).items()):
        if len(versions) > 1:
            key = tuple((*runs,) for runs in versions.values())
            alike.setdefault((key, _files_apart(list(versions))), []).append(rule)
    return [
        f"{', '.join(rules)}: {len(runs)} versions of code, which differ in {files}. "
        f"Others than most runs have: {listed_runs(chain(*runs[1:]))}"
        for (runs, files), rules in alike.items()
    ]


def number_formats(archives: Archives) -> list[str]:
    """Where runs multiplied numbers in several formats, a line on how many did in each."""
    counts = Counter(filter(None, (archive.number_format() for archive in archives.values())))
    told = ", ".join(f"{count} in {name}" for name, count in sorted(counts.items()))
    return [f"runs trained in several number formats: {told}"] * (len(counts) > 1)


def lacking_files(archives: Archives, experiment: str, jobs: list[Job]) -> Iterator[str]:
    """Files of the experiment of today that kept runs do not have, a line for each run."""
    planned: dict[Run | None, set[str]] = {}
    for path in (path for job in jobs for path in job["output"] if is_kept(path)):
        planned.setdefault(run_of_result(path, experiment), set()).add(path)
    for run, archive in archives.items():
        if lacking := sorted(planned.get(run, set()) - set(archive.files)):
            more = f" and {len(lacking) - 1} more planned files" * (len(lacking) > 1)
            yield f"not in the kept {run}: {lacking[0]}{more}; means are over fewer runs"


def text_lacks(experiment: str, archives: Archives) -> Iterator[str]:
    """What to do where text is not here that kept runs were made from."""
    read = {path for archive in archives.values() for path, _ in _text_of(archive)}
    if lacking := [path for path in sorted(read) if not Path(path).exists()]:
        yield (
            f"{lacking[0]} and {len(lacking) - 1} more files of text are not here. Make them in a "
            "run of their own; without them there are no tables of BLEU: snakemake --cores all "
            f"prepare --config experiment={experiment}"
        )


def _flat(section: dict[str, Any], above: str) -> Iterator[tuple[str, Any]]:
    for key, value in section.items():
        if key not in HARDWARE and f"{above}{key}" not in LISTS:
            yield from (
                _flat(value, f"{above}{key}.")
                if isinstance(value, dict)
                else [(f"{above}{key}", value)]
            )


def _defaults(now: dict[str, Any]) -> dict[str, Any]:
    """Every setting's default, with the presets of today."""
    ends = ".preset"
    presets = {
        key.removesuffix(ends): {"preset": value}
        for key, value in now.items()
        if key.endswith(ends)
    }
    plain = Experiment.model_validate({"pairs": ["synthetic.en-art"], **presets})
    return dict(_flat(plain.model_dump(mode="json"), ""))


def _reason(run: Run, archive: Archive, settings: dict[str, Any], planned: set[Run]) -> str:
    """Why a kept run is none of the experiment of today; empty if it is one."""
    if run not in planned:
        return "the experiment has no such run, pair or seed"
    then = archive.about["settings"]
    return changed_settings(then | _as_long(archive, settings), settings, run)


def _as_long(archive: Archive, now: dict[str, Any]) -> dict[str, Any]:
    """Today's number of updates, where patience ended a training before it and that of then.

    It would have ended alike, as its rate does not depend on where training is to end.
    """
    then, key = archive.about["settings"], "train.updates"
    if not then.get("train.patience") or then.get("train.schedule") != "inverse_sqrt":
        return {}
    if not any(path.endswith("/curves.csv") for path in archive.records):  # of a classifier
        return {}
    return {key: now[key]} if archive.last_update() < min(then[key], now[key]) else {}


def _check_sources(archives: Archives) -> None:
    known: dict[str, tuple[str, str]] = {}
    for run, archive in archives.items():
        for path, checksum in chain(_text_of(archive), _downloaded(archive)):
            if path not in known and Path(path).exists():
                known[path] = (f"sha256:{sha256(Path(path))}", "what is here")
            before, whose = known.setdefault(path, (checksum, str(run)))
            if before != checksum:
                raise UserError(
                    f"{path}: expected that of {run} ({checksum}), found that of {whose} "
                    f"({before}); numbers on different text, or of different models, belong into "
                    "different experiments"
                )


def _text_of(archive: Archive) -> Iterator[tuple[str, str]]:
    """Text that a run's jobs read, with its checksum."""
    for record in archive.records.values():
        for path, checksum in (record["input_checksums"] or {}).items():
            if path.startswith(("data/text/", "data/bpe/")):
                yield path, checksum


def _downloaded(archive: Archive) -> Iterator[tuple[str, str]]:
    """Models that a run's jobs began with, by name, whichever entry they were fetched by."""
    for record in archive.records.values():
        for path, checksum in (record["input_checksums"] or {}).items():
            if found := re.match(r"data/raw/((pretrained|model)\.[^/]+)/", path):
                yield found[1], checksum


def _runs_by_code(archives: Archives) -> dict[str, dict[str, dict[Run, None]]]:
    """The runs of each version of code, by rule; versions of the most runs first."""
    found: dict[str, dict[str, dict[Run, None]]] = {}
    for run, archive in archives.items():
        for record in archive.records.values():
            versions = found.setdefault(record["rule"], {})
            versions.setdefault(_code(record), {})[run] = None
    return {
        rule: dict(sorted(versions.items(), key=_most_runs)) for rule, versions in found.items()
    }


def _most_runs(version: tuple[str, dict[Run, None]]) -> int:
    return -len(version[1])


def _code(record: Record) -> str:
    """A job's code as its rule has it among the params: fingerprints by file."""
    return next((each for each in record["params"] if each.startswith("{'scripts/")), "{}")


def _files_apart(versions: list[str]) -> str:
    """Files of code that are not the same in all versions, the first of them by name."""
    parsed = [ast.literal_eval(version) for version in versions]
    files = sorted({file for each in parsed for file in each})
    apart = [file for file in files if len({each.get(file) for each in parsed}) > 1]
    return ", ".join(apart[:3]) + f" and {len(apart) - 3} more files" * (len(apart) > 3)

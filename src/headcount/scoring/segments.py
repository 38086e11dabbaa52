"""Scores of sentences by any metric, from the files of outside programs."""

import csv
import io
import json
import math
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from headcount.base.errors import UserError
from headcount.base.settings.metrics import MetricSettings
from headcount.data.lines import references, write_lines
from headcount.scoring.bleu import Lines
from headcount.scoring.bootstrap import SEED, Difference, judge_scores, resample_means

_AGAIN = "score the present translations again"
_SAID = 5  # last lines of a failed command in its message


def run_metric(command: str, texts: Mapping[str, Sequence[str]]) -> list[float]:
    """Return the scores that an outside command writes for `texts["translations"]`.

    The command has the names of `texts` and `scores` in braces, for files. No shell reads it.
    """
    with TemporaryDirectory() as folder:
        files = {name: Path(folder, f"{name}.txt") for name in texts}
        for name, path in files.items():
            write_lines(path, texts[name])
        scores = Path(folder, "scores")
        words = [word.format(**files, scores=scores) for word in shlex.split(command)]
        _run(words)
        if not scores.exists():
            raise UserError(f"metric: {command}: expected it to write {{scores}}, found no file")
        return read_segments(scores, texts["translations"])


def compare_by_metrics(
    metrics: Mapping[str, MetricSettings],
    sources: Lines,
    systems: Sequence[Lines],
    targets: Lines,
    samples: int,
) -> Iterator[dict[str, Difference]]:
    """Yield the differences of every system to the first, by the names of the metrics."""
    places: dict[tuple[int, str], int] = {}
    rows = [[places.setdefault(key, len(places)) for key in enumerate(lines)] for lines in systems]
    texts = {"sources": [sources[n] for n, _ in places], "translations": [t for _, t in places]}
    texts["references"] = [references(targets[n])[0] for n, _ in places]
    judged = {}
    for name, metric in metrics.items():
        scores = metric.scale * np.array(run_metric(metric.command, texts))
        resampled = resample_means([scores[row] for row in rows], samples)
        signature = f"{name}|mean|bs:{samples}|seed:{SEED}"
        judged[name] = judge_scores(resampled[0], resampled, signature)
    for number in range(len(systems)):
        yield {name: differences[number] for name, differences in judged.items()}


def _run(words: list[str]) -> None:
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    try:
        done = subprocess.run(words, **streams, text=True, errors="replace")
    except OSError as fault:
        remedy = "correct `command` in `metrics`, or install the program"
        raise UserError(f"metric: cannot run {words[0]} ({fault.strerror}); {remedy}") from None
    print(done.stdout)
    if done.returncode:
        said = "\n".join(done.stdout.strip().splitlines()[-_SAID:])
        raise UserError(f"metric: {shlex.join(words)} failed with {done.returncode}:\n{said}")


def read_segments(path: Path, translations: Sequence[str]) -> list[float]:
    """Return the score of every translation, from a CSV or from COMET's JSON.

    The CSV has the columns `sentence`, from 0 or from 1, and `score`, in any order. Of several
    systems in the JSON, the one with these translations counts.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        is_json = text.lstrip()[:1] in "[{"
        scores = _of_json(json.loads(text), path, translations) if is_json else _of_csv(text, path)
    except (ValueError, RecursionError, csv.Error) as fault:
        raise UserError(f"{path}: expected CSV or JSON, found neither ({fault})") from None
    if len(scores) != len(translations):
        raise UserError(
            f"{path}: expected {len(translations)} scores, one for each translation, found "
            f"{len(scores)}; {_AGAIN}"
        )
    return scores


def _of_csv(text: str, path: Path) -> list[float]:
    rows, scores = csv.DictReader(io.StringIO(text, newline="")), {}
    if lacking := {"sentence", "score"} - set(rows.fieldnames or ()):
        expected = "expected the columns sentence and score, found none named"
        raise UserError(f"{path}:1: {expected} {' and '.join(sorted(lacking))}")
    for row in rows:
        place, number = f"{path}:{rows.line_num}", row["sentence"]
        if not (number or "").isdecimal() or int(number) in scores:
            raise UserError(f"{place}: expected the number of another sentence, found {number!r}")
        scores[int(number)] = _finite(row["score"], place)
    first = min(scores, default=0)
    missing = sorted(set(range(first, first + len(scores))) - set(scores))
    if missing or first > 1:
        raise UserError(f"{path}: expected a score of sentence {missing[0] if missing else 1}")
    return [scores[number] for number in sorted(scores)]


def _of_json(content: Any, path: Path, translations: Sequence[str]) -> list[float]:
    """Return the scores of COMET's JSON: a list of segments, or a list for each system."""
    systems = list(content.values()) if isinstance(content, dict) else [content]
    if not all(isinstance(s, list) and all(isinstance(e, dict) for e in s) for s in systems):
        raise UserError(f"{path}: expected lists of segments, as comet-score --to_json writes them")
    fitting = [system for system in systems if _fits(system, translations)]
    if not fitting:
        raise UserError(f"{path}: expected scores of these translations, found others; {_AGAIN}")
    return [
        _finite(segment.get("COMET", segment.get("score")), f"{path}: segment {number}")
        for number, segment in enumerate(fitting[0], start=1)
    ]


def _fits(segments: list[dict], translations: Sequence[str]) -> bool:
    """Return whether the texts of segments, where they are given, are these translations."""
    pairs = zip(segments, translations, strict=False)
    return all(str(segment.get("mt", line)).strip() == line.strip() for segment, line in pairs)


def _finite(value: Any, place: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise UserError(f"{place}: expected a finite score, found {value!r}")
    return number

"""BLEU, size and speed of models on this machine, each in its own program, text in and text out."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from headcount.base.errors import UserError
from headcount.base.files import write_result
from headcount.base.settings.decode import DecodeSettings
from headcount.data.lines import clean_lines
from headcount.data.text import read_clean
from headcount.deployment.speed import Clock, take_turns
from headcount.scoring.bleu import score_corpus
from headcount_hf.export.contestants import Contestant, Lines, open_contestants

COLUMNS = ("model", "program", "heads", "bleu", "megabytes", "sentences_per_s", "low", "high")
COLUMNS += ("repeats", "sentences", "signature")


def write_measured(
    folders: list[Path],
    bpe: Path | None,
    texts: tuple[Path, Path],
    decode: DecodeSettings,
    repeats: int,
    out: Path,
    origin: dict[str, Any],
) -> list[list[Any]]:
    """Measure the models in some folders, and write a row for each as CSV; returns the rows.

    Beside `out` goes a JSON of the same name: search, machine, every measured time, and `origin`.
    All translate on the CPU, by as wide a beam and without length penalty, whose formulas differ.
    `bpe`: as of `open_contestants`; `texts`: source and references. Raises UserError if these
    differ in length, or a folder is of no known kind.
    """
    plain = decode.model_copy(update={"length_penalty": 0.0, "device": "cpu"})
    sources, references = read_clean(texts[0]), list(clean_lines(texts[1]))
    if len(sources) != len(references) or not sources:
        raise UserError(
            f"{texts[0]} has {len(sources)} lines, {texts[1]} has {len(references)}; expected as "
            "many on both sides, and at least one"
        )
    contestants, target = open_contestants(folders, bpe, plain)
    spelt = list(map(target.spell, references))
    found, seconds = time_contestants(contestants, sources, repeats)
    rows = []
    for each, lines, times in zip(contestants, found, seconds, strict=True):
        score = score_corpus(lines, spelt, target.language)[0]
        heads = "" if each.heads is None else each.heads
        size = each.weights.stat().st_size / 1e6
        cells = [score.score, size, *speed(len(sources), times)]
        name = each.folder.as_posix()
        rows.append([name, each.program, heads, *cells, repeats, len(sources), score.signature])
    facts = {"beam": plain.beam, "length_penalty": 0.0, "device": "cpu", "threads": plain.threads}
    facts["seconds"] = {row[0]: times for row, times in zip(rows, seconds, strict=True)}
    write_result(out, COLUMNS, rows, {**facts, "provenance": origin})
    return rows


def time_contestants(
    contestants: Sequence[Contestant],
    sources: Lines,
    repeats: int,
    clock: Clock = time.perf_counter,
) -> tuple[list[Lines], list[list[float]]]:
    """Translations of every contestant, and the seconds of each of its rounds.

    They take turns, so that a machine that slows down meets them all alike. One round more, whose
    translations are returned, only warms up.
    """
    found: list[Lines] = [[] for _ in contestants]
    seconds: list[list[float]] = [[] for _ in contestants]
    for turn, number in take_turns(range(len(contestants)), repeats, warm_up=1):
        start = clock()
        lines = contestants[number].translate(sources)
        if turn == 0:
            found[number] = lines
        else:
            seconds[number].append(clock() - start)
    return found, seconds


def speed(sentences: int, seconds: Sequence[float]) -> tuple[float, float | str, float | str]:
    """Sentences per second: geometric mean over rounds, and its 95 % t interval.

    A single round has no interval.
    """
    logs = np.log(sentences / np.asarray(seconds))
    mean = float(np.exp(logs.mean()))
    if len(logs) < 2:
        return mean, "", ""
    half = stats.t.ppf(0.975, len(logs) - 1) * stats.sem(logs)
    return mean, float(mean / np.exp(half)), float(mean * np.exp(half))

"""BLEU of runs, and paired differences between them, from scores and translations."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from headcount.base.errors import UserError
from headcount.base.files import read_json
from headcount.base.settings.names import parse_pair
from headcount.data.lines import clean_lines
from headcount.findings.results import run_of
from headcount.findings.tables import NONE, interval, mean_sd, p_value
from headcount.scoring.bootstrap import Difference, compare_systems

Key = tuple[str, str, int]  # pair, run, seed


class RunBleu(NamedTuple):
    """BLEU of one run on one test set."""

    test: str
    bleu: float
    signature: str


class Scores:
    """BLEU of runs, and the texts behind it; texts are read and resampled when asked for."""

    def __init__(self, scores: list[Path], translations: list[Path], references: list[Path]):
        """Takes bleu.json, translations/<test>.txt and `<pair>/<test>.tgt`."""
        self._bleu: dict[Key, dict[str, RunBleu]] = {}
        for found in map(read_scores, scores):
            self._bleu[found["pair"], found["run"], found["seed"]] = {
                row["test_set"]: RunBleu(row["test_set"], row["score"], row["signature"])
                for row in found["scores"]
                if row["metric"] == "bleu"
            }
        self._texts = {(*run_of(path), path.stem): path for path in translations}
        self._references = {(path.parent.name, path.stem): path for path in references}
        self._compared: dict[tuple[Key, Key, str], Difference] = {}

    def of(self, key: Key) -> list[RunBleu]:
        """BLEU of one run on each test set. Raises UserError if it has none."""
        if key not in self._bleu:
            raise UserError(
                f"scores: expected bleu.json of {key[1]} ({key[0]}, seed {key[2]}), found none; "
                f"add {key[1]!r} to the experiment"
            )
        return list(self._bleu[key].values())

    @property
    def keys(self) -> list[Key]:
        """Every run, in the files' order."""
        return list(self._bleu)

    def knows(self, key: Key, test: str) -> bool:
        """Whether a run is scored on a test set."""
        return test in self._bleu.get(key, {})

    def bleu(self, key: Key, test: str) -> float:
        """BLEU of one run on one test set. Raises UserError if it has none."""
        for score in self.of(key):
            if score.test == test:
                return score.bleu
        raise UserError(f"scores of {key}: expected test set {test}, found none; score it again")

    def compare(self, baseline: Key, systems: Iterable[Key], test: str) -> dict[Key, Difference]:
        """Each system − baseline, by paired bootstrap, all on the same resamples.

        Raises UserError if a translation or the reference is missing.
        """
        wanted = list(dict.fromkeys(systems))
        new = [key for key in wanted if (baseline, key, test) not in self._compared]
        if new:
            texts = [self._lines(key, test) for key in (baseline, *new)]
            pair = baseline[0]
            if (pair, test) not in self._references:
                raise UserError(f"references: expected {pair}/{test}.tgt, found none")
            golden = list(clean_lines(self._references[pair, test]))
            found = compare_systems(texts[0], texts[1:], golden, parse_pair(pair).tgt)
            self._compared |= {
                (baseline, key, test): each for key, each in zip(new, found, strict=True)
            }
        return {key: self._compared[baseline, key, test] for key in wanted}

    def _lines(self, key: Key, test: str) -> list[str]:
        if (*key, test) not in self._texts:
            raise UserError(
                f"translations: expected {test} of {key[1]} ({key[0]}, seed {key[2]}), found none; "
                "translate it first"
            )
        return list(clean_lines(self._texts[*key, test]))


def read_scores(path: Path) -> dict[str, Any]:
    """The bleu.json of a run. Raises UserError if a version wrote it that named no engine."""
    found = read_json(path)
    if not all("engine" in score for score in found["scores"]):
        raise UserError(
            f"{path}: expected the engine of every score, found none: an older version wrote it; "
            "run the experiment again, which translates and scores its test sets anew"
        )
    return found


def describe_search(scores: list[Path]) -> str:
    """A sentence on the beam searches behind the scores in bleu.json of runs.

    It names the program where that is another than ours.
    """
    searches = set()
    for row in (row for path in scores for row in read_scores(path)["scores"]):
        by = "" if row["engine"] == "headcount" else f", by {row['engine']}"
        searches.add(f"beam {row['beam']}, length penalty {row['length_penalty']}{by}")
    return f"Translated with {'; '.join(sorted(searches))}."


def compare(scores: Scores, key: Key, against: Key, test: str) -> dict[str, Any]:
    """Cells on BLEU of one run less that of another: delta, its interval, p, signature."""
    found = scores.compare(against, [key], test)[key]
    cells = {"delta": found.delta, "delta_low": found.low, "delta_high": found.high}
    return cells | {"p": found.p_value, "signature": found.signature}


def difference_cells(rows: pd.DataFrame) -> dict[str, str]:
    """Rows of `compare` as people read them; interval and p if each seed has one row.

    Rows with an empty delta are passed over.
    """
    rows = rows[rows["delta"] != ""]
    by_seed = rows.groupby("seed", sort=False)["delta"].agg(lambda cells: cells.mean())
    alone = rows if len(by_seed) == len(rows) else rows[:0]
    return {
        "difference": mean_sd(by_seed, "+"),
        "95 % interval": interval(alone["delta_low"], alone["delta_high"]),
        "p": ", ".join(map(p_value, alone["p"])) or NONE,
    }

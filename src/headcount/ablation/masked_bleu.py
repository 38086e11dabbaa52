"""Scores of one model's test sets under many sets of masked heads.

All masks of a test set go through one search, so that batches stay full.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from tqdm import tqdm

from headcount.base.addresses import HeadGrid
from headcount.base.errors import UserError
from headcount.base.files import read_json, write_result
from headcount.base.folders import SIDES
from headcount.base.ranking import Heads, head_masks
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.metrics import MetricSettings
from headcount.data.bpe import Segmenter
from headcount.data.lines import clean_lines
from headcount.model.transformer import Transformer
from headcount.model.units import UnitTransformer
from headcount.scoring.bootstrap import Difference, compare_systems
from headcount.scoring.segments import compare_by_metrics
from headcount.search.beam_search import translate
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

SCORE_COLUMNS = ("heads_masked", "heads", "bleu", "delta", "delta_low", "delta_high", "p")
SCORE_COLUMNS += ("signature",)

Differences = Mapping[Heads, Difference]
TestSet = tuple[list[str], list[str]]  # lines of its .src and of its .tgt


class Point(NamedTuple):
    """Heads to mask together."""

    cells: tuple[Any, ...]  # of a row, between the test set and `SCORE_COLUMNS`
    heads: Heads


class Masked(ABC):
    """A model whose test sets are scored with heads masked."""

    grid: HeadGrid
    metric = "bleu"  # column of the score
    others: Mapping[str, MetricSettings] = {}  # more metrics, by their columns

    @abstractmethod
    def compare(self, test: Any, sets: Iterable[Heads], samples: int = 1000) -> Differences:
        """Compare each set of masked heads with no mask, by paired bootstrap with `samples`."""

    @abstractmethod
    def facts(self, tests: Mapping[str, Any], sets: Iterable[Heads]) -> dict[str, Any]:
        """Return sizes of the test sets and settings that shape the scores, for the record."""

    def write(
        self,
        out: Path,
        columns: Sequence[str],
        rows: Callable[[str], list[list[Any]]],
        facts: dict[str, Any],
    ) -> None:
        """Write rows of every metric, see `write_by_metric`."""
        write_by_metric(out, columns, [self.metric, *self.others], rows, facts)


def write_by_metric(
    out: Path,
    columns: Sequence[str],
    metrics: Sequence[str],
    rows: Callable[[str], list[list[Any]]],
    facts: dict[str, Any],
) -> None:
    """Write rows of every metric as CSV, and `facts` as JSON beside it.

    `rows`: function of the metric. All but the first have `<name>.<metric>.csv` beside `out`.
    """
    for number, metric in enumerate(metrics):
        path = out.with_name(f"{out.stem}.{metric}.csv") if number else out
        write_result(path, score_columns(columns, metric), rows(metric), facts)


def score_columns(columns: Sequence[str], metric: str) -> list[str]:
    """Return the columns of a file about BLEU with another metric in its place."""
    return [metric if column == "bleu" else column for column in columns]


def distinct(sets: Iterable[Heads]) -> list[Heads]:
    """Return no mask, then every other set once."""
    return list(dict.fromkeys([(), *sets]))


def write_points(
    masked: Masked,
    tests: Mapping[str, Any],
    points: Sequence[Point],
    scores: Mapping[str, Differences],
    columns: Sequence[str],
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write scores with the heads of each point masked as CSV, and `Masked.facts` beside it."""

    def rows(metric: str) -> list[list[Any]]:
        by_test = (point_rows(masked.grid, name, points, scores[name], metric) for name in tests)
        return [row for rows in by_test for row in rows]

    facts = masked.facts(tests, [point.heads for point in points])
    masked.write(out, columns, rows, facts | {"provenance": origin})


def point_rows(
    grid: HeadGrid, test: str, points: Iterable[Point], scores: Differences, metric: str
) -> list[list[Any]]:
    """Return a row for each point: test set, the point's cells, then `SCORE_COLUMNS`.

    `metric`: one of the `others` of the differences, or the metric of `Masked`.
    """
    names = [head.name() for head in grid.heads()]
    rows = []
    for cells, heads in points:
        score = scores[heads].by(metric)
        masked = (len(heads), " ".join(names[place] for place in heads))
        change = (score.delta, score.low, score.high, score.p_value, score.signature)
        rows.append([test, *cells, *masked, score.score, *change])
    return rows


class Translator(Masked):
    """A model that translates with heads masked."""

    language: str  # target language, for sacreBLEU

    def of_units(self) -> "Translator":
        """Return the model with multipliers of feed-forward units and layers, too.

        Raises UserError for a model whose heads alone can be masked.
        """
        raise UserError("--scope: expected all, since only heads of this model can be masked")

    @abstractmethod
    def search(self) -> dict[str, Any]:
        """Return the settings of its search, for the record."""

    @abstractmethod
    def translations(
        self, lines: list[str], sets: list[Heads], done: Callable[[int], object]
    ) -> dict[Heads, list[str]]:
        """Return the lines, translated with each set masked. `done` gets finished sentences."""

    def compare(self, test: TestSet, sets: Iterable[Heads], samples: int = 1000) -> Differences:
        sets, (sources, targets) = distinct(sets), test
        with tqdm(total=len(sets) * len(sources), unit="sentence", disable=None) as bar:
            lines = list(self.translations(sources, sets, bar.update).values())
        scores = compare_systems(lines[0], lines, targets, self.language, samples)
        if self.others:
            others = compare_by_metrics(self.others, sources, lines, targets, samples)
            scores = [replace(score, others=o) for score, o in zip(scores, others, strict=True)]
        return dict(zip(sets, scores, strict=True))

    def facts(self, tests: Mapping[str, TestSet], sets: Iterable[Heads]) -> dict[str, Any]:
        """Return search, sentences and numbers of masks, and warn of layers without heads."""
        sets = distinct(sets)
        masks = head_masks(sets, self.grid.size)
        closing = sum(bool(self.grid.closed_layers(mask)) for mask in masks)
        if closing:
            print(
                f"warning: {closing} of {len(sets)} masks leave a layer without heads; only "
                "its residual path is left there",
                file=sys.stderr,
            )
        return {
            **self.search(),
            "sentences": {test: len(targets) for test, (_, targets) in tests.items()},
            "distinct_masks": len(sets),
            "masks_closing_a_layer": closing,
        }


class Inputs(ABC):
    """Inputs of every masking experiment."""

    model: Any  # a ModelFolder or HookedFolder
    text: Path  # folder of the pair's cleaned text

    @abstractmethod
    def load(self) -> Translator:
        """Return the model, ready to translate."""

    @abstractmethod
    def languages(self) -> tuple[str, str]:
        """Return source and target language, as in en-de, and where they are written."""

    def files(self, tests: Iterable[str]) -> list[Path]:
        """Return the files that shape translations of these test sets."""
        return [*self.model.files, *(path for test in tests for path in self.texts(test))]

    def read_tests(self, tests: Iterable[str], sentences: int | None) -> dict[str, TestSet]:
        """Return the first sentences of each of these test sets, None for all.

        Raises UserError without a test set, for sides of unequal length or without a line, and for
        languages that are not the model's.
        """
        texts = {}
        for test in tests:
            self._check_languages(test)
            sources, targets = (list(clean_lines(path)) for path in self.texts(test))
            if len(sources) != len(targets) or not sources:
                raise UserError(
                    f"{self.text}: {test}.src has {len(sources)} lines, {test}.tgt has "
                    f"{len(targets)}; expected as many on both sides, and at least one; "
                    "run scripts/text.py again"
                )
            texts[test] = (sources[:sentences], targets[:sentences])
        if not texts:
            raise UserError("masking.test_sets: expected the name of a test set, found none")
        return texts

    def texts(self, test: str) -> list[Path]:
        """Return both sides of a test set."""
        return [self.text / f"{test}.{side}" for side in SIDES]

    def _check_languages(self, test: str) -> None:
        """Raise UserError if the text step has recorded other languages than the model's."""
        record = self.text / f"{test}.json"
        if not record.is_file():
            return  # lines that no step has made
        facts = read_json(record)
        actual = f"{facts['src_lang']}-{facts['tgt_lang']}"
        expected, why = self.languages()
        if actual != expected:
            raise UserError(f"{record}: {test} is {actual}, expected {expected}, {why}")


@dataclass(frozen=True)
class MaskedInputs(Inputs):
    """A model of ours, the pair that it was trained on, and our search."""

    model: ModelFolder
    pair: PairFolder
    text: Path
    decode: DecodeSettings
    metrics: Mapping[str, MetricSettings] = field(default_factory=dict, hash=False)

    def files(self, tests: Iterable[str]) -> list[Path]:
        return [*super().files(tests), *self.pair.files()]

    def load(self) -> "MaskedModel":
        """Return the model. Raises UserError if it was trained on another `pair`."""
        self.model.check(self.pair)
        model = self.model.load(self.decode.device)
        masked = MaskedModel(model, *self.pair.segmenters(), self.decode)
        masked.others = self.metrics
        return masked

    def languages(self) -> tuple[str, str]:
        facts = self.pair.segmentation()
        return f"{facts['src_lang']}-{facts['tgt_lang']}", f"the languages of {self.pair.path}"


class MaskedModel(Translator):
    """A trained model of ours, the segmenters of its two languages, and our search."""

    def __init__(self, model: Transformer, src: Segmenter, tgt: Segmenter, decode: DecodeSettings):
        self.model, self.src, self.tgt, self.decode = model, src, tgt, decode
        self.grid, self.language = model.grid, tgt.language

    def of_units(self) -> "MaskedModel":
        whole = MaskedModel(UnitTransformer.of(self.model), self.src, self.tgt, self.decode)
        whole.others = self.others
        return whole

    def search(self) -> dict[str, Any]:
        return self.decode.model_dump(include={"beam", "length_penalty"})

    def translations(
        self, lines: list[str], sets: list[Heads], done: Callable[[int], object]
    ) -> dict[Heads, list[str]]:
        """Return the lines, translated with each set of heads masked, by one search."""
        masks = torch.from_numpy(head_masks(sets, self.grid.size))
        longest = self.decode.max_source
        sources = [self.src.cut_off(self.src.encode(line), longest) for line in lines]
        rows = masks.repeat_interleave(len(sources), dim=0)
        repeated, prefix = sources * len(sets), self.tgt.prefix
        every = iter(translate(self.model, repeated, self.decode, rows, done, prefix))
        return {
            heads: [self.tgt.decode(t.ids) for t in islice(every, len(lines))] for heads in sets
        }

"""BLEU of one model's test sets under many sets of silent heads.

All masks of a test set go through one search, a row of the head multiplier for each sentence, so
that batches stay full; each distinct set of heads is translated once however often it occurs, and
masks that leave the encoder's heads alone share its states.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
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
from headcount.data.bpe import Segmenter
from headcount.data.lines import clean_lines
from headcount.model.transformer import Transformer
from headcount.scoring.bootstrap import Difference, judge_systems, resample_bleu
from headcount.search.beam_search import translate
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

SCORE_COLUMNS = ("heads_masked", "heads", "bleu", "delta", "delta_low", "delta_high", "p")
SCORE_COLUMNS += ("signature",)

Differences = dict[Heads, Difference]
TestSet = tuple[list[str], list[str]]  # lines of its .src and of its .tgt


class Point(NamedTuple):
    """Heads to mask together."""

    cells: tuple[Any, ...]  # what stands in a row between the test set and `SCORE_COLUMNS`
    heads: Heads


class Inputs(ABC):
    """What every masking experiment reads, and how it translates."""

    model: Any  # the model's folder: a ModelFolder, or what stands in its place
    text: Path  # folder of the pair's cleaned text

    @abstractmethod
    def load(self) -> "Masked":
        """The model, ready to translate."""

    @abstractmethod
    def files(self, tests: Iterable[str]) -> list[Path]:
        """The files that shape translations of these test sets."""

    @abstractmethod
    def languages(self) -> tuple[str, str]:
        """Source and target language, as in en-de, and what says so."""

    def read_tests(self, tests: Iterable[str], sentences: int | None) -> dict[str, TestSet]:
        """The first sentences of each of these test sets, None for all.

        Raises UserError if none is named, or one is not whole or in languages that are not the
        model's.
        """
        found = {}
        for test in tests:
            self._check_languages(test)
            sources, targets = (list(clean_lines(path)) for path in self.texts(test))
            if len(sources) != len(targets) or not sources:
                raise UserError(
                    f"{self.text}: {test}.src has {len(sources)} lines, {test}.tgt has "
                    f"{len(targets)}; expected as many on both sides, and at least one; "
                    "run scripts/text.py again"
                )
            found[test] = (sources[:sentences], targets[:sentences])
        if not found:
            raise UserError("masking.test_sets: expected the name of a test set, found none")
        return found

    def texts(self, test: str) -> list[Path]:
        """Both sides of a test set."""
        return [self.text / f"{test}.{side}" for side in SIDES]

    def _check_languages(self, test: str) -> None:
        """Hold what the text step says beside a test set against what the model was trained on."""
        beside = self.text / f"{test}.json"
        if not beside.is_file():
            return  # lines that no step has made
        facts = read_json(beside)
        found = f"{facts['src_lang']}-{facts['tgt_lang']}"
        expected, why = self.languages()
        if found != expected:
            raise UserError(
                f"{beside}: {test} is {found}, expected {expected}, {why}; give the folder of the "
                "model's own pair"
            )


@dataclass(frozen=True)
class MaskedInputs(Inputs):
    """A model of ours, the pair that it was trained on, and our search."""

    model: ModelFolder
    pair: PairFolder
    text: Path
    decode: DecodeSettings

    def files(self, tests: Iterable[str]) -> list[Path]:
        """The files that shape translations of these test sets."""
        texts = (path for test in tests for path in self.texts(test))
        return [*self.model.files, *self.pair.files(), *texts]

    def load(self) -> "MaskedModel":
        """The model, ready to translate. Raises UserError if it was trained on another `pair`."""
        self.model.check(self.pair)
        model = self.model.load(self.decode.device)
        return MaskedModel(model, *self.pair.segmenters(), self.decode)

    def languages(self) -> tuple[str, str]:
        """Those that the pair was cut from."""
        facts = self.pair.segmentation()
        return f"{facts['src_lang']}-{facts['tgt_lang']}", f"what {self.pair.path} was cut from"


class Masked(ABC):
    """A model, and how it translates with heads masked."""

    @property
    @abstractmethod
    def grid(self) -> HeadGrid:
        """The model's heads."""

    @property
    @abstractmethod
    def language(self) -> str:
        """The target language, for sacreBLEU."""

    @abstractmethod
    def search(self) -> dict[str, Any]:
        """How it searches, for the record."""

    @abstractmethod
    def translations(
        self, lines: list[str], sets: list[Heads], done: Callable[[int], object]
    ) -> dict[Heads, list[str]]:
        """The lines, translated with each set of heads masked; each set is named once.

        `done` is told the number of sentences finished.
        """

    def compare(self, test: TestSet, sets: Sequence[Heads], samples: int = 1000) -> Differences:
        """What each set of heads costs against no mask, by paired bootstrap with `samples`."""
        sources, targets = test
        distinct = list(dict.fromkeys([(), *sets]))
        with tqdm(total=len(distinct) * len(sources), unit="sentence", disable=None) as bar:
            found = self.translations(sources, distinct, bar.update)
        scores = resample_bleu(list(found.values()), targets, self.language, samples)
        judged = judge_systems(scores[0], scores, targets, self.language)
        return dict(zip(found, judged, strict=True))

    def describe(self, tests: dict[str, TestSet], sets: Iterable[Heads]) -> dict[str, Any]:
        """The search, sentences of each test set, distinct masks with the empty one.

        `masks_closing_a_layer` is how many of these leave a layer without heads, which standard
        error is told as well: what such a model translates comes by its residual path alone.
        """
        distinct = {(), *sets}
        masks = head_masks(list(distinct), self.grid.size)
        closing = sum(bool(self.grid.closed_layers(mask)) for mask in masks)
        if closing:
            print(
                f"warning: {closing} of {len(distinct)} masks leave a layer without heads; only "
                "its residual path is left there",
                file=sys.stderr,
            )
        return {
            **self.search(),
            "sentences": {test: len(targets) for test, (_, targets) in tests.items()},
            "distinct_masks": len(distinct),
            "masks_closing_a_layer": closing,
        }


@dataclass(frozen=True)
class MaskedModel(Masked):
    """A trained model of ours, the segmenters of its two languages, and our search."""

    model: Transformer
    src: Segmenter
    tgt: Segmenter
    decode: DecodeSettings

    @property
    def grid(self) -> HeadGrid:
        """The model's heads."""
        return self.model.grid

    @property
    def language(self) -> str:
        """The target language, for sacreBLEU."""
        return self.tgt.language

    def search(self) -> dict[str, Any]:
        """Beam and length penalty."""
        return {"beam": self.decode.beam, "length_penalty": self.decode.length_penalty}

    def translations(
        self, lines: list[str], sets: list[Heads], done: Callable[[int], object]
    ) -> dict[Heads, list[str]]:
        """The lines, translated with each set of heads masked, in one search."""
        masks = torch.from_numpy(head_masks(sets, self.grid.size))
        longest = self.decode.max_source
        sources = [self.src.cut_off(self.src.encode(line), longest) for line in lines]
        rows = masks.repeat_interleave(len(sources), dim=0)
        repeated, prefix = sources * len(sets), self.tgt.prefix
        found = iter(translate(self.model, repeated, self.decode, rows, done, prefix))
        return {
            heads: [self.tgt.decode(t.ids) for t in islice(found, len(lines))] for heads in sets
        }


def point_rows(
    grid: HeadGrid, test: str, points: Iterable[Point], found: Differences
) -> list[list[Any]]:
    """A row for each point: test set, the point's cells, then `SCORE_COLUMNS`."""
    names = [head.name() for head in grid.heads()]
    rows = []
    for cells, heads in points:
        score = found[heads]
        masked = (len(heads), " ".join(names[place] for place in heads))
        change = (score.delta, score.low, score.high, score.p_value, score.signature)
        rows.append([test, *cells, *masked, score.bleu, *change])
    return rows


def write_points(
    masked: Masked,
    tests: dict[str, TestSet],
    points: Sequence[Point],
    found: Mapping[str, Differences],
    columns: Sequence[str],
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write BLEU with the heads of each point masked as CSV, one point of one test set a row.

    `found`: what `compare` says of each test set. Beside `out` goes a JSON of the same name:
    search, sentences, distinct masks, and `origin`.
    """
    described = masked.describe(tests, [point.heads for point in points])
    rows = [row for test in tests for row in point_rows(masked.grid, test, points, found[test])]
    write_result(out, columns, rows, {**described, "provenance": origin})

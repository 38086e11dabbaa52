"""BLEU of one model's test sets under many sets of silent heads.

All masks of a test set go through one search, a row of the head multiplier for each sentence, so
that batches stay full; each distinct set of heads is translated once however often it occurs, and
masks that leave the encoder's heads alone share its states.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from tqdm import tqdm

from headcount.base.addresses import HeadGrid
from headcount.base.errors import UserError
from headcount.base.files import read_json, write_result
from headcount.base.folders import SIDES
from headcount.base.ranking import Heads
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
TestSets = dict[str, tuple[list[str], list[str]]]  # by name: source lines and references


@dataclass(frozen=True)
class MaskedInputs:
    """What every masking experiment reads, and how it translates."""

    model: ModelFolder
    pair: PairFolder
    text: Path  # folder of the pair's cleaned text
    decode: DecodeSettings

    def files(self, tests: Iterable[str]) -> list[Path]:
        """The files that shape translations of these test sets."""
        texts = (path for test in tests for path in self._texts(test))
        return [*self.model.files, *self.pair.files(), *texts]

    def load(self) -> "MaskedModel":
        """The model, ready to translate. Raises UserError if it was trained on another `pair`."""
        self.model.check(self.pair)
        model = self.model.load(self.decode.device)
        return MaskedModel(model, *self.pair.segmenters(), self.decode)

    def read_tests(self, tests: Iterable[str], sentences: int | None) -> TestSets:
        """The first sentences of each of these test sets, None for all.

        Raises UserError if none is named, or one is not whole or in languages that are not the
        model's.
        """
        found = {}
        for test in tests:
            self._check_languages(test)
            sources, references = (list(clean_lines(path)) for path in self._texts(test))
            if len(sources) != len(references) or not sources:
                raise UserError(
                    f"{self.text}: {test}.src has {len(sources)} lines, {test}.tgt has "
                    f"{len(references)}; expected as many on both sides, and at least one; "
                    "run scripts/text.py again"
                )
            found[test] = (sources[:sentences], references[:sentences])
        if not found:
            raise UserError("masking.test_sets: expected the name of a test set, found none")
        return found

    def _texts(self, test: str) -> list[Path]:
        return [self.text / f"{test}.{side}" for side in SIDES]

    def _check_languages(self, test: str) -> None:
        """Hold what the text step says beside a test set against what the model was trained on."""
        beside = self.text / f"{test}.json"
        if not beside.is_file():
            return  # lines that no step has made
        found, expected = (
            f"{facts['src_lang']}-{facts['tgt_lang']}"
            for facts in (read_json(beside), self.pair.segmentation())
        )
        if found != expected:
            raise UserError(
                f"{beside}: {test} is {found}, expected {expected}, what {self.pair.path} was cut "
                "from; give the folder of the model's own pair"
            )


@dataclass(frozen=True)
class MaskedModel:
    """A trained model, the segmenters of its two languages, and how it translates."""

    model: Transformer
    src: Segmenter
    tgt: Segmenter
    decode: DecodeSettings

    def compare(
        self, tests: TestSets, sets: Sequence[Heads], samples: int = 1000
    ) -> Iterator[tuple[str, Differences]]:
        """For each test set, what each set of heads costs against no mask, by paired bootstrap.

        `samples`: number of resamples.
        """
        language = self.tgt.language  # for sacreBLEU
        distinct = list(dict.fromkeys([(), *sets]))
        sentences = sum(len(references) for _, references in tests.values())
        with tqdm(total=len(distinct) * sentences, unit="sentence", disable=None) as bar:
            for test, (sources, references) in tests.items():
                found = self.translations(sources, distinct, bar.update)
                scores = resample_bleu(list(found.values()), references, language, samples)
                judged = judge_systems(scores[0], scores, language)
                yield test, dict(zip(found, judged, strict=True))

    def describe(self, tests: TestSets, sets: Iterable[Heads]) -> dict[str, Any]:
        """The search, sentences of each test set, distinct masks with the empty one.

        `masks_closing_a_layer` is how many of these leave a layer without heads, which standard
        error is told as well: what such a model translates comes by its residual path alone.
        """
        grid, distinct = self.model.grid, {(), *sets}
        closing = sum(bool(grid.closed_layers(_multiplier(grid, heads))) for heads in distinct)
        if closing:
            print(
                f"warning: {closing} of {len(distinct)} masks leave a layer without heads; only "
                "its residual path is left there",
                file=sys.stderr,
            )
        return {
            "beam": self.decode.beam,
            "length_penalty": self.decode.length_penalty,
            "sentences": {test: len(references) for test, (_, references) in tests.items()},
            "distinct_masks": len(distinct),
            "masks_closing_a_layer": closing,
        }

    def translations(
        self, lines: list[str], sets: list[Heads], done: Callable[[int], object]
    ) -> dict[Heads, list[str]]:
        """The lines, translated with each set of heads masked; each set is named once."""
        masks = torch.ones(len(sets), self.model.grid.size)
        for mask, heads in zip(masks, sets, strict=True):
            mask[list(heads)] = 0.0
        sources = [self.src.encode(line)[: self.decode.max_source] for line in lines]
        rows = masks.repeat_interleave(len(sources), dim=0)
        found = iter(translate(self.model, sources * len(sets), self.decode, rows, done))
        return {
            heads: [self.tgt.decode(t.ids) for t in islice(found, len(lines))] for heads in sets
        }


class NamedHeads(Protocol):
    """Heads to mask together, and the cells that say which they are."""

    @property
    def heads(self) -> Heads:
        """Flat positions, sorted."""

    def cells(self) -> list[Any]:
        """What stands in a row between the test set and `SCORE_COLUMNS`."""


def score_cells(grid: HeadGrid, heads: Heads, differences: Differences) -> list[Any]:
    """The cells of `SCORE_COLUMNS` for one set of heads."""
    addresses = grid.heads()
    names = " ".join(addresses[position].name() for position in heads)
    found = differences[heads]
    scores = (found.bleu, found.delta, found.low, found.high, found.p_value, found.signature)
    return [len(heads), names, *scores]


def write_points(
    masked: MaskedModel,
    tests: TestSets,
    points: Sequence[NamedHeads],
    found: dict[str, Differences],
    columns: Sequence[str],
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write BLEU with the heads of each point masked as CSV, one point of one test set a row.

    `found`: on each test set, what `compare` says of them: deltas, their 95 % intervals and
    p-values are against no mask, by paired bootstrap. Beside `out` goes a JSON of the same name:
    search, sentences, distinct masks, and `origin`.
    """
    grid, sets = masked.model.grid, [point.heads for point in points]
    rows = [
        [test, *point.cells(), *score_cells(grid, point.heads, differences)]
        for test, differences in found.items()
        for point in points
    ]
    write_result(out, columns, rows, {**masked.describe(tests, sets), "provenance": origin})


def _multiplier(grid: HeadGrid, heads: Heads) -> np.ndarray:
    """The head multiplier that masks a set."""
    multiplier = np.ones(grid.size)
    multiplier[list(heads)] = 0
    return multiplier

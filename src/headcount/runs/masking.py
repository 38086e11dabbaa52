"""Masking experiments: one model's test sets, translated with many different sets of heads silent.

All masks of a test set go through one search, a row of the head multiplier for each sentence, so
that batches stay full; each distinct set of heads is translated once however often it occurs.
Encoder states are not shared between masks: the encoder is about a twentieth of the work.
"""

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from headcount.base.addresses import HeadGrid
from headcount.base.errors import UserError
from headcount.base.files import write_json, write_text
from headcount.base.head_values import read_head_values
from headcount.base.ranking import MaskedSet, random_sets, rank_heads, ranked_sets
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.masking import MaskingSettings
from headcount.data.bpe import Segmenter, load_segmenters
from headcount.data.lines import clean_lines
from headcount.model.transformer import Transformer
from headcount.runs.bootstrap import Difference, compare_systems
from headcount.runs.checkpoint import load_model
from headcount.runs.decode import translate
from headcount.runs.machine import pick_device
from headcount.runs.translation import check_vocabularies

COLUMNS = ("test_set", "ranking", "order", "index", "draw", "heads_masked", "heads")
COLUMNS += ("bleu", "delta", "delta_low", "delta_high", "p", "signature")

Heads = tuple[int, ...]
TestSets = dict[str, tuple[list[str], list[str]]]  # by name: source lines and references


@dataclass(frozen=True)
class MaskingInputs:
    """What a masking experiment reads."""

    model: Path  # folder of the model
    bpe: Path  # folder of the segmented pair
    text: Path  # folder of the pair's cleaned text
    rankings: dict[str, Path]  # importance.csv by name: own, and baseline where it is another's

    def files(self, settings: MaskingSettings) -> list[Path]:
        """The files that shape the outcome."""
        words = ("src.codes", "tgt.codes", "src.vocab", "tgt.vocab", "segmentation.json")
        ends = ("src", "tgt")
        return [
            *(self.model / name for name in ("model.json", "weights.safetensors")),
            *(self.bpe / name for name in words),
            *(self.text / f"{test}.{end}" for test in settings.test_sets for end in ends),
            *self.rankings.values(),
        ]


@dataclass(frozen=True)
class Point:
    """One set of heads to mask, and whose ranking it comes from."""

    ranking: str  # own or baseline; that of random sets, which are every model's, is own
    masked: MaskedSet


@dataclass(frozen=True)
class MaskedModel:
    """A trained model, the segmenters of its two languages, and how it translates."""

    model: Transformer
    src: Segmenter
    tgt: Segmenter
    decode: DecodeSettings

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


def write_masking(
    inputs: MaskingInputs,
    settings: MaskingSettings,
    decode: DecodeSettings,
    language: str,
    seed: int,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write BLEU under every mask of the experiment as CSV, one mask of one test set a row.

    Deltas, their 95 % intervals and p-values are against no mask, by paired bootstrap. `language`
    is the target's, for sacreBLEU; `seed` is that of the random masks. Beside `out` goes a JSON of
    the same name: sentences, distinct masks, search, and `origin`. Raises UserError, before
    anything is translated, if there are more groups than heads, a ranking is another model's, a
    test set has no sentence or its sides differ in length.
    """
    check_vocabularies(inputs.model, inputs.bpe)
    model = load_model(inputs.model).to(pick_device(decode.device))
    points = list_points(model.grid, settings, inputs.rankings, seed)
    tests = _read_tests(inputs.text, settings)
    masked = MaskedModel(model, *load_segmenters(inputs.bpe), decode)
    sets = list(dict.fromkeys(point.masked.heads for point in points))
    rows = []
    sentences = {test: len(references) for test, (_, references) in tests.items()}
    with tqdm(total=len(sets) * sum(sentences.values()), unit="sentence", disable=None) as bar:
        for test, (sources, references) in tests.items():
            found = masked.translations(sources, sets, bar.update)
            differences = _compare(found, references, language)
            rows += [[test, *_row(point, model.grid, differences)] for point in points]
    write_text(out, _as_csv(rows))
    facts = {"sentences": sentences, "distinct_masks": len(sets), "beam": decode.beam}
    facts |= {"length_penalty": decode.length_penalty, "provenance": origin}
    write_json(out.with_suffix(".json"), facts)


def list_points(
    grid: HeadGrid, settings: MaskingSettings, rankings: Mapping[str, Path], seed: int
) -> list[Point]:
    """Every point of the experiment: the sets of each ranking, then the random ones."""
    points = []
    for name, path in rankings.items():
        ranking = rank_heads(read_head_values(path, "importance", grid))
        points += [Point(name, found) for found in ranked_sets(ranking, settings.groups)]
    control = random_sets(grid.size, settings.groups, settings.draws, seed)
    return points + [Point("own", found) for found in control]


def _read_tests(text: Path, settings: MaskingSettings) -> TestSets:
    if not settings.test_sets:
        raise UserError("masking.test_sets: expected the name of a test set, found none")
    tests = {}
    for test in settings.test_sets:
        sources, references = (list(clean_lines(text / f"{test}.{end}")) for end in ("src", "tgt"))
        if len(sources) != len(references) or not sources:
            raise UserError(
                f"{text}: {test}.src has {len(sources)} lines, {test}.tgt has {len(references)}; "
                "expected as many on both sides, and at least one; run scripts/text.py again"
            )
        tests[test] = (sources[: settings.sentences], references[: settings.sentences])
    return tests


def _compare(
    found: dict[Heads, list[str]], references: list[str], language: str
) -> dict[Heads, Difference]:
    """What each set of heads costs, against the empty set."""
    judged = compare_systems(found[()], list(found.values()), references, language)
    return dict(zip(found, judged, strict=True))


def _row(point: Point, grid: HeadGrid, differences: dict[Heads, Difference]) -> list[Any]:
    """The cells of a point, without its test set."""
    masked = point.masked
    heads = grid.heads()
    names = " ".join(heads[position].name() for position in masked.heads)
    draw = "" if masked.draw is None else masked.draw
    of_set = differences[masked.heads]
    return [
        *(point.ranking, masked.order, masked.index, draw, len(masked.heads), names),
        *(of_set.bleu, of_set.delta, of_set.low, of_set.high, of_set.p_value, of_set.signature),
    ]


def _as_csv(rows: list[list[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows)
    return text.getvalue()

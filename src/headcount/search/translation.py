"""Translation of text: lines, a file, or standard input."""

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import torch
from torch import Tensor
from tqdm import tqdm

from headcount.base.errors import UserError
from headcount.base.files import sha256, write_json, write_text
from headcount.base.settings.decode import DecodeSettings
from headcount.data.batches import Ids
from headcount.data.bpe import AnySegmenter
from headcount.data.lines import arriving_lines
from headcount.data.text import clean, read_clean
from headcount.model.transformer import Transformer
from headcount.model.units import with_grid
from headcount.search.beam_search import translate
from headcount.store.kept_heads import grid_named, read_mask
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

Mask = Sequence[str | Path]


class Search(Protocol):
    """A model in a program that searches."""

    sides: tuple[AnySegmenter, AnySegmenter]  # segmenters of source and target
    settings: DecodeSettings
    positions: int  # size of the model's table of positions, 0 for no limit
    facts: dict[str, Any]  # name of the program, for the record

    def translate(self, sources: list[Ids], done: Callable[[int], object]) -> Sequence[Any]:
        """Return the best `Translation` of each source in order, with ids and hit_max_length."""


@dataclass(frozen=True)
class OwnSearch(Search):
    """A model of this package and its beam search, perhaps with heads masked."""

    model: Transformer
    sides: tuple[AnySegmenter, AnySegmenter]
    settings: DecodeSettings
    multiplier: Tensor | None = None

    facts = {"engine": "headcount"}

    @property
    def positions(self) -> int:
        """Size of the model's table of positions."""
        return self.model.settings.position_table

    def translate(self, sources: list[Ids], done: Callable[[int], object]) -> Sequence[Any]:
        """Return translations by `beam_search.translate`."""
        prefix = self.sides[1].prefix
        return translate(self.model, sources, self.settings, self.multiplier, done, prefix)


def open_own_search(
    folder: ModelFolder, pair: PairFolder, mask: Mask, settings: DecodeSettings
) -> OwnSearch:
    """Return a search by the model in a folder, under a mask that `read_mask` reads."""
    folder.check(pair)
    model = folder.load(settings.device)
    if mask:
        model = with_grid(model, grid_named(mask, model.settings))
    multiplier = torch.from_numpy(read_mask(mask, model.grid)) if mask else None
    return OwnSearch(model, pair.segmenters(), settings, multiplier)


def translate_lines(
    search: Search,
    lines: Sequence[str],
    done: Callable[[int], object] = lambda sentences: None,
    place: str = "text",
    first: int = 1,
) -> tuple[list[str], Counter[str]]:
    """Return the translation of each cleaned line, in order, and counts. Faults name `place`."""
    src, tgt = search.sides
    whole, longest = [src.encode(line) for line in lines], search.settings.max_source
    sources = [src.cut_off(ids, longest) for ids in whole]
    _check_lengths(place, first, sources, search.positions)
    translations = search.translate(sources, done)
    counts = Counter(
        sentences=len(lines),
        empty=sum(not ids for ids in sources),
        source_truncated=sum(len(ids) > longest for ids in whole),
        hit_max_length=sum(translation.hit_max_length for translation in translations),
    )
    return [tgt.decode(translation.ids) for translation in translations], counts


def translate_file(
    search: Search, source: Path, out: Path, facts: Path, origin: dict[str, Any]
) -> None:
    """Write one translation per source line, and facts, by `translate_lines`."""
    lines = read_clean(source)
    with tqdm(total=len(lines), unit="sentence", disable=None) as bar:
        translations, counts = translate_lines(search, lines, bar.update, str(source))
    write_text(out, "".join(f"{line}\n" for line in translations))
    used = search.settings.model_dump(include={"beam", "length_penalty"}) | search.facts
    write_json(facts, {"sha256": sha256(out), **counts, **used, "provenance": origin})


def translate_stream(search: Search, source: BinaryIO, out: BinaryIO) -> None:
    """Write one detokenised translation per line of a stream, as soon as it has arrived."""
    counts, shown = Counter(), "standard input"
    for arrived in arriving_lines(source, shown):
        lines = list(map(clean, arrived))
        first = counts["sentences"] + 1
        translations, some = translate_lines(search, lines, place=shown, first=first)
        out.write("".join(f"{line}\n" for line in translations).encode())
        out.flush()
        counts += some
    if counts["source_truncated"] or counts["hit_max_length"]:
        print(
            f"warning: of {counts['sentences']} lines {counts['source_truncated']} were cut to "
            f"{search.settings.max_source} subwords, and "
            f"{counts['hit_max_length']} translations at their longest",
            file=sys.stderr,
        )


def _check_lengths(place: str, first: int, sources: Sequence[Ids], positions: int) -> None:
    """Raise UserError with the place of the first source that is longer than the positions."""
    for number, ids in enumerate(sources, start=first):
        if positions and len(ids) >= positions:
            raise UserError(
                f"{place}:{number}: expected at most {positions - 1} subwords for the model's "
                f"positions, found {len(ids)}; lower decode.max_source to cut sentences off"
            )

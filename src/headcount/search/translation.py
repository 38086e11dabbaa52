"""Translation of text: lines, a file, or what arrives on standard input."""

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
from headcount.data.lines import LineTally, arriving_lines
from headcount.data.text import clean, read_clean
from headcount.model.kernels.matmul import frozen_weights
from headcount.model.transformer import Transformer
from headcount.search.beam_search import translate
from headcount.store.kept_heads import read_mask
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

Mask = Sequence[str | Path]


class Found(Protocol):
    """The best hypothesis of one sentence."""

    ids: Ids  # without EOS
    capped: bool  # as long as the longest output allowed, where all must end


class Search(Protocol):
    """A model, in a program that searches."""

    sides: tuple[AnySegmenter, AnySegmenter]  # what cuts source and target
    settings: DecodeSettings
    positions: int  # that the model knows on either side; 0 stands for any number
    facts: dict[str, Any]  # which program it is, for the record

    def translate(self, sources: list[Ids], done: Callable[[int], object]) -> Sequence[Found]:
        """The best translation of each source in order; an empty one stays empty.

        `done` is told the number of sentences finished.
        """
        ...


@dataclass(frozen=True)
class OwnSearch(Search):
    """A model of ours and our beam search, perhaps with heads masked."""

    model: Transformer
    sides: tuple[AnySegmenter, AnySegmenter]
    settings: DecodeSettings
    multiplier: Tensor | None = None

    @property
    def positions(self) -> int:
        """How many the model knows; 0 stands for any number."""
        return self.model.settings.position_table

    @property
    def facts(self) -> dict[str, Any]:
        """Which program it is."""
        return {"engine": "headcount"}

    def translate(self, sources: list[Ids], done: Callable[[int], object]) -> Sequence[Found]:
        """As `translate` of `beam_search` does."""
        prefix = self.sides[1].prefix
        return translate(self.model, sources, self.settings, self.multiplier, done, prefix)


def open_own_search(
    folder: ModelFolder, pair: PairFolder, mask: Mask, settings: DecodeSettings
) -> OwnSearch:
    """The model in a folder, which knows the pair's subwords; `mask`: as `read_mask` reads it."""
    folder.check(pair)
    model = folder.load(settings.device)
    multiplier = torch.from_numpy(read_mask(mask, model.grid)) if mask else None
    return OwnSearch(model, pair.segmenters(), settings, multiplier)


def translate_lines(
    search: Search,
    lines: Sequence[str],
    done: Callable[[int], object] = lambda sentences: None,
    place: str = "text",
    first: int = 1,
) -> tuple[list[str], Counter[str]]:
    """The detokenised translation of each cleaned line, in their order, and counts.

    The counts: sentences, empty ones (an empty line stays empty), sources truncated to the longest
    allowed, translations capped at the longest output allowed. `done`: as of `Search`. Raises
    UserError naming a line that is longer than the model allows, by `place` and number, of which
    `first` is that of the first line.
    """
    src, tgt = search.sides
    whole, longest = [src.encode(line) for line in lines], search.settings.max_source
    sources = [src.cut_off(ids, longest) for ids in whole]
    _check_lengths(place, first, sources, search.positions)
    translations = search.translate(sources, done)
    counts = Counter(
        sentences=len(lines),
        empty=sum(not ids for ids in sources),
        truncated=sum(len(ids) > longest for ids in whole),
        capped=sum(translation.capped for translation in translations),
    )
    return [tgt.decode(translation.ids) for translation in translations], counts


def translate_file(
    search: Search, source: Path, out: Path, facts: Path, origin: dict[str, Any]
) -> None:
    """Write one detokenised translation per source line, and facts with their provenance.

    The facts: the SHA-256 of the translations, the counts of `translate_lines`, the search's
    settings, and whose program it was. Raises UserError as `translate_lines` does.
    """
    lines = read_clean(source)
    with tqdm(total=len(lines), unit="sentence", disable=None) as bar:
        found, counts = translate_lines(search, lines, bar.update, str(source))
    write_text(out, "".join(f"{line}\n" for line in found))
    asked = search.settings
    told = {"beam": asked.beam, "length_penalty": asked.length_penalty, **search.facts}
    write_json(facts, {"sha256": sha256(out), **counts, **told, "provenance": origin})


def translate_stream(search: Search, source: BinaryIO, out: BinaryIO) -> None:
    """Write one detokenised translation per line of a stream, as soon as it has arrived.

    Lines that arrive together are translated together. Standard error is told what was truncated
    and capped.
    """
    tally, counts, shown = LineTally(), Counter(), "standard input"
    with frozen_weights():
        for arrived in arriving_lines(source, shown, tally):
            lines = [clean(line, tally) for line in arrived]
            first = counts["sentences"] + 1
            found, some = translate_lines(search, lines, place=shown, first=first)
            out.write("".join(f"{line}\n" for line in found).encode())
            out.flush()
            counts += some
    if counts["truncated"] or counts["capped"]:
        print(
            f"warning: of {counts['sentences']} lines {counts['truncated']} were cut to "
            f"{search.settings.max_source} subwords, and {counts['capped']} translations at their "
            "longest",
            file=sys.stderr,
        )


def _check_lengths(place: str, first: int, sources: Sequence[Ids], positions: int) -> None:
    """Raise UserError naming the first source that has no room in a table of positions."""
    for number, ids in enumerate(sources, start=first):
        if positions and len(ids) >= positions:
            raise UserError(
                f"{place}:{number}: expected at most {positions - 1} subwords, one less than the "
                f"model has positions, found {len(ids)}; part the sentence, or set "
                f"decode.max_source to {positions - 1}, which cuts it off"
            )

"""Translation of text: lines, a file, or what arrives on standard input."""

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

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


def translate_lines(
    model: Transformer,
    sides: tuple[AnySegmenter, AnySegmenter],
    lines: Sequence[str],
    settings: DecodeSettings,
    multiplier: Tensor | None = None,
    done: Callable[[int], object] = lambda sentences: None,
    place: str = "text",
    first: int = 1,
) -> tuple[list[str], Counter[str]]:
    """The detokenised translation of each cleaned line, in their order, and counts.

    The counts: sentences, empty ones (an empty line stays empty), sources truncated to the longest
    allowed, translations capped at the longest output allowed. `sides`: what cuts source and
    target; `multiplier`, `done`: as of `translate`. Raises UserError naming a line that is longer
    than the model allows, by `place` and number, of which `first` is that of the first line.
    """
    src, tgt = sides
    whole = [src.encode(line) for line in lines]
    sources = [src.cut_off(ids, settings.max_source) for ids in whole]
    _check_lengths(place, first, sources, model.settings.position_table)
    translations = translate(model, sources, settings, multiplier, done, tgt.prefix)
    counts = Counter(
        sentences=len(lines),
        empty=sum(not ids for ids in sources),
        truncated=sum(len(ids) > settings.max_source for ids in whole),
        capped=sum(translation.capped for translation in translations),
    )
    return [tgt.decode(translation.ids) for translation in translations], counts


def translate_file(
    folder: ModelFolder,
    pair: PairFolder,
    mask: Mask,
    source: Path,
    settings: DecodeSettings,
    out: Path,
    facts: Path,
    origin: dict[str, Any],
) -> None:
    """Write one detokenised translation per source line, and facts with their provenance.

    The facts: the SHA-256 of the translations, the counts of `translate_lines`, and the search's
    settings. `mask`: heads that are silent, as `read_mask` reads it. Raises UserError as
    `translate_lines` does.
    """
    model, multiplier = _masked(folder, pair, mask, settings)
    lines = read_clean(source, "none")
    with tqdm(total=len(lines), unit="sentence", disable=None) as bar:
        found, counts = translate_lines(
            model, pair.segmenters(), lines, settings, multiplier, bar.update, str(source)
        )
    write_text(out, "".join(f"{line}\n" for line in found))
    search = {"beam": settings.beam, "length_penalty": settings.length_penalty}
    write_json(facts, {"sha256": sha256(out), **counts, **search, "provenance": origin})


def translate_stream(
    folder: ModelFolder,
    pair: PairFolder,
    mask: Mask,
    settings: DecodeSettings,
    source: BinaryIO,
    out: BinaryIO,
) -> None:
    """Write one detokenised translation per line of a stream, as soon as it has arrived.

    Lines that arrive together are translated together. Standard error is told what was truncated
    and capped. `mask`: as of `translate_file`.
    """
    model, multiplier = _masked(folder, pair, mask, settings)
    sides, tally, counts, shown = pair.segmenters(), LineTally(), Counter(), "standard input"
    with frozen_weights():
        for arrived in arriving_lines(source, shown, tally):
            lines = [clean(line, "none", tally) for line in arrived]
            first = counts["sentences"] + 1
            found, some = translate_lines(
                model, sides, lines, settings, multiplier, place=shown, first=first
            )
            out.write("".join(f"{line}\n" for line in found).encode())
            out.flush()
            counts += some
    if counts["truncated"] or counts["capped"]:
        print(
            f"warning: of {counts['sentences']} lines {counts['truncated']} were cut to "
            f"{settings.max_source} subwords, and {counts['capped']} translations at their longest",
            file=sys.stderr,
        )


def _masked(
    folder: ModelFolder, pair: PairFolder, mask: Mask, settings: DecodeSettings
) -> tuple[Transformer, Tensor | None]:
    """The model in a folder, which knows the pair's subwords, and the multiplier of its heads."""
    folder.check(pair)
    model = folder.load(settings.device)
    return model, torch.from_numpy(read_mask(mask, model.grid)) if mask else None


def _check_lengths(place: str, first: int, sources: Sequence[Ids], positions: int) -> None:
    """Raise UserError naming the first source that has no room in a table of positions."""
    for number, ids in enumerate(sources, start=first):
        if positions and len(ids) >= positions:
            raise UserError(
                f"{place}:{number}: expected at most {positions - 1} subwords, one less than the "
                f"model has positions, found {len(ids)}; part the sentence, or set "
                f"decode.max_source to {positions - 1}, which cuts it off"
            )

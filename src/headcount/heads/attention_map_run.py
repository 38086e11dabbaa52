"""Attention of one head on a person's own sentences, from files to a file."""

from pathlib import Path
from typing import Any

from headcount.base.addresses import Head
from headcount.base.errors import UserError
from headcount.base.files import write_json
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.roles import RolesSettings
from headcount.data.bpe import Segmenter
from headcount.heads.attention_map import attention_map
from headcount.model.transformer import Transformer
from headcount.search.beam_search import translate
from headcount.search.translation import read_source
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

MOST = 20
"""Sentences in one file; a drawing of more could not be read."""


def write_attention(
    folder: ModelFolder,
    pair: PairFolder,
    head: Head,
    texts: tuple[Path, Path | None],
    level: str,
    settings: RolesSettings,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write a JSON of one map for each sentence, see `attention_map`, and of `origin`.

    `texts` are source sentences, one a line, and their translations; without the latter the model
    translates greedily. Raises UserError for a head that the model does not have, texts of unequal
    length, an empty line, and more than `MOST` sentences.
    """
    folder.check(pair)
    src, tgt = pair.segmenters()
    model = folder.load(settings.device)
    model.grid.index(head)
    lines = [read_source(path) if path else [] for path in texts]
    _check_lines(*lines, texts)
    sources = [src.pieces(line) for line in lines[0]]
    targets = [tgt.pieces(line) for line in lines[1]] or _translated(model, sources, src, tgt)
    maps = []
    for pieces in zip(sources, targets, strict=True):
        ids = (src.vocabulary.ids(pieces[0]), tgt.vocabulary.ids(pieces[1]))
        maps.append(attention_map(model, ids, pieces, head, settings, level))
    write_json(out, {"head": head._asdict(), "level": level, "maps": maps, "provenance": origin})


def _check_lines(src: list[str], tgt: list[str], texts: tuple[Path, Path | None]) -> None:
    if not 0 < len(src) <= MOST:
        raise UserError(f"{texts[0]}: expected 1 to {MOST} sentences, found {len(src)}")
    if texts[1] and len(tgt) != len(src):
        raise UserError(
            f"{texts[0]} has {len(src)} lines, {texts[1]} has {len(tgt)}; line n of one must "
            "translate line n of the other"
        )
    for path, lines in zip(texts, (src, tgt), strict=True):
        if "" in lines:
            raise UserError(f"{path}:{lines.index('') + 1}: this line has no word; take it out")


def _translated(
    model: Transformer, sources: list[list[str]], src: Segmenter, tgt: Segmenter
) -> list[list[str]]:
    """Pieces of the model's own translations."""
    ids = [src.vocabulary.ids(pieces) for pieces in sources]
    found = translate(model, ids, DecodeSettings(beam=1))
    return [tgt.vocabulary.pieces(each.ids) for each in found]

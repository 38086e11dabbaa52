"""Attention on single sentences, between subwords or words, for drawing: of one head, of all."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headcount.base.addresses import Head
from headcount.base.errors import UserError
from headcount.base.files import write_json
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.section import Compute
from headcount.data.batches import Ids, ParallelText
from headcount.data.lines import FoundText, references
from headcount.data.text import clean, read_clean
from headcount.heads.head_measures import word_attention
from headcount.model.transformer import Transformer, first_device, watch_attention
from headcount.search.beam_search import translate
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

START, END = "<s>", "</s>"
Words = list[tuple[str, int]]  # words of a sentence as they are drawn, with numbers of pieces
MOST = 20  # sentences in one file: a drawing of more could not be read


def write_attention(
    folder: ModelFolder,
    pair: PairFolder,
    head: Head,
    texts: tuple[Path, Path | None],
    level: str,
    settings: Compute,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write a JSON of one map for each sentence, see `attention_map`, and of `origin`."""
    folder.check(pair)
    src, tgt = pair.segmenters()
    model = folder.load(settings.device)
    model.grid.index(head)
    lines = _read_lines(*texts)
    sources = [src.pieces(line) for line in lines[0]]
    ids = [src.vocabulary.ids(pieces) for pieces in sources]
    targets = [tgt.pieces(line) for line in lines[1]]
    if not targets:
        greedy = translate(model, ids, DecodeSettings(beam=1), prefix=tgt.prefix)
        targets = [tgt.vocabulary.pieces(translation.ids) for translation in greedy]
    maps = []
    for read, *pieces in zip(ids, sources, targets, strict=True):
        drawn = [[(piece, 1) for piece in side] for side in pieces]
        if level == "word":
            drawn = [side.words(cut) for side, cut in zip((src, tgt), pieces, strict=True)]
        pair_ids = (read, tgt.vocabulary.ids(pieces[1]))
        maps.append(attention_map(model, pair_ids, tuple(drawn), head))
    write_json(out, {"head": head._asdict(), "level": level, "maps": maps, "provenance": origin})


def _read_lines(src: Path, tgt: Path | None) -> tuple[list[str], list[str]]:
    """Return the lines of both sides, the first of several references, [] without a file."""
    sources = read_clean(src)
    lines = FoundText(tgt).lines() if tgt else ()
    targets = [clean(references(line)[0]) for line in lines]
    if not 0 < len(sources) <= MOST:
        raise UserError(f"{src}: expected 1 to {MOST} sentences, found {len(sources)}")
    if tgt and len(targets) != len(sources):
        raise UserError(f"{src} has {len(sources)} lines, {tgt} has {len(targets)}")
    for path, side in ((src, sources), (tgt, targets)):
        if "" in side:
            raise UserError(f"{path}:{side.index('') + 1}: this line has no word; take it out")
    return sources, targets


@torch.inference_mode()
def all_weights(model: Transformer, src: Ids, tgt: Ids) -> dict[tuple[str, int], Tensor]:
    """Return weights [heads, queries, keys] on one sentence pair, BOS and EOS included."""
    weights: dict[tuple[str, int], Tensor] = {}
    batch = ParallelText([src], [tgt]).batch([0], first_device(model))
    with watch_attention(model.eval(), lambda kind, layer, w: weights.update({(kind, layer): w})):
        model.decode(batch.tgt_in, model.encode(batch.src))
    return {layer: by_sentence[0].cpu() for layer, by_sentence in weights.items()}


def sentence_attention(
    model: Transformer,
    pair: tuple[Ids, Ids],
    pieces: tuple[list[str], list[str]],
    names: Sequence[Head],
) -> dict[str, Any]:
    """Return attention between subwords of a pair by the `names` of all heads in flat order."""
    by_layer = all_weights(model, *pair)
    weights = {
        name.name(): _rounded(by_layer[head.kind, head.layer][head.head])
        for head, name in zip(model.grid.heads(), names, strict=True)
    }
    return {"source": [*pieces[0], END], "target": [START, *pieces[1]], "weights": weights}


def attention_map(
    model: Transformer, pair: tuple[Ids, Ids], words: tuple[Words, Words], head: Head
) -> dict[str, Any]:
    """Return the data of a drawing, as JSON: queries, keys (texts), weights (a row for a query)."""
    weights = all_weights(model, *pair)[head.kind, head.layer][head.head]
    source, target = [*words[0], (END, 1)], [(START, 1), *words[1]]
    queries = source if head.kind == "enc_self" else target
    keys = target if head.kind == "dec_self" else source
    numbers = [
        torch.arange(len(side)).repeat_interleave(torch.tensor([n for _, n in side]))[None]
        for side in (queries, keys)
    ]
    return {
        "queries": [text for text, _ in queries],
        "keys": [text for text, _ in keys],
        "weights": _rounded(word_attention(weights[None, None], *numbers)[0, 0]),
    }


def _rounded(weights: Tensor) -> list[list[float]]:
    """Return rows of weights with four digits."""
    return [[round(weight, 4) for weight in row] for row in weights.tolist()]

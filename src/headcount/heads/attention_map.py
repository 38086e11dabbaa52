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
from headcount.base.settings.roles import RolesSettings
from headcount.data.batches import Ids, ParallelText, collate
from headcount.data.bpe import join_pieces
from headcount.data.lines import LineTally, read_lines, references
from headcount.data.text import clean, read_clean
from headcount.data.words import SEPARATOR
from headcount.heads.word_attention import word_attention
from headcount.model.observed import watch_attention
from headcount.model.transformer import Transformer, first_device
from headcount.search.beam_search import translate
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

START, END = "<s>", "</s>"
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
    lines = _read_lines(*texts)
    sources = [src.pieces(line) for line in lines[0]]
    ids = [src.vocabulary.ids(pieces) for pieces in sources]
    targets = [tgt.pieces(line) for line in lines[1]]
    if not targets:
        greedy = translate(model, ids, DecodeSettings(beam=1), prefix=tgt.prefix)
        targets = [tgt.vocabulary.pieces(each.ids) for each in greedy]
    maps = [
        attention_map(model, (read, tgt.vocabulary.ids(pieces[1])), pieces, head, settings, level)
        for read, pieces in zip(ids, zip(sources, targets, strict=True), strict=True)
    ]
    write_json(out, {"head": head._asdict(), "level": level, "maps": maps, "provenance": origin})


def _read_lines(src: Path, tgt: Path | None) -> tuple[list[str], list[str]]:
    """Lines of both sides, of several references the first; none of the second without a file."""
    sources, tally = read_clean(src), LineTally()
    lines = read_lines(tgt, None, tally) if tgt else ()
    targets = [clean(references(line)[0], tally) for line in lines]
    if not 0 < len(sources) <= MOST:
        raise UserError(f"{src}: expected 1 to {MOST} sentences, found {len(sources)}")
    if tgt and len(targets) != len(sources):
        raise UserError(
            f"{src} has {len(sources)} lines, {tgt} has {len(targets)}; line n of one must "
            "translate line n of the other"
        )
    for path, lines in ((src, sources), (tgt, targets)):
        if "" in lines:
            raise UserError(f"{path}:{lines.index('') + 1}: this line has no word; take it out")
    return sources, targets


@torch.inference_mode()
def all_weights(model: Transformer, src: Ids, tgt: Ids) -> dict[tuple[str, int], Tensor]:
    """Weights [heads, queries, keys] of every layer on one sentence pair, by its kind and number.

    BOS and EOS are included.
    """
    found: dict[tuple[str, int], Tensor] = {}
    batch = collate(ParallelText([src], [tgt]), [0], first_device(model))
    with watch_attention(model.eval(), lambda kind, layer, w: found.update({(kind, layer): w})):
        model.decode(batch.tgt_in, model.encode(batch.src))
    return {layer: weights[0].cpu() for layer, weights in found.items()}


def head_weights(model: Transformer, src: Ids, tgt: Ids, head: Head) -> Tensor:
    """Weights [queries, keys] of one head, see `all_weights`.

    Raises UserError if the model has no such head.
    """
    model.grid.index(head)
    return all_weights(model, src, tgt)[head.kind, head.layer][head.head]


def sentence_attention(
    model: Transformer,
    pair: tuple[Ids, Ids],
    pieces: tuple[list[str], list[str]],
    names: Sequence[Head],
) -> dict[str, Any]:
    """The attention of every head between the subwords of one sentence pair, as JSON.

    `source` and `target`: texts of the subwords, with the end symbol and the start symbol; and
    `weights`, by the address of a head a row for each query. `names`: how the model's heads are
    called, in flat order. What queries and keys are follows from the kind, see `attention_map`.
    """
    found = all_weights(model, *pair)
    rows = [_rounded(found[head.kind, head.layer][head.head]) for head in model.grid.heads()]
    weights = {head.name(): weights for head, weights in zip(names, rows, strict=True)}
    return {"source": [*pieces[0], END], "target": [START, *pieces[1]], "weights": weights}


def attention_map(
    model: Transformer,
    pair: tuple[Ids, Ids],
    pieces: tuple[list[str], list[str]],
    head: Head,
    settings: RolesSettings,
    level: str,
) -> dict[str, Any]:
    """What a drawing needs, as JSON: queries, keys (texts), weights (a row for each query).

    `pair` has the ids of source and target, `pieces` their texts: as they were cut, for ids do not
    tell which word an unknown piece belongs to. `level` is subword or word; words are made as the
    settings say, and end and start symbols are words of their own. In the decoder a query is the
    word that was read, not the next one.
    """
    weights = head_weights(model, *pair, head)
    source, target = [*pieces[0], END], [START, *pieces[1]]
    queries = source if head.kind == "enc_self" else target
    keys = target if head.kind == "dec_self" else source
    if level == "word":
        rows, columns = (torch.tensor([word_numbers(side)]) for side in (queries, keys))
        weights = word_attention(
            weights[None, None], rows, columns, settings.words_to, settings.words_from
        )[0, 0]
        queries, keys = (_words(side) for side in (queries, keys))
    return {"queries": queries, "keys": keys, "weights": _rounded(weights)}


def _rounded(weights: Tensor) -> list[list[float]]:
    return [[round(weight, 4) for weight in row] for row in weights.tolist()]


def word_numbers(pieces: list[str]) -> list[int]:
    """Which word each piece belongs to; the end symbol is a word even if the last one waits."""
    numbers, word = [], 0
    for piece, after in zip(pieces, [*pieces[1:], END], strict=True):
        numbers.append(word)
        word += not piece.endswith(SEPARATOR) or after == END
    return numbers


def _words(pieces: list[str]) -> list[str]:
    """Words of the pieces, end and start symbols as they are."""
    first, last = pieces[:1] == [START], pieces[-1:] == [END]
    inner = pieces[int(first) : len(pieces) - int(last)]
    return [*([START] * first), *join_pieces(inner), *([END] * last)]

"""The attention of one head on one sentence, between subwords or words, for drawing."""

from typing import Any

import torch
from torch import Tensor

from headcount.base.addresses import Head
from headcount.base.settings.roles import RolesSettings
from headcount.data.batches import Ids, ParallelText, collate
from headcount.data.bpe import join_pieces
from headcount.data.words import SEPARATOR
from headcount.heads.word_attention import word_attention
from headcount.model.observed import watch_attention
from headcount.model.transformer import Transformer, first_device

START, END = "<s>", "</s>"


@torch.inference_mode()
def head_weights(model: Transformer, src: Ids, tgt: Ids, head: Head) -> Tensor:
    """Weights [queries, keys] of one head on one sentence pair, BOS and EOS included.

    Raises UserError if the model has no such head.
    """
    model.grid.index(head)
    found: dict[tuple[str, int], Tensor] = {}
    batch = collate(ParallelText([src], [tgt]), [0], first_device(model))
    with watch_attention(model.eval(), lambda kind, layer, w: found.update({(kind, layer): w})):
        model.decode(batch.tgt_in, model.encode(batch.src))
    return found[head.kind, head.layer][0, head.head].cpu()


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
    rounded = [[round(weight, 4) for weight in row] for row in weights.tolist()]
    return {"queries": queries, "keys": keys, "weights": rounded}


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

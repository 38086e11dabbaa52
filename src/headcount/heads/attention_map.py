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
from headcount.data.batches import Ids, ParallelText, collate
from headcount.data.bpe import AnySegmenter
from headcount.data.lines import LineTally, read_lines, references
from headcount.data.text import clean, read_clean
from headcount.heads.word_attention import word_attention
from headcount.model.observed import watch_attention
from headcount.model.transformer import Transformer, first_device
from headcount.search.beam_search import translate
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

START, END = "<s>", "</s>"
Words = list[tuple[str, int]]
"""What is drawn of a sentence, in order, and how many pieces each of them has."""
MOST = 20
"""Sentences in one file; a drawing of more could not be read."""


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
    maps = []
    for read, *pieces in zip(ids, sources, targets, strict=True):
        cut = map(_words if level == "word" else _subwords, (src, tgt), pieces)
        pair_ids = (read, tgt.vocabulary.ids(pieces[1]))
        maps.append(attention_map(model, pair_ids, tuple(cut), head))
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
    words: tuple[Words, Words],
    head: Head,
) -> dict[str, Any]:
    """What a drawing needs, as JSON: queries, keys (texts), weights (a row for each query).

    `pair` has the ids of source and target, `words` what is drawn of them; weights of a word's
    pieces are joined, and end and start symbols are words of their own. In the
    decoder a query is the word that was read, not the next one.
    """
    weights = head_weights(model, *pair, head)
    source, target = [*words[0], (END, 1)], [(START, 1), *words[1]]
    queries = source if head.kind == "enc_self" else target
    keys = target if head.kind == "dec_self" else source
    rows, columns = (torch.tensor([word_numbers(side)]) for side in (queries, keys))
    joined = word_attention(weights[None, None], rows, columns)[0, 0]
    shown = ([text for text, _ in side] for side in (queries, keys))
    return dict(zip(("queries", "keys"), shown, strict=True)) | {"weights": _rounded(joined)}


def _rounded(weights: Tensor) -> list[list[float]]:
    return [[round(weight, 4) for weight in row] for row in weights.tolist()]


def word_numbers(words: Words) -> list[int]:
    """Which word each piece belongs to."""
    return [number for number, (_, pieces) in enumerate(words) for _ in range(pieces)]


def _words(segmenter: AnySegmenter, pieces: list[str]) -> Words:
    """Words of pieces as they were cut: ids do not tell which word an unknown one belongs to."""
    places = [place for place, begins in enumerate(segmenter.begins(pieces)) if begins]
    ends = [*places[1:], len(pieces)][: len(places)]  # of no piece none
    parts = [pieces[place:end] for place, end in zip(places, ends, strict=True)]
    return [(segmenter.word(part), len(part)) for part in parts]


def _subwords(segmenter: AnySegmenter, pieces: list[str]) -> Words:
    """Every piece by itself."""
    return [(piece, 1) for piece in pieces]

"""Comparison of an imported model with the library's own tokeniser and module."""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import torch

from headcount.base.errors import UserError
from headcount.data.batches import Ids, ParallelText
from headcount.data.sentencepieces import read_marks
from headcount.data.vocabulary import BOS, EOS
from headcount.store.pair_folder import PairFolder
from headcount_hf.pretrained.segment import EXAMPLES
from headcount_hf.pretrained.weights import Imported

PAIRS = 8
LARGEST_GAP = 1e-4
"""Largest difference of scores, as a share of the largest score: 100 times the rounding error."""


def compare_with_library(
    imported: Imported, text: ParallelText, pair: PairFolder | None = None
) -> dict[str, Any]:
    """Return the largest difference from the library's scores, for `import.json`.

    The library's tokeniser reads the lines that `pair` keeps. Without such lines, its module reads
    the first pairs of `text`. Raises UserError for a different id or score.
    """
    import transformers

    version, longest = f"transformers {transformers.__version__}", imported.longest - 2
    lines = list(_read_lines(imported, pair)) if pair and imported.tokeniser else []
    first = list(zip(text.src, text.tgt, strict=True))[:PAIRS]
    compared = lines or [(src[:longest], tgt[:longest]) for src, tgt in first]
    gaps = [_gap(imported, *ids) for ids in compared if max(map(len, ids)) <= longest]
    gap, size = torch.tensor([(0.0, 0.0), *gaps]).amax(0).tolist()
    if not gap <= LARGEST_GAP * size:  # nan, too
        raise UserError(
            f"{imported.folder}: expected the scores of {version}, found differences of up to "
            f"{gap:.1e} where scores reach {size:.1f}; this model cannot be imported"
        )
    reader = f"{len(lines)} pairs of lines, by {type(imported.tokeniser).__name__}"
    return {
        "library": version,
        "text": reader if lines else "not compared: no lines were kept when it was cut",
        "pairs": len(gaps),
        "largest_gap": float(f"{gap:.1e}"),
        "largest_score": round(size, 1),
    }


def _read_lines(imported: Imported, pair: PairFolder) -> Iterator[tuple[Ids, Ids]]:
    """Yield lines as our ids, but those with special pieces. Raises UserError for other ids."""
    tokeniser, about, cutters = imported.tokeniser, pair.segmentation(), pair.segmenters()
    src, tgt = (read_marks(about, side) for side in (0, 1))
    ends = {tokeniser.eos_token, tokeniser.unk_token, tokeniser.pad_token}
    hidden = ends.union(src.special, tgt.special) - {*src.words}
    code = src.before if imported.theirs.config.model_type == "marian" else ()
    for lines in about.get(EXAMPLES, ()):
        if any(name in line for name in hidden for line in lines):
            continue
        texts = [side.normalise(line) for side, line in zip(cutters, lines, strict=True)]
        ours = [side.encode(line) for side, line in zip(cutters, lines, strict=True)]
        read = tokeniser(" ".join([*code, texts[0]])), tokeniser(text_target=texts[1])
        sides = zip(("source", "target"), texts, read, _theirs(imported, *ours), strict=True)
        for side, line, expected, ids in sides:
            place = f"{imported.folder}: {side} line {line!r}"
            _check_ids(place, tokeniser, expected["input_ids"], ids)
        yield ours[0], ours[1]


def _theirs(imported: Imported, src: Ids, tgt: Ids) -> tuple[Ids, Ids]:
    """Return the library's ids with ends, and in mBART with the language's code."""
    inputs = [imported.src_rows[i] for i in [*src, EOS]]
    labels = [imported.tgt_rows[i] for i in [*tgt, EOS]]
    is_moved = imported.src_rows[EOS] != imported.tgt_rows[EOS]
    return inputs, [*labels, imported.tgt_rows[BOS]] if is_moved else labels


def _check_ids(line: str, tokeniser: Any, expected: Ids, ours: Ids) -> None:
    """Raise UserError naming the first token of a line that differs."""
    for place, ids in enumerate(zip_longest(expected, ours), start=1):
        if ids[0] != ids[1]:
            names = ["no more" if i is None else tokeniser.convert_ids_to_tokens(i) for i in ids]
            raise UserError(
                f"{line}: token {place}: expected {names[0]!r} ({ids[0]}), as "
                f"{type(tokeniser).__name__} reads it, found {names[1]!r} ({ids[1]}); leave the "
                "line out if its characters are odd, else this model cannot be imported"
            )


@torch.inference_mode()
def _gap(imported: Imported, src: Ids, tgt: Ids) -> tuple[float, float]:
    """Return the largest difference of a score of one pair, and the largest score."""
    model, rows = imported.model, torch.tensor(imported.tgt_rows)
    inputs, labels = (torch.tensor([ids]) for ids in _theirs(imported, src, tgt))
    words = torch.tensor([[BOS, *tgt]])
    states = model.decode(words, model.encode(torch.tensor([[*src, EOS]])))
    known = torch.arange(len(rows)) != BOS  # BOS is not a word of theirs
    scores = model.logits(states)[0][:, known]
    expected = imported.theirs(input_ids=inputs, labels=labels).logits[0, : words.shape[1]]
    expected = expected[:, rows[known]]
    return float((expected - scores).abs().max()), float(expected.abs().max())

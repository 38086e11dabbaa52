"""An imported model beside the library's own tokeniser and module, on the same sentences."""

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
"""Of scores, in parts of the largest one: a hundred times what rounding does."""

_Pair = tuple[Ids, Ids]  # ids of ours


def compare_with_library(
    imported: Imported, text: ParallelText, pair: PairFolder | None = None
) -> dict[str, Any]:
    """Return how far the scores of words lie from those of the library, for `import.json`.

    The library's tokeniser reads the lines that `pair` keeps, and its module the ids that they
    become; without such lines the first pairs of `text`. Raises UserError where an id differs, and
    where a score differs by more than rounding.
    """
    import transformers

    version, longest = f"transformers {transformers.__version__}", imported.longest - 2
    lines = list(_read_lines(imported, pair)) if pair and imported.tokeniser else []
    first = list(zip(text.src, text.tgt, strict=True))[:PAIRS]
    compared = lines or [(src[:longest], tgt[:longest]) for src, tgt in first]
    gaps = [_gap(imported, *each) for each in compared if max(map(len, each)) <= longest]
    gap, size = torch.tensor([(0.0, 0.0), *gaps]).amax(0).tolist()
    if not gap <= LARGEST_GAP * size:  # nan, too
        raise UserError(
            f"{imported.folder}: expected the scores that {version} gives, found differences of up "
            f"to {gap:.1e} where scores reach {size:.1f}; this model cannot be imported"
        )
    reader = f"{len(lines)} pairs of lines, by {type(imported.tokeniser).__name__}"
    return {
        "library": version,
        "text": reader if lines else "not compared: no lines were kept when it was cut",
        "pairs": len(gaps),
        "largest_gap": float(f"{gap:.1e}"),
        "largest_score": round(size, 1),
    }


def _read_lines(imported: Imported, pair: PairFolder) -> Iterator[_Pair]:
    """Give pairs of lines. Raises UserError where the library reads another id.

    Lines with the name of a special piece are left out: it is text here, and a mark there.
    """
    tokeniser, about, cutters = imported.tokeniser, pair.segmentation(), pair.segmenters()
    src, tgt = (read_marks(about, side) for side in (0, 1))
    ends = {tokeniser.eos_token, tokeniser.unk_token, tokeniser.pad_token}
    hidden = ends.union(src.special, tgt.special) - {*src.words}
    code = src.before if imported.theirs.config.model_type == "marian" else ()
    for lines in about.get(EXAMPLES, ()):
        if any(name in line for name in hidden for line in lines):
            continue
        text, said = (side.normalise(line) for side, line in zip(cutters, lines, strict=True))
        ours = [side.encode(line) for side, line in zip(cutters, lines, strict=True)]
        inputs, labels = _theirs(imported, *ours)
        place = f"{imported.folder}: source line {text!r}"
        _check_ids(place, tokeniser, tokeniser(" ".join([*code, text]))["input_ids"], inputs)
        place = f"{imported.folder}: target line {said!r}"
        _check_ids(place, tokeniser, tokeniser(text_target=said)["input_ids"], labels)
        yield ours[0], ours[1]


def _theirs(imported: Imported, src: Ids, tgt: Ids) -> tuple[Ids, Ids]:
    """Return ids of the library, with the ends, and the start behind labels if it is moved."""
    inputs = [imported.src_rows[i] for i in [*src, EOS]]
    labels = [imported.tgt_rows[i] for i in [*tgt, EOS]]
    is_moved = imported.src_rows[EOS] != imported.tgt_rows[EOS]  # mBART's code
    return inputs, [*labels, imported.tgt_rows[BOS]] if is_moved else labels


def _check_ids(line: str, tokeniser: Any, expected: Ids, found: Ids) -> None:
    """Raise UserError naming the first token of a line that differs."""
    for place, ids in enumerate(zip_longest(expected, found), start=1):
        if ids[0] != ids[1]:
            theirs, ours = (
                "no more" if each is None else f"{tokeniser.convert_ids_to_tokens(each)!r} ({each})"
                for each in ids
            )
            raise UserError(
                f"{line}: token {place}: expected {theirs}, as {type(tokeniser).__name__} has it, "
                f"found {ours}; leave the line out if its characters are odd, else this model "
                "cannot be imported"
            )


@torch.inference_mode()
def _gap(imported: Imported, src: Ids, tgt: Ids) -> tuple[float, float]:
    """Return the largest difference of a score of one pair, and the largest score."""
    model, rows = imported.model, torch.tensor(imported.tgt_rows)
    inputs, labels = (torch.tensor([ids]) for ids in _theirs(imported, src, tgt))
    words = torch.tensor([[BOS, *tgt]])
    states = model.decode(words, model.encode(torch.tensor([[*src, EOS]])))
    known = torch.arange(len(rows)) != BOS  # no word of theirs
    found = model.logits(states)[0][:, known]
    expected = imported.theirs(input_ids=inputs, labels=labels).logits[0, : words.shape[1]]
    expected = expected[:, rows[known]]
    return float((expected - found).abs().max()), float(expected.abs().max())

"""An imported model beside the library's own tokeniser and module, on the same sentences."""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

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


class _Pair(NamedTuple):
    """A sentence pair: ids of ours, and the ids that the library's module is given."""

    src: Ids
    tgt: Ids
    theirs: dict[str, Ids]


def compare_with_library(
    imported: Imported, text: ParallelText, pair: PairFolder | None = None
) -> dict[str, Any]:
    """Return how far the scores of words lie from those of the library, for `import.json`.

    The library's tokeniser reads the lines that `pair` keeps, and its module the ids that they
    become. Without such lines the first pairs of `text` are compared, in our ids. Raises UserError
    where an id differs, and where a score differs by more than rounding.
    """
    import transformers

    version, longest = f"transformers {transformers.__version__}", imported.longest
    lines = list(_from_text(imported, pair)) if pair and imported.tokeniser else []
    compared = lines or list(_from_ids(imported, text, longest))
    fitting = [each for each in compared if max(map(len, each.theirs.values())) <= longest]
    gaps = [_gap(imported, each) for each in fitting]
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


def _from_text(imported: Imported, pair: PairFolder) -> Iterator[_Pair]:
    """Give pairs of lines, as the library reads them. Raises UserError where ours reads another id.

    Lines with the name of a special piece are left out: it is text here, and a mark there.
    """
    tokeniser, about, cutters = imported.tokeniser, pair.segmentation(), pair.segmenters()
    src, tgt = (read_marks(about, side) for side in (0, 1))
    ends = {tokeniser.eos_token, tokeniser.unk_token, tokeniser.pad_token}
    hidden = ends.union(src.special, tgt.special) - {*src.words}
    code = src.before if imported.theirs.config.model_type == "marian" else ()
    start = imported.tgt_rows[BOS]
    behind = [start] if imported.src_rows[EOS] != imported.tgt_rows[EOS] else []  # mBART's code
    for lines in about.get(EXAMPLES, ()):
        if any(name in line for name in hidden for line in lines):
            continue
        text, said = (side.spell(line) for side, line in zip(cutters, lines, strict=True))
        ours = [side.encode(line) for side, line in zip(cutters, lines, strict=True)]
        sources = tokeniser(" ".join([*code, text]))["input_ids"]
        labels = tokeniser(text_target=said)["input_ids"]
        own = [imported.src_rows[i] for i in [*ours[0], EOS]]
        _check_ids(f"{imported.folder}: source line {text!r}", tokeniser, sources, own)
        own = [imported.tgt_rows[i] for i in [*ours[1], EOS]]
        _check_ids(f"{imported.folder}: target line {said!r}", tokeniser, labels, [*own, *behind])
        yield _Pair(*ours, {"input_ids": sources, "labels": labels})


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


def _from_ids(imported: Imported, text: ParallelText, longest: int) -> Iterator[_Pair]:
    """Give the first pairs, cut off where the model's positions end, for the library's module."""
    for ids in list(zip(text.src, text.tgt, strict=True))[:PAIRS]:
        src, tgt = (side[: longest - 1] for side in ids)
        inputs = [imported.src_rows[i] for i in [*src, EOS]]
        rows = [imported.tgt_rows[i] for i in [BOS, *tgt]]
        yield _Pair(src, tgt, {"input_ids": inputs, "decoder_input_ids": rows})


@torch.inference_mode()
def _gap(imported: Imported, pair: _Pair) -> tuple[float, float]:
    """Return the largest difference of a score of one pair, and the largest score."""
    model, rows = imported.model, torch.tensor(imported.tgt_rows)
    tgt = torch.tensor([[BOS, *pair.tgt]])
    inputs = {name: torch.tensor([ids]) for name, ids in pair.theirs.items()}
    states = model.decode(tgt, model.encode(torch.tensor([[*pair.src, EOS]])))
    known = torch.arange(len(rows)) != BOS  # no word of theirs
    found = model.logits(states)[0][:, known]
    expected = imported.theirs(**inputs).logits[0, : tgt.shape[1]][:, rows[known]]
    return float((expected - found).abs().max()), float(expected.abs().max())

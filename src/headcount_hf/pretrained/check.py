"""An imported model beside the library's own tokeniser and module, on the same sentences."""

from collections.abc import Iterator
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from headcount.base.errors import UserError
from headcount.data.batches import Ids, ParallelText
from headcount.data.sentencepieces import read_marks
from headcount.data.vocabulary import BOS, EOS
from headcount.store.pair_folder import PairFolder
from headcount_hf.pretrained.families import Config
from headcount_hf.pretrained.library import LOCAL, OF_WEIGHTS, compute_sinusoids
from headcount_hf.pretrained.segment import EXAMPLES, LANGUAGE_CODES
from headcount_hf.pretrained.tokenizer_files import ends
from headcount_hf.pretrained.weight_map import Imported

LIBRARY = "transformers"
PAIRS = 8
LARGEST_GAP = 1e-4
"""Of scores, in parts of the largest one: a hundred times what rounding does."""


class _Pair(NamedTuple):
    """A sentence pair: ids of ours, and the ids that the library's module is given."""

    src: Ids
    tgt: Ids
    theirs: dict[str, Ids]

    @property
    def longest(self) -> int:
        """Ids of its longer side."""
        return max(map(len, self.theirs.values()))


def compare_with_library(
    folder: Path, imported: Imported, text: ParallelText, pair: PairFolder | None = None
) -> dict[str, Any]:
    """How far the scores of words lie from those of the library, for `import.json`.

    The library's tokeniser reads the lines that `pair` keeps, and its module the ids that they
    become. Without such lines or tokeniser the first pairs of `text` are compared, in our ids, and
    without the library nothing; the answer says so. Raises UserError where an id differs, and
    where a score differs by more than rounding.
    """
    if find_spec(LIBRARY) is None:
        return {"library": f"{LIBRARY} is not installed, so scores were not compared"}
    import transformers

    version = f"{LIBRARY} {transformers.__version__}"
    tokeniser, said = _tokeniser(folder, pair) if pair else (None, "no lines were given")
    lines = list(_from_text(folder, imported, pair, tokeniser)) if pair and tokeniser else []
    longest = Config.read(folder)["max_position_embeddings"]
    compared = lines or list(_from_ids(imported, text, longest))
    try:
        theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, **OF_WEIGHTS).eval()
    except Exception as fault:
        raise UserError(f"{folder}: {version} cannot load it: {_short(fault)}") from fault
    compute_sinusoids(theirs)  # as ours: `import_model` refuses tables of others
    found = [_gap(theirs, imported, each) for each in compared if each.longest <= longest]
    gap, size = torch.tensor([(0.0, 0.0), *found]).amax(0).tolist()
    if not gap <= LARGEST_GAP * size:  # nan, too
        raise UserError(
            f"{folder}: expected the scores that {version} gives, found differences of up to "
            f"{gap:.1e} where scores reach {size:.1f}; this model cannot be imported"
        )
    return {
        "library": version,
        "text": f"{len(lines)} pairs of lines, by {said}" if lines else f"not compared: {said}",
        "pairs": len(found),
        "largest_gap": float(f"{gap:.1e}"),
        "largest_score": round(size, 1),
    }


def _tokeniser(folder: Path, pair: PairFolder) -> tuple[Any, str]:
    """The library's tokeniser and its class, or nothing and why there is none."""
    import transformers

    about = pair.segmentation()
    codes = dict(zip(("src_lang", "tgt_lang"), about[LANGUAGE_CODES], strict=True))
    named = codes if codes["src_lang"] else {}
    try:
        found = transformers.AutoTokenizer.from_pretrained(folder, **LOCAL, **named)
    except Exception as fault:  # the library's parts raise whatever they like
        return None, f"the library cannot load it ({_short(fault)})"
    name = type(found).__name__
    if named and not hasattr(found, "src_lang"):
        return None, f"{name} is told no languages"
    return (found, name) if about.get(EXAMPLES) else (None, "no lines were kept when it was cut")


def _short(fault: Exception) -> str:
    return " ".join(str(fault).split())[:200]


def _from_text(
    folder: Path, imported: Imported, pair: PairFolder, tokeniser: Any
) -> Iterator[_Pair]:
    """Pairs of lines, as the library reads them. Raises UserError where ours reads another id.

    Lines with the name of a special piece are left out: it is text here, and a mark there.
    """
    about, cutters = pair.segmentation(), pair.segmenters()
    src, tgt = (read_marks(about, side) for side in (0, 1))
    hidden = ends(folder).union(src.special, tgt.special) - {*src.words}
    code = src.before if Config.read(folder)["model_type"] == "marian" else ()
    start = imported.tgt_rows[BOS]
    behind = [start] if imported.src_rows[EOS] != imported.tgt_rows[EOS] else []  # mBART's code
    for lines in about[EXAMPLES]:
        if any(name in line for name in hidden for line in lines):
            continue
        text, said = (side.spell(line) for side, line in zip(cutters, lines, strict=True))
        ours = [side.encode(line) for side, line in zip(cutters, lines, strict=True)]
        sources = tokeniser(" ".join([*code, text]))["input_ids"]
        labels = tokeniser(text_target=said)["input_ids"]
        own = [imported.src_rows[i] for i in [*ours[0], EOS]]
        _check_ids(f"{folder}: source line {text!r}", tokeniser, sources, own)
        own = [imported.tgt_rows[i] for i in [*ours[1], EOS]]
        _check_ids(f"{folder}: target line {said!r}", tokeniser, labels, [*own, *behind])
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
                f"{line}: token {place}: expected {theirs}, as {type(tokeniser).__name__} of "
                f"{LIBRARY} has it, found {ours}; leave the line out if its characters are odd, "
                "else this model cannot be imported"
            )


def _from_ids(imported: Imported, text: ParallelText, longest: int) -> Iterator[_Pair]:
    """The first pairs, cut off where the model's positions end, for the library's module."""
    for ids in list(zip(text.src, text.tgt, strict=True))[:PAIRS]:
        src, tgt = (side[: longest - 1] for side in ids)
        inputs = [imported.src_rows[i] for i in [*src, EOS]]
        rows = [imported.tgt_rows[i] for i in [BOS, *tgt]]
        yield _Pair(src, tgt, {"input_ids": inputs, "decoder_input_ids": rows})


@torch.inference_mode()
def _gap(theirs: nn.Module, imported: Imported, pair: _Pair) -> tuple[float, float]:
    """Largest difference of a score of one pair, and the largest score."""
    rows, tgt = torch.tensor(imported.tgt_rows), [BOS, *pair.tgt]
    inputs = {name: torch.tensor([ids]) for name, ids in pair.theirs.items()}
    expected, found = theirs(**inputs).logits[0, : len(tgt)], _scores(imported, pair.src, tgt)
    known = torch.arange(len(rows)) != BOS  # no word of theirs
    expected, found = expected[:, rows[known]], found[:, known]
    return float((expected - found).abs().max()), float(expected.abs().max())


def _scores(imported: Imported, src: Ids, tgt: Ids) -> Tensor:
    """Scores [positions, words] of the next word by our model."""
    model = imported.model
    states = model.decode(torch.tensor([tgt]), model.encode(torch.tensor([[*src, EOS]])))
    return model.logits(states)[0]

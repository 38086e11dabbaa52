"""An imported model beside the library's own module, on the same sentences."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from headcount.base.errors import UserError
from headcount.data.batches import ParallelText
from headcount.data.vocabulary import BOS, EOS
from headcount.pretrained.families import Config
from headcount.pretrained.library import OF_WEIGHTS, compute_sinusoids
from headcount.pretrained.weight_map import Imported

LIBRARY = "transformers"
PAIRS = 8
LARGEST_GAP = 1e-4
"""Of scores, in parts of the largest one: a hundred times what rounding does."""


def compare_with_library(folder: Path, imported: Imported, text: ParallelText) -> dict[str, Any]:
    """How far the scores of words lie from those of the library's module, for `import.json`.

    Of the first pairs of `text`, references as targets. Without the library nothing is compared,
    and that is said. Raises UserError where a score differs by more than rounding.
    """
    if find_spec(LIBRARY) is None:
        return {"library": f"{LIBRARY} is not installed, so scores were not compared"}
    import transformers

    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, **OF_WEIGHTS).eval()
    compute_sinusoids(theirs)  # as ours: `import_model` refuses tables of others
    pairs = list(zip(text.src, text.tgt, strict=True))[:PAIRS]
    longest = Config.read(folder)["max_position_embeddings"]
    gaps, sizes = [], []
    for ids in pairs:
        src, tgt = (side[: longest - 1] for side in ids)
        gap, size = _gap(theirs, imported, [*src, EOS], [BOS, *tgt])
        gaps.append(gap)
        sizes.append(size)
    if not max(gaps) <= LARGEST_GAP * max(sizes):  # nan, too
        raise UserError(
            f"{folder}: expected the scores that {LIBRARY} {transformers.__version__} gives, found "
            f"differences of up to {max(gaps):.1e} where scores reach {max(sizes):.1f}; this model "
            "cannot be imported"
        )
    return {
        "library": f"{LIBRARY} {transformers.__version__}",
        "pairs": len(pairs),
        "largest_gap": float(f"{max(gaps):.1e}"),
        "largest_score": round(max(sizes), 1),
    }


@torch.inference_mode()
def _gap(
    theirs: nn.Module, imported: Imported, src: list[int], tgt: list[int]
) -> tuple[float, float]:
    """Largest difference of a score of one pair, and the largest score; ids are ours."""
    rows = torch.tensor(imported.tgt_rows)
    inputs = torch.tensor(imported.src_rows)[src], rows[tgt]
    expected = theirs(input_ids=inputs[0][None], decoder_input_ids=inputs[1][None]).logits[0]
    found = _scores(imported, src, tgt)
    known = torch.arange(len(rows)) != BOS  # no word of theirs
    expected, found = expected[:, rows[known]], found[:, known]
    return float((expected - found).abs().max()), float(expected.abs().max())


def _scores(imported: Imported, src: list[int], tgt: list[int]) -> Tensor:
    """Scores [positions, words] of the next word by our model."""
    model = imported.model
    states = model.decode(torch.tensor([tgt]), model.encode(torch.tensor([src])))
    return model.logits(states)[0]

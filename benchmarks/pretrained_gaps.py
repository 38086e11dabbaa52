"""How far apart numbers of small pretrained models are by import, by hooks and by differences."""

import copy
import importlib
import sys
import tempfile
from pathlib import Path
from types import ModuleType

import numpy as np
import torch
from torch import Tensor

from headcount.data.batches import Batch, ParallelText
from headcount.data.vocabulary import BOS, EOS
from headcount.heads.importance import batch_importance
from headcount.model.loss import token_losses
from headcount_hf.hooks.hooked_seq2seq import HookedSeq2Seq
from headcount_hf.pretrained.weights import Imported

HELPERS = Path(__file__).resolve().parents[1] / "tests" / "helpers"
STEP = 1e-3  # of the differences


def helper(name: str) -> ModuleType:
    """A module that the tests share: small models of every family are made there."""
    if str(HELPERS) not in sys.path:
        sys.path.append(str(HELPERS))
    return importlib.import_module(name)


def whole(text: ParallelText) -> Batch:
    """All of a text in one batch."""
    return text.resident(torch.device("cpu")).batch(range(len(text)))


def drawn_text(pairs: int, words: int, longest: int) -> ParallelText:
    """Random pairs, lengths from a quarter of the longest on, in ids of ours."""
    draw = np.random.default_rng(3)
    lengths = draw.integers(longest // 4, longest + 1, (2, pairs))
    return ParallelText(*([draw.integers(4, words, n).tolist() for n in side] for side in lengths))


def in_their_ids(text: ParallelText, ours: Imported, hooked: HookedSeq2Seq) -> ParallelText:
    """The same text for the hooked model."""
    src = [[ours.src_rows[i] for i in [*ids, EOS]] for ids in text.src]
    tgt = [[ours.tgt_rows[i] for i in [*ids, EOS]] for ids in text.tgt]
    return hooked.text(src, tgt, ours.tgt_rows[BOS])


def gaps_of_import(kind: str) -> list[float]:
    """Largest gap of a logit, of a word's loss, and of a head's importance over the largest."""
    with tempfile.TemporaryDirectory() as folder:
        theirs = helper("small_pretrained").saved_pretrained(kind, Path(folder))
        ours, hooked = helper("small_pretrained").import_small(Path(folder)), HookedSeq2Seq(theirs)
    text = drawn_text(8, 400, 12)
    batch, other = whole(text), whole(in_their_ids(text, ours, hooked))
    words = [i for i in range(len(ours.tgt_rows)) if i != BOS]
    with torch.no_grad():
        memory = ours.model.encode(batch.src)
        found = ours.model.logits(ours.model.decode(batch.tgt_in, memory))[..., words]
        expected = hooked.logits(other, None)[..., [ours.tgt_rows[i] for i in words]]
        real = [batch.without_padding(each) for each in (found, expected)]
        losses = [token_losses(ours.model, batch), token_losses(hooked, other)]
    importance = [
        batch_importance(*each).importance for each in ((ours.model, batch), (hooked, other))
    ]
    largest = importance[1].max().item()
    return [_gap(*real), _gap(*losses), _gap(*importance) / largest]


def gaps_of_hooks(kind: str) -> list[float]:
    """Largest gap of a logit and of a word's loss between a mask and zero columns; of importance.

    The last one is to central differences in float64, over the largest.
    """
    made = helper("small_hooked")
    hooked = made.small_hooked(kind, "eager")
    batch = whole(made.small_text(hooked))
    mask = (torch.rand(hooked.grid.size, generator=torch.Generator().manual_seed(1)) > 0.3).float()
    columns = copy.deepcopy(hooked)
    with torch.no_grad():
        for name, layer, joined in columns.attentions():
            own = mask[columns.grid.span(name, layer)].repeat_interleave(joined.d_head)
            joined.output.weight.mul_(own)
        logits = [
            batch.without_padding(model.logits(batch, given))
            for model, given in ((hooked, mask), (columns, None))
        ]
        losses = [token_losses(hooked, batch, mask), token_losses(columns, batch)]
    importance = batch_importance(hooked, batch).importance.double()
    exact = batch_importance(*_in_double(hooked, batch)).importance
    slopes = _differences(*_in_double(hooked, batch))
    gap = max(_gap(importance, exact), _gap(exact, slopes))
    return [_gap(*logits), _gap(*losses), gap / slopes.max().item()]


def _in_double(hooked: HookedSeq2Seq, batch: Batch) -> tuple[HookedSeq2Seq, Batch]:
    src = batch.src.double() if batch.src.is_floating_point() else batch.src
    fields = {name: getattr(batch, name) for name in batch.__dataclass_fields__}
    return hooked.double(), Batch(**fields | {"src": src})


@torch.no_grad()
def _differences(hooked: HookedSeq2Seq, batch: Batch) -> Tensor:
    """Mean over sentences of the size of the loss's slope along each multiplier, [heads]."""
    found = torch.zeros(hooked.grid.size, dtype=torch.float64)
    for head in range(hooked.grid.size):
        sides = []
        for change in (STEP, -STEP):
            factors = torch.ones_like(found)
            factors[head] += change
            losses = token_losses(hooked, batch, factors).split(batch.tgt_lengths)
            sides.append(torch.stack([each.sum() for each in losses]))
        found[head] = ((sides[0] - sides[1]) / (2 * STEP)).abs().mean()
    return found


def _gap(one: Tensor, other: Tensor) -> float:
    return (one - other).abs().max().item()

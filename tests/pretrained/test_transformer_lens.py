"""TransformerLens, a library of others, sees the same loss without a head as we do."""

from functools import partial

import pytest
import torch
from small_marian import write_marian
from small_pretrained import import_small
from small_run import segment
from torch import Tensor
from torch.nn import functional

from headcount.base.addresses import Head
from headcount.base.settings.heads import ImportanceSettings
from headcount.data.batches import ParallelText
from headcount.heads.loss_change import measure_loss_change
from headcount_hf.pretrained.weights import Imported

pytestmark = pytest.mark.slow  # their import alone takes ten seconds

HOOKS = {
    "enc_self": "encoder_blocks.{}.attn.hook_z",
    "dec_self": "decoder_blocks.{}.self_attn.hook_z",
    "dec_enc": "decoder_blocks.{}.cross_attn.hook_z",
}
# Ids of ours from 4 on are words. The lengths differ, so that our batch has padding.
TEXT = ParallelText(
    [[7, 9, 4, 4, 31, 40, 8], [12, 5], [44, 50, 51, 52]],
    [[9, 8, 7], [10, 40, 11, 12, 13, 14, 15], [21]],
)


def without(head: Head, z: Tensor, hook: object) -> Tensor:
    """Return outputs of heads [sentence, position, head, width] with zeros from one head."""
    z = z.clone()
    z[:, :, head.head] = 0
    return z


@torch.no_grad()
def their_losses(bridge, ours: Imported, *silent: Head) -> Tensor:
    """Return the loss of every sentence in their library, one at a time, in nats."""
    hooks = [(HOOKS[head.kind].format(head.layer), partial(without, head)) for head in silent]
    losses = []
    for number in range(len(TEXT)):
        batch = TEXT.batch([number])
        rows = torch.tensor(ours.src_rows)[batch.src], torch.tensor(ours.tgt_rows)
        given = {"decoder_input": rows[1][batch.tgt_in], "fwd_hooks": hooks}
        (logits,) = bridge.run_with_hooks(rows[0], **given)
        words = rows[1][batch.tgt_out][0]
        losses.append(functional.cross_entropy(logits, words, reduction="sum"))
    return torch.stack(losses)


def test_the_loss_without_each_head_is_that_of_transformer_lens(tmp_path):
    bridges = pytest.importorskip(
        "transformer_lens.model_bridge",
        reason="the package transformer_lens is missing: pip install transformer_lens==4.3.0",
    )
    segment(tmp_path / "text")
    texts = tmp_path / "text" / "train.src", tmp_path / "text" / "train.tgt"
    write_marian(tmp_path / "opus", texts)
    ours = import_small(tmp_path / "opus", unknown=1)
    boot = bridges.TransformerBridge.boot_transformers
    bridge = boot(str(tmp_path / "opus"), device="cpu", dtype=torch.float64)
    model = ours.model.double()
    whole = their_losses(bridge, ours)
    changes = torch.stack([their_losses(bridge, ours, head) - whole for head in model.grid.heads()])
    assert changes.shape == (24, 3) and (changes.abs() > 1e-3).all()
    expected = torch.stack([changes.abs().mean(1), changes.mean(1)])
    found = measure_loss_change(model, TEXT, ImportanceSettings())
    torch.testing.assert_close(torch.from_numpy(found), expected, rtol=0, atol=1e-9)

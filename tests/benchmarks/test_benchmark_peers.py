"""Peers with our weights compute what ours computes. Runs where the peers are installed."""

import pytest
import torch
from small_models import UNEVEN, make_model

from benchmarks.peers.joeynmt_model import joeynmt_loss, joeynmt_model
from benchmarks.peers.marian import copy_weights, marian_logits, marian_model
from headcount.base.errors import UserError
from headcount.data.batches import ParallelText
from headcount.data.vocabulary import Vocabulary
from headcount.model.loss import token_losses

pytestmark = pytest.mark.slow  # a step from files to files, or models that are trained

TGT = Vocabulary([(f"t{number}", 1) for number in range(7)])
JOINT_TEXT = ParallelText([[4, 8, 5, 6, 7], [7]], [[9, 4], [5, 6, 8, 7, 4, 8]])


def even_model(**changes):
    """A model that Marian and JoeyNMT know: one vocabulary, width 12 = 3 heads of 4."""
    return make_model(joint=True, src_size=11, d_model=12, d_head=None, dropout=0.0, **changes)


def test_marian_computes_our_logits():
    pytest.importorskip("transformers")
    model = even_model(norm="post")
    marian = marian_model(model.settings, 11).eval()
    copy_weights(model, marian)
    batch = JOINT_TEXT.batch([0, 1])
    with torch.no_grad():
        expected = token_losses(model, batch)
        words = marian_logits(marian, batch).log_softmax(-1)
    chosen = words.gather(2, batch.tgt_out[..., None]).flatten()[batch.real]
    torch.testing.assert_close(-chosen, expected, atol=1e-5, rtol=0)


def test_marian_is_no_pre_norm_model_and_knows_no_uneven_heads():
    pytest.importorskip("transformers")
    model = even_model(norm="pre")
    with pytest.raises(UserError, match="norm: pre"):
        copy_weights(model, marian_model(model.settings, 11))
    with pytest.raises(UserError, match="expected one number for all layers"):
        marian_model(make_model(heads=UNEVEN).settings, 11)


def test_joeynmt_takes_the_loss_of_every_real_token():
    pytest.importorskip("joeynmt")
    # Zero embeddings make every word as likely as any other: ln 11 a token, whatever is asked
    # for, but only if ids, masks and the count of tokens fit.
    model = joeynmt_model(even_model().settings, TGT, 0.0).eval()
    with torch.no_grad():
        model.trg_embed.lut.weight.zero_()
        loss = joeynmt_loss(model)(JOINT_TEXT.batch([0, 1]))
    assert loss.item() == pytest.approx(2.397895, abs=1e-5)

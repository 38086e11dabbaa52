"""Two routes to one number: a model of the library under hooks, and the same one imported."""

import numpy as np
import pytest
import torch
from small_pretrained import KINDS, UNKNOWN, saved_pretrained

from headcount.base.settings.importance import ImportanceSettings
from headcount.data.batches import ParallelText
from headcount.data.vocabulary import BOS, EOS
from headcount.heads.importance import measure_importance
from headcount.model.loss import token_losses
from headcount.model.transformer import watch_attention
from headcount_hf.hooks.hooked_seq2seq import HookedSeq2Seq
from headcount_hf.pretrained.weights import import_model

pytestmark = pytest.mark.slow  # of the library's own classes, a dozen of them

TEXT = ParallelText(
    [[7, 9, 4, 4, 31, 200, 8], [12, 5], [440, 80, 81, 82, 83, 84]],
    [[9, 8, 7], [10, 400, 11, 12, 13, 14, 15, 16], [21]],
)


@pytest.fixture(params=KINDS)
def pair(request, tmp_path):
    """Hooked and imported; the text in the ids of each."""
    theirs = saved_pretrained(request.param, tmp_path)
    theirs.set_attn_implementation("eager")
    ours, hooked = import_model(tmp_path, UNKNOWN), HookedSeq2Seq(theirs)
    sources, targets = (
        [[rows[i] for i in [*ids, EOS]] for ids in side]
        for rows, side in ((ours.src_rows, TEXT.src), (ours.tgt_rows, TEXT.tgt))
    )
    return hooked, hooked.text(sources, targets, ours.tgt_rows[BOS]), ours.model


def batch_of(text):
    return text.resident(torch.device("cpu")).batch(range(len(text)))


@torch.no_grad()
def test_losses_under_masks_of_sentences(pair):
    hooked, text, ours = pair
    assert hooked.grid == ours.grid
    rows = torch.rand(3, ours.grid.size, generator=torch.Generator().manual_seed(2))
    for multiplier in (None, rows[0].round(), rows):
        found = token_losses(hooked, batch_of(text), multiplier)
        expected = token_losses(ours, batch_of(TEXT), multiplier)
        torch.testing.assert_close(found, expected, atol=2e-5, rtol=0)


@pytest.mark.parametrize("unit", ["sentence", "token", "position", "batch", "none"])
def test_importance_in_every_unit(pair, unit):
    hooked, text, ours = pair
    settings = ImportanceSettings(abs=unit, batch_tokens=20)
    found = measure_importance(hooked, text, settings)
    expected = measure_importance(ours, TEXT, settings)
    largest = np.abs(expected).max()
    assert largest > 0.05
    np.testing.assert_allclose(found, expected, atol=1e-5 * largest, rtol=0)


@torch.no_grad()
def test_attention_weights(pair):
    hooked, text, ours = pair
    expected, batch = {}, batch_of(TEXT)
    with watch_attention(ours, lambda kind, layer, w: expected.update({(kind, layer): w})):
        token_losses(ours, batch)
    found = {(k, n): w for k, n, w in hooked.attention_weights(batch_of(text))}
    assert found.keys() == expected.keys()
    for (kind, layer), weights in expected.items():
        lengths = batch.src_lengths if kind == "enc_self" else batch.tgt_lengths
        for sentence, length in enumerate(lengths):
            theirs = found[kind, layer][sentence, :, :length]
            torch.testing.assert_close(theirs, weights[sentence, :, :length], atol=1e-5, rtol=0)

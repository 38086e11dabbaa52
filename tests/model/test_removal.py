"""Heads under a multiplier, and heads removed for good."""

import copy

import pytest
import torch
from small_models import TEXT, UNEVEN, attention_of, make_model, one_pair

from headcount.base.addresses import Head
from headcount.base.settings.decode import DecodeSettings
from headcount.heads.attention_map import all_weights
from headcount.model.loss import token_losses
from headcount.model.removal import order_heads, remove_units, restore_heads
from headcount.search.beam_search import translate
from headcount.training.score import score_targets

DECODE = DecodeSettings(beam=3, max_length_factor=1.0, max_length_extra=4, batch_tokens=30)
HEADS = make_model(heads=UNEVEN).grid.heads()  # 17
BATCH = TEXT.batch([0, 1, 2])

whole_or_rows = pytest.mark.parametrize("ones", [torch.ones(17), torch.ones(3, 17)])


def mask_of(model, head):
    return torch.from_numpy(model.grid.mask([head]))


def decoded(model, multiplier=None, text=TEXT):
    return translate(model, text.src, DECODE, multiplier)


def without_columns(model, head):
    """A copy in which the head's columns of W_O are 0."""
    changed = copy.deepcopy(model)
    attention = attention_of(changed, head.kind, head.layer)
    columns = slice(head.head * attention.d_head, (head.head + 1) * attention.d_head)
    with torch.no_grad():
        attention.output.weight[:, columns] = 0
    return changed


@whole_or_rows
def test_ones_change_no_bit(model, ones):
    """In scoring, decoding and training."""
    assert torch.equal(score_targets(model, TEXT, 20), score_targets(model, TEXT, 20, ones))
    assert decoded(model) == decoded(model, ones)
    results = []
    for multiplier in (None, ones):
        trained = copy.deepcopy(model).train()  # with dropout
        torch.manual_seed(5)
        losses = token_losses(trained, BATCH, multiplier, smoothing=0.1)
        losses.sum().backward()
        results.append((losses, [weight.grad for weight in trained.parameters()]))
    (losses, gradients), (losses_of_ones, gradients_of_ones) = results
    assert torch.equal(losses, losses_of_ones)
    assert all(map(torch.equal, gradients, gradients_of_ones))


@pytest.mark.parametrize("head", HEADS, ids=Head.label)
def test_f39_a_silent_head_is_a_removed_head(model, head):
    mask, without = mask_of(model, head), without_columns(model, head)
    silent = score_targets(model, TEXT, 20, mask)
    assert (silent - score_targets(model, TEXT, 20)).abs().min() > 1e-6  # it took part before
    torch.testing.assert_close(silent, score_targets(without, TEXT, 20), atol=1e-5, rtol=0)
    for found, expected in zip(decoded(model, mask), decoded(without), strict=True):
        assert found.ids == expected.ids
        assert found.log_probability == pytest.approx(expected.log_probability, abs=1e-5)


@pytest.mark.parametrize("budget", [100, 6])  # one batch, or one sentence each
def test_each_sentence_is_scored_and_decoded_with_its_own_row(model, budget):
    settings = DECODE.model_copy(update={"batch_tokens": budget})
    rows = torch.rand(3, 17, generator=torch.Generator().manual_seed(1)) * 3 - 1
    scores = score_targets(model, TEXT, budget, rows)
    for number, found in enumerate(translate(model, TEXT.src, settings, rows)):
        text = one_pair(TEXT, number)
        alone = decoded(model, rows[number], text)[0]
        assert found.ids == alone.ids
        assert found.log_probability == pytest.approx(alone.log_probability, abs=1e-4)
        score = score_targets(model, text, budget, rows[number])
        torch.testing.assert_close(scores[number : number + 1], score, atol=1e-5, rtol=0)


# UNEVEN: encoder 3 and 2, decoder 1, 3 and 2, encoder-decoder 2, 3 and 1 heads.
MASKS = {
    "some": [0, 1, 1, 1, 0, 1, 0, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1],
    "layers": [0, 0, 0, 1, 1, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 1],
    "none": [1] * 17,
    "all": [0] * 17,
    "fractions": [0.5, 1, 0, 1, 0.25, 1, 0, 0.7, 1, 0, 1, 0, 1, 0.1, 0, 1, 0.9],
}
# By hand, from the rows above.
LEFT = {
    "some": {"enc_self": [2, 1], "dec_self": [1, 1, 2], "dec_enc": [1, 2, 1]},
    "layers": {"enc_self": [0, 2], "dec_self": [0, 3, 0], "dec_enc": [1, 0, 1]},
    "none": UNEVEN,
    "all": {"enc_self": [0, 0], "dec_self": [0, 0, 0], "dec_enc": [0, 0, 0]},
    "fractions": {"enc_self": [2, 2], "dec_self": [1, 2, 1], "dec_enc": [1, 2, 1]},
}


def multiplier(name):
    return torch.tensor(MASKS[name], dtype=torch.float32)


@pytest.fixture(params=["pre", pytest.param("post", marks=pytest.mark.slow)])
def model(request):
    return make_model(heads=UNEVEN, norm=request.param)


@pytest.mark.parametrize("name", MASKS)
def test_f40_the_output_is_that_of_the_masked_model(model, name):
    smaller = remove_units(model, multiplier(name))
    assert smaller.settings.heads == LEFT[name]
    assert not smaller.training
    batch = TEXT.batch([0, 1, 2])
    with torch.no_grad():
        expected = token_losses(model, batch, multiplier(name))
        # Sums over some numbers less, about 1e-7 relative each, of losses near 3.
        torch.testing.assert_close(token_losses(smaller, batch), expected, rtol=0, atol=1e-5)
        exact = token_losses(copy.deepcopy(model).double(), batch, multiplier(name).double())
        again = remove_units(copy.deepcopy(model).double(), multiplier(name).double())
        torch.testing.assert_close(token_losses(again, batch), exact, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", ["some", "layers", "all"])
def test_cached_decoding_gives_the_masked_models_translations(model, name):
    smaller = remove_units(model, multiplier(name))
    settings = DecodeSettings(beam=3, max_length_extra=4)
    masked = translate(model, TEXT.src, settings, multiplier(name))
    alone = translate(smaller, TEXT.src, settings)
    assert [each.ids for each in alone] == [each.ids for each in masked]
    scores = [[each.log_probability for each in found] for found in (alone, masked)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("name", ["some", "layers", "none", "all"])
def test_silent_heads_put_in_again_give_the_bits_of_the_mask(name):
    """Of layers that all had 3 heads; the mask's entries by their places in such a model."""
    whole = make_model(heads=3)
    gates = torch.ones(whole.grid.size)
    gates[: len(MASKS[name])] = multiplier(name)
    heads = [head for head, gate in zip(whole.grid.heads(), gates, strict=True) if gate]
    again = restore_heads(remove_units(whole, gates), heads, 3)
    assert again.grid == whole.grid
    batch = TEXT.batch([0, 1, 2])
    assert torch.equal(token_losses(again, batch), token_losses(whole, batch, gates))
    with pytest.raises(ValueError, match="places below 2, found"):
        restore_heads(whole, whole.grid.heads(), 2)


@torch.no_grad()
def test_another_order_of_heads_is_the_same_function(model):
    """Attention of the head that stands at a new place is what it was at the old place."""
    order = [*range(model.grid.size)]
    span = model.grid.span("dec_enc", 1)  # three heads
    order[span] = [span.start + 2, span.start, span.start + 1]
    moved = order_heads(model, order)
    batch = TEXT.batch([0, 1, 2])
    torch.testing.assert_close(token_losses(moved, batch), token_losses(model, batch))
    before, after = (all_weights(each, TEXT.src[0], TEXT.tgt[0]) for each in (model, moved))
    assert torch.equal(after.pop(("dec_enc", 1)), before.pop(("dec_enc", 1))[[2, 0, 1]])
    for layer, weights in after.items():
        torch.testing.assert_close(weights, before[layer])
    with pytest.raises(ValueError, match="expected an order within layers"):
        order_heads(model, order[::-1])


def test_removal_changes_neither_the_model_nor_the_draws_that_follow(model):
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    random = torch.get_rng_state()
    model.train()
    assert remove_units(model, multiplier("some")).training
    assert torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(weight, before[name]) for name, weight in model.named_parameters())

"""Heads taken out for good: the output of the masked model, any number a layer, loads alone."""

import copy

import pytest
import torch
from small_models import TEXT, UNEVEN, make_model

from headcount.base.settings.decode import DecodeSettings
from headcount.data.batches import collate
from headcount.model.loss import token_losses
from headcount.model.removal import remove_heads, restore_heads
from headcount.search.beam_search import translate
from headcount.store.model_folder import ModelFolder

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
    smaller = remove_heads(model, multiplier(name))
    assert smaller.settings.heads == LEFT[name]
    assert not smaller.training
    batch = collate(TEXT, [0, 1, 2])
    with torch.no_grad():
        expected = token_losses(model, batch, multiplier(name))
        # Sums over some numbers less, about 1e-7 relative each, of losses near 3.
        torch.testing.assert_close(token_losses(smaller, batch), expected, rtol=0, atol=1e-5)
        exact = token_losses(copy.deepcopy(model).double(), batch, multiplier(name).double())
        again = remove_heads(copy.deepcopy(model).double(), multiplier(name).double())
        torch.testing.assert_close(token_losses(again, batch), exact, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", ["some", "layers", "all"])
def test_cached_decoding_gives_the_masked_models_translations(model, name):
    smaller = remove_heads(model, multiplier(name))
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
    again = restore_heads(remove_heads(whole, gates), heads, 3)
    assert again.grid == whole.grid
    batch = collate(TEXT, [0, 1, 2])
    assert torch.equal(token_losses(again, batch), token_losses(whole, batch, gates))
    with pytest.raises(ValueError, match="places below 2, found"):
        restore_heads(whole, whole.grid.heads(), 2)


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("name", ["layers", "all"])
def test_the_saved_model_loads_alone(tmp_path, joint, name):
    model = make_model(heads=UNEVEN, joint=joint)
    smaller = remove_heads(model, multiplier(name))
    ModelFolder(tmp_path).save(smaller, dict(smaller.named_parameters()), {})
    loaded = ModelFolder(tmp_path).load()
    assert loaded.settings == smaller.settings
    assert loaded.grid.counts == {kind: tuple(counts) for kind, counts in LEFT[name].items()}
    batch = collate(TEXT, [0, 1, 2])
    with torch.no_grad():
        assert torch.equal(token_losses(loaded, batch), token_losses(smaller, batch))
    with pytest.raises(ValueError, match=r"expected \[17\], found \[16\]"):
        remove_heads(model, torch.ones(16))


def test_removal_changes_neither_the_model_nor_the_draws_that_follow(model):
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    random = torch.get_rng_state()
    model.train()
    assert remove_heads(model, multiplier("some")).training
    assert torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(weight, before[name]) for name, weight in model.named_parameters())

"""Output norms and mean outputs against each sentence alone; mean ablation against both routes."""

import numpy as np
import pytest
import torch
from small_models import TEXT, UNEVEN, make_model, one_pair

from headcount.base.settings.heads import ImportanceSettings, MeasuresSettings
from headcount.data.batches import collate
from headcount.heads.loss_change import measure_loss_change
from headcount.heads.more_measures import HeadOutputs, Passes
from headcount.model.loss import token_losses
from headcount.model.removal import remove_heads, set_means

BATCH = collate(TEXT, [0, 1, 2])
WIDE = {"heads": {"enc_self": [2, 0], "dec_self": [1, 1, 1], "dec_enc": [1, 0, 1]}, "d_head": 12}


@pytest.fixture
def model():
    return make_model(heads=UNEVEN).double()


def seen(model) -> HeadOutputs:
    return Passes(model, TEXT, ImportanceSettings(), MeasuresSettings()).first[1]


def outputs_of(model, number: int) -> dict[tuple[str, int], torch.Tensor]:
    """What enters each W_O [positions, heads · e], of one sentence, where nothing is padded."""
    found = {}
    hooks = [
        module.output.register_forward_pre_hook(
            lambda _, inputs, key=(kind, layer): found.update({key: inputs[0][0]})
        )
        for kind, layer, module in model.attentions()
    ]
    with torch.no_grad():
        token_losses(model, collate(one_pair(TEXT, number), [0]))
    for hook in hooks:
        hook.remove()
    return found


@pytest.mark.parametrize("changes", [{}, WIDE], ids=["uneven", "wider than the model"])
def test_norms_and_means_are_those_of_all_real_positions(changes):
    """Sentences of unequal lengths in one batch, against each alone; W_O^h c in full."""
    model = make_model(**{"heads": UNEVEN, **changes}).double()
    alone = [outputs_of(model, number) for number in range(len(TEXT))]
    found = seen(model)
    for kind, layer, module in model.attentions():
        entering = torch.cat([each[kind, layer] for each in alone])
        lengths = TEXT.lengths[0 if kind == "enc_self" else 1]
        assert len(entering) == lengths.sum()  # with EOS, or BOS in its place
        for head, place in enumerate(range(*model.grid.span(kind, layer).indices(99))):
            columns = slice(head * module.d_head, (head + 1) * module.d_head)
            own = entering[:, columns]
            added = own @ module.output.weight[:, columns].detach().T
            assert found.norms()[place] == pytest.approx(float(added.norm(dim=1).mean()), rel=1e-9)
            np.testing.assert_allclose(found.means()[place], own.mean(0), rtol=1e-9, atol=1e-12)


def under_means(model, multiplier) -> torch.Tensor:
    with torch.no_grad():
        return token_losses(model, BATCH, multiplier)


def test_a_silent_head_gives_its_mean_by_hand(model):
    """With h · W_O^h μ in the bias and zero columns; half a head gives half of either."""
    means = torch.randn(17, 4, generator=torch.Generator().manual_seed(2)).double()
    set_means(model, means)
    ones = torch.ones(17).double()
    assert torch.equal(under_means(model, ones), under_means(model, None))
    changed = make_model(heads=UNEVEN).double()
    place, attention = 15, changed.decoder[1].cross  # its last head, of dec_enc layer 1 (2 to 4)
    for share in (0.0, 0.5):
        multiplier = ones.clone()
        multiplier[place] = share
        with torch.no_grad():
            original = model.decoder[1].cross.output
            columns = original.weight[:, 8:]
            attention.output.weight[:, 8:] = share * columns
            attention.output.bias[:] = original.bias + (1 - share) * columns @ means[place]
            expected = token_losses(changed, BATCH)
        torch.testing.assert_close(under_means(model, multiplier), expected, rtol=0, atol=1e-12)
        rows = multiplier.repeat(3, 1)
        torch.testing.assert_close(under_means(model, rows), expected, rtol=0, atol=1e-12)
    found = under_means(model, multiplier)
    set_means(model, None)
    assert not torch.allclose(under_means(model, multiplier), found)  # zeros again


def test_removed_with_their_means_folded_they_give_what_mean_ablation_gives(model):
    draw = torch.Generator().manual_seed(1)
    set_means(model, torch.randn(17, 4, generator=draw).double())
    multiplier = (torch.rand(17, generator=draw) > 0.5).double()
    multiplier[0] = 0.3
    for mask in (multiplier, 0 * multiplier):
        smaller = remove_heads(model, mask)
        assert smaller.grid.size == int(mask.count_nonzero()) < 17
        assert all(module.means is None for _, _, module in smaller.attentions())
        torch.testing.assert_close(
            under_means(smaller, None), under_means(model, mask), rtol=0, atol=1e-12
        )


def test_a_constant_head_is_its_mean_and_costs_nothing_alone(model):
    """A value that no position changes: W_V is 0 there, the bias stays. Zeros would cost."""
    module = model.encoder[0].attention
    rows = slice(2 * 12, 2 * 12 + 4)  # values of head 0; queries and keys of 3 · 4 rows each first
    with torch.no_grad():
        module.inputs.weight[rows] = 0
    means = seen(model).means()
    np.testing.assert_allclose(means[0], module.inputs.bias[rows].detach(), rtol=1e-9)
    _, by_zero = measure_loss_change(model, TEXT, ImportanceSettings())
    set_means(model, torch.from_numpy(means))
    size, rise = measure_loss_change(model, TEXT, ImportanceSettings())
    assert size[0] == pytest.approx(0, abs=1e-12) and abs(by_zero[0]) > 1e-3
    assert (np.abs(rise[1:]) > 1e-6).all() and not np.allclose(rise, by_zero)


def test_no_file_of_weights_has_means(model):
    names = set(model.state_dict())
    set_means(model, torch.zeros(17, 4))
    assert set(model.state_dict()) == names
    assert model.encoder[0].attention.means.dtype == torch.float64

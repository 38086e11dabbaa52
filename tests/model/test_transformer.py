"""The Transformer as a whole: sizes, sharing, who sees what, norms and positions."""

import pytest
import torch
from small_models import TEXT, UNEVEN, make_model, make_settings

from headcount.base.settings.decode import DecodeSettings
from headcount.data.batches import ParallelText
from headcount.model.attention import sinusoids
from headcount.model.layers import Residual, WholeTargets
from headcount.model.loss import token_losses
from headcount.model.transformer import Transformer, check_multiplier, parameter_count
from headcount.search.beam_search import translate
from headcount.store.model_folder import ModelFolder
from headcount.training.score import score_targets

# One attention module of 3 heads × 4 in a width of 10: inputs 36 × (10 + 1), output 10 × (12 + 1).
ATTENTION = 396 + 130
FEED_FORWARD = 14 * (10 + 1) + 10 * (14 + 1)
NORM = 20
LAYERS = 2 * (ATTENTION + FEED_FORWARD + 2 * NORM) + 3 * (2 * ATTENTION + FEED_FORWARD + 3 * NORM)


@pytest.mark.parametrize(
    ("joint", "norm", "count"),
    [
        (True, "pre", 11 * 10 + LAYERS + 2 * NORM),
        (False, "pre", 11 * 10 + 9 * 10 + LAYERS + 2 * NORM),
        (True, "post", 11 * 10 + LAYERS),
    ],
)
def test_f36_parameter_count_by_hand(joint, norm, count):
    model = Transformer(make_settings(norm=norm), 9, 11, joint)
    assert parameter_count(model) == count
    # One head costs 3 × 4 × (10 + 1) numbers for Q, K, V and 10 × 4 columns of W_O: 172.
    uneven = Transformer(make_settings(norm=norm, heads=UNEVEN), 9, 11, joint)
    assert parameter_count(uneven) == count - (8 * 3 - 17) * 172


@pytest.mark.parametrize("joint", [True, False])
def test_f36_a_shared_embedding_stays_shared_and_separate_ones_separate(tmp_path, joint):
    model = make_model(joint=joint, src_size=11 if joint else 20, tgt_size=11)
    ModelFolder(tmp_path).save(model, dict(model.named_parameters()), {})
    loaded = ModelFolder(tmp_path).load()
    assert (loaded.src_embedding is loaded.tgt_embedding) == joint
    assert parameter_count(loaded) == parameter_count(model)
    assert torch.equal(score_targets(loaded, TEXT, 50), score_targets(model, TEXT, 50))
    states = torch.randn(1, 10)
    before = loaded.logits(states)[0, 4].item()
    with torch.no_grad():
        loaded.src_embedding.weight[4] *= 2  # a joint table is the output layer too
    assert loaded.logits(states)[0, 4].item() == pytest.approx((1 + joint) * before)


def doubled(around, states):
    """A sub-layer that doubles what it reads."""
    return around.leave(states, 2 * around.enter(states))


def test_residual_by_hand():
    # d_model 2, x = (1, 3): mean 2, standard deviation 1, so norm(x) = (-1, 1).
    states = torch.tensor([[1.0, 3.0]])
    sizes = {"d_model": 2, "dropout": 0.0}
    pre, post = (Residual(make_settings(norm=norm, **sizes)) for norm in ("pre", "post"))
    # x + 2 · norm(x) = (1 - 2, 3 + 2)
    torch.testing.assert_close(doubled(pre, states), torch.tensor([[-1.0, 5.0]]))
    # norm(x + 2 · x) = norm((3, 9)) = (-1, 1)
    torch.testing.assert_close(doubled(post, states), torch.tensor([[-1.0, 1.0]]))


def test_sentences_beyond_the_first_512_positions():
    text = ParallelText([[4, 5, 6, 7] * 150], [[4, 5, 6] * 180])  # 601 and 541 with EOS
    model, roomy = make_model(), make_model()
    roomy.positions = sinusoids(700, 10)
    found = translate(model, text.src, DecodeSettings(max_length_factor=0.01, max_length_extra=1))
    assert len(found) == 1  # the table grows while decoding …
    model.train()
    losses = token_losses(model, text.batch([0]))
    losses.sum().backward()  # … and training goes on with it
    assert all(weight.grad.isfinite().all() for weight in model.parameters())
    expected = score_targets(roomy, text, 700)
    torch.testing.assert_close(score_targets(model, text, 700), expected)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_every_parameter_learns(norm):
    model = make_model(norm=norm).train()
    token_losses(model, TEXT.batch([0, 1, 2])).sum().backward()
    idle = [n for n, w in model.named_parameters() if w.grad is None or not w.grad.any()]
    assert idle == []


@pytest.mark.parametrize("shape", [(16,), (2, 17), (17, 3), (3, 17, 1), ()])
def test_wrong_shape_of_multipliers(shape):
    model = make_model(heads=UNEVEN)
    with pytest.raises(ValueError, match=r"expected shape \[17\] or \[3, 17\], found \["):
        check_multiplier(model, torch.ones(shape), 3)
    for right in (None, torch.ones(17), torch.ones(3, 17)):
        check_multiplier(model, right, 3)


def test_weights_of_attention_are_dropped_in_training_alone():
    """All other dropout is off, so that a second pass differs by that of attention."""
    model = make_model(dropout=0.0, attention_dropout=0.4)
    plain = make_model(dropout=0.0)
    batch = TEXT.batch([0, 1, 2])
    torch.testing.assert_close(token_losses(model, batch), token_losses(plain, batch))
    model.train()
    one, other = (model.encode(batch.src).keys_values[0][0] for _ in range(2))
    assert not torch.allclose(one, other)
    targets = WholeTargets(3, model.encode(batch.src), model.dropped)
    assert targets.self_attention.dropped == targets.cross_attention.dropped == 0.4

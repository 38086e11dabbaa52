"""The head multiplier: ones change no bit, zeros remove heads, rows belong to sentences."""

import copy

import pytest
import torch
from small_models import TEXT, UNEVEN, attention_of, make_model, one_pair

from headcount.base.addresses import Head
from headcount.base.settings.decode import DecodeSettings
from headcount.data.batches import collate
from headcount.model.loss import token_losses
from headcount.search.beam_search import translate
from headcount.training.score import score_targets

DECODE = DecodeSettings(beam=3, max_length_factor=1.0, max_length_extra=4, batch_tokens=30)
HEADS = make_model(heads=UNEVEN).grid.heads()  # 17
BATCH = collate(TEXT, [0, 1, 2])

whole_or_rows = pytest.mark.parametrize("ones", [torch.ones(17), torch.ones(3, 17)])


@pytest.fixture(scope="module")
def model():
    return make_model(heads=UNEVEN)


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


def test_gradient_of_the_loss_matches_finite_differences(model):
    exact = copy.deepcopy(model).double()
    ones = torch.ones(3, 17, dtype=torch.float64, requires_grad=True)
    token_losses(exact, BATCH, ones).sum().backward()
    step = 1e-5
    # One head of each kind, in the first, a middle and the last layer, each in another sentence.
    for sentence, position in ((0, 0), (1, 4), (2, 5), (1, 9), (0, 12), (2, 16)):
        nudge = torch.zeros(3, 17, dtype=torch.float64)
        nudge[sentence, position] = step
        with torch.no_grad():
            up, down = (token_losses(exact, BATCH, 1 + way * nudge).sum() for way in (1, -1))
        measured = (up - down).item() / (2 * step)
        assert abs(measured) > 1e-4
        assert ones.grad[sentence, position].item() == pytest.approx(measured, rel=1e-5, abs=1e-8)


@pytest.mark.filterwarnings("ignore:Initializing zero-element")
def test_f09_layers_without_heads_score_and_decode():
    heads = {"enc_self": [0, 2], "dec_self": [0, 3, 0], "dec_enc": [2, 0, 1]}
    model = make_model(heads=heads)
    assert model.grid.size == 8
    losses = score_targets(model, TEXT, 20)
    assert losses.isfinite().all()
    assert torch.equal(losses, score_targets(model, TEXT, 20, torch.ones(3, 8)))
    assert decoded(model) == decoded(model, torch.ones(8))

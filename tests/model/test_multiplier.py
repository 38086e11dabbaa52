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
def test_ones_change_no_bit_in_training(model, ones):
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


@whole_or_rows
def test_ones_change_no_bit_in_scoring(model, ones):
    assert torch.equal(score_targets(model, TEXT, 20), score_targets(model, TEXT, 20, ones))


@whole_or_rows
def test_ones_change_no_bit_in_decoding(model, ones):
    assert decoded(model) == decoded(model, ones)


@pytest.mark.parametrize("head", HEADS, ids=Head.label)
def test_f39_a_silent_head_is_a_removed_head(model, head):
    mask, without = mask_of(model, head), without_columns(model, head)
    silent = score_targets(model, TEXT, 20, mask)
    assert (silent - score_targets(model, TEXT, 20)).abs().min() > 1e-6  # it took part before
    torch.testing.assert_close(silent, score_targets(without, TEXT, 20), atol=1e-5, rtol=0)
    for found, expected in zip(decoded(model, mask), decoded(without), strict=True):
        assert found.ids == expected.ids
        assert found.log_probability == pytest.approx(expected.log_probability, abs=1e-5)


@pytest.mark.parametrize("head", HEADS, ids=Head.label)
def test_f39_masking_a_head_changes_the_logits(model, head):
    with torch.inference_mode():
        logits = [
            model.logits(model.decode(BATCH.tgt_in, model.encode(BATCH.src, m), m))
            for m in (None, mask_of(model, head))
        ]
    changed = (logits[0] - logits[1]).abs().amax(-1).flatten()[BATCH.real]
    assert changed.min() > 1e-6  # at every real position of every sentence


def test_f09_all_heads_silent_still_gives_finite_numbers(model):
    nothing = torch.zeros(17)
    assert score_targets(model, TEXT, 20, nothing).isfinite().all()
    assert len(decoded(model, nothing)) == 3


def test_each_sentence_is_scored_with_its_own_row(model):
    rows = torch.rand(3, 17, generator=torch.Generator().manual_seed(2)) * 2
    together = score_targets(model, TEXT, 100, rows)
    assert torch.unique(score_targets(model, TEXT, 100) - together).numel() == 3
    for number in range(3):
        alone = score_targets(model, one_pair(TEXT, number), 100, rows[number])
        torch.testing.assert_close(together[number : number + 1], alone, atol=1e-5, rtol=0)


@pytest.mark.parametrize("budget", [100, 6])  # one batch, or one sentence each
def test_each_sentence_is_decoded_with_its_own_row(model, budget):
    settings = DECODE.model_copy(update={"batch_tokens": budget})
    for seed in range(2):
        rows = torch.rand(3, 17, generator=torch.Generator().manual_seed(seed)) * 3 - 1
        together = translate(model, TEXT.src, settings, rows)
        for number, found in enumerate(together):
            alone = decoded(model, rows[number], one_pair(TEXT, number))[0]
            assert found.ids == alone.ids
            assert found.log_probability == pytest.approx(alone.log_probability, abs=1e-4)


def test_gradient_of_the_loss_matches_finite_differences(model):
    exact = copy.deepcopy(model).double()

    def losses_of(multiplier):
        tokens = token_losses(exact, BATCH, multiplier)
        return tokens.sum()

    ones = torch.ones(3, 17, dtype=torch.float64, requires_grad=True)
    losses_of(ones).backward()
    step = 1e-5
    # One head of each kind, in the first, a middle and the last layer, each in another sentence.
    for sentence, position in ((0, 0), (1, 4), (2, 5), (1, 9), (0, 12), (2, 16)):
        nudge = torch.zeros(3, 17, dtype=torch.float64)
        nudge[sentence, position] = step
        with torch.no_grad():
            difference = losses_of(1 + nudge) - losses_of(1 - nudge)
        measured = difference.item() / (2 * step)
        assert abs(measured) > 1e-4
        assert ones.grad[sentence, position].item() == pytest.approx(measured, rel=1e-5, abs=1e-8)


def test_one_backward_for_all_sentences_equals_one_for_each(model):
    together = torch.ones(3, 17, requires_grad=True)
    token_losses(model, BATCH, together).sum().backward()
    for number in range(3):
        alone = torch.ones(17, requires_grad=True)
        token_losses(model, collate(TEXT, [number]), alone).sum().backward()
        torch.testing.assert_close(together.grad[number], alone.grad, atol=1e-5, rtol=1e-4)


@pytest.mark.filterwarnings("ignore:Initializing zero-element")
def test_f09_layers_without_heads_score_and_decode():
    heads = {"enc_self": [0, 2], "dec_self": [0, 3, 0], "dec_enc": [2, 0, 1]}
    model = make_model(heads=heads)
    assert model.grid.size == 8
    losses = score_targets(model, TEXT, 20)
    assert losses.isfinite().all()
    assert torch.equal(losses, score_targets(model, TEXT, 20, torch.ones(3, 8)))
    assert decoded(model) == decoded(model, torch.ones(8))


def test_wrong_shapes_are_refused(model):
    told = r"head multiplier: expected shape \[17\] or \[3, 17\], found \[3\]"
    with pytest.raises(ValueError, match=told):
        score_targets(model, TEXT, 20, torch.ones(3))
    with pytest.raises(ValueError, match=told):
        decoded(model, torch.ones(3))

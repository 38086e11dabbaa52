"""The head multiplier on models of Hugging Face's library."""

import copy
from functools import cache, partial

import pytest
import torch
from small_hooked import EAGER_ONLY, HOOKED, IMPORTABLE, small_hooked, small_text

from headcount.base.errors import UserError
from headcount.heads.importance import batch_importance
from headcount.model.loss import token_losses
from headcount_hf.hooks.hooked_seq2seq import HookedSeq2Seq

pytestmark = pytest.mark.slow  # of the library's own classes, a dozen of them

CASES = [(kind, "sdpa") for kind in (*IMPORTABLE, *HOOKED) if kind not in EAGER_ONLY]
CASES += [(kind, "eager") for kind in ("marian", "bart", *HOOKED)]


@pytest.fixture(params=CASES, ids=" ".join)
def model(request) -> HookedSeq2Seq:
    return small_hooked(*request.param)


def whole_batch(model):
    text = small_text(model)
    return text.batch(range(len(text)))


def drawn(model, *rows: int) -> torch.Tensor:
    """Factors between 0 and 1, every third one 0."""
    factors = torch.rand(*rows, model.grid.size, generator=torch.Generator().manual_seed(4))
    factors[..., ::3] = 0
    return factors


@torch.no_grad()
def folded(model: HookedSeq2Seq, multiplier: torch.Tensor) -> HookedSeq2Seq:
    """A copy with the multiplier [h] in the columns of W_O: plain weights, no hook."""
    other = copy.deepcopy(model)
    for kind, layer, joined in other.attentions():
        factors = multiplier[other.grid.span(kind, layer)].to(joined.output.weight.dtype)
        joined.output.weight.mul_(factors.repeat_interleave(joined.d_head))
    return other


@torch.no_grad()
def test_ones_change_no_bit_and_factors_are_those_of_columns(model):
    model.check(small_text(model))
    batch = whole_batch(model)
    plain = token_losses(model, batch)
    assert plain.shape == (batch.target_tokens,)
    assert torch.equal(plain, token_losses(model, batch, torch.ones(model.grid.size)))
    ones = torch.ones(len(batch.indices), model.grid.size)
    assert torch.equal(plain, token_losses(model, batch, ones))
    factors = drawn(model)
    masked = token_losses(model, batch, factors)
    columns = token_losses(folded(model, factors), batch)
    assert (masked - plain).abs().max() > 0.1  # heads matter
    torch.testing.assert_close(masked, columns, atol=2e-5 * plain.max().item(), rtol=0)


@torch.no_grad()
def test_a_row_of_masks_belongs_to_its_sentence_alone(model):
    batch = whole_batch(model)
    rows = drawn(model, len(batch.indices))
    together = token_losses(model, batch, rows).split(batch.tgt_lengths)
    for sentence, row in enumerate(rows):
        alone = token_losses(model, batch, row).split(batch.tgt_lengths)[sentence]
        torch.testing.assert_close(together[sentence], alone, atol=2e-5 * alone.max(), rtol=0)


@torch.no_grad()
def test_padding_changes_nothing(model):
    text = small_text(model)
    together = token_losses(model, whole_batch(model)).split([len(ids) for ids in text.tgt])
    for number, losses in enumerate(together):
        alone = token_losses(model, text.batch([number]))
        torch.testing.assert_close(losses, alone, atol=2e-5 * alone.max(), rtol=0)


@torch.no_grad()
@pytest.mark.parametrize("kind", ["t5", "whisper", "t5gemma"])
def test_links_go_to_the_largest_mean_weight(kind):
    """Each sentence by itself, without padding, by the library's weights; ends have no link."""
    model = small_hooked(kind, "eager")
    text, end = small_text(model), model.model.config.eos_token_id
    keys = 15  # positions of the encoder
    if kind != "whisper":
        text, keys = model.text([[*ids, end] for ids in text.src], text.tgt), -1
    fused = small_hooked(kind, "eager" if kind in EAGER_ONLY else "sdpa")
    links = fused.align(text, ["dec_enc.0.1", "dec_enc.1.3"])
    for number, found in enumerate(links):
        given = {model.model.main_input_name: torch.as_tensor(text.src[number])[None]}
        given["decoder_input_ids"] = torch.tensor([text.tgt_in[number]])
        layers = model.model(**given, output_attentions=True).cross_attentions
        mean = (layers[0][0, 1] + layers[1][0, 3])[:-1, :keys] / 2
        assert found == [(int(row.argmax()), place) for place, row in enumerate(mean)]
    assert len({source for found in links for source, _ in found}) > 4
    assert len(links[1]) == 8  # without the end
    with pytest.raises(UserError, match="expected some of dec_enc, found enc_self.0.1"):
        fused.align(text, ["enc_self.0.1"])


def unrounded_norms(model):
    """T5's norms round to fp32 in every format; here they do not."""

    def norm(module, states):
        mean = states.pow(2).mean(-1, keepdim=True)
        return module.weight * states * torch.rsqrt(mean + module.variance_epsilon)

    for module in model.modules():
        if hasattr(module, "variance_epsilon"):
            module.forward = partial(norm, module)
    return model


@pytest.mark.parametrize("kind", ["t5", "mt5", "whisper", "marian", "t5gemma"])
def test_importance_is_the_slope_of_the_loss(kind):
    """Central differences of fourth order in float64; T5Gemma's softmax and norms are in fp32."""
    model = unrounded_norms(small_hooked(kind, "eager").double())
    batch = whole_batch(model)
    if batch.src.is_floating_point():
        batch = copy.copy(batch)
        object.__setattr__(batch, "src", batch.src.double())
    found, _, loss = batch_importance(model, batch)
    step, size = 1e-3, model.grid.size

    @torch.no_grad()
    def by_sentence(head: int, change: float) -> torch.Tensor:
        factors = torch.ones(size, dtype=torch.float64)
        factors[head] += change
        losses = token_losses(model, batch, factors).split(batch.tgt_lengths)
        return torch.stack([nats.sum() for nats in losses])

    slopes = [
        8 * (by_sentence(head, step) - by_sentence(head, -step))
        - (by_sentence(head, 2 * step) - by_sentence(head, -2 * step))
        for head in range(size)
    ]
    expected = (torch.stack(slopes) / (12 * step)).abs().mean(1)
    assert loss.item() == pytest.approx(by_sentence(0, 0).sum().item())
    close = 1e-3 if kind == "t5gemma" else 1e-6
    torch.testing.assert_close(found, expected, atol=close * expected.max().item(), rtol=0)
    assert found.min() > 1e-3 * found.max()


def test_measuring_leaves_the_module_as_it_was(model):
    before = {name: weight.clone() for name, weight in model.model.named_parameters()}
    asked = {name: weight.requires_grad for name, weight in model.model.named_parameters()}
    model.train()
    batch_importance(model, whole_batch(model))
    with pytest.raises(ValueError), model.multiplied(torch.ones(model.grid.size)):
        raise ValueError
    assert not any(module._forward_pre_hooks for module in model.modules())
    assert all(module.training for module in model.modules())
    for name, weight in model.model.named_parameters():
        assert torch.equal(weight, before[name]) and weight.grad is None
        assert weight.requires_grad == asked[name]


def test_an_unknown_architecture_is_named_with_its_attention():
    import transformers

    config = transformers.LEDConfig(
        vocab_size=50, d_model=16, encoder_layers=1, decoder_layers=1, encoder_ffn_dim=16,
        decoder_ffn_dim=16, encoder_attention_heads=2, decoder_attention_heads=2,
        attention_window=4, max_encoder_position_embeddings=32,
    )  # fmt: skip
    message = r"found 0 of enc_self, 1 of dec_self, 1 of dec_enc .*LEDEncoderAttention"
    with pytest.raises(UserError, match=message):
        HookedSeq2Seq(transformers.LEDForConditionalGeneration(config))


def test_a_module_with_rows_elsewhere_is_refused():
    """FSMT's attention has positions first: a row of masks would silence positions."""
    import transformers

    config = transformers.FSMTConfig(
        langs=["en", "de"], src_vocab_size=300, tgt_vocab_size=300, d_model=32, encoder_layers=1,
        decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=16, decoder_ffn_dim=16,
    )  # fmt: skip
    model = HookedSeq2Seq(transformers.FSMTForConditionalGeneration(config).eval())
    for source, target in [([5, 6, 7, 2], [8, 9, 2]), ([5, 2], [8, 2])]:
        text = model.text([source], [target], start=2)
        with pytest.raises(UserError, match="FSMT.*: expected masks that act on one sentence"):
            model.check(text)


def test_multipliers_of_other_shapes_are_refused():
    model = small_hooked("t5")
    batch = whole_batch(model)  # 4 sentences, 28 heads
    for shape in [(27,), (2, 28), (8, 28)]:  # 2 divides 4, as rows of beams would
        with pytest.raises(ValueError, match=r"expected shape \[28\] or \[4, 28\]"):
            token_losses(model, batch, torch.ones(shape))
    with pytest.raises(ValueError, match="found 2 for 4 rows"), model.multiplied(torch.ones(2, 28)):
        token_losses(model, batch)


def test_sentences_longer_than_its_positions():
    model = small_hooked("bart")
    text = model.text([[5] * 65], [[5, 2]])
    told = "a sentence of 65 subwords .* expected at most 64"
    with pytest.raises(UserError, match=told):
        token_losses(model, text.batch([0]))
    with pytest.raises(UserError, match=told):
        model.generate([[5] * 65], {"max_new_tokens": 2})


SEARCHED = [(kind, "sdpa") for kind in ("marian", "mbart", *HOOKED) if kind not in EAGER_ONLY]
SEARCHED += [(kind, "eager") for kind in ("t5", "t5gemma")]
SEARCH = {"num_beams": 3, "max_new_tokens": 7, "min_new_tokens": 4, "do_sample": False}


@cache
def searched(kind: str, attention: str):
    """A model, its sources, a mask, and what it finds under the mask."""
    model = small_hooked(kind, attention)
    sources, mask = small_text(model).src, drawn(model)
    return model, sources, mask, model.generate(sources, SEARCH, mask)


@pytest.fixture(params=SEARCHED, ids=" ".join)
def case(request):
    return searched(*request.param)


def test_a_mask_is_zero_columns_with_and_without_a_cache(case):
    model, sources, mask, found = case
    assert len(found) == len(sources)
    assert found.tolist() != model.generate(sources, SEARCH).tolist()
    assert found.tolist() == folded(model, mask).generate(sources, SEARCH).tolist()
    assert not any(module._forward_pre_hooks for module in model.modules())
    without = model.generate(sources, {**SEARCH, "use_cache": False}, mask)
    assert found.tolist() == without.tolist()


def test_rows_of_masks_are_searches_of_their_own(case):
    """Of one search the four sentences have four masks; padding may follow what ends early."""
    model, sources, mask, _ = case
    rows = torch.stack([torch.ones_like(mask), mask, 1 - mask, drawn(model, 9)[8]])
    together = model.generate(sources, SEARCH, rows).tolist()
    pad = model.model.config.pad_token_id
    for number, row in enumerate(rows):
        (alone,) = model.generate([sources[number]], SEARCH, row).tolist()
        width = max(len(alone), len(together[number]))
        filled = [ids + [pad] * (width - len(ids)) for ids in (alone, together[number])]
        assert filled[0] == filled[1]


def test_dropout_is_off_in_a_search():
    model = small_hooked("t5")
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.5
    sources = small_text(model).src
    plain = model.generate(sources, SEARCH)
    assert model.train().generate(sources, SEARCH).tolist() == plain.tolist()

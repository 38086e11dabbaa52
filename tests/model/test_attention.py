"""Attention against its definition, by kernels, and in bf16 as on a GPU."""

import math

import pytest
import torch
from small_models import TEXT, UNEVEN, make_model

from headcount.heads.importance import batch_importance
from headcount.model.attention import DenseAttention, MultiHeadAttention, padding_mask, sinusoids
from headcount.model.loss import summed_loss
from headcount.model.machine import number_format

WIDTH, HEADS, D_HEAD = 10, 3, 4  # 3 × 4 is not 10: a head's width is given by itself


@pytest.fixture
def attention():
    torch.manual_seed(3)
    module = MultiHeadAttention(WIDTH, HEADS, D_HEAD)
    with torch.no_grad():
        for weight in module.parameters():
            weight.normal_()
    return module


def reference(attention, queries_of, memory, allowed):
    """Σ_h softmax(Q_h K_hᵀ / √e) V_h W_O,h + bias, [b, q, d]; `allowed` is [b, q, k]."""
    size = attention.heads * attention.d_head
    weights = attention.inputs.weight.split(size)
    biases = attention.inputs.bias.split(size)
    total = attention.output.bias
    for head in range(attention.heads):
        rows = slice(head * attention.d_head, (head + 1) * attention.d_head)
        q, k, v = (
            states @ weight[rows].T + bias[rows]
            for states, weight, bias in zip(
                (queries_of, memory, memory), weights, biases, strict=True
            )
        )
        scores = q @ k.transpose(1, 2) / math.sqrt(attention.d_head)
        shares = scores.masked_fill(~allowed, -math.inf).softmax(-1)
        total = total + shares @ v @ attention.output.weight[:, rows].T
    return total


def test_cross_attention_with_padding_equals_its_definition(attention):
    torch.manual_seed(4)
    states, memory = torch.randn(3, 2, WIDTH), torch.randn(3, 5, WIDTH)
    tokens = torch.tensor([[7, 7, 7, 7, 2], [7, 2, 0, 0, 0], [2, 0, 0, 0, 0]])
    mask = padding_mask(tokens, pad=0)
    assert mask.shape == (3, 1, 1, 5)
    keys, values = attention.project_memory(memory)
    found = attention(attention.project_queries(states), keys, values, DenseAttention(mask))
    allowed = (tokens != 0)[:, None, :].expand(3, 2, 5)
    torch.testing.assert_close(found, reference(attention, states, memory, allowed))


def test_causal_attention_equals_its_definition(attention):
    torch.manual_seed(5)
    states = torch.randn(3, 6, WIDTH)
    found = attention(*attention.project(states), DenseAttention(causal=True))
    allowed = torch.ones(6, 6).tril().bool().expand(3, 6, 6)
    torch.testing.assert_close(found, reference(attention, states, states, allowed))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [1, 15, 16, 17])  # rows of a softmax are filled up to 16
def test_written_out_and_fused_are_the_same(length, causal):
    """Outputs and the gradients by queries, keys and values; some keys are padding."""
    torch.manual_seed(11)
    states = torch.randn(3, 2, HEADS, length, D_HEAD, requires_grad=True)
    mask = torch.arange(length) < torch.tensor([length, max(1, length - 4)])[:, None, None, None]
    attention = DenseAttention(None if causal else mask, causal)
    upstream = torch.randn(2, HEADS, length, D_HEAD)
    found = []
    for way in (attention.written_out, attention.fused):
        states.grad = None
        out = way(*states.unbind(0))
        out.backward(upstream)
        found.append((out.detach(), states.grad))
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("keys", [32, 33])
def test_without_heads_no_kernel_is_called(monkeypatch, keys):
    """Torch's fused kernel fails for no heads in the gradient on a GPU, and once did on a CPU."""
    for way in ("written_out", "fused"):
        monkeypatch.setattr(DenseAttention, way, lambda *_: pytest.fail("a kernel was called"))
    given = [torch.zeros(2, 0, length, 12, requires_grad=True) for length in (5, keys)]
    found = DenseAttention().context(given[0], torch.zeros(2, 0, keys, 12), given[1])
    assert found.shape == (2, 0, 5, 12)
    assert [slope.shape for slope in torch.autograd.grad(found.sum(), given)] == [
        each.shape for each in given
    ]


def test_an_encoder_that_no_head_looks_at_has_a_gradient_of_zeros():
    """An optimiser has a state for its weights then, as for all others."""
    model = make_model(heads=UNEVEN | {"dec_enc": [0, 0, 0]})
    summed_loss(model, TEXT.batch([0, 1, 2])).backward()
    sizes = {name: weight.grad.abs().sum().item() for name, weight in model.named_parameters()}
    looked_at = {name for name, size in sizes.items() if size}
    assert not any(name.startswith("encoder") for name in looked_at)
    assert {"decoder.0.attention.inputs.weight", "decoder.2.cross.output.bias"} < looked_at


def test_a_multiplier_near_1_is_not_1_in_bf16(attention):
    context = torch.ones(1, HEADS, 2, D_HEAD, dtype=torch.bfloat16)
    multiplier = torch.full((HEADS,), 0.9985)  # the numbers of bf16 next to 1 are 1 - 2^-8 and 1
    seen = []
    attention.output.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    with torch.autocast("cpu", torch.bfloat16):
        attention.merge(context, multiplier)
    torch.testing.assert_close(seen[0], torch.full_like(seen[0], 0.9985))


def test_multiplier_scales_the_columns_of_the_output_matrix(attention):
    """By head, or with a row for every sentence."""
    context, factors = torch.randn(5, HEADS, 2, D_HEAD), torch.randn(5, HEADS)
    joined = context.transpose(1, 2).flatten(2)
    for given in (factors, factors[0]):
        merged = attention.merge(context, given)
        for number in range(5):
            row = given[number] if given.ndim == 2 else given
            scaled = attention.output.weight * row.repeat_interleave(D_HEAD)
            expected = joined[number] @ scaled.T + attention.output.bias
            torch.testing.assert_close(merged[number], expected)


@pytest.mark.filterwarnings("ignore:Initializing zero-element")
def test_a_layer_without_heads_gives_the_bias():
    module = MultiHeadAttention(WIDTH, 0, D_HEAD)
    torch.nn.init.normal_(module.output.bias)
    states = torch.randn(3, 2, WIDTH)
    bias = module.output.bias.expand(3, 2, WIDTH)
    for multiplier in (None, torch.ones(0), torch.ones(3, 0)):
        assert torch.equal(module(*module.project(states), DenseAttention(), multiplier), bias)
    queries, memory = module.project_queries(states), module.project_memory(states)
    assert torch.equal(module(queries, *memory, DenseAttention()), bias)


def test_initial_weights_are_glorot_uniform_block_by_block():
    module = MultiHeadAttention(60, 5, 8)
    # Each of W_Q, W_K, W_V is [40, 60] and W_O [60, 40]: the bound is √(6 / 100) for all.
    bound = math.sqrt(6 / 100)
    for block in (*module.inputs.weight.chunk(3), module.output.weight):
        assert 0.98 * bound < block.abs().max() <= bound
    assert not module.inputs.bias.any() and not module.output.bias.any()


def test_sinusoids_by_hand():
    # Width 4: rates 10000^0 = 1 and 10000^(-2/4) = 0.01. Width 3: the second is 10000^(-2/3), and
    # the last column a sine without its cosine.
    table, places = sinusoids(5001, 4), [0, 1, 2, 5000]
    expected = [[math.sin(p), math.cos(p), math.sin(p / 100), math.cos(p / 100)] for p in places]
    torch.testing.assert_close(table[places], torch.tensor(expected))
    rate = 10000 ** (-2 / 3)
    expected = [[math.sin(p), math.cos(p), math.sin(p * rate)] for p in range(4)]
    torch.testing.assert_close(sinusoids(4, 3), torch.tensor(expected))


@pytest.mark.parametrize("number_format", [torch.float32, torch.bfloat16])
def test_dropped_weights_leave_the_mean_as_it_is(number_format):
    """One key has all the weight: its value is there with 1 / (1 − p), or not, p being its share.

    Of n draws the share that falls has the standard deviation √(p (1 − p) / n).
    """
    torch.manual_seed(10)
    count, dropped = 20_000, 0.25
    queries = torch.zeros(1, count, 1, 2, dtype=number_format)
    values = torch.full((1, count, 1, 2), 3.0, dtype=number_format)
    found = DenseAttention(dropped=dropped).context(queries, queries, values)[0, :, 0, 0].float()
    assert set(found.tolist()) == {0.0, 4.0}
    share = (found == 0).float().mean().item()
    assert abs(share - dropped) < 5 * math.sqrt(dropped * (1 - dropped) / count)


BATCH = TEXT.batch([0, 1, 2])
SOFT = 0.2 + 0.9 * torch.rand(3, 17, generator=torch.Generator().manual_seed(1))  # none is 1 or 0
multipliers = pytest.mark.parametrize(
    "multiplier", [None, SOFT[0], SOFT], ids=["none", "row", "each"]
)

# Numbers of bf16 have 8 bits, so each rounding is off by 2^-8 at most. What a gradient comes
# through: 5 layers with 8 roundings each, on the way there and back, the decoder's 3 with 4 more,
# and embedding and output. Roundings do not agree, so their squares add up; twice that is allowed.
ROUNDING = 2**-8
BOUND = 2 * ROUNDING * math.sqrt(2 * (5 * 8 + 3 * 4 + 2))  # 0.081


@pytest.fixture(params=[True, False])
def fused(request, monkeypatch):
    """By the fused kernel as on a GPU, or written out as on a CPU in bf16."""
    if request.param:
        monkeypatch.setattr(DenseAttention, "context", DenseAttention.fused)


def slopes_of(model, multiplier, precision="fp32"):
    """The loss of a batch, and its gradients by all weights and the multiplier, by name."""
    asked = None if multiplier is None else multiplier.clone().requires_grad_()
    model.zero_grad()
    with number_format(precision, torch.device("cpu")):
        loss = summed_loss(model, BATCH, asked, 0.1)
    loss.backward()
    found = {name: weight.grad.clone() for name, weight in model.named_parameters()}
    return loss.item(), found if asked is None else {**found, "multiplier": asked.grad}


def off(rough, exact):
    """How long the difference is, by the length of what is right."""
    return ((rough - exact).norm() / exact.norm()).item()


@multipliers
def test_bf16_is_off_by_its_roundings(fused, multiplier):
    model = make_model(heads=UNEVEN)
    loss, exact = slopes_of(model, multiplier)
    rough_loss, rough = slopes_of(model, multiplier, "bf16")
    assert rough_loss == pytest.approx(loss, rel=ROUNDING) and rough_loss != loss
    assert all(slope.dtype == torch.float32 for slope in rough.values())
    if multiplier is not None:
        assert 0 < off(rough.pop("multiplier"), exact.pop("multiplier")) < BOUND
    whole = (torch.cat([s.flatten() for s in slopes.values()]) for slopes in (rough, exact))
    assert 0 < off(*whole) < BOUND


@pytest.mark.parametrize("unit", ["sentence", "batch", "position", "token", "none"])
def test_importance_in_bf16_is_off_by_its_roundings(fused, unit):
    model = make_model(heads=UNEVEN)
    exact, _, loss = batch_importance(model, BATCH, unit)
    rough, _, rough_loss = batch_importance(model, BATCH, unit, "bf16")
    assert rough_loss.item() == pytest.approx(loss.item(), rel=ROUNDING)
    assert 0 < off(rough, exact) < BOUND

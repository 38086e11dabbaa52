"""Training runs with other numbers of heads per layer: what they share with the baseline."""

import torch
from small_run import MODEL

from headcount.base.settings.training_runs import RunSettings
from headcount.model.transformer import Transformer, parameter_count

WIDE = MODEL.model_copy(update={"d_model": 24, "heads": 8, "dropout": 0.0})
COUNTS = (1, 2, 4, 8)


def models() -> dict[int, Transformer]:
    """A model of each number of heads, all of one seed."""
    found = {}
    for heads in COUNTS:
        torch.manual_seed(3)
        settings = RunSettings(method="baseline", attention_heads=heads).own_model(WIDE)
        found[heads] = Transformer(settings, 9, 11, joint=False).eval()
    return found


def test_all_have_as_many_weights_which_begin_alike():
    """Width 24: 4 · (24² + 24) weights of an attention layer, whatever its heads."""
    made = models()
    layer = made[1].encoder[0].attention
    assert parameter_count(layer) == 4 * (24 * 24 + 24)
    assert len({parameter_count(model) for model in made.values()}) == 1
    first = made[8].state_dict()
    for heads, model in made.items():
        assert (model.encoder[0].attention.heads, model.grid.size) == (heads, 4 * heads)
        weights = model.state_dict()
        assert weights.keys() == first.keys()
        assert [name for name in weights if not torch.equal(weights[name], first[name])] == []


def test_heads_are_what_differs():
    """By hand: each head has its own weights, over its own part of the queries and keys."""
    states = torch.randn(1, 5, 24, generator=torch.Generator().manual_seed(1))
    for heads, model in models().items():
        attention = model.encoder[0].attention
        queries, keys, _ = attention.project(states)
        part = 24 // heads
        both = (attention.inputs(states)[0, :, start : start + part] for start in (0, 24))
        expected = torch.matmul(*(each if n == 0 else each.T for n, each in enumerate(both)))
        torch.testing.assert_close(queries[0, 0] @ keys[0, 0].T, expected)

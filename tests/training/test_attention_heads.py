"""Training runs with other numbers of heads per layer: what they share with the baseline."""

import pytest
import torch
from named_runs import run_flag
from script_runner import run_script
from small_run import MODEL, SmallRun, segment

from headcount.base.settings.flags import as_flags
from headcount.base.settings.runs import read_run
from headcount.base.settings.training_runs import RunSettings
from headcount.model import machine
from headcount.model.transformer import Transformer, parameter_count
from headcount.store.model_folder import ModelFolder

WIDE = MODEL.model_copy(update={"d_model": 24, "heads": 8, "dropout": 0.0})
COUNTS = (1, 2, 4, 8)
SHORT = {"updates": 3, "warmup_updates": 1, "dev_interval": 2, "keep_updates": []}


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


@pytest.mark.slow
def test_a_run_is_trained_from_files_to_files(monkeypatch, tmp_path):
    """With the settings of the experiment, whose models have 3 heads of 8. This one: 1 of 24."""
    monkeypatch.setattr(machine, "use_threads", torch.set_num_threads)
    run, out = SmallRun(segment(tmp_path, 30)), tmp_path / "out"
    train = run.train.model_copy(update=SHORT)
    flags = [*run_flag("baseline-h1"), "--bpe", run.bpe, "--seed", 3, "--out", out]
    flags += ["--state", tmp_path / "state", *as_flags(MODEL), *as_flags(train)]
    assert run_script("train", flags) == 0
    model = ModelFolder(out / "model").load()
    assert model.grid.counts == {"enc_self": (1, 1), "dec_self": (1,), "dec_enc": (1,)}
    assert model.settings.head_width == model.settings.d_model == 24
    assert read_run(out / "run.json") == RunSettings(method="baseline", attention_heads=1)

"""Gates from random weights: a whole training with gates, from files to files."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch
from script_runner import run_script
from small_run import GATES, MODEL, SmallRun, segment

from headcount.base.addresses import HeadGrid
from headcount.base.files import read_json
from headcount.base.head_values import read_head_values
from headcount.base.settings.flags import as_flags
from headcount.base.settings.runs import PrunedSettings, read_run
from headcount.model import machine
from headcount.model.transformer import Transformer
from headcount.store.model_folder import ModelFolder, load_weights
from headcount.store.pair_folder import PairFolder

COUNTS = {"enc_self": [3, 1], "dec_self": [2], "dec_enc": [3]}
UNEVEN = MODEL.model_copy(update={"heads": COUNTS, "d_head": 7, "dropout": 0.1})
GRID = HeadGrid({kind: tuple(counts) for kind, counts in COUNTS.items()})
# Every draw is 1, and nothing moves log α: no slope where a gate is cut off, and no price.
FOUR = GATES.model_copy(update={"updates": 4})  # after the six of training
HELD_OPEN = FOUR.model_copy(update={"init": 100.0})
TIMELESS = ["step", "epoch", "train_loss", "dev_loss", "lr"]


@pytest.fixture(autouse=True)
def one_process_for_many_scripts(monkeypatch):
    """The number of threads can be set many times, the rest of `use_threads` once."""
    monkeypatch.setattr(machine, "use_threads", torch.set_num_threads)


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> SmallRun:
    """A plain training of ten updates; its model is that of the lowest dev loss."""
    torch.set_num_threads(1)  # as `train.threads` says: sums depend on it in their last bits
    run = SmallRun(segment(tmp_path_factory.mktemp("base"), 30), model=UNEVEN, save_seconds=1e9)
    short = {"updates": 10, "dev_interval": 4, "keep_updates": [5], "peak_lr": 0.02}
    return replace(run, train=run.train.model_copy(update=short))


@pytest.fixture(scope="module")
def trained(plain, tmp_path_factory) -> Path:
    """The folder where it has ended."""
    folder = tmp_path_factory.mktemp("trained")
    plain.finish(folder, folder / "state")
    return folder


def command(run, out, name, gates=FOUR):
    """As long in all as the plain training."""
    train = run.train.model_copy(update={"updates": 6})
    flags = ["--run", name, "--bpe", run.bpe, "--seed", 3, "--out", out, "--state", out / "state"]
    return [*flags, *as_flags(UNEVEN), *as_flags(train), *as_flags(gates)]


@pytest.mark.slow
@pytest.mark.parametrize("scope", ["all", "enc_self"])
def test_gates_held_open_are_the_plain_training_to_the_last_bit(plain, trained, tmp_path, scope):
    """The same first weights, batches, dropout, rates and updates; whatever the scope, no weight
    is frozen."""
    name = f"gates-{scope}-l0-from-none"
    assert run_script("prune", command(plain, tmp_path, name, HELD_OPEN)) == 0
    expected = load_weights(trained / "model" / "last.safetensors")
    found = load_weights(tmp_path / "model" / "weights.safetensors")
    assert found.keys() == expected.keys()
    assert [key for key in found if not torch.equal(found[key], expected[key])] == []
    curves = [pd.read_csv(place / "curves.csv")[TIMELESS] for place in (tmp_path, trained)]
    pd.testing.assert_frame_equal(*curves)
    assert read_json(tmp_path / "model" / "model.json")["update"] == 10
    assert read_head_values(tmp_path / "heads.csv", "gate", GRID).tolist() == [1] * 9


def test_a_price_closes_gates_of_a_model_that_was_never_trained(plain, tmp_path):
    name = "gates-enc_self-l1000-from-none"
    fast = FOUR.model_copy(update={"lr": 2.0})
    assert run_script("prune", command(plain, tmp_path, name, fast)) == 0
    gates = read_head_values(tmp_path / "heads.csv", "gate", GRID).tolist()
    assert gates == [0] * 4 + [1] * 5
    model = ModelFolder(tmp_path / "model").load()
    assert model.grid.counts == {"enc_self": (0, 0), "dec_self": (2,), "dec_enc": (3,)}
    facts = read_json(tmp_path / "model" / "model.json")
    assert facts["kept_heads"] == [head.name() for head in GRID.heads()[4:]]
    # The validations are those of training, not of fine-tuning.
    table = pd.read_csv(tmp_path / "gates.csv")
    assert table["step"].unique().tolist() == [0, 4, 8, 10] and len(table) == 4 * 4
    assert facts["provenance"]["settings"]["gates"]["updates"] == 4
    assert facts["provenance"]["settings"]["gates"]["lr"] == 2.0
    assert read_run(tmp_path / "run.json") == PrunedSettings.model_validate(name)
    assert read_json(tmp_path / "run.json")["from"] == "none"


@pytest.mark.slow
def test_the_rates_of_fine_tuning_change_nothing(plain, tmp_path):
    other = {"peak_lr": 0.5, "warmup_updates": 1, "dev_interval": 2}
    weights = []
    for place, gates in (("one", FOUR), ("other", FOUR.model_copy(update=other))):
        flags = command(plain, tmp_path / place, "gates-all-l0.2-from-none", gates)
        assert run_script("prune", flags) == 0
        weights.append((tmp_path / place / "model" / "weights.safetensors").read_bytes())
    assert weights[0] == weights[1]


def test_flags_of_another_start_are_refused(plain, tmp_path, capsys):
    out = tmp_path / "out"
    begun = command(plain, out, "gates-all-l1")
    assert run_script("prune", begun) == 2
    assert "--run: gates-all-l1 has no use for model" in capsys.readouterr().err
    pair, begin = PairFolder(plain.bpe), ModelFolder(tmp_path / "model")
    model = Transformer(UNEVEN, *map(len, pair.vocabularies()), joint=True)
    begin.save(model, dict(model.named_parameters()), pair.subwords())
    flags = ["--run", "gates-all-l1-from-none", "--init-from", begin.path, "--bpe", pair.path]
    flags += ["--seed", 3, "--out", out, "--state", out / "state"]
    assert run_script("prune", [*flags, *as_flags(plain.train), *as_flags(GATES)]) == 2
    assert "--run: gates-all-l1-from-none has no use for init-from" in capsys.readouterr().err
    assert not out.exists()

"""Pruned runs from files to files: what each way keeps, from where it starts, what is refused."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from named_runs import RUNS, run_flag
from script_runner import run_script
from small_run import GATES, MODEL, SmallGates, SmallRun, segment, small_origin

from headcount.base.addresses import FEED_FORWARD, HeadGrid
from headcount.base.errors import EnvironmentFault
from headcount.base.files import read_json, write_json
from headcount.base.head_values import read_head_values, write_head_values
from headcount.base.settings.flags import as_flags
from headcount.base.settings.train import SubsetSettings
from headcount.model.loss import token_losses
from headcount.model.removal import remove_units
from headcount.model.units import UnitTransformer
from headcount.store.kept_heads import as_many_heads
from headcount.store.model_folder import ModelFolder, load_weights
from headcount.store.pair_folder import PairFolder
from headcount.training.headmask import Choice, HeadMask
from headcount.training.optimiser import ADAM
from headcount.training.pruning_run import PruningRun
from headcount.training.states import StateStore
from headcount.training.train import Trainer

pytestmark = pytest.mark.slow  # a step from files to files, or models that are trained

COUNTS = {"enc_self": [3, 1], "dec_self": [2], "dec_enc": [3]}
UNEVEN = MODEL.model_copy(update={"heads": COUNTS, "d_head": 7, "dropout": 0.1})
GRID = UNEVEN.grid
SHORT = GATES.model_copy(update={"updates": 2})
FAST = GATES.model_copy(update={"lr": 2.0})
GATES_OF_A_RUN = [1, 0, 0, 1, 0, 1, 0, 1, 1]  # 2 of 4 encoder heads, 5 of 9 in all


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A barely trained model with uneven heads, and its text."""
    folder = tmp_path_factory.mktemp("base")
    run = SmallRun(segment(folder, 30), model=UNEVEN, save_seconds=1e9)
    short = run.train.model_copy(update={"updates": 4, "keep_updates": []})
    run = replace(run, train=short)
    run.finish(folder, folder / "state")
    write_head_values(folder / "heads.csv", GRID, {"gate": GATES_OF_A_RUN})
    ranks = [0.1, 0.9, 0.4, 0.4, 0.2, 0.3, 0.8, 0.8, 0.05]
    write_head_values(folder / "importance.csv", GRID, {"importance": ranks})
    return run, folder


def pruning(base, name, tmp_path, **changes):
    run, _ = base
    resumable = 3, small_origin({"run": name}), tmp_path / "state", 1e9
    train = run.train.model_copy(update=changes)
    return PruningRun(train, *resumable, RUNS[name], PairFolder(run.bpe))


def losses(model, base, multiplier=None):
    text = PairFolder(base[0].bpe).read("dev")
    with torch.no_grad():
        return token_losses(model, text.batch(range(len(text))), multiplier)


def gates_flags(base, tmp_path, name):
    run, folder = base
    flags = [*run_flag(name), "--init-from", folder / "model", "--bpe", run.bpe, "--seed", 3]
    flags += ["--out", tmp_path / "out", "--state", tmp_path / "state"]
    return [*flags, *as_flags(run.train), *as_flags(GATES)]


def test_a_gates_run_leaves_a_model_that_loads_alone(base, tmp_path):
    assert run_script("prune", gates_flags(base, tmp_path, "gates-all-l0.3")) == 0
    out = tmp_path / "out"
    gates = read_head_values(out / "heads.csv", "gate", GRID)
    model = ModelFolder(out / "model").load()
    for kind, counts in COUNTS.items():
        left = [gates[GRID.span(kind, layer)].sum() for layer in range(len(counts))]
        assert list(model.grid.counts[kind]) == left
    facts, curve = read_json(out / "model" / "model.json"), pd.read_csv(out / "curves.csv")
    kept = [head.name() for head, gate in zip(GRID.heads(), gates, strict=True) if gate]
    assert facts["kept_heads"] == kept
    assert facts["provenance"]["settings"]["gates"]["lr"] == GATES.lr
    assert facts["parameters"] == sum(w.numel() for w in load_weights_of(out).values())
    # The last weights are saved, not the best: averaged, under the gates of test time.
    assert (facts["update"], facts["dev_loss"]) == (11, curve["dev_loss"].iloc[-1])
    assert facts["dev_loss"] == pytest.approx(losses(model, base).mean().item(), rel=1e-5)
    assert facts["dev_loss"] != curve["dev_loss"].min() and list(curve["step"]) == [4, 8, 11]
    table = pd.read_csv(out / "gates.csv")
    assert table["step"].unique().tolist() == [0, 4, 8, 11]
    for column in ("gate", "log_alpha"):
        last = table[table["step"] == 11][column].tolist()
        assert last == read_head_values(out / "heads.csv", column, GRID).tolist()
    assert not (tmp_path / "state").exists()


def load_weights_of(out):
    return load_weights(out / "model" / "weights.safetensors")


def test_f07_f09_all_gates_closed_is_a_model_that_translates(base, tmp_path, capsys):
    run, folder = base
    SmallGates(run.bpe, folder / "model", "gates-all-l1000", FAST, save_seconds=1e9).finish(
        tmp_path, tmp_path / "state"
    )
    told = "heads left: 0 of 9 (enc_self 0 of 4, dec_self 0 of 2, dec_enc 0 of 3)"
    printed = capsys.readouterr().err
    closed = ["enc_self.0", "enc_self.1", "dec_self.0", "dec_enc.0"]
    assert told in printed
    assert f"warning: no head is left in {', '.join(closed)}" in printed
    assert read_json(tmp_path / "model" / "model.json")["closed_layers"] == closed
    model = ModelFolder(tmp_path / "model").load()
    assert model.grid.size == 0
    (tmp_path / "in.txt").write_text("the cat sees the house .\n\n")
    flags = ["--model", tmp_path / "model", "--bpe", run.bpe, "--source", tmp_path / "in.txt"]
    flags += ["--out", tmp_path / "out.txt", "--facts", tmp_path / "out.json", "--beam", 2]
    assert run_script("translate", flags) == 0
    assert read_json(tmp_path / "out.json")["sentences"] == 2
    assert losses(model, base).isfinite().all()


@pytest.mark.parametrize("scope", ["all", "enc_self"])
def test_gates_from_none_held_open_are_a_plain_training_to_the_last_bit(base, tmp_path, scope):
    """The same first weights, batches, dropout, rates and updates, and no weight is frozen."""
    lengths = {"dev_interval": 4, "peak_lr": 0.02}
    ten = base[0].train.model_copy(update={**lengths, "updates": 10})
    replace(base[0], train=ten).finish(tmp_path / "plain", tmp_path / "state")
    # Every draw is 1, and nothing moves log α: no slope where a gate is cut off, and no penalty.
    held_open = GATES.model_copy(update={"updates": 4, "init": 100.0})
    fresh = pruning(base, f"gates-{scope}-l0-from-none", tmp_path, updates=6, **lengths)
    fresh.finish(UNEVEN, tmp_path / "gates", gates=held_open)
    expected = load_weights(tmp_path / "plain" / "model" / "last.safetensors")
    weights = load_weights_of(tmp_path / "gates")
    assert weights.keys() == expected.keys()
    assert [key for key in weights if not torch.equal(weights[key], expected[key])] == []
    curves = [pd.read_csv(tmp_path / name / "curves.csv") for name in ("plain", "gates")]
    assert curves[0].iloc[:, :5].equals(curves[1].iloc[:, :5])
    assert read_head_values(tmp_path / "gates" / "heads.csv", "gate", GRID).tolist() == [1] * 9


def test_a_penalty_closes_gates_of_a_model_that_was_never_trained(base, tmp_path):
    name, out = "gates-enc_self-l1000-from-none", tmp_path / "out"
    flags = [*run_flag(name), "--bpe", base[0].bpe, "--seed", 3, "--out", out]
    flags += ["--state", tmp_path / "state", *as_flags(UNEVEN), *as_flags(base[0].train)]
    flags += as_flags(FAST.model_copy(update={"updates": 6}))
    assert run_script("prune", flags) == 0
    assert read_head_values(out / "heads.csv", "gate", GRID).tolist() == [0] * 4 + [1] * 5
    model = ModelFolder(out / "model").load()
    assert model.grid.counts == {"enc_self": (0, 0), "dec_self": (2,), "dec_enc": (3,)}
    # The validations are those of training, not of fine-tuning: of 4 + 6 updates.
    assert pd.read_csv(out / "gates.csv")["step"].unique().tolist() == [0, 7, 10]
    assert read_json(out / "run.json")["from"] == "none"


class Constant(HeadMask):
    """The same heads masked in every update, and in validation."""

    def __init__(self, gates):
        self.multiplier = torch.tensor(gates, dtype=torch.float32)

    def choose(self, model, batches, update):
        return Choice(self.multiplier)

    def at_validation(self):
        return self.multiplier


def test_from_scratch_is_training_the_whole_model_under_a_constant_mask(
    base, monkeypatch, tmp_path
):
    """Initial weights, order of data, dropout and gradient norm are the masked model's."""
    run, folder = base
    # A large ε, so that Adam does not blow rounding of gradients near 0 up to whole steps.
    monkeypatch.setitem(ADAM, "eps", 1e-3)
    recipe = {"updates": 6, "dev_interval": 3, "peak_lr": 0.02}
    scratch = pruning(base, "scratch-gates-all-l0.3", tmp_path, **recipe)
    scratch.finish(UNEVEN, tmp_path, folder / "heads.csv")
    whole = scratch.fresh_model(UNEVEN)
    first = {name: weight.detach().clone() for name, weight in whole.named_parameters()}
    states = StateStore(tmp_path / "masked", {"run": "masked"}, 1e9)
    mask = Constant(GATES_OF_A_RUN)
    trainer = scratch.trainer(whole, scratch.train, states, mask)
    trainer.fit()
    whole.load_state_dict(trainer.chosen(), strict=False)
    for row, expected in zip(
        pd.read_csv(tmp_path / "curves.csv").itertuples(), trainer.progress.curve, strict=True
    ):
        assert row.train_loss == pytest.approx(expected["train_loss"], abs=1e-4)
        assert row.dev_loss == pytest.approx(expected["dev_loss"], abs=1e-4)
    expected = dict(remove_units(whole, mask.multiplier).named_parameters())
    for name, weight in load_weights_of(tmp_path).items():
        torch.testing.assert_close(weight, expected[name].detach(), rtol=0, atol=2e-4)
    moved = (whole.tgt_embedding.weight - first["tgt_embedding.weight"]).abs().max()
    assert moved > 0.01  # fifty times the tolerance


def test_ranked_and_drawn_keep_as_many_of_the_scopes_heads(base):
    _, folder = base

    def kept(name, seed=1):
        run = RUNS[name]
        ranks = read_head_values(folder / "importance.csv", "importance", GRID)
        return as_many_heads(run, folder / "heads.csv", GRID, ranks, seed).tolist()

    # The 5 largest of .1 .9 .4 .4 | .2 .3 | .8 .8 .05.
    assert kept("ranked-gates-all-l0.3") == [0, 1, 1, 1, 0, 0, 1, 1, 0]
    # The 2 largest of the encoder's; the third equals the second, and comes later.
    assert kept("ranked-gates-enc_self-l0.3") == [0, 1, 1, 0, 1, 1, 1, 1, 1]
    encoder = np.array([kept("drawn-gates-enc_self-l0.3", seed) for seed in range(1, 9)])
    assert (encoder[:, :4].sum(1) == 2).all() and encoder[:, 4:].all()


@pytest.mark.parametrize("how", ["ranked", "drawn"])
def test_a_fine_tuned_run_starts_from_what_is_left_of_the_trained_model(base, tmp_path, how):
    run, folder = base
    flags = gates_flags(base, tmp_path, f"{how}-gates-all-l0.3")
    flags += ["--kept", folder / "heads.csv"]
    flags += ["--importance", folder / "importance.csv"] if how == "ranked" else []
    # So small a rate leaves the weights as they are.
    assert run_script("prune", [*flags, "--gates-peak-lr", "1e-12"]) == 0
    out = tmp_path / "out"
    gates = read_head_values(out / "heads.csv", "gate", GRID)
    assert gates.sum() == 5
    multiplier = torch.from_numpy(gates).float()
    expected = losses(ModelFolder(folder / "model").load(), base, multiplier)
    torch.testing.assert_close(losses(ModelFolder(out / "model").load(), base), expected)
    assert list(pd.read_csv(out / "curves.csv")["step"]) == [4, 8, 11]  # as the gates run
    assert set(pd.read_csv(out / "heads.csv")["statistic"]) == {"gate"}
    assert not (out / "gates.csv").exists()


def test_a_subset_leaves_exactly_k_heads_of_a_model_that_loads_alone(base, tmp_path):
    """Of the encoder's heads two, those of the largest w."""
    flags = gates_flags(base, tmp_path, "subset-enc_self-k2")
    flags += as_flags(SubsetSettings(temperature_start=1.0, lr=0.5))
    assert run_script("prune", flags) == 0
    out = tmp_path / "out"
    names = ["curves.csv", "heads.csv", "model", "run.json"]
    assert sorted(path.name for path in out.iterdir()) == names
    gates = read_head_values(out / "heads.csv", "gate", GRID)
    encoder = sum(COUNTS["enc_self"])
    assert gates[:encoder].sum() == 2 and gates[encoder:].all()
    w = pd.read_csv(out / "heads.csv").query("statistic == 'w'")["value"].to_numpy()
    assert len(w) == encoder and set(w.argsort()[-2:]) == set(gates[:encoder].nonzero()[0])
    model = ModelFolder(out / "model").load()
    assert sum(model.grid.counts["enc_self"]) == 2 and model.grid.size == gates.sum()
    before, after = load_weights_of(base[1]), load_weights_of(out)
    assert {"encoder_norm.weight"} == {
        name
        for name in ("encoder_norm.weight", "decoder_norm.weight", "decoder.0.cross.inputs.weight")
        if not torch.equal(before[name], after[name])
    }
    facts = read_json(out / "model" / "model.json")
    assert facts["dev_loss"] == pytest.approx(losses(model, base).mean().item(), rel=1e-5)
    assert read_json(out / "run.json")["heads"] == 2


@pytest.mark.parametrize("price", ["unit", "flops"])
def test_gates_on_all_units_leave_a_smaller_model(base, tmp_path, price):
    """Heads, feed-forward units and layers, whose removal gives the loss under the gates."""
    name = "gates-units-l0.02" + "-flops" * (price == "flops")
    assert run_script("prune", gates_flags(base, tmp_path, name)) == 0
    out, grid = tmp_path / "out", UNEVEN.unit_grid
    gates = read_head_values(out / "heads.csv", "gate", grid)
    assert 0 < np.count_nonzero(gates) < grid.size
    model = ModelFolder(out / "model").load()
    facts = read_json(out / "model" / "model.json")
    assert facts["dev_loss"] == pytest.approx(losses(model, base).mean().item(), rel=1e-5)
    kept = [grid.heads()[place].name() for place in grid.heads_left(gates)]
    assert facts["kept_heads"] == kept and len(kept) == model.grid.size
    originals = ModelFolder(out / "model").original_heads(model.grid)
    assert [head.name() for head in originals] == kept
    layers = [gates[grid.span(side, n)].item() for side, n in (("enc_layer", 0), ("enc_layer", 1))]
    assert model.settings.encoder_layers == sum(layers)


def test_the_price_of_flops_is_1_for_the_mean_head(base, tmp_path):
    run, grid = pruning(base, "gates-units-l0.02-flops", tmp_path), UNEVEN.unit_grid
    prices = run._prices(UNEVEN, [*range(grid.size)]).numpy()
    assert prices[: GRID.size].mean() == pytest.approx(1)
    # Of 2 · width multiply-adds a position, the positions of both sides differ.
    lengths = run.pair.read("train").lengths.mean(1)
    sides = [prices[grid.span(kind, 0)][0] for kind in FEED_FORWARD]
    assert sides[0] / sides[1] == pytest.approx(lengths[0] / lengths[1])


def test_units_removed_by_hand(base, tmp_path, monkeypatch):
    """By a list, by gates, and by importance within a scope."""
    _, folder = base
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.txt").write_text("enc_layer.1\ndec_ffn.0.2\nenc_self.0.1\n")
    grid = UNEVEN.unit_grid
    whole = UnitTransformer.of(ModelFolder(folder / "model").load())
    values = np.random.default_rng(1).permutation(grid.size)
    write_head_values(tmp_path / "units.csv", grid, {"importance": values})
    by_hand = {"list": ["--list", "list.txt"], "again": ["--kept", "list/heads.csv"]}
    by_hand["rank"] = ["--importance", "units.csv", "--keep", 5, "--scope", "ffn"]
    for name, flags in by_hand.items():
        assert run_script("remove", ["--model", folder / "model", *flags, "--out", name]) == 0
        kept = read_head_values(tmp_path / name / "heads.csv", "gate", grid)
        found = losses(ModelFolder(tmp_path / name / "model").load(), base)
        torch.testing.assert_close(found, losses(whole, base, torch.from_numpy(kept).float()))
        gone = [unit for unit, gate in zip(grid.heads(), kept, strict=True) if not gate]
        if name == "rank":
            ffn = [n for n, unit in enumerate(grid.heads()) if unit.kind in FEED_FORWARD]
            best = sorted(ffn, key=lambda place: -values[place])[:5]
            assert {grid.heads()[place] for place in set(ffn) - set(best)} == set(gone)
        else:
            assert [unit.name() for unit in gone] == ["enc_self.0.1", "dec_ffn.0.2", "enc_layer.1"]
    assert ModelFolder(tmp_path / "list" / "model").settings.encoder_layers == 1


@pytest.mark.parametrize(
    ("source", "kept"),
    [
        (["--kept", "heads.csv"], GATES_OF_A_RUN),
        (["--kept", "fractions.csv"], [0.5, 0, 1, 0, 1, 0.25, 1, 0, 1]),
        (["--importance", "importance.csv", "--keep", 3], [0, 1, 0, 0, 0, 0, 1, 1, 0]),
        (["--importance", "importance.csv", "--keep", 0], [0] * 9),
        (["--list", "list.txt"], [1, 1, 0, 1, 1, 1, 0, 1, 1]),
    ],
)
def test_heads_removed_by_hand(base, tmp_path, monkeypatch, source, kept):
    _, folder = base
    monkeypatch.chdir(folder)
    write_head_values(folder / "fractions.csv", GRID, {"gate": [0.5, 0, 1, 0, 1, 0.25, 1, 0, 1]})
    (folder / "list.txt").write_text("# two of them\ndec_enc.0.0\n\n enc_self.0.2  # why not\n")
    assert run_script("remove", ["--model", "model", *source, "--out", tmp_path]) == 0
    assert read_head_values(tmp_path / "heads.csv", "gate", GRID).tolist() == kept
    expected = losses(
        ModelFolder(folder / "model").load(), base, torch.tensor(kept, dtype=torch.float32)
    )
    torch.testing.assert_close(losses(ModelFolder(tmp_path / "model").load(), base), expected)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        *(("enc_self.0.0\nenc_self.6.0\n", 2), ("dec_self.0.2", 1), ("cross.0.0", 1)),
        *(("\nenc_self.0", 2), ("enc_self.-1.0", 1), ("dec_enc.0.1\n\ndec_enc.0.1", 3)),
    ],
)
def test_a_list_of_heads_that_does_not_fit_is_refused(base, tmp_path, capsys, text, line):
    (tmp_path / "list.txt").write_text(text)
    flags = ["--model", base[1] / "model", "--list", tmp_path / "list.txt"]
    assert run_script("remove", [*flags, "--out", tmp_path / "out"]) == 2
    assert f"list.txt:{line}: " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_faulty_requests_end_before_any_work(base, tmp_path, capsys):
    run, folder = base
    other = HeadGrid({"enc_self": (3, 1), "dec_self": (2,), "dec_enc": (2,)})
    write_head_values(tmp_path / "other.csv", other, {"gate": [1] * 8})
    write_head_values(tmp_path / "wild.csv", GRID, {"gate": [1.0] * 8 + [-0.5]})
    common = gates_flags(base, tmp_path, "gates-all-l1")[2:]
    model, kept = as_flags(UNEVEN), ["--kept", folder / "heads.csv"]
    scratch = ["--bpe", run.bpe, "--seed", 3, *common[6:10], *model]
    hand = ["--model", folder / "model", "--out", tmp_path / "out"]
    weighed = [*hand, "--importance", folder / "importance.csv"]
    write_head_values(tmp_path / "importance.csv", GRID, {"importance": range(9)})
    write_json(tmp_path / "importance.json", {"weights": "0" * 64})
    anothers = [*hand, "--importance", tmp_path / "importance.csv", "--keep", 3]
    names = ["ranked-gates-all-l1", "subset-all-k10", "gates-all-l1-from-none"]
    cases = [("prune", [*run_flag(name), *common], name) for name in names]
    wrong = {"gates-all-l1": "--run: ", "{method: gates, lambda: -1}": "--run: lambda: "}
    cases += [("prune", ["--run", run, *common], part) for run, part in wrong.items()]
    none = ["--init-from", tmp_path / "none"]
    drawn = [*run_flag("drawn-gates-all-l1"), *common, "--kept", tmp_path / "other.csv"]
    wild = [*run_flag("scratch-gates-all-l1"), *scratch, "--kept", tmp_path / "wild.csv"]
    fresh = [*run_flag("gates-all-l1"), *scratch]
    cases += [
        ("prune", [*run_flag("gates-all-l1"), *common, *none], "none/model.json"),
        ("prune", [*run_flag("gates-all-l1"), *common, *kept], "gates-all-l1"),
        ("prune", fresh, "gates-all-l1"),
        ("prune", [*run_flag("ranked-gates-all-l1"), *common, *kept], "--importance"),
        ("prune", drawn, "other.csv"),
        ("prune", wild, "wild.csv"),
        ("remove", [*hand, *kept, "--keep", 3], "--keep"),
        ("remove", weighed, "--keep"),
        ("remove", [*weighed, "--keep", 10], "--keep"),
        ("remove", [*hand, "--list", tmp_path / "no.txt"], "no.txt"),
        ("remove", anothers, "importance.csv"),
    ]
    for script, flags, part in cases:
        assert run_script(script, flags) == 2, (script, part)
        assert part in capsys.readouterr().err
    assert not (tmp_path / "out").exists() and not (tmp_path / "state").exists()


def test_f38_a_training_without_memory_names_its_budget(base, tmp_path, monkeypatch):
    def exhaust(*_):
        torch.empty(1 << 50)

    monkeypatch.setattr(Trainer, "_update", exhaust)
    pruned = pruning(base, "gates-all-l0.3", tmp_path)
    with pytest.raises(EnvironmentFault, match=r"train\.batch_tokens 150 .*such as to 75, or take"):
        pruned.finish(ModelFolder(base[1] / "model"), tmp_path / "out", gates=SHORT)
    assert not (tmp_path / "out").exists()

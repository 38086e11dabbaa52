"""Pruning in steps, at the end of training and before: every row against its own translation."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from masked_run import DECODE, DECODE_FLAGS, MODEL, folder_flags, masked_bleu, masked_inputs
from script_runner import run_script

from headcount.ablation.masked_bleu import MaskedInputs
from headcount.ablation.masking import ABLATION_COLUMNS, first_test, read_single_effects
from headcount.ablation.pruning_orders import for_ranking
from headcount.ablation.pruning_profile import COLUMNS, by_update
from headcount.base.errors import UserError
from headcount.base.head_values import read_head_values, write_head_values
from headcount.base.settings.heads import AblationSettings, ImportanceSettings, MeasuresSettings
from headcount.heads.drawn_text import read_drawn
from headcount.heads.importance import measure_importance, normalise_layers
from headcount.heads.more_measures import write_measures
from headcount.store.model_folder import ModelFolder, save_weights

pytestmark = pytest.mark.slow  # a step from files to files, or models that are trained

IMPORTANCE = [0.5, 3.0, 1.0, 0.2, 4.0, 0.1, 2.0, 0.3]
EFFECTS = [0.0, -4.0, 0.5, -0.1, -2.0, -0.2, -9.0, -0.3]
FEW = ImportanceSettings(sentences=8)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> MaskedInputs:
    folder = tmp_path_factory.mktemp("profile")
    made = masked_inputs(folder)
    write_head_values(folder / "importance.csv", MODEL.grid, {"importance": IMPORTANCE})
    write_effects(folder / "ablation.csv", EFFECTS)
    return made


def write_effects(path, effects) -> None:
    with path.open("w") as file:
        writer = csv.DictWriter(file, ABLATION_COLUMNS, restval="")
        writer.writeheader()
        for head, delta in zip(MODEL.grid.heads(), effects, strict=False):
            row = {"order": "single", **head._asdict()}
            writer.writerow(row | {"test_set": "dev", "delta": delta})
            writer.writerow(row | {"test_set": "test", "delta": 77})


def run(name: str, flags: list, out) -> list[dict[str, str]]:
    common = ["--out", out, *DECODE_FLAGS]
    tests = ["--test-sets", '["test", "other"]', "--importance-sentences", 8]
    assert run_script(name, [*common, *tests, *flags]) == 0
    return list(csv.DictReader(out.open()))


@pytest.fixture(scope="module")
def rows(inputs, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "pruning_profile.csv"
    files = [
        "--importance",
        inputs.text / "importance.csv",
        "--ablation",
        inputs.text / "ablation.csv",
    ]
    flags = [*folder_flags(inputs), *files, "--seed", 5, "--steps", 2, "--draws", 1]
    return run("pruning_profile", [*flags, "--normalise", "none"], out), out


def test_every_row_is_a_translation_under_that_mask_alone(inputs, rows):
    found, _ = rows
    assert tuple(found[0]) == COLUMNS and {row["test_set"] for row in found} == {"test"}
    some = ["", *sorted({row["heads"] for row in found})[1::2]]  # each is a search of its own
    scores = {names: masked_bleu(inputs, "test", names) for names in some}
    assert len({round(score) for score in scores.values()}) > 2  # masks make a difference
    for row in (row for row in found if row["heads"] in scores):
        assert float(row["bleu"]) == pytest.approx(scores[row["heads"]])
        assert float(row["delta"]) == pytest.approx(scores[row["heads"]] - scores[""])
    assert all(int(row["heads_masked"]) == len(row["heads"].split()) for row in found)


def test_rows_are_the_steps_of_every_curve(rows):
    found, out = rows
    keys = [(row["scope"], row["order"], row["index"], row["draw"]) for row in found]
    scopes = ("all", "enc_self", "dec_self", "dec_enc")
    expected = [(scope, "importance", str(n), "") for scope in scopes for n in range(3)]
    expected += [("all", "single", str(n), "") for n in range(3)]
    expected += [("all", "random", str(n), "1") for n in range(3)]
    assert keys == [*expected, ("all", "one_per_layer", "0", "")]
    # Of eight heads the four of 0.1, 0.2, 0.3 and 0.5.
    assert found[1]["heads"] == "enc_self.0.0 dec_self.0.0 dec_self.0.2 dec_enc.0.1"
    areas = list(csv.DictReader(out.with_name("pruning_profile_areas.csv").open()))
    curve = [float(row["bleu"]) for row in found[:3]]
    mean = (curve[0] / 2 + curve[1] + curve[2] / 2) / 2
    assert float(areas[0]["area"]) == pytest.approx(mean)
    assert json.loads(out.with_suffix(".json").read_text())["sentences"] == {"test": 6}


def test_importance_is_divided_by_its_layers_norm_where_asked():
    values = np.array(IMPORTANCE)
    by_layer = for_ranking(values, MODEL.grid, AblationSettings())
    assert by_layer[3:6] == pytest.approx(np.array([0.2, 4, 0.1]) / np.sqrt(0.04 + 16 + 0.01))
    plain = for_ranking(values, MODEL.grid, AblationSettings(normalise="none"))
    assert plain.tolist() == IMPORTANCE


def test_a_profile_has_a_curve_for_each_measure_and_one_with_means(inputs, rows, tmp_path):
    """That with means against a search of the model with them folded in and the heads removed."""
    measured = inputs.text / "measures.csv"
    more = MeasuresSettings(points=2, orders=2, order_sentences=3)
    write_measures(inputs.model, inputs.pair, FEW, more, measured, {})
    files = [f"--{name}={inputs.text / name}.csv" for name in ("importance", "ablation")]
    flags = [*folder_flags(inputs), *files, "--seed", 5, "--steps", 2, "--draws", 1]
    out = tmp_path / "pruning_profile.csv"
    flags += ["--normalise", "none", "--measured", measured, "--signed", "true"]
    found = run("pruning_profile", flags, out)
    added = {}
    for row in found:
        if row not in rows[0]:
            added.setdefault(row["order"], []).append(row)
    assert len(found) == len(rows[0]) + sum(map(len, added.values()))
    assert [row["index"] for row in added["importance_signed"]] == ["0", "1", "2"]
    names = ("fisher", "fisher_rearranged", "integrated_gradients", "shapley", "mean_ablation")
    assert set(added) == {*names, "output_norm", "importance_mean", "importance_signed"}
    for order in ("shapley", "output_norm"):
        values = read_head_values(measured, order, MODEL.grid)
        least = sorted(np.argsort(values, kind="stable")[:4].tolist())
        expected = [MODEL.grid.heads()[place].name() for place in least]
        assert added[order][1]["heads"].split() == expected
    for row, zeros in zip(added["importance_mean"][1:], rows[0][1:3], strict=True):
        assert row["heads"] == zeros["heads"]
        removed = tmp_path / f"removed{row['index']}"
        heads = tmp_path / "heads.txt"
        heads.write_text("\n".join(row["heads"].split()))
        means = measured.with_name("measures_means.csv")
        listed = ["--model", inputs.model.path, "--list", heads, "--means", means]
        assert run_script("remove", [*listed, "--out", removed]) == 0
        smaller = MaskedInputs(ModelFolder(removed / "model"), inputs.pair, inputs.text, DECODE)
        ((_, test),) = smaller.read_tests(["test"], None).items()
        alone = smaller.load().compare(test, [()])[()].score
        assert float(row["bleu"]) == pytest.approx(alone)
    assert added["importance_mean"][1]["bleu"] != rows[0][1]["bleu"]
    areas = list(csv.DictReader(out.with_name("pruning_profile_areas.csv").open()))
    assert {row["order"] for row in areas if row["reference_run"] == "all/importance"} >= set(added)


@pytest.fixture(scope="module")
def checkpoints(inputs, tmp_path_factory) -> list[Path]:
    """Two: the model itself at update 7, at update 2 without what enc_self.0.1 adds."""
    folder = tmp_path_factory.mktemp("updates")
    weights = dict(inputs.model.load().named_parameters())
    save_weights(folder / "7.safetensors", weights)
    changed = weights["encoder.0.attention.output.weight"].detach().clone()
    changed[:, MODEL.head_width :] = 0
    weights |= {"encoder.0.attention.output.weight": changed}
    save_weights(folder / "2.safetensors", weights)
    return [folder / "7.safetensors", folder / "2.safetensors"]


def checkpoint_flags(inputs: MaskedInputs, checkpoints: list[Path], updates: str) -> list:
    files = ["--checkpoints", *checkpoints]
    return [*folder_flags(inputs), *files, "--updates", updates, "--steps", 4]


def test_each_checkpoint_is_pruned_by_its_own_importance(inputs, checkpoints, tmp_path):
    out = tmp_path / "training_profile.csv"
    found = run("training_profile", checkpoint_flags(inputs, checkpoints, "[2, 7]"), out)
    assert [(row["update"], row["index"]) for row in found] == [
        (update, str(index)) for update in ("2", "7") for index in range(5)
    ]
    text = read_drawn(inputs.pair, FEW)
    values = measure_importance(inputs.model.load(), text, FEW)
    heads = list(csv.DictReader(out.with_name("training_profile_heads.csv").open()))
    late = [float(row["value"]) for row in heads if row["update"] == "7"]
    assert late == pytest.approx(values.tolist())
    early = {row["head"]: float(row["value"]) for row in heads[:2]}
    assert early["1"] == 0 and early["0"] > 0
    order = np.argsort(normalise_layers(values, MODEL.grid), kind="stable")
    names = [MODEL.grid.heads()[place].name() for place in sorted(order[:4].tolist())]
    assert found[7]["heads"] == " ".join(names)
    assert float(found[7]["bleu"]) == pytest.approx(masked_bleu(inputs, "test", " ".join(names)))
    # The model of update 2 is that of update 7 under a mask.
    assert float(found[0]["bleu"]) == pytest.approx(masked_bleu(inputs, "test", "enc_self.0.1"))
    assert float(found[0]["delta"]) == 0
    first = {row["heads"] for row in found if row["update"] == "2" and row["index"] != "0"}
    assert all("enc_self.0.1" in names for names in first)  # worth nothing: goes first


def test_effects_of_another_model_are_refused(inputs, tmp_path):
    path = tmp_path / "ablation.csv"
    assert read_single_effects(inputs.text / "ablation.csv", MODEL.grid).tolist() == EFFECTS
    write_effects(path, EFFECTS[:7])
    with pytest.raises(UserError, match=r"ablation\.csv: .* 8 heads of this model, found 7"):
        read_single_effects(path, MODEL.grid)
    path.write_text("kind,layer\n")
    with pytest.raises(UserError, match=r"ablation\.csv:1: expected the columns test_set, order"):
        read_single_effects(path, MODEL.grid)


def test_checkpoints_must_fit_the_updates_and_a_test_set_be_named(checkpoints):
    for updates in ([2, 7, 9], [7]):
        with pytest.raises(UserError, match=r"--checkpoints: .*, found 7, 2"):
            by_update(checkpoints, updates)
    assert first_test(AblationSettings(test_sets=["test", "other"])) == ["test"]
    with pytest.raises(UserError, match="--test-sets: "):
        first_test(AblationSettings())

"""What the atlas knows, from small files; every expected value is worked out here or there."""

import math

import pytest
from chapters import gather_results, list_run
from roles_files import BASE, EMPTY, MODEL, OTHER, PAIR, PRUNED, RolesCollection, collection

from headcount.base.head_values import write_head_values
from headcount.base.settings.importance import ImportanceSettings
from headcount.base.settings.pretrained import ExperimentModel
from headcount.base.settings.roles import RolesSettings
from headcount.base.settings.run_file import write_run
from headcount.base.settings.runs import PrunedSettings
from headcount.base.settings.training_runs import RunSettings
from headcount.findings.atlas.data import atlas_data
from headcount.findings.measures import MEASURES, openness, subset_weights, survival

SETTINGS = {"model": MODEL, "importance": ImportanceSettings(), "roles": RolesSettings()}
GATES = "step,kind,layer,head,log_alpha,p_zero,p_one,gate"


def data_of(made: RolesCollection) -> dict:
    return atlas_data(gather_results("atlas", made.listed, SETTINGS))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return data_of(collection(tmp_path_factory.mktemp("atlas")))


@pytest.fixture(scope="module")
def models(data):
    return {model["name"]: model for model in data["models"]}


def test_models_are_called_by_what_tells_them_apart(data):
    """One pair, one seed: the run is enough; trained models first."""
    names = [BASE[1], OTHER[1], PRUNED[1], EMPTY[1]]
    assert [model["name"] for model in data["models"]] == names
    assert data["models"][0]["id"] == f"{PAIR}/baseline/1"


def test_two_seeds_are_told_apart(tmp_path):
    made = RolesCollection(tmp_path)
    for seed in (1, 2):
        made.values("importance", (PAIR, "baseline", seed), {"importance": [1.0] * 6})
    found = [model["name"] for model in data_of(made)["models"]]
    assert found == ["baseline, seed 1", "baseline, seed 2"]


def test_heads_stand_in_flat_order_and_count_from_0(data):
    names = ["enc_self.0.0", "enc_self.0.1", "enc_self.1.0", "enc_self.1.1"]
    assert [head["name"] for head in data["heads"]] == [*names, "dec_self.0.0", "dec_enc.0.0"]
    assert data["heads"][1]["label"] == "encoder self-attention layer 0 head 1"


def test_a_run_with_more_heads_gives_them_places(tmp_path):
    """Three attention layers, of one head in the settings' model and of two in the other."""
    made = RolesCollection(tmp_path)
    model = ExperimentModel(preset="tiny", encoder_layers=1, decoder_layers=1, heads=1)
    for run, values in (("baseline", [7, 8, 9]), ("baseline-h2", [1, 2, 3, 4, 5, 6])):
        grid = RunSettings.model_validate(run).own_model(model).grid
        path = tmp_path / "heads" / PAIR / run / "seed1" / "importance.csv"
        write_head_values(path, grid, {"importance": values})
        for kind in ("importance", "measures"):
            made.listed[kind].append(path)
        list_run(made.listed, tmp_path, (PAIR, run, 1))
    found = atlas_data(gather_results("atlas", made.listed, SETTINGS | {"model": model}))
    names = [f"{kind}.0.{head}" for kind in grid.counts for head in range(2)]
    assert [head["name"] for head in found["heads"]] == names
    one, two = (each["values"]["importance"] for each in found["models"])
    assert (one, two) == ([7, None, 8, None, 9, None], [1, 2, 3, 4, 5, 6])


def test_every_head_has_its_measures_and_no_others(models):
    values, notes = models["baseline"]["values"], models["baseline"]["notes"]
    assert values["importance"] == [3, 1, 2, 4, 5, 6]
    assert values["relevance_ratio"] == [0.5, 0.1, 0.2, 0.3, 1, 1]  # its size
    # Not measured outside the encoder; of the decoder alone, no position is in the files.
    assert values["rare_two_rarest"] == [0.2, 0.5, 0.49, 0.3, None, None]
    assert values["position"] == [0.9, 0.3333, 0.89, None, None, None]  # 90/100, 40/120, 89/100
    assert notes["position"] == ["at -1", "at 0", "at 0", None, None, None]
    # Of 100 trials, the baseline's hits less: 55 − 45, 54 − 45, 10 − 45.
    assert values["syntax/obj o→v (t.first)"] == [10, 9, -35, None, None, None]
    assert notes["syntax/obj o→v (t.first)"][0] == "accuracy 55\u00a0%"
    assert values["bleu_lost"] == [1, 4, -2, 3, None, None]
    assert notes["bleu_lost"][1] == "95\u00a0%: -2 to 5"  # delta −4, from −5 to 2
    assert values["survival"] == [1, 0, 0.5, 0, 1, 0]  # as in test_roles_findings.py
    # Of the other training no head was masked alone, and none pruned.
    assert not {"bleu_lost", "survival"} & set(models["random-1"]["values"])


def test_a_pruned_model_has_the_heads_that_it_has_left(models):
    found = models[PRUNED[1]]
    assert found["values"]["confidence"] == [0.9, None, None, None, None, None]
    assert found["notes"]["position"][0] == "at +1"
    assert found["roles"]["function"] == ["+1", None, None, None, None, None]
    assert models[EMPTY[1]]["values"]["confidence"] == [None] * 4 + [0.5, 0.4]


def test_roles_are_those_of_the_encoder(models):
    found = models["baseline"]["roles"]
    assert found["function"] == ["-1, o→v", "rare", "v→s", "", None, None]
    assert found["class"] == ["several", "rare", "syntactic", "none", None, None]


def test_measures_say_what_they_are(data):
    found = {each["id"]: each for each in data["measures"]}
    assert not {"masked", "open", "relevance_alpha_beta"} & set(found)  # nobody has them
    assert (found["importance"]["unit"], found["bleu_lost"]["around_zero"]) == (
        "nats per sentence",
        True,
    )
    relation = found["syntax/obj o→v (t.first)"]
    assert relation["title"] == "accuracy for a relation, obj o→v (t.first)"
    assert relation["short"] == "obj o→v (t.first)"
    assert all(each.more and each.unit and each.source for each in MEASURES.values())


def test_weights_are_whole_thousandths(models):
    (sentence,) = models["baseline"]["sentences"]
    assert sentence["weights"]["enc_self.0.1"] == [[1000, 0], [500, 500]]
    assert (sentence["source"], sentence["target"]) == (["a", "b"], ["<s>", "c"])
    assert models[PRUNED[1]]["sentences"] == []


def test_masks_and_gates_are_kept_over_updates(tmp_path):
    made = collection(tmp_path)
    rows = ["10,enc_self,0,0,0.5", "30,enc_self,0,0,0.1", "10,dec_enc,0,0,0", "30,dec_enc,0,0,0"]
    text = "\n".join(["step,kind,layer,head,masked", *rows])
    made.text("masks", f"train/{PAIR}/random-1/seed1/masks.csv", text)
    rows = ["0,enc_self,0,1,0,0.25,0,1", "9,enc_self,0,1,0,0.75,0,0", "0,dec_enc,0,0,0,0.5,0,1"]
    made.text("gates", f"prune/{PAIR}/{PRUNED[1]}/seed1/gates.csv", "\n".join([GATES, *rows]))
    models = {model["name"]: model for model in data_of(made)["models"]}
    (masked,) = models["random-1"]["histories"]
    assert (masked["what"], masked["steps"]) == ("share of updates masked", [10, 30])
    assert masked["values"] == [(0.5, 0.1), *[(None, None)] * 4, (0, 0)]
    # Half of 10 updates and a tenth of 20: 7 of 30.
    assert models["random-1"]["values"]["masked"] == [0.2333, None, None, None, None, 0]
    # The gates of the encoder alone, told of the model that was pruned and of the pruned one.
    for name in ("baseline", PRUNED[1]):
        (gates,) = models[name]["histories"]
        assert (gates["of"], gates["steps"]) == (PRUNED[1], [0, 9])
        assert gates["values"] == [(None, None), (0.75, 0.25), *[(None, None)] * 4]


def test_chances_are_of_gates_in_their_runs_scope(tmp_path):
    """Of a run from random weights nobody but itself is told."""
    kept, runs = [], []
    for run in ("gates-enc_self-l0.2", "gates-all-l0.1-from-none", "drawn-gates-all-l0.1"):
        folder = tmp_path / PAIR / run / "seed1"
        chances = {"p_zero": [0.1, 0.2, 0.3, 0.4, 0.5, math.nan]}
        write_head_values(folder / "heads.csv", MODEL.grid, chances)
        write_run(folder, PrunedSettings.model_validate(run))
        kept.append(folder / "heads.csv")
        runs.append(folder / "run.json")
    found = openness(kept, runs)
    values = {key: rows["value"].round(9).tolist() for key, rows in found.groupby(["run", "of"])}
    own, other = "gates-enc_self-l0.2", "gates-all-l0.1-from-none"
    encoder = [0.9, 0.8, 0.7, 0.6]
    assert values == {
        (own, own): encoder,
        ("baseline", own): encoder,
        (other, other): [*encoder, 0.5],
    }


def test_subsets_say_which_heads_they_keep_and_by_what_number(tmp_path):
    """Of four encoder heads, one of the decoder and one between: of both runs, and of the first."""
    kept, runs = [], []
    for run, gates, w in (
        ("subset-all-k4", [1, 0, 1, 0, 1, 1], [0.4, -0.1, 0.3, -0.2, 0.5, 0.2]),
        ("subset-enc_self-k1", [0, 0, 1, 0, 1, 1], [-0.3, 0, 0.1, -0.4, math.nan, math.nan]),
        ("gates-all-l0.1", [0, 1, 0, 1, 0, 1], [9.0] * 6),  # log α; no part of either
    ):
        folder = tmp_path / PAIR / run / "seed1"
        write_head_values(folder / "heads.csv", MODEL.grid, {"gate": gates, "w": w})
        write_run(folder, PrunedSettings.model_validate(run))
        kept.append(folder / "heads.csv")
        runs.append(folder / "run.json")
    shares = {
        name: rows["value"].tolist() for name, rows in survival(kept, runs).groupby("measure")
    }
    assert shares == {"survival": [0, 1, 0, 1, 0, 1], "subset_survival": [0.5, 0, 1, 0, 1, 1]}
    found = subset_weights(kept, runs)
    values = {key: rows["value"].tolist() for key, rows in found.groupby(["run", "of"])}
    whole, part = "subset-all-k4", "subset-enc_self-k1"
    assert values == {
        (model, run): w
        for run, w in ((whole, [0.4, -0.1, 0.3, -0.2, 0.5, 0.2]), (part, [-0.3, 0, 0.1, -0.4]))
        for model in (run, "baseline")
    }


def test_without_a_measured_head_there_is_no_model(tmp_path):
    assert data_of(RolesCollection(tmp_path))["models"] == []

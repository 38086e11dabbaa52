"""Which kept runs belong into one table, and what is told of those that were made differently."""

import json

import pytest
from workflow_modules import load

from headcount.base.errors import UserError

CODE = "{{'scripts/train.py': '{}', 'src/a.py': 'cc'}}"


@pytest.fixture
def comparable(monkeypatch):
    return load(monkeypatch, "comparable")


def run_of(comparable, name: str, seed: int = 1):
    return comparable.Run("a.x-y", name, seed)


def archive_of(comparable, records: dict):
    return comparable.Archive({"settings": {}}, records, {})


def record(checksum: str, code: str = "aa", reads: dict | None = None) -> dict:
    params = ["'scripts/train.py'", CODE.format(code)]
    return {"rule": "train", "sha256": checksum, "params": params, "input_checksums": reads or {}}


def test_a_run_made_from_another_baseline_than_the_kept_one_is_refused(comparable):
    weights, gated = "results/m/baseline.safetensors", "results/m/gates.json"
    archives = {
        run_of(comparable, "baseline"): archive_of(comparable, {weights: record("11")}),
        run_of(comparable, "gates"): archive_of(
            comparable, {gated: record("33", reads={weights: "sha256:11"})}
        ),
    }
    comparable._check_inputs(archives)
    archives[run_of(comparable, "baseline")].records[weights]["sha256"] = "22"
    words = f"^{gated}: expected that gates, seed 1 of a.x-y was made from the {weights} that is"
    with pytest.raises(UserError, match=words):
        comparable._check_inputs(archives)


def test_runs_that_began_with_other_models_of_a_name_are_refused(comparable):
    def began(recipe, checksum):
        reads = {f"data/raw/pretrained.opus/{recipe}/manifest.json": f"sha256:{checksum}"}
        return archive_of(comparable, {"results/m/a.json": record("1", reads=reads)})

    archives = {run_of(comparable, "baseline"): began("r1", "11")}
    archives[run_of(comparable, "baseline", seed=2)] = began("r2", "11")
    comparable._check_sources(archives)
    archives[run_of(comparable, "baseline", seed=2)] = began("r2", "22")
    told = "^pretrained.opus: expected that of baseline, seed 2 of a.x-y .sha256:22., found that"
    with pytest.raises(UserError, match=told):
        comparable._check_sources(archives)


def test_versions_of_code_are_named_with_the_runs_that_have_the_rarer_one(comparable):
    archives = {
        run_of(comparable, name): archive_of(comparable, {name: record("1", code)})
        for name, code in {"one": "aa", "two": "bb", "six": "bb", "4": "aa", "5": "aa"}.items()
    }
    assert comparable.code_versions(archives) == [
        "train: 2 versions of code, which differ in scripts/train.py. Others than most runs have: "
        "two, six, seed 1 of a.x-y"
    ]
    archives.pop(run_of(comparable, "two"))
    archives.pop(run_of(comparable, "six"))
    assert comparable.code_versions(archives) == []


def test_several_number_formats_are_told_with_how_many_runs_have_each(comparable):
    archives = {
        run_of(comparable, name): with_format(comparable, found)
        for name, found in (("one", "fp32"), ("two", "bf16"), ("three", "fp32"), ("none", None))
    }
    told = ["runs trained in several number formats: 1 in bf16, 2 in fp32"]
    assert comparable.number_formats(archives) == told
    archives.pop(run_of(comparable, "two"))
    assert comparable.number_formats(archives) == []


def with_format(comparable, precision: str | None):
    """An archive whose model was trained in this format; without a model for None."""
    model = {"results/m/train/model/model.json": json.dumps({"precision": precision}).encode()}
    return comparable.Archive({"settings": {}}, {}, model if precision else {})


def test_a_setting_that_an_archive_lacks_counts_as_the_default(comparable):
    now = comparable.settings_of("quickstart")
    run = comparable.Run("synthetic.en-art", "baseline", 1)

    def changed(then, now):
        return comparable.changed_settings(then, now, run)

    assert now["decode.length_penalty"] == 0.6 and now["train.schedule"] == "cosine"
    older = {key: value for key, value in now.items() if key != "decode.length_penalty"}
    assert changed(now, now) == "" and changed(older, now) == ""
    assert changed(older, now | {"decode.length_penalty": 0.7}) == (
        "decode.length_penalty was 0.6 and is 0.7"
    )
    older.pop("train.schedule")  # by default the inverse square root, in quickstart a cosine
    assert changed(older, now) == "train.schedule was 'inverse_sqrt' and is 'cosine'"
    sizes = {key: value for key, value in now.items() if key != "model.d_ff"}
    assert changed(sizes, now) == ""  # that of the preset


def test_a_number_of_pairs_is_a_setting_and_the_list_of_pairs_is_none(comparable):
    section = {"pairs": ["a.x-y"], "classifier_ablation": {"pairs": 100, "device": "cpu"}}
    assert dict(comparable._flat(section, "")) == {"classifier_ablation.pairs": 100}


@pytest.mark.parametrize(
    ("last", "then", "now", "told"),
    [
        (675, {}, 6000, ""),
        (675, {}, 676, ""),
        (675, {}, 675, "train.updates was 3000 and is 675"),  # patience may not have ended it
        (3000, {}, 6000, "train.updates was 3000 and is 6000"),
        (675, {"train.patience": 0}, 6000, "train.updates was 3000 and is 6000"),
        (675, {"train.schedule": "cosine"}, 6000, "train.updates was 3000 and is 6000"),
    ],
)
def test_a_training_that_lost_patience_is_one_of_more_updates(comparable, last, then, now, told):
    then = {"train.updates": 3000, "train.patience": 5, "train.schedule": "inverse_sqrt"} | then
    curve = {"results/m/train/a.x-y/one/seed1/curves.csv": f"step,epoch\n75,1\n{last},9\n".encode()}
    records, run = dict.fromkeys(curve, {}), run_of(comparable, "one")
    settings = then | {"train.updates": now}
    archive = comparable.Archive({"settings": then}, records, curve)
    assert comparable._reason(run, archive, settings, {run}) == told
    classifier = comparable.Archive({"settings": then}, {}, {})  # has no curve to end
    others = f"train.updates was 3000 and is {now}"
    assert comparable._reason(run, classifier, settings, {run}) == others


def test_what_is_of_other_runs_changes_none(comparable):
    """A second classifier, and test sets that are named with a pair that has them."""
    now = comparable.settings_of("quickstart")
    one = {"classifiers.models.bert.path": "own/bert"}
    two = one | {"classifiers.models.roberta.path": "own/roberta"}
    bert = comparable.Run("multinli", "bert", 1)
    assert comparable.changed_settings(now | one, now | two, bert) == ""
    moved = two | {"classifiers.models.bert.path": "own/other"}
    assert comparable.changed_settings(now | one, now | moved, bert) == (
        "classifiers.models.bert.path was 'own/bert' and is 'own/other'"
    )
    run = comparable.Run("multi30k.en-de", "baseline", 1)
    then = now | {"ablation.test_sets": [], "masking.test_sets": []}
    tests = ["test_2016_flickr", "newstest2016", "test_2017_flickr", "dev"]
    later = {"ablation.test_sets": tests, "masking.test_sets": tests[:2]}
    assert comparable.changed_settings(then, now | later, run) == ""
    assert comparable.changed_settings(then, now | {"masking.test_sets": tests[2:]}, run) == (
        "masking.test_sets was ['test_2016_flickr'] and is ['test_2017_flickr']"
    )


def test_heads_by_layer_are_not_a_number_of_heads(comparable):
    now = comparable.settings_of("quickstart")
    heads = {f"model.heads.{kind}": [8, 2] for kind in ("enc_self", "dec_self", "dec_enc")}
    then = {key: value for key, value in now.items() if key != "model.heads"} | heads
    run = comparable.Run("synthetic.en-art", "baseline", 1)
    told = f"model.heads was a mapping and is {now['model.heads']}"
    assert told in comparable.changed_settings(then, now, run)
    assert "model.heads.enc_self was" in comparable.changed_settings(now, then, run)


def test_planned_files_that_a_kept_run_lacks_are_named(comparable):
    folder = "results/m/heads/a.x-y/one/seed1"
    run = run_of(comparable, "one")
    archive = comparable.Archive({}, {}, {f"{folder}/roles.json": b""})
    job = {"output": [f"{folder}/{name}" for name in ("roles.json", "b.csv", "a.csv", "w.npy")]}
    assert list(comparable.lacking_files({run: archive}, "m", [job])) == [
        f"not in the kept one, seed 1 of a.x-y: {folder}/a.csv and 1 more planned files; "
        "means are over fewer runs"
    ]

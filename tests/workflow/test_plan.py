"""What the rules are told of an experiment."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from workflow_modules import load

from headcount.analysis.outputs import chapters
from headcount.base.settings.corpora import load_corpora
from headcount.base.settings.runs import PrunedSettings, label
from headcount.base.settings.training_runs import BASELINE, RunSettings

TWO_HEADS = RunSettings(method="baseline", attention_heads=2)
IMPT = RunSettings(method="importance", heads=6)
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def plan(monkeypatch):
    return load(monkeypatch, "plan").Plan({"experiment": "quickstart"}, [])


def change(plan, **changes):
    """The synthetic corpus with other settings of its generator."""
    corpora = load_corpora(ROOT / "config" / "corpora.yaml")
    corpus = corpora["synthetic"]
    settings = corpus.settings.model_copy(update=changes)
    plan.corpora["synthetic"] = corpus.model_copy(update={"settings": settings})


def test_another_corpus_is_another_folder_and_the_same_one_the_same(plan):
    before = plan.raw.of("synthetic.en-art").manifest
    change(plan, seed=2)
    assert plan.raw.of("synthetic.en-art").manifest != before
    change(plan, train_pairs=20000)
    assert plan.raw.of("synthetic.en-art").manifest != before
    change(plan)
    assert plan.raw.of("synthetic.en-art").manifest == before
    licence = plan.corpora["synthetic"].model_copy(update={"licence": "other words"})
    plan.corpora["synthetic"] = licence
    assert plan.raw.of("synthetic.en-art").manifest == before


def test_a_part_of_a_corpus_lies_with_the_whole_and_has_a_draw(plan):
    whole = plan.raw.of("multi30k.en-de")
    for name, pairs in (("multi30k_3k", "3000"), ("multi30k_10k", "10000")):
        assert plan.raw.of(f"{name}.en-de") == whole  # one download
        train = {"pair": f"{name}.en-de", "split": "train"}
        assert plan.raw.draw(train) == ["--draw", pairs, "1"]
        assert plan.raw.draw(train | {"split": "dev"}) == []
        assert plan.tests(f"{name}.en-de") == plan.tests("multi30k.en-de")
    assert plan.raw.draw({"pair": "multi30k.en-de", "split": "train"}) == []


def masked(plan, *names):
    """The plan with these test sets under masks."""
    changed = plan.settings.masking.model_copy(update={"test_sets": list(names)})
    plan.settings = plan.settings.model_copy(update={"masking": changed})
    return plan


def test_test_sets_under_masks_are_the_first_or_those_named(plan):
    german, czech = {"pair": "multi30k.de-en"}, {"pair": "multi30k.cs-en"}
    assert plan.masking_tests(german) == ["test_2016_flickr"]
    masked(plan, "test_2018_flickr", "test_2017_flickr")
    assert plan.masking_tests(german) == ["test_2017_flickr", "test_2018_flickr"]
    assert plan.masking_tests(czech) == ["test_2018_flickr"]
    flags = plan.masking_flags(czech)
    assert flags[flags.index("--test-sets") + 1] == '["test_2018_flickr"]'


def test_the_baselines_ranking_serves_the_other_runs_of_its_pair_and_seed(plan):
    run = {"pair": "multi30k.de-en", "run": "impt-6", "seed": "3"}
    path = "results/quickstart/heads/multi30k.de-en/baseline/seed3/importance.csv"
    plan.settings = plan.settings.model_copy(update={"runs": [BASELINE, IMPT]})
    assert plan.baseline_importance(run) == [path]
    assert plan.baseline_importance({**run, "run": "baseline"}) == []  # its own already
    plan.settings = plan.settings.model_copy(update={"runs": [IMPT]})
    assert plan.baseline_importance(run) == []  # no such run in the experiment


def test_runs_with_other_heads_are_trained_and_measured_and_not_masked(plan, monkeypatch):
    runs = [TWO_HEADS, BASELINE, IMPT]
    plan.settings = plan.settings.model_copy(update={"runs": runs})
    assert plan.same_heads == ["baseline", "impt-6"]
    assert plan.by_heads == ["baseline-h2", "baseline"]
    listed = list(load(monkeypatch, "jobs").jobs(plan, ["importance"]))
    made = {rule: values["run"] for rule, values in listed if "run" in values and rule != "bleu"}
    assert made["train"] == made["importance"] == ["baseline-h2", "baseline", "impt-6"]
    assert made["masking"] == ["baseline", "impt-6"]
    plan.settings = plan.settings.model_copy(update={"runs": [BASELINE, IMPT]})
    assert plan.by_heads == []


def test_headmask_has_no_files_of_runs_with_other_heads(plan, monkeypatch):
    plan.settings = plan.settings.model_copy(update={"runs": [TWO_HEADS, BASELINE]})
    outputs = load(monkeypatch, "outputs").Outputs(plan, ["heads/importance.csv"])
    trained = "results/quickstart/train/synthetic.en-art/{}/seed1/{}"
    scores = [trained.format(run, "bleu.json") for run in ("baseline-h2", "baseline")]
    models = [trained.format(run, "model/model.json") for run in ("baseline-h2", "baseline")]
    given = {chapter.name: outputs.inputs(chapter) for chapter in outputs.chapters}
    assert (given["general"]["scores"], given["general"]["models_by_heads"]) == (scores, models)
    assert len(given["voita_roles"]["importance"]) == 2
    assert given["headmask"]["scores"] == scores[1:]
    assert not [path for files in given["headmask"].values() for path in files if "-h2" in path]


def test_a_run_with_another_dropout_is_told_so_and_a_scratch_run_as_its_start(plan, monkeypatch):
    dropped = RunSettings(method="baseline", dropout=0.2)
    names = ("gates-all-l0.1-from-baseline-d0.2", "gates-all-l0.1")
    scratch = [PrunedSettings.model_validate(f"scratch-{name}") for name in names]
    changed = {"runs": [BASELINE, IMPT, dropped], "pruned": scratch}
    plan.settings = plan.settings.model_copy(update=changed)
    plan.pruning = load(monkeypatch, "pruning").Pruning(plan.layout, plan.settings)
    assert plan.runs == plan.same_heads == plan.by_dropout
    assert plan.runs == ["baseline", "impt-6", "baseline-d0.2"]
    assert plan.by_heads == []
    rates = []
    for run in scratch:
        flags = plan.scratch_flags({"run": label(run)})
        rates.append(flags[flags.index("--dropout") + 1])
    assert rates == ["0.2", "0.0"]  # quickstart's models have none
    outputs = load(monkeypatch, "outputs").Outputs(plan, ["heads/importance.csv"])
    trained = "results/quickstart/train/synthetic.en-art/{}/seed1/model/model.json"
    given = {chapter.name: outputs.inputs(chapter) for chapter in outputs.chapters}
    assert given["headmask"]["models_by_dropout"] == [trained.format(run) for run in plan.runs]
    shown = [name for name in outputs.pages() if "regularisation" in name]
    assert shown == [f"{form}/headmask_regularisation.json" for form in ("tables", "figures")]


def test_without_several_dropouts_there_is_no_table_of_them(plan, monkeypatch):
    outputs = load(monkeypatch, "outputs").Outputs(plan, ["heads/importance.csv"])
    assert not [name for name in outputs.pages() if "regularisation" in name]
    other = RunSettings(method="baseline", attention_heads=2, dropout=0.2)
    plan.settings = plan.settings.model_copy(update={"runs": [BASELINE, other]})
    assert plan.by_dropout == []


def test_ways_to_choose_heads_are_compared_where_there_are_several(plan, monkeypatch):
    signed = RunSettings(method="importance", heads=6, signed=True)
    plan.settings = plan.settings.model_copy(update={"runs": [BASELINE, IMPT, signed, TWO_HEADS]})
    outputs = load(monkeypatch, "outputs").Outputs(plan, ["heads/importance.csv"])
    trained = "results/quickstart/train/synthetic.en-art/{}/seed1/run.json"
    given = {chapter.name: outputs.inputs(chapter) for chapter in outputs.chapters}
    compared = ("baseline", "impt-6", "impt-6-signed")
    assert given["headmask"]["variants"] == [trained.format(run) for run in compared]
    shown = [name for name in outputs.pages() if "variants" in name]
    assert shown == [f"{form}/headmask_variants.json" for form in ("tables", "figures")]


def test_runs_of_importance_that_differ_in_n_or_dropout_alone_are_no_ways_to_choose(
    plan, monkeypatch
):
    others = [RunSettings(method="importance", heads=heads) for heads in (1, 12)]
    dropped = RunSettings(method="importance", heads=6, dropout=0.2)
    drawn = RunSettings(method="random", heads=6)
    runs = [BASELINE, drawn, IMPT, *others, dropped]
    plan.settings = plan.settings.model_copy(update={"runs": runs})
    assert plan.by_variant == []
    outputs = load(monkeypatch, "outputs").Outputs(plan, ["heads/importance.csv"])
    assert not [name for name in outputs.pages() if "variants" in name]


def test_without_such_runs_heads_per_layer_is_not_made(plan, monkeypatch):
    outputs = load(monkeypatch, "outputs").Outputs(plan, ["heads/importance.csv"])
    assert not [name for name in outputs.pages() if "heads_per_layer" in name]


def test_files_of_a_pair(plan):
    pair = "multi30k.de-en"
    tests = ["test_2016_flickr", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr"]
    assert plan.tests(pair) == tests
    assert plan.tests("multi30k.cs-en") == ["test_2016_flickr", "test_2018_flickr"]
    assert plan.splits(pair) == ["train", "dev", *tests]
    folder = "data/text/quickstart/multi30k.de-en"
    texts = plan.layout.texts(pair, ["dev"], "src", "json")
    assert texts == [f"{folder}/dev.src", f"{folder}/dev.json"]
    assert plan.held_out({"pair": pair, "split": "train"}) == ["dev", *tests]
    assert plan.held_out({"pair": pair, "split": "dev"}) == []


def test_files_of_all_runs(plan, monkeypatch):
    """Pairs, then training variants, then seeds: the order of tables and figures."""
    pairs, seeds = ["multi30k.cs-en", "multi30k.de-en"], [3, 1]
    plan.layout = replace(plan.layout, pairs=pairs, seeds=seeds)
    plan.settings = plan.settings.model_copy(update={"runs": [BASELINE, IMPT]})
    (headmask,) = (chapter for chapter in chapters() if chapter.name == "headmask")
    found = load(monkeypatch, "outputs").Outputs(plan, []).inputs(headmask)
    assert len(found["importance"]) == 8
    assert found["importance"][:3] == [
        f"results/quickstart/heads/multi30k.cs-en/{run}/importance.csv"
        for run in ("baseline/seed3", "baseline/seed1", "impt-6/seed3")
    ]
    assert found["importance"][4] == (
        "results/quickstart/heads/multi30k.de-en/baseline/seed3/importance.csv"
    )
    tests = ("test_2016_flickr", "test_2018_flickr")
    folder = "results/quickstart/train/multi30k.cs-en/baseline/seed3/translations"
    assert found["translations"][:2] == [f"{folder}/{test}.txt" for test in tests]
    assert len(found["translations"]) == 4 * 2 + 4 * 4  # de-en has four test sets


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"experment": "tiny"}, "--config experment: unknown key; nearest: experiment. Give only"),
        (
            {"experiment": "tiny", "train": {"updates": 10}},
            "--config train: settings live in config/tiny.yaml, this one at `train:`; change it",
        ),
        (
            {"experiment": "tiny", "updates": 10},
            "settings live in config/tiny.yaml, this one at `train: updates:` or `ablation: "
            "updates:` or `gates: updates:`; change it there",
        ),
        (
            {"train_updates": 10},
            "unknown key; nearest: train.updates. Give only experiment=NAME; settings live in "
            "config/quickstart.yaml",
        ),
        ({"x": 1}, "--config x: unknown key. Give only experiment=NAME; settings live in config/q"),
        ({"experiment": "config/tiny.yaml"}, "found 'config/tiny.yaml'; nearest: tiny"),
        ({"experiment": "tinny"}, "there is no config/tinny.yaml; nearest: tiny"),
        ({"experiment": None}, "experiment: expected a name of letters, digits, _ and -"),
    ],
)
def test_f03_what_config_cannot_take_is_sent_where_it_belongs(monkeypatch, capsys, config, told):
    with pytest.raises(SystemExit) as left:
        load(monkeypatch, "plan").Plan(config, [])
    assert left.value.code == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("config/tiny.yaml", "given by its name; give --config experiment=tiny instead"),
        ("/x/own.yaml", "put the file into config/, then give --config experiment=own instead"),
    ],
)
def test_f03_an_experiment_given_as_a_file_of_settings_is_told_its_name(
    monkeypatch, capsys, file, told
):
    settings = {"pairs": ["synthetic_tiny.en-art"], "seeds": [1]}
    with pytest.raises(SystemExit) as left:
        load(monkeypatch, "plan").Plan(settings, [Path(file)])
    assert left.value.code == 2
    printed = capsys.readouterr().err
    assert f"--configfile {file}: an experiment is" in printed and told in printed


def test_a_batch_that_no_dev_set_fills_is_refused_by_the_plan(tmp_path, monkeypatch, capsys):
    """`synthetic_tiny` has 40 pairs in dev."""
    plan = load(monkeypatch, "plan").Plan
    shutil.copytree(ROOT / "config", tmp_path / "config")
    monkeypatch.chdir(tmp_path)
    settings = (ROOT / "config" / "tiny.yaml").read_text()
    for largest, fits in ((40, True), (41, False)):
        sizes = f"sentences: 1000\n  repeats: 2\n  batch_sizes: [{largest}]"
        changed = settings.replace("sentences: 4\n  repeats: 2\n  batch_sizes: [1, 4]", sizes)
        Path("config/mine.yaml").write_text(changed)
        if fits:
            assert plan({"experiment": "mine"}, []).timed
            continue
        with pytest.raises(SystemExit) as left:
            plan({"experiment": "mine"}, [])
        assert left.value.code == 2
        assert "speed.batch_sizes: expected at most 40" in capsys.readouterr().err


def test_a_file_that_names_the_experiment_alone_is_as_good_as_the_flag(monkeypatch):
    assert load(monkeypatch, "plan").Plan({"experiment": "tiny"}, [Path("x.yaml")]).name == "tiny"


def test_f49_experiments_whose_names_differ_in_case_alone_stay_apart(tmp_path, monkeypatch):
    plan = load(monkeypatch, "plan").Plan
    shutil.copytree(ROOT / "config", tmp_path / "config")
    long = "L" * 64  # the longest name there may be
    for name in ("Tiny", long):
        shutil.copy(tmp_path / "config" / "tiny.yaml", tmp_path / "config" / f"{name}.yaml")
    if (tmp_path / "config" / "TINY.yaml").exists():
        pytest.skip("this disk does not tell upper from lower case")
    monkeypatch.chdir(tmp_path)
    files = [
        plan({"experiment": name}, []).layout.folders("train", ["baseline"])
        for name in ("tiny", "Tiny", long)
    ]
    pair = "synthetic_tiny.en-art"
    names = ("tiny", "Tiny", long)
    assert files == [[(pair, f"results/{name}/train/{pair}/baseline/seed1")] for name in names]


def test_f49_names_that_make_too_long_a_name_together_are_refused(tmp_path, monkeypatch, capsys):
    """Of a log: train. and 64 + 1 + 32 + 1 + 32, .baseline.seed1., 103 and .log: 259 characters."""
    sides = "".join(f"{side * 32}: {{file: f{side}, sha256: {'ab' * 32}}}, " for side in "ab")
    corpus, test = "c" * 64, "t" * 103
    splits = "".join(f"    {split}: {{{sides}}}\n" for split in ("train", "dev", test))
    head = "  licence: none\n  citation: none\n  base_url: https://example.invalid\n  splits:\n"
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "corpora.yaml").write_text(f"{corpus}:\n{head}{splits}")
    (tmp_path / "config" / "mine.yaml").write_text(f"pairs: [{corpus}.{'a' * 32}-{'b' * 32}]\n")
    plan = load(monkeypatch, "plan").Plan
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as left:
        plan({"experiment": "mine"}, [])
    assert left.value.code == 2
    told = "expected a log's name of at most 255 characters, found 259 with the run baseline and"
    assert told in capsys.readouterr().err

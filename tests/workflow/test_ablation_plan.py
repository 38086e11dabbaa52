"""What the rules are told of ablation, and what is refused before any job."""

from pathlib import Path

import pytest
from workflow_modules import load

from headcount.base.errors import UserError
from headcount.base.settings.ablation import AblationSettings, RerankSettings
from headcount.base.settings.corpora import ablation_tests, load_corpora
from headcount.base.settings.experiment import load_experiment
from headcount.base.settings.flags import from_flags

ROOT = Path(__file__).resolve().parents[2]
TEXT = """
pairs: [multi30k.en-de, synthetic.en-art]
seeds: [2, 1]
runs: [baseline, random-12.5%]
model: {preset: tiny}
train: {updates: 1000, warmup_updates: 10, keep_updates: [30, 500, 1000]}
importance: {sentences: 30}
ablation:
  runs: [random-12.5%]
  updates: [30, 1000]
  steps: 4
"""
W = {"pair": "multi30k.en-de", "run": "random-6", "seed": "2"}
ART = {"pair": "synthetic.en-art"}


@pytest.fixture(scope="module")
def corpora():
    return load_corpora(ROOT / "config" / "corpora.yaml")


@pytest.fixture
def loaded(tmp_path):
    """The experiment in a text."""

    def read(text: str = TEXT):
        (tmp_path / "mine.yaml").write_text(text)
        return load_experiment("mine", tmp_path)

    return read


@pytest.fixture
def plan(monkeypatch, tmp_path):
    return planned(monkeypatch, tmp_path, TEXT)


def planned(monkeypatch, folder, text):
    """The plan of the experiment in a text."""
    module = load(monkeypatch, "plan")
    (folder / "mine.yaml").write_text(text)
    (folder / "corpora.yaml").write_text((ROOT / "config" / "corpora.yaml").read_text())
    monkeypatch.setattr(module, "CONFIG", folder)
    return module.Plan({"experiment": "mine"}, [])


def test_files_of_ablated_runs(plan):
    """Pairs, then runs, then seeds."""
    found = plan.layout.folders("masking", plan.ablated)
    folder = "results/mine/masking"
    assert found == [
        (pair, f"{folder}/{pair}/random-6/seed{seed}")
        for pair in ("multi30k.en-de", "synthetic.en-art")
        for seed in (2, 1)
    ]
    assert plan.profiled == plan.ablated == ["random-6"]


def test_texts_are_two_test_sets_and_dev(plan):
    assert plan.ablation_texts(W) == ["dev", "test_2016_flickr", "test_2017_flickr"]
    assert plan.first_ablation_test(W) == "test_2016_flickr"
    # A pair with one test set: dev is its second, and is read once.
    assert plan.ablation_tests("synthetic.en-art") == ["test", "dev"]
    assert plan.ablation_texts(ART) == ["dev", "test"]


def test_a_job_is_told_what_it_reads_and_no_more(plan):
    flags = plan.ablation_flags("steps", "sentences")(ART)
    assert flags == ["--test-sets", '["test", "dev"]', "--steps", "4"]
    assert plan.rerank_flags()[plan.rerank_flags().index("--importance-sentences") + 1] == "30"


def test_without_ablated_runs_nothing_is_asked_for(monkeypatch, tmp_path):
    """Not even two test sets of each pair."""
    plain = planned(
        monkeypatch, tmp_path, TEXT.replace("[random-12.5%]\n  up", "[]\n  test_sets: [none]\n  up")
    )
    assert plain.ablated == plain.profiled == []


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("[30, 1000]", "[30, 400]", r"mine\.yaml:\d+: ablation: updates: update 400 is not among"),
        ("[30, 1000]", "[30, 30]", "each number once, the smallest first"),
        ("runs: [random-12.5%]", "runs: [impt-6]", r"'impt-6' is not among `runs` \(baseline, "),
        ("runs: [random-12.5%]", "runs: [random-6, random-12.5%]", "'random-6' is listed twice"),
        ("runs: [random-12.5%]", "runs: [rndom-6]", "nearest: random-6"),
        ("steps: 4", "step: 4", "unknown key; nearest: steps"),
    ],
)
def test_f09_what_cannot_be_is_refused(loaded, old, new, told):
    assert TEXT.count(old) == 1
    with pytest.raises(UserError, match=told):
        loaded(TEXT.replace(old, new))


@pytest.mark.parametrize(
    ("named", "pair", "expected"),
    [
        ([], "multi30k.cs-en", ("test_2016_flickr", "test_2018_flickr")),
        (["test_2018_flickr", "dev"], "multi30k.cs-en", ("test_2018_flickr", "dev")),
        (
            ["test_2017_mscoco", "test_2016_flickr", "test_2018_flickr"],
            "multi30k.cs-en",  # which has no mscoco
            ("test_2016_flickr", "test_2018_flickr"),
        ),
    ],
)
def test_the_two_test_sets_of_a_pair(corpora, named, pair, expected):
    assert ablation_tests(named, pair, corpora) == expected


@pytest.mark.parametrize(
    ("named", "pair", "told"),
    [
        (["test", "dev"], "multi30k.en-de", r"expected two that multi30k\.en-de has, of test_2016"),
        (["test_2016_flickr", "test_2017_coco"], "multi30k.en-de", "nearest: test_2017_mscoco"),
        (["test_2016_flickr"], "multi30k.en-de", "found test_2016_flickr$"),
        (["dev", "test"], "synthetic.en-art", "dev, which chooses the heads .* one of test first"),
    ],
)
def test_f09_test_sets_of_another_pair_are_refused(corpora, named, pair, told):
    with pytest.raises(UserError, match=told):
        ablation_tests(named, pair, corpora)


def test_f09_the_workflow_ends_with_2(monkeypatch, tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        planned(monkeypatch, tmp_path, TEXT.replace("  steps: 4", "  test_sets: [test, dev]"))
    assert end.value.code == 2
    told = capsys.readouterr().err
    assert "mine.yaml:11: ablation.test_sets: expected two that multi30k.en-de" in told


def test_a_misspelt_test_set_is_refused_beside_two_that_exist(monkeypatch, tmp_path, capsys):
    named = "  test_sets: [test_2106_flickr, test_2017_flickr, dev]"
    with pytest.raises(SystemExit) as end:
        planned(monkeypatch, tmp_path, TEXT.replace("  steps: 4", named))
    assert end.value.code == 2
    told = "ablation.test_sets: no pair has a test set 'test_2106_flickr', nor is it dev; nearest:"
    assert told in capsys.readouterr().err


def test_sections_come_back_from_flags(plan):
    from argparse import ArgumentParser

    from headcount.base.settings.flags import add_flags

    parser = ArgumentParser()
    for section in (AblationSettings, RerankSettings):
        add_flags(parser, section)
    given = [*plan.ablation_flags("steps", "updates")(W), *plan.rerank_flags()]
    args = parser.parse_args(given)
    tests = ["test_2016_flickr", "test_2017_flickr"]
    expected = AblationSettings(test_sets=tests, steps=4, updates=[30, 1000])
    assert from_flags(args, AblationSettings) == expected
    assert from_flags(args, RerankSettings).sentences == 30

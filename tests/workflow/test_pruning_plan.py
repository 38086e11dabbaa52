"""What the rules are told of pruned runs: what each needs, and which jobs begin first."""

from pathlib import Path

import pytest
from workflow_modules import load

from headcount.base.settings.experiment import load_experiment

TEXT = """
pairs: [a.x-y, multi30k.cs-en]
seeds: [2, 1]
runs: [random-12.5%, baseline, impt-6-p0.5, impt-6]
model: {preset: tiny}
train: {updates: 1000, warmup_updates: 10}
gates: {updates: 200}
speed: {batch_sizes: [1]}
pruned:
  - gates-all-l0
  - gates-all-l0.1
  - gates-all-l0-from-random-6
  - scratch-gates-all-l0.1
  - ranked-gates-all-l0.1
  - drawn-gates-all-l0-from-random-6
"""
ROOT = Path(__file__).resolve().parents[2]
W = {"pair": "a.x-y", "seed": "2"}
TRAIN, PRUNE = "results/mine/train/a.x-y", "results/mine/prune/a.x-y"


@pytest.fixture
def pruning(monkeypatch, tmp_path):
    (tmp_path / "mine.yaml").write_text(TEXT)
    settings = load_experiment("mine", tmp_path)
    return planned(monkeypatch, settings)


def planned(monkeypatch, settings):
    """The plan of pruning of an experiment of these settings."""
    layout = load(monkeypatch, "layout").Layout("mine", settings.pairs, settings.seeds)
    return load(monkeypatch, "pruning").Pruning(layout, settings)


def of(run: str) -> dict[str, str]:
    return {**W, "run": run}


def test_what_a_pruned_run_starts_from(pruning):
    folder = f"{TRAIN}/random-6/seed2/model"
    run = of("drawn-gates-all-l0-from-random-6")
    assert pruning.start_model(run) == [f"{folder}/model.json", f"{folder}/weights.safetensors"]
    assert pruning.gates_heads(run) == [f"{PRUNE}/gates-all-l0-from-random-6/seed2/heads.csv"]
    assert pruning.importance(run) == []  # drawn: no ranking
    ranked = "results/mine/heads/a.x-y/baseline/seed2/importance.csv"
    assert pruning.importance(of("ranked-gates-all-l0.1")) == [ranked]


def test_runs_by_the_way_they_are_made(pruning):
    assert pruning.named("scratch") == ["scratch-gates-all-l0.1"]
    assert pruning.named("importance", "random") == [
        "ranked-gates-all-l0.1",
        "drawn-gates-all-l0-from-random-6",
    ]
    assert pruning.starts() == ["random-6", "baseline"]  # in the order of runs, without impt
    assert pruning.gates_from("baseline") == ["gates-all-l0", "gates-all-l0.1"]
    assert pruning.gates_heads_from(of("baseline")) == [
        f"{PRUNE}/gates-all-l0/seed2/heads.csv",
        f"{PRUNE}/gates-all-l0.1/seed2/heads.csv",
    ]


def test_folders_of_all_pruned_runs(pruning):
    """Pairs, then runs, then seeds: the order of tables and figures."""
    folders = pruning.layout.folders
    found = [folder for _, folder in folders("prune", pruning.runs)]
    assert len(found) == 2 * 6 * 2
    assert found[:3] == [
        f"{PRUNE}/{run}"
        for run in ("gates-all-l0/seed2", "gates-all-l0/seed1", "gates-all-l0.1/seed2")
    ]
    assert found[-1].endswith("multi30k.cs-en/drawn-gates-all-l0-from-random-6/seed1")
    assert folders("masking", pruning.starts())[2] == (
        "a.x-y",
        "results/mine/masking/a.x-y/baseline/seed2",
    )


def test_timed_are_the_baseline_and_what_has_lost_heads(pruning):
    assert pruning.timed() == ["baseline", "gates-all-l0.1", "ranked-gates-all-l0.1"]
    assert pruning.timed_models(W)[::2] == [
        f"{TRAIN}/baseline/seed2/model/model.json",
        f"{PRUNE}/gates-all-l0.1/seed2/model/model.json",
        f"{PRUNE}/ranked-gates-all-l0.1/seed2/model/model.json",
    ]
    assert pruning.timed_models(W)[3] == f"{PRUNE}/gates-all-l0.1/seed2/model/weights.safetensors"


@pytest.mark.parametrize("runs", ["random-6, baseline", "random-6"])
def test_a_start_is_timed_where_the_baseline_is_none(monkeypatch, tmp_path, runs):
    """Table voita_speedup divides by its times and shows its BLEU."""
    text = (
        TEXT.partition("pruned:")[0]
        + "pruned: [gates-all-l0-from-random-6, gates-all-l0.1-from-random-6]\n"
    )
    text = text.replace("random-12.5%, baseline, impt-6-p0.5, impt-6", runs)
    (tmp_path / "mine.yaml").write_text(text)
    pruning = planned(monkeypatch, load_experiment("mine", tmp_path))
    assert pruning.timed() == ["random-6", "gates-all-l0.1-from-random-6"]
    assert pruning.compared() == ["random-6"]


@pytest.mark.parametrize(
    ("run", "updates"),
    [
        ("scratch-gates-all-l0.1", 1000 + 200),  # as many in total as what it is compared with
        ("ranked-gates-all-l0.1", 200),
        ("gates-all-l0", 200),  # nothing waits for it
        ("gates-all-l0.1", 200 + 1200),
        ("gates-all-l0-from-random-6", 200 + 200),
        ("baseline", 1000 + 200 + 1200),
        ("random-6", 1000 + 200 + 200),
        ("impt-6", 1700),  # an update costs 1.7 times as much
        ("impt-6-p0.5", 1350),
    ],
)
def test_what_others_wait_for_longest_begins_first(pruning, run, updates):
    assert pruning.urgency(of(run)) == pytest.approx(updates)


def test_a_ranking_is_made_as_soon_as_a_run_waits_for_it(pruning):
    assert pruning.ranking_urgency(of("baseline")) == 200
    assert pruning.ranking_urgency(of("random-6")) == 0


FROM_NONE = """
  - gates-enc_self-l0-from-none
  - gates-enc_self-l0.3-from-none
  - scratch-gates-enc_self-l0.3-from-none
"""


def test_gates_from_random_weights_wait_for_no_model(monkeypatch, tmp_path):
    (tmp_path / "mine.yaml").write_text(TEXT.rstrip() + FROM_NONE)
    mixed = planned(monkeypatch, load_experiment("mine", tmp_path))
    control, name = "gates-enc_self-l0-from-none", "gates-enc_self-l0.3-from-none"
    assert mixed.gates_from_none() == [control, name] and name in mixed.penalised()
    assert mixed.fine_tuned() == ["gates-all-l0", "gates-all-l0.1", "gates-all-l0-from-random-6"]
    assert mixed.gates_from("baseline") == ["gates-all-l0", "gates-all-l0.1"]  # masked untuned
    assert mixed.starts() == mixed.compared() == ["random-6", "baseline"]
    # As many updates as a training and its fine-tuning, and those of the twin from scratch behind
    # it; no model waits for either.
    assert mixed.urgency(of(name)) == 1200 + 1200
    assert mixed.urgency(of(f"scratch-{name}")) == 1200
    assert mixed.timed() == ["baseline", "gates-all-l0.1", "ranked-gates-all-l0.1", name]
    # Alone: the baseline is no start, but it is what they are compared and timed with.
    alone = TEXT[: TEXT.index("pruned")] + "pruned:" + FROM_NONE
    (tmp_path / "mine.yaml").write_text(alone)
    alone = planned(monkeypatch, load_experiment("mine", tmp_path))
    assert (alone.starts(), alone.fine_tuned()) == ([], [])
    assert alone.compared() == ["baseline"] and alone.timed() == ["baseline", name]


def test_without_pruned_runs_nothing_is_asked_for(monkeypatch, tmp_path):
    (tmp_path / "mine.yaml").write_text(TEXT[: TEXT.index("pruned")])
    plain = planned(monkeypatch, load_experiment("mine", tmp_path))
    assert plain.named("gates") == plain.starts() == plain.timed() == []
    assert plain.timed_models(W) == plain.penalised() == []
    assert plain.urgency(of("impt-6")) == pytest.approx(1700)


LEFT_OUT = {
    "gates-all-l0.003",
    "gates-enc_self-l0.001",
    "gates-enc_self-l0.003",
    "scratch-gates-all-l0.01",
}


def test_the_short_experiment_is_the_whole_one_but_for_its_size():
    whole, short = (
        load_experiment(name, ROOT / "config").model_dump()
        for name in ("multi30k", "multi30k_short")
    )
    assert (whole["pairs"], whole["seeds"]) == (["multi30k.en-de", "multi30k.de-en"], [1, 2, 3])
    assert (short["pairs"], short["seeds"]) == (["multi30k.en-de"], [1])
    differing = {
        f"{section}.{key}"
        for section in whole
        if isinstance(whole[section], dict)
        for key in whole[section]
        if whole[section][key] != short[section][key]
    }
    assert differing == {
        *("train.updates", "train.warmup_updates", "train.dev_interval", "train.threads"),
        *("gates.updates", "gates.warmup_updates"),
        *("masking.draws", "masking.sentences", "speed.sentences"),
        *("train.keep_updates", "ablation.updates", "ablation.sentences", "roles.trees"),
    }
    # Of the second N, for Figure 5, the short one has Random-N alone.
    assert whole["runs"] == [*short["runs"], "impt-18"]
    assert short["runs"] == ["baseline", "random-9", "impt-9", "random-18"]
    assert short["pruned"] == [run for run in whole["pruned"] if run not in LEFT_OUT]
    assert len(short["pruned"]) == len(whole["pruned"]) - len(LEFT_OUT)

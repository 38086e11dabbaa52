"""The plan of an experiment: folders, flags, runs, and which jobs start first."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from project_copy import ROOT
from workflow_modules import load

from headcount.analysis.outputs import chapters
from headcount.base.errors import UserError
from headcount.base.settings.corpora import load_corpora
from headcount.base.settings.experiment import load_experiment
from headcount.base.settings.runs import RANDOM_WEIGHTS, PrunedSettings
from headcount.base.settings.training_runs import BASELINE, RunSettings

TWO_HEADS = RunSettings(method="baseline", attention_heads=2)
IMPT = RunSettings(method="importance", heads=6)
MEASURING = [SimpleNamespace(output=["results/quickstart/heads/{pair}/{run}/seed{seed}/a.csv"])]
"""Snakemake's rules, as far as they measure heads."""


@pytest.fixture
def plan(monkeypatch):
    return load(monkeypatch, "plan.plan").Plan("quickstart")


def change(plan, section: str = "", **values):
    """Set keys of the settings, or of one section."""
    if section:
        values = {section: getattr(plan.settings, section).model_copy(update=values)}
    plan.settings = plan.settings.model_copy(update=values)
    plan.name_runs()


def chapters_of(monkeypatch, plan):
    return load(monkeypatch, "plan.outputs").Outputs(plan, MEASURING)


def test_another_corpus_is_another_folder_and_the_same_one_the_same(plan):
    corpus = load_corpora(ROOT / "config" / "corpora.yaml")["synthetic"]
    before = plan.raw.of("synthetic.en-art").manifest
    for changes in ({"seed": 2}, {"train_pairs": 20000}):
        settings = corpus.settings.model_copy(update=changes)
        plan.corpora["synthetic"] = corpus.model_copy(update={"settings": settings})
        assert plan.raw.of("synthetic.en-art").manifest != before
    plan.corpora["synthetic"] = corpus.model_copy(update={"licence": "other words"})
    assert plan.raw.of("synthetic.en-art").manifest == before


def test_a_part_of_a_corpus_lies_with_the_whole_and_has_a_draw(plan):
    whole = plan.raw.of("multi30k.en-de")
    for name, pairs in (("multi30k_3k", "3000"), ("multi30k_10k", "10000")):
        assert plan.raw.of(f"{name}.en-de") == whole  # one download
        train = {"pair": f"{name}.en-de", "split": "train"}
        assert plan.split_flags(train)[4:] == ["--draw", pairs, "1"]
        assert plan.split_flags(train | {"split": "dev"})[4:] == []
        assert plan.tests(train) == plan.tests({"pair": "multi30k.en-de"})


def test_test_sets_under_masks_are_the_first_or_those_named(plan):
    german, czech = {"pair": "multi30k.de-en"}, {"pair": "multi30k.cs-en"}
    assert plan.masking_tests(german) == ["test_2016_flickr"]
    change(plan, "masking", test_sets=["test_2018_flickr", "test_2017_flickr"])
    assert plan.masking_tests(german) == ["test_2017_flickr", "test_2018_flickr"]
    flags = plan.masking_flags(czech)
    assert flags[flags.index("--test-sets") + 1] == '["test_2018_flickr"]'


def test_alignment_is_measured_on_the_first_test_set_with_links(plan, monkeypatch):
    generated, german = {"pair": "synthetic_near.en-art"}, {"pair": "multi30k.de-en"}
    change(plan, pairs=[generated["pair"], german["pair"]])
    assert plan.aligned_tests(generated) == ["test"] and plan.aligned_tests(german) == []
    assert plan.aligned() == [generated["pair"]]
    (path,) = plan.links(generated)
    assert path == f"data/bpe/quickstart/{generated['pair']}/links/test.gold.jsonl"
    # Dev gets gold links, too, so that the atlas draws them.
    assert plan.linked_splits(generated) == ["test", "dev"] and plan.linked_splits(german) == []
    tables = {item.name for c in chapters_of(monkeypatch, plan).chapters for item in c.outputs}
    assert {"alignment", "alignment_uses"} <= tables
    linked = plan.corpora["multi30k"].model_copy(
        update={"links": {"test_2017_mscoco": {"en-de": {}}}}
    )
    monkeypatch.setitem(plan.corpora, "multi30k", linked)
    assert plan.aligned_tests(german) == ["test_2017_mscoco"]
    monkeypatch.undo()
    change(plan, "alignment", links="silver")
    assert plan.aligned_tests(german) == ["test_2016_flickr"]
    wanted = german | {"aligned": "test_2016_flickr", "links": "silver"}
    file = f"data/text/quickstart/{german['pair']}/links/test_2016_flickr.silver.links"
    assert plan.raw_links(wanted) == file


def test_silver_links_are_made_where_they_are_asked_for(plan, monkeypatch):
    module = load(monkeypatch, "plan.jobs")
    assert "silver_links" in module.on_request(plan)
    rule = SimpleNamespace(name="silver_links", wildcard_names={"pair", "aligned"}, output=[])
    compared = SimpleNamespace(name="silver_alignment", wildcard_names={"pair"}, output=[])
    assert {name for name, _ in module.jobs(plan, [rule, compared])} == {rule.name, compared.name}
    change(plan, "alignment", links="silver")
    assert "silver_links" not in module.on_request(plan)
    ((name, values),) = module.jobs(plan, [rule, compared])
    assert name == rule.name and values["aligned"] == ["test"]


def test_the_baselines_ranking_serves_the_other_runs_of_its_pair_and_seed(plan):
    run = {"pair": "multi30k.de-en", "run": "impt-6", "seed": "3"}
    path = "results/quickstart/heads/multi30k.de-en/baseline/seed3/importance.csv"
    assert plan.baseline_importance(run) == [path]
    assert plan.baseline_importance({**run, "run": "baseline"}) == []  # its own already
    change(plan, runs=[IMPT])
    assert plan.baseline_importance(run) == []  # no such run in the experiment


def rules(**outputs: list[str]):
    return [
        SimpleNamespace(
            name=name,
            wildcard_names=set(names),
            output=[f"results/quickstart/{'train' if name == 'train' else 'heads'}/model.json"],
        )
        for name, names in outputs.items()
    ]


def test_jobs_are_the_values_of_the_wildcards_of_every_rule(plan, monkeypatch):
    module = load(monkeypatch, "plan.jobs")
    change(plan, runs=[TWO_HEADS, BASELINE, IMPT])
    plan.layout = replace(plan.layout, seeds=[3], more_seeds={"baseline": [1]})
    of_run = ["pair", "run", "seed"]
    known = rules(train=of_run, masking=of_run, gates=of_run, importance=of_run, segment=["pair"])
    known += rules(bleu=["phase", *of_run], translate=["phase", *of_run, "test"], report=[])
    known += rules(text=["pair", "split"], speed=["pair", "seed"], entailment=["pair"])
    known += rules(download=["corpus", "recipe"])
    jobs = list(module.jobs(plan, known))
    values = module.values_by_rule(known, jobs)
    runs = {"baseline-h2", "baseline", "impt-6"}
    assert values["train"] == {"pair": {"synthetic_near.en-art"}, "run": runs, "seed": {1, 3}}
    assert values["importance"] == values["train"] | {"seed": {3}}  # more_seeds are trained alone
    trained = [(*v["run"], *v["seed"]) for n, v in jobs if n == "train"]
    assert trained == [("baseline-h2", 3), ("baseline", 3, 1), ("impt-6", 3)]
    assert values["masking"]["run"] == {"baseline", "impt-6"}  # with as many heads
    assert values["text"] == {"pair": {"synthetic_near.en-art"}, "split": {"train", "dev", "test"}}
    phases = [phase for n, v in jobs if n == "translate" for phase in v["phase"]]
    assert phases == ["train"] * 3 + ["prune"] * len(plan.pruned)
    assert [n for n, _ in jobs].count("text") == 1  # a rule without runs
    assert values["bleu"]["run"] == runs | {*plan.pruned}
    for name in ("entailment", "segment"):
        assert values[name] == {"pair": set()} and name not in dict(jobs)
    assert values["speed"]["pair"] == set()  # quickstart times nothing
    assert not {"download", "report"} & {*values, *dict(jobs)}


def test_outputs_have_the_files_of_runs_that_they_compare(plan, monkeypatch):
    """HeadMask has no runs with other heads; `general` shows them beside the baseline."""
    change(plan, runs=[TWO_HEADS, BASELINE])
    plan.layout = replace(plan.layout, seeds=[1], more_seeds={})
    trained = "results/quickstart/train/synthetic_near.en-art/{}/seed1/{}"
    scores = [trained.format(run, "bleu.json") for run in ("baseline-h2", "baseline")]
    models = [trained.format(run, "model/model.json") for run in ("baseline-h2", "baseline")]
    outputs = chapters_of(monkeypatch, plan)
    given = {chapter.name: outputs.inputs(chapter) for chapter in outputs.chapters}
    assert (given["general"]["scores"], given["general"]["models_by_heads"]) == (scores, models)
    assert given["headmask"]["scores"] == scores[1:]
    assert not [path for files in given["headmask"].values() for path in files if "-h2" in path]


@pytest.mark.parametrize(
    ("kind", "name", "run", "no_run"),
    [
        ("models_by_heads", "heads_per_layer", TWO_HEADS, IMPT),
        (
            "models_by_dropout",
            "headmask_regularisation",
            RunSettings(method="baseline", dropout=0.2),
            RunSettings(method="baseline", attention_heads=2, dropout=0.2),
        ),
        (
            "variants",
            "headmask_variants",
            RunSettings(method="importance", heads=6, signed=True),
            RunSettings(method="importance", heads=12, dropout=0.2),
        ),
    ],
)
def test_a_comparison_is_made_where_there_is_something_to_compare(
    plan, monkeypatch, kind, name, run, no_run
):
    for other, made in ((run, True), (no_run, False)):
        change(plan, runs=[BASELINE, IMPT, other])
        outputs = chapters_of(monkeypatch, plan)
        assert any(name in page for page in outputs.pages()) == made
        files = [outputs.inputs(chapter).get(kind, []) for chapter in outputs.chapters]
        assert any(other.label in path for paths in files for path in paths) == made


@pytest.mark.parametrize(
    ("many_pairs", "made"),
    [
        ("{one_model: true, shares: [0.5]}", {"pair_ranks", "pair_own", "pair_transfer"}),
        ("{one_model: true}", {"pair_ranks", "pair_own"}),  # the ranks tell claims of one model
        ("{}", set()),
    ],
)
def test_pairs_of_one_model_are_compared_and_of_several_are_not(
    plan_of, monkeypatch, many_pairs, made
):
    pairs = "[synthetic_pairs.en-art, synthetic_pairs.en-qaa]"
    planned = chapters_of(monkeypatch, plan_of(f"pairs: {pairs}\nmany_pairs: {many_pairs}\n"))
    outputs = {item.name for chapter in planned.chapters for item in chapter.outputs}
    assert {name for name in outputs if name.startswith("pair_")} == made


def test_files_come_by_pair_then_run_then_seed(plan, monkeypatch):
    """The order of tables and figures."""
    plan.layout = replace(plan.layout, pairs=["multi30k.cs-en", "multi30k.de-en"])
    plan.layout = replace(plan.layout, seeds=[3, 1], more_seeds={})
    change(plan, runs=[BASELINE, IMPT])
    (headmask,) = (chapter for chapter in chapters() if chapter.name == "headmask")
    files = chapters_of(monkeypatch, plan).inputs(headmask)
    assert files["importance"] == [
        f"results/quickstart/heads/multi30k.{pair}/{run}/seed{seed}/importance.csv"
        for pair in ("cs-en", "de-en")
        for run in ("baseline", "impt-6")
        for seed in (3, 1)
    ]
    tests = ("test_2016_flickr", "test_2018_flickr")
    folder = "results/quickstart/train/multi30k.cs-en/baseline/seed3/translations"
    assert files["translations"][:2] == [f"{folder}/{test}.txt" for test in tests]
    assert len(files["translations"]) == 4 * 2 + 4 * 4  # de-en has four test sets


def test_a_scratch_run_has_the_dropout_of_its_start(plan, monkeypatch):
    dropped = RunSettings(method="baseline", dropout=0.2)
    scratch = [
        PrunedSettings.model_validate({"method": "scratch", "lambda": 0.1, "from": start})
        for start in (dropped, BASELINE)
    ]
    change(plan, runs=[BASELINE, dropped], pruned=scratch)
    plan.pruning = load(monkeypatch, "plan.pruning").Pruning(plan.layout, plan.settings)
    flags = [plan.scratch_flags({"run": run.label}) for run in scratch]
    assert [f[f.index("--dropout") + 1] for f in flags] == ["0.2", "0.1"]


ABLATION = """
pairs: [multi30k.en-de, synthetic.en-art]
runs: [baseline, {method: random, share: 12.5%}]
model: {preset: tiny}
train: {updates: 1000, warmup_updates: 10, keep_updates: [30, 500, 1000]}
importance: {sentences: 30}
ablation:
  runs: [random-6]
  updates: [30, 1000]
  steps: 4
"""


def test_ablation_reads_two_test_sets_and_dev_and_gets_the_keys_it_reads(plan_of):
    plan = plan_of(ABLATION)
    german, art = {"pair": "multi30k.en-de"}, {"pair": "synthetic.en-art"}
    assert plan.profiled == plan.ablated == ["random-6"] and plan.measured == []
    assert plan.ablation_texts(german) == ["dev", "test_2016_flickr", "test_2017_flickr"]
    assert plan.first_ablation_test(german) == "test_2016_flickr"
    # A pair with one test set: dev is its second, and is read once.
    assert plan.ablation_tests(art) == ["test", "dev"]
    assert plan.ablation_texts(art) == ["dev", "test"]
    flags = plan.ablation_flags("steps", "sentences")(art)
    assert flags == ["--steps", "4", "--test-sets", '["test", "dev"]']
    assert plan.rerank_flags()[plan.rerank_flags().index("--importance-sentences") + 1] == "30"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("steps: 4", "test_sets: [test, dev]", r"mine\.yaml:\d+: ablation.test_sets: "),
        (
            "steps: 4",
            "test_sets: [test_2106_flickr, test_2017_flickr, dev]",
            r"mine\.yaml:\d+: ablation.test_sets: .*nearest: test_2016_flickr",
        ),
        ("multi30k.en-de", "multi30k.en-xx", r"mine\.yaml:\d+: pairs: multi30k.en-xx: "),
    ],
)
def test_f09_what_no_corpus_has_is_refused_by_the_plan(plan_of, old, new, message):
    with pytest.raises(UserError, match=message):
        plan_of(ABLATION.replace(old, new))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"experment": "tiny"}, "unknown key experment. Give only experiment=NAME"),
        ({"experiment": "tiny", "updates": 9}, "unknown key updates. .*here config/tiny.yaml"),
        ({"experiment": "config/tiny.yaml"}, "experiment 'config/tiny.yaml': .* known: .*tiny"),
        ({"experiment": "tinny"}, "there is no config/tinny.yaml; nearest: tiny"),
        ({"experiment": None}, "experiment '': .* known: .*tiny"),
    ],
)
def test_f03_the_command_line_takes_a_name_and_nothing_else(monkeypatch, config, message):
    experiment_name = load(monkeypatch, "console").experiment_name
    with pytest.raises(UserError, match=message):
        load(monkeypatch, "plan.plan").Plan(experiment_name(config))


PRUNED = """
pairs: [a.x-y, multi30k.cs-en]
seeds: [2, 1]
runs:
  - {method: random, share: 12.5%}
  - baseline
  - {method: importance, heads: 6, probability: 0.5}
  - {method: importance, heads: 6}
model: {preset: tiny}
train: {updates: 1000, warmup_updates: 10}
gates: {updates: 200}
speed: {batch_sizes: [1]}
pruned:
  - {method: gates, lambda: [0, 0.1]}
  - {method: gates, lambda: 0, from: {method: random, share: 12.5%}}
  - {method: [scratch, importance], lambda: 0.1}
  - {method: random, lambda: 0, from: {method: random, share: 12.5%}}
"""
FROM_NONE = """
  - {method: gates, scope: enc_self, lambda: [0, 0.3], from: none}
  - {method: scratch, scope: enc_self, lambda: 0.3, from: none}
"""
W = {"pair": "a.x-y", "seed": "2"}
TRAIN, PRUNE = "results/mine/train/a.x-y", "results/mine/prune/a.x-y"


@pytest.fixture
def pruning(monkeypatch, tmp_path):
    """The pruned runs of an experiment in a text."""

    def read(text: str = PRUNED):
        (tmp_path / "mine.yaml").write_text(text)
        settings = load_experiment("mine", tmp_path)
        layout = load(monkeypatch, "plan.layout").Layout("mine", settings.pairs, settings.seeds)
        return load(monkeypatch, "plan.pruning").Pruning(layout, settings)

    return read


def test_inputs_of_pruned_runs(pruning):
    known, drawn = pruning(), {**W, "run": "drawn-gates-all-l0-from-random-6"}
    folder = f"{TRAIN}/random-6/seed2/model"
    assert known.start_model(drawn) == [f"{folder}/model.json", f"{folder}/weights.safetensors"]
    assert known.gates_heads(drawn) == [f"{PRUNE}/gates-all-l0-from-random-6/seed2/heads.csv"]
    assert known.importance(drawn) == []  # drawn: no ranking
    ranked = "results/mine/heads/a.x-y/baseline/seed2/importance.csv"
    assert known.importance({**W, "run": "ranked-gates-all-l0.1"}) == [ranked]
    assert known.starts() == ["random-6", "baseline"]  # in the order of runs, without impt
    assert known.gates_heads_from({**W, "run": "baseline"}) == [
        f"{PRUNE}/gates-all-l0/seed2/heads.csv",
        f"{PRUNE}/gates-all-l0.1/seed2/heads.csv",
    ]


def test_timed_are_the_baseline_or_another_start_and_what_has_lost_heads(pruning):
    assert pruning().timed() == ["baseline", "gates-all-l0.1", "ranked-gates-all-l0.1"]
    assert pruning().timed_models(W)[2:4] == [
        f"{PRUNE}/gates-all-l0.1/seed2/model/{name}"
        for name in ("model.json", "weights.safetensors")
    ]
    of_random = "pruned:\n  - {method: gates, lambda: [0, 0.1], from: {method: random, heads: 6}}"
    known = pruning(PRUNED.partition("pruned:")[0].replace("  - baseline\n", "") + of_random)
    assert known.timed() == ["random-6", "gates-all-l0.1-from-random-6"]
    assert known.compared() == ["random-6"]


def test_learnt_masks_of_ablated_models_stand_beside_their_curves(pruning):
    encoder = "  - {method: gates, scope: enc_self, lambda: 0}\n"
    subsets = encoder + "  - {method: subset, heads: 2, scope: [enc_self, all]}\n"
    mixed = pruning(PRUNED.rstrip() + "\n" + subsets)
    assert mixed.subsets_of(["random-6", "baseline"]) == ["subset-all-k2"]
    assert mixed.subsets_of(["random-6"]) == []


def test_runs_that_others_wait_for_start_first(pruning):
    """Gates and both controls wait for the baseline, both controls for the gates run as well."""
    waiting = {"baseline": 4, "random-6": 2, "gates-all-l0.1": 2, "impt-6": 0}
    waiting |= {"gates-all-l0-from-random-6": 1, "ranked-gates-all-l0.1": 0}
    assert {run: pruning().urgency({**W, "run": run}) for run in waiting} == waiting
    updates = {"scratch-gates-all-l0.1": 1200, "gates-all-l0.1": 200, "baseline": 1000}
    updates["impt-6"] = 1700  # an update costs 1.7 times as much
    assert {run: pruning().updates(run) for run in updates} == pytest.approx(updates)


def test_gates_from_random_weights_wait_for_no_model(pruning):
    mixed = pruning(PRUNED.rstrip() + FROM_NONE)
    control, name = "gates-enc_self-l0-from-none", "gates-enc_self-l0.3-from-none"
    assert mixed.gates_from(RANDOM_WEIGHTS) == [control, name] and name in mixed.penalised()
    assert mixed.fine_tuned() == ["gates-all-l0", "gates-all-l0.1", "gates-all-l0-from-random-6"]
    assert mixed.gates_from("baseline") == ["gates-all-l0", "gates-all-l0.1"]
    assert mixed.starts() == mixed.compared() == ["random-6", "baseline"]
    assert (mixed.updates(name), mixed.urgency({**W, "run": name})) == (1200, 1)  # its scratch
    assert mixed.timed() == ["baseline", "gates-all-l0.1", "ranked-gates-all-l0.1", name]
    alone = pruning(PRUNED[: PRUNED.index("pruned")] + "pruned:" + FROM_NONE)
    assert (alone.starts(), alone.fine_tuned()) == ([], [])
    assert alone.compared() == ["baseline"] and alone.timed() == ["baseline", name]

"""What jobs ask for, against sums by hand and against what was measured."""

from pathlib import Path

import pandas as pd
import pytest
from workflow_modules import load

from headcount.base.settings.experiment import load_experiment

MEASURED = Path(__file__).with_name("measured_memory.csv")
MOST = 2.5
"""Times what a job took that it may ask for."""


@pytest.fixture
def needs(monkeypatch):
    return load(monkeypatch, "needs")


def settings(name: str, **train):
    found = load_experiment(name, Path("benchmarks" if name == "bench_base" else "config"))
    return found.model_copy(update={"train": found.train.model_copy(update=train)})


def test_parameters_of_quickstart_by_hand(needs):
    """2 + 2 layers, width 96, inside 256: 6 attentions of 4 matrices; 4 times two; 1,000 pieces."""
    attention, inner, words = 6 * 4 * 96**2, 4 * 2 * 96 * 256, 1000 * 96
    found = settings("quickstart")
    assert found.bpe.joint
    assert needs.parameters(found) == attention + inner + words == 513_792


def test_jobs_ask_for_what_they_took_and_for_little_more(needs):
    """Peaks that `python -m benchmarks.memory` measured on a CPU."""
    rows = pd.read_csv(MEASURED).to_dict("records")
    assert {row["experiment"] for row in rows} >= {"quickstart", "multi30k_short", "bench"}
    wrong = {}
    for row in rows:
        search = row["job"] == "translate"
        asked = (needs.search_mb if search else needs.training_mb)(as_measured(row))
        if not row["megabytes"] < asked < MOST * row["megabytes"]:
            wrong[str(row)] = asked
    assert wrong == {}


def as_measured(row: dict):
    """Settings of an experiment, its size and threads as a row has them."""
    found = settings(row["experiment"], batch_tokens=row["batch_tokens"])
    search = {"batch_tokens": row["batch_tokens"], "threads": row["threads"], "beam": 5}
    bpe = found.bpe.model_copy(update={"merges": row["pieces"]})
    return found.model_copy(update={"bpe": bpe, "decode": found.decode.model_copy(update=search)})


def test_each_thread_of_a_search_has_a_batch_by_hand(needs):
    """2 layers, width 96, 1,000 pieces, beam 5: 5,000 hypotheses' positions of 8 · 2 · 96 + 150."""
    found = as_measured({"experiment": "quickstart", "batch_tokens": 1000, "threads": 3}
                        | {"pieces": 1000})  # fmt: skip
    assert found.bpe.joint
    numbers = 2 * 513_792 + 3 * 5000 * (8 * 2 * 96 + 150)
    assert needs.search_mb(found) == needs.SEARCH_MB + 6 * numbers // 10**6


def test_on_a_gpu_a_job_asks_for_its_program_and_its_weights(needs):
    """6 bytes a number: 7 of each parameter in a training, 1 in a search."""
    found, cpu = settings("quickstart", device="cuda"), settings("quickstart")
    assert needs.training_mb(found) == 5000 + 6 * 7 * 513_792 // 10**6 == 5021
    decode = found.decode.model_copy(update={"device": "cuda"})
    assert needs.decoding_mb(found.model_copy(update={"decode": decode}), "decode") == 5003
    for section in ("decode", "importance"):  # these stay on the CPU
        assert needs.decoding_mb(found, section) == needs.decoding_mb(cpu, section) < 1100


@pytest.mark.parametrize(
    ("rule", "wildcards", "section", "expected"),
    [
        ("train", {"run": "baseline"}, "train", 3),
        ("translate", {"run": "baseline", "test": "test"}, "decode", 1),
        ("text", {"split": "train"}, "decode", 1),
        ("bpe", {}, "decode", 1),
        ("relevance", {"run": "baseline"}, "lrp", 1),
    ],
)
def test_minutes_by_hand(monkeypatch, rule, wildcards, section, expected):
    """Of 513,792 parameters, and 12 subwords a side; each job has five minutes beside its work.

    Training, at 2e10 operations in a second: 1,000 updates of 6 x 513,792 x 1,000, 154 s, and ten
    times 1,000 pairs of 2 x 513,792 x 24, 12 s. Translating 1,000 sentences, 4 words at a time, at
    1e10: 4.9 s. 30,000 lines take 3.8 s, and their subwords 53 s. Relevance of 100 sentences by two
    rules, 6 x 513,792 x 24 x 12 each, at 5e9: 36 s.
    """
    plan = load(monkeypatch, "plan").Plan({"experiment": "quickstart"}, [])
    minutes = load(monkeypatch, "minutes").MinutesOfJobs(plan)
    where = {"pair": "synthetic.en-art", "seed": "1"}
    assert minutes.of(rule, where | wildcards, section) == 5 + expected


def test_a_gpu_and_several_threads_are_faster(monkeypatch):
    """Updates take 154 s of a core, validation 12 s: of three 56 s, of a GPU less than one."""
    plan = load(monkeypatch, "plan").Plan({"experiment": "quickstart"}, [])
    module, where = load(monkeypatch, "minutes"), {"pair": "synthetic.en-art", "run": "baseline"}
    for changed in ({"threads": 3}, {"device": "cuda"}):
        plan.settings = settings("quickstart", **changed)
        assert module.MinutesOfJobs(plan).of("train", where, "train") == 5 + 1


def test_each_attempt_asks_for_more_and_a_training_for_two_days_at_most(needs, monkeypatch):
    plan = load(monkeypatch, "plan").Plan({"experiment": "quickstart"}, [])
    told = []

    def minutes(rule: str, wildcards: dict, section: str) -> int:
        told.append((rule, wildcards, section))
        return 1000

    asked = needs.Needs(plan, True, minutes)
    memory, runtime = (asked.job("decode", 700)[name] for name in ("mem_mb", "runtime"))
    assert [memory({}, attempt=n) for n in (1, 2, 3)] == [700, 1400, 2100]
    assert [runtime({"run": "a"}, n, "masking") for n in (1, 3)] == [1000, 3000]
    assert told[0] == ("masking", {"run": "a"}, "decode")
    runtime = asked.training()["runtime"]
    assert [runtime({}, n, "train") for n in (1, 2, 3)] == [1000, 2000, 2880]
    assert "runtime" not in needs.Needs(plan).training()  # on one machine nobody asks for time


def test_another_engine_takes_no_gpu_and_other_jobs_know_none(needs, monkeypatch):
    """Where GPUs are for the asking, our search takes one; jobs with masks are told of ours."""
    plan = load(monkeypatch, "plan").Plan({"experiment": "quickstart"}, [])
    own = needs.Needs(plan).translating()
    assert own["gpu"] == 1
    changed = plan.settings.decode.model_copy(update={"engine": "ctranslate2"})
    plan.settings = plan.settings.model_copy(update={"decode": changed})
    asked = needs.Needs(plan)
    assert (asked.translating()["gpu"], asked.job("decode")["gpu"]) == (0, 1)
    # Weights of four bytes twice more, and half as much again for room; both are whole megabytes.
    more = 2 * int(1.5 * 4 * needs.parameters(plan.settings) / 1e6)
    assert asked.translating()["mem_mb"](None, 2) - own["mem_mb"](None, 2) == 2 * more > 0
    assert "--engine" in plan.section("decode") and "--engine" not in plan.own_search()
    assert set(plan.own_search()) == set(plan.section("decode")) - {"--engine", "ctranslate2"}


def test_what_times_something_has_a_node_of_its_own(needs, monkeypatch):
    plan = load(monkeypatch, "plan").Plan({"experiment": "quickstart"}, [])
    assert needs.Needs(plan, True).timing("decode")["slurm_extra"] == "--exclusive"
    assert "slurm_extra" not in needs.Needs(plan).timing("decode")


@pytest.mark.parametrize(
    ("flags", "submits"),
    [
        (["--cores", "all", "-j", "8"], False),
        (["--executor", "local", "--jobs", "8"], False),
        (["--executor", "slurm", "--jobs", "8"], True),
        (["--workflow-profile", "workflow/profiles/slurm", "-n"], True),
    ],
)
def test_the_executor_says_whether_there_is_a_cluster(monkeypatch, capsys, flags, submits):
    pytest.importorskip("snakemake_executor_plugin_slurm")
    asked = load(monkeypatch, "asked")
    monkeypatch.setattr(asked.sys, "argv", ["snakemake", *flags])
    assert asked.submits() == submits
    assert capsys.readouterr().err == ""

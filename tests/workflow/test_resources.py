"""Resources that jobs ask for, against what was measured, and the estimate of their time."""

from pathlib import Path

import pandas as pd
import pytest
from workflow_modules import load

from benchmarks.memory import experiment
from headcount.base.settings.experiment import load_experiment

MEASURED = Path(__file__).with_name("measured_memory.csv")
ATTEMPTS = (1, 2, 3)


@pytest.fixture
def resources(monkeypatch):
    return load(monkeypatch, "machine")


@pytest.fixture
def estimate(monkeypatch):
    return load(monkeypatch, "estimate")


@pytest.fixture
def plan(monkeypatch):
    return load(monkeypatch, "plan.plan").Plan("quickstart", dry=True)


def change(plan, section: str, **values):
    """Set keys of a section of the settings."""
    changed = getattr(plan.settings, section).model_copy(update=values)
    plan.settings = plan.settings.model_copy(update={section: changed})


def asked(limits: dict, name: str) -> list[int]:
    return [limits[name](wildcards=None, attempt=attempt) for attempt in ATTEMPTS]


def test_parameters_of_quickstart_by_hand(resources):
    """2 + 2 layers, width 96, inside 256: 6 attentions of 4 matrices; 4 times two; 1,000 pieces."""
    attention, inner, pieces = 6 * 4 * 96**2, 4 * 2 * 96 * 256, 1000 * 96
    settings = load_experiment("quickstart", Path("config"))
    assert resources.parameters(settings) == attention + inner + pieces == 513_792


def test_jobs_ask_for_more_than_was_measured(resources, plan):
    """Peaks that `python -m benchmarks.memory` measured on a CPU."""
    rows = pd.read_csv(MEASURED).to_dict("records")
    assert {row["experiment"] for row in rows} >= {"quickstart", "multi30k_short", "bench"}
    for row in rows:
        plan.settings = experiment(row["experiment"])
        change(plan, "train", batch_tokens=row["batch_tokens"], device="cpu")
        change(plan, "decode", device="cpu")
        change(plan, "bpe", merges=row["pieces"])
        needs = resources.JobResources(plan)
        limits = needs.translating() if row["job"] == "translate" else needs.training()
        assert row["megabytes"] < asked(limits, "mem_mb")[0], row


def test_a_further_attempt_asks_for_as_much_again_and_a_training_for_two_days_at_most(
    resources, plan
):
    needs = resources.JobResources(plan, cluster=True)
    assert asked(needs.training(), "mem_mb") == [1000, 2000, 3000]
    assert asked(needs.training(), "runtime") == [120, 240, 360]
    change(plan, "model", d_model=1024, d_ff=4096)
    needs = resources.JobResources(plan, cluster=True)
    assert asked(needs.training(), "runtime")[0] <= asked(needs.training(), "runtime")[2] == 2880
    assert "runtime" not in resources.JobResources(plan).training()  # on one machine


@pytest.mark.parametrize(
    ("cluster", "gpus"),
    [(False, {"auto": 1, "cuda": 1, "cpu": 0}), (True, {"auto": 0, "cuda": 1, "cpu": 0})],
)
def test_the_settings_alone_decide_whether_a_job_asks_for_a_gpu(
    resources, plan, capsys, cluster, gpus
):
    """Nobody knows here what the nodes of a cluster have."""
    resources.JobResources(plan, cluster).warn_of_devices()
    warned = "note: on a cluster, device: auto asks for no GPU" in capsys.readouterr().err
    assert warned == cluster
    for device, count in gpus.items():
        change(plan, "decode", device=device)
        assert resources.JobResources(plan, cluster).job("decode")["gpu"] == count


def test_every_process_of_a_training_has_a_task_with_its_memory_and_gpu(resources, plan):
    one = resources.JobResources(plan, cluster=True).training()
    change(plan, "train", processes=3, accumulate=3, threads=2, device="cuda")
    needs = resources.JobResources(plan, cluster=True)
    three = needs.training()
    tasks = {"gpu": 3, "mpi": "srun", "tasks": 3, "cpus_per_task": 2, "tasks_per_gpu": 1}
    assert tasks.items() <= three.items() and "tasks" not in one
    assert needs.threads("train") == 6
    assert asked(three, "mem_mb")[0] == 3 * resources.training_mb(plan.settings)


def test_a_job_that_times_something_has_a_node_of_its_own(resources, plan):
    assert "slurm_extra" not in resources.JobResources(plan).timing("decode")
    timing = resources.JobResources(plan, cluster=True).timing("decode")
    assert timing["slurm_extra"] == "--exclusive"


def test_guesses_are_shares_of_a_training(estimate, plan, monkeypatch, tmp_path):
    """6 operations for a parameter and a token: 6 · 513,792 · 1,000 tokens in 1,000 updates."""
    monkeypatch.chdir(tmp_path)  # no job has run here
    training = 6 * 513_792 * 1000 * 1000 / 1e10
    seconds = estimate.seconds_by_rule(plan, ["gates", "masking", "bleu"], 1e10)
    updates = plan.settings.gates.updates
    assert seconds["gates"] == pytest.approx(estimate.START + training * updates / 1000)
    share = estimate.SHARES["masking"]
    assert seconds["masking"] == pytest.approx(estimate.START + training * share)
    assert seconds["bleu"] == estimate.START


def test_seconds_of_jobs_that_ran_here_take_the_place_of_guesses(
    estimate, plan, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "results/quickstart/benchmarks/train"
    folder.mkdir(parents=True)
    for name, seconds in (("a", 10), ("b", 30)):
        (folder / f"{name}.tsv").write_text(f"s\th:m:s\n{seconds}\t0:00:00\n")
    assert estimate.seconds_by_rule(plan, ["train"], 1e10) == {"train": 20}


def test_time_on_the_clock_is_the_sum_over_workers_or_the_longest_job(estimate):
    seconds, jobs = {"train": 100.0, "bleu": 2.0}, {"train": 3, "bleu": 10}
    assert estimate.wall_seconds(seconds, jobs, 2) == 160
    assert estimate.wall_seconds(seconds, jobs, 32) == 100


def test_a_training_has_its_threads_of_the_machine_or_a_gpu(estimate, plan, monkeypatch):
    monkeypatch.setattr(estimate, "_product_rate", lambda: 8e10)
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    change(plan, "train", threads=2)
    assert estimate.machine_rate(plan, 0) == pytest.approx(0.45 * 4e10)
    assert estimate.workers(plan, 8, 0) == 4
    assert estimate.machine_rate(plan, 2) == estimate.GPU_RATE
    assert estimate.workers(plan, 8, 2) == 2
    change(plan, "train", device="cpu")
    assert estimate.workers(plan, 8, 2) == 4

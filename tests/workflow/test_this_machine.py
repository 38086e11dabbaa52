"""The lock of the folder, GPUs and memory of a machine, and what jobs ask for and take."""

import multiprocessing
import os
import signal
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from workflow_modules import load

from benchmarks.memory import experiment
from headcount.base.errors import EnvironmentFault, UserError
from headcount.base.files import hold
from headcount.base.settings.experiment import load_experiment
from headcount.model import gpu_slots
from headcount.model.gpu_slots import SLOTS, take_slot


@pytest.fixture
def lock(monkeypatch, tmp_path):
    """The module as a new process has it, in a folder of its own."""
    module = load(monkeypatch, "machine")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "_held", [])
    return module


def test_f43_a_run_takes_the_folder_and_one_beside_it_names_it(lock):
    assert not lock.is_held()
    lock.hold_folder(held_before=False)
    assert lock.is_held()
    with pytest.raises(EnvironmentFault, match=f"process {os.getpid()} is running this workflow"):
        lock.hold_folder(held_before=True)
    lock._held.pop().close()
    assert not lock.is_held()
    lock.hold_folder(held_before=False)


def test_f43_a_plan_made_beside_a_run_that_has_ended_is_not_carried_out(lock):
    """What that one has finished would be deleted as in the way, and made again."""
    other = hold(lock.LOCK, "running")
    held = lock.is_held()
    other.close()
    with pytest.raises(EnvironmentFault, match="another run in .* finished while this one was"):
        lock.hold_folder(held)


def test_x12_results_that_are_no_folder_are_refused(lock, tmp_path):
    lock.require_folders("mine")
    (tmp_path / "results").mkdir()
    (tmp_path / "results/mine").symlink_to("mine")
    with pytest.raises(UserError, match="results/mine: expected a folder, found a file, or a link"):
        lock.require_folders("mine")


fork = multiprocessing.get_context("fork")


@pytest.fixture
def machine(monkeypatch):
    return load(monkeypatch, "machine")


@pytest.mark.parametrize(
    ("devices", "shares", "expected"),
    [
        (["0", "1"], 2, "0,1"),
        (["0", "1"], 5, "0,1,0,1,0"),  # several jobs share a GPU, which take turns
        (["3", "5"], 1, "3"),  # those that CUDA_VISIBLE_DEVICES shows
        ([], 4, ""),
    ],
)
def test_every_share_is_a_slot_on_one_gpu(machine, devices, shares, expected):
    assert machine.slots(devices, shares) == expected


def test_gpus_are_those_that_are_shown_or_those_that_nvidia_smi_lists(
    machine, monkeypatch, tmp_path
):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'GPU 0: A (UUID: x)'; echo 'GPU 1: A (UUID: y)'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(machine.metadata, "version", lambda _: "2.13.0+cpu")
    assert machine.gpus() == []  # of this torch
    monkeypatch.setattr(machine.metadata, "version", lambda _: "2.13.0+cu130")
    assert machine.gpus() == ["0", "1"]
    for shown, found in {"3,5": ["3", "5"], "": [], "-1": [], "5,-1,3": ["5"]}.items():
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shown)
        assert machine.gpus() == found
    tool.unlink()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")  # of a machine that has none
    assert machine.gpus() == []


def test_of_no_share_nothing_is_shown(machine, monkeypatch):
    """`--resources gpu=0`: jobs that may use a GPU do without."""
    monkeypatch.setattr(machine, "gpus", lambda: ["0", "1"])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setenv(SLOTS, "")
    given = SimpleNamespace(value=0)
    resources = SimpleNamespace(setdefault=lambda name, own: given)
    machine.set_limits(SimpleNamespace(global_resources=resources))
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""


def test_memory_is_that_of_the_container_where_it_has_less(machine, monkeypatch, tmp_path):
    whole = machine.memory_mb()
    told = tmp_path / "memory.max"
    first = tmp_path / "memory.limit_in_bytes"
    monkeypatch.setattr(machine, "CONTAINER", (told, first))
    told.write_text("512000000\n")
    assert machine.memory_mb() == 512 < whole
    first.write_text("300000000\n")
    assert machine.memory_mb() == 300
    first.write_text("9223372036854771712\n")  # no limit
    told.write_text("max\n")
    assert machine.memory_mb() >= whole


def _take(folder, told):
    os.chdir(folder)
    gpu_slots._held.clear()
    try:
        take_slot()
        take_slot()  # of one process, once
        told.put(os.environ["CUDA_VISIBLE_DEVICES"])
    except EnvironmentFault as fault:
        told.put(str(fault))
    signal.pause()


def test_each_process_takes_a_slot_of_its_own_until_it_ends(monkeypatch, tmp_path):
    monkeypatch.setenv(SLOTS, "4,7")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    told = fork.SimpleQueue()  # a process that is killed leaves no thread of it behind
    jobs = [fork.Process(target=_take, args=(tmp_path, told)) for _ in range(4)]
    found = []
    for job in jobs[:3]:
        job.start()
        found.append(told.get())
    assert found[:2] == ["4", "7"]
    assert "expected a free GPU among the 2 slots" in found[2] and "start again" in found[2]
    jobs[0].kill()  # however it ends, the kernel frees its slot
    jobs[0].join()
    jobs[3].start()
    assert told.get() == "4"
    for job in jobs[1:]:
        job.kill()
        job.join()


def test_a_script_by_hand_sees_every_gpu(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(SLOTS, raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    take_slot()
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "1" and not list(tmp_path.rglob("*.lock"))


MEASURED = Path(__file__).with_name("measured_memory.csv")
ATTEMPTS = (1, 2, 3)


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


def test_parameters_of_quickstart_by_hand(machine):
    """6 attentions, 4 matrices, 8 heads of 12; 2 + 2 layers, width 64, inside 192; 1,000 pieces."""
    attention, inner, pieces = 6 * 4 * 64 * 96, 4 * 2 * 64 * 192, 1000 * 64
    settings = load_experiment("quickstart", Path("config"))
    assert machine.parameters(settings) == attention + inner + pieces == 309_760


def test_jobs_ask_for_more_than_was_measured(machine, plan):
    """Peaks that `python -m benchmarks.memory` measured on a CPU."""
    rows = pd.read_csv(MEASURED).to_dict("records")
    assert {row["experiment"] for row in rows} >= {"quickstart", "multi30k_short", "bench"}
    for row in rows:
        plan.settings = experiment(row["experiment"])
        change(plan, "train", batch_tokens=row["batch_tokens"], device="cpu")
        change(plan, "decode", device="cpu")
        change(plan, "bpe", merges=row["pieces"])
        needs = machine.JobResources(plan)
        limits = needs.translating() if row["job"] == "translate" else needs.training()
        assert row["megabytes"] < asked(limits, "mem_mb")[0], row


def test_a_further_attempt_asks_for_as_much_again_and_a_training_for_two_days_at_most(
    machine, plan
):
    needs = machine.JobResources(plan, cluster=True)
    assert asked(needs.training(), "mem_mb") == [1000, 2000, 3000]
    assert asked(needs.training(), "runtime") == [120, 240, 360]
    change(plan, "model", d_model=1024, d_ff=4096)
    needs = machine.JobResources(plan, cluster=True)
    assert asked(needs.training(), "runtime")[0] <= asked(needs.training(), "runtime")[2] == 2880
    assert "runtime" not in machine.JobResources(plan).training()  # on one machine


@pytest.mark.parametrize(
    ("cluster", "gpus"),
    [(False, {"auto": 1, "cuda": 1, "cpu": 0}), (True, {"auto": 0, "cuda": 1, "cpu": 0})],
)
def test_the_settings_alone_decide_whether_a_job_asks_for_a_gpu(
    machine, plan, capsys, cluster, gpus
):
    """Nobody knows here what the nodes of a cluster have."""
    machine.JobResources(plan, cluster).warn_of_devices()
    warned = "note: on a cluster, device: auto asks for no GPU" in capsys.readouterr().err
    assert warned == cluster
    for device, count in gpus.items():
        change(plan, "decode", device=device)
        assert machine.JobResources(plan, cluster).job("decode")["gpu"] == count


def test_every_process_of_a_training_has_a_task_with_its_memory_and_gpu(machine, plan):
    one = machine.JobResources(plan, cluster=True).training()
    change(plan, "train", processes=3, accumulate=3, threads=2, device="cuda")
    needs = machine.JobResources(plan, cluster=True)
    three = needs.training()
    tasks = {"gpu": 3, "mpi": "srun", "tasks": 3, "cpus_per_task": 2, "tasks_per_gpu": 1}
    assert tasks.items() <= three.items() and "tasks" not in one
    assert needs.threads("train") == 6
    assert asked(three, "mem_mb")[0] == 3 * machine.training_mb(plan.settings)


def test_guesses_are_shares_of_a_training(estimate, plan, monkeypatch, tmp_path):
    """6 operations for a parameter and a token: 6 · 309,760 · 600 tokens in 900 updates."""
    monkeypatch.chdir(tmp_path)  # no job has run here
    training = 6 * 309_760 * 600 * 900 / 1e10
    seconds = estimate.seconds_by_rule(plan, ["gates", "masking", "bleu"], 1e10)
    updates = plan.settings.gates.updates
    assert seconds["gates"] == pytest.approx(estimate.START + training * updates / 900)
    share = estimate.SHARES["masking"]
    assert seconds["masking"] == pytest.approx(estimate.START + training * share)
    assert seconds["bleu"] == estimate.START

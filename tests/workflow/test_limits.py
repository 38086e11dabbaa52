"""Memory and GPUs of a machine as limits of its jobs, and which GPU each job takes."""

import multiprocessing
import os
import signal
from types import SimpleNamespace

import pytest
from workflow_modules import load

from headcount.base.errors import EnvironmentFault
from headcount.model import gpu_slots
from headcount.model.gpu_slots import SLOTS, take_slot

fork = multiprocessing.get_context("fork")


@pytest.fixture
def limits(monkeypatch):
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
def test_every_share_is_a_slot_on_one_gpu(limits, devices, shares, expected):
    assert limits.slots(devices, shares) == expected


def test_gpus_are_those_that_are_shown_or_those_that_nvidia_smi_lists(
    limits, monkeypatch, tmp_path
):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'GPU 0: A (UUID: x)'; echo 'GPU 1: A (UUID: y)'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(limits.metadata, "version", lambda _: "2.13.0+cpu")
    assert limits.gpus() == []  # of this torch
    monkeypatch.setattr(limits.metadata, "version", lambda _: "2.13.0+cu130")
    assert limits.gpus() == ["0", "1"]
    for shown, found in {"3,5": ["3", "5"], "": [], "-1": [], "5,-1,3": ["5"]}.items():
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shown)
        assert limits.gpus() == found
    tool.unlink()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")  # of a machine that has none
    assert limits.gpus() == []


def test_of_no_share_nothing_is_shown(limits, monkeypatch):
    """`--resources gpu=0`: jobs that may use a GPU do without."""
    monkeypatch.setattr(limits, "gpus", lambda: ["0", "1"])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setenv(SLOTS, "")
    given = SimpleNamespace(value=0)
    resources = SimpleNamespace(setdefault=lambda name, own: given)
    limits.set_limits(SimpleNamespace(global_resources=resources))
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""


def test_memory_is_that_of_the_container_where_it_has_less(limits, monkeypatch, tmp_path):
    whole = limits.memory_mb()
    told = tmp_path / "memory.max"
    first = tmp_path / "memory.limit_in_bytes"
    monkeypatch.setattr(limits, "CONTAINER", (told, first))
    told.write_text("512000000\n")
    assert limits.memory_mb() == 512 < whole
    first.write_text("300000000\n")
    assert limits.memory_mb() == 300
    first.write_text("9223372036854771712\n")  # no limit
    told.write_text("max\n")
    assert limits.memory_mb() >= whole


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

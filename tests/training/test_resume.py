"""Killed, stopped or interrupted, training ends with the same bytes as if left alone."""

import itertools
import math
import multiprocessing
import os
import shutil
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from damage import flip
from small_run import SmallRun, outcome, segment
from tqdm import tqdm

from headcount.base.errors import Interrupted, UserError
from headcount.base.files import read_json
from headcount.training import states

pytestmark = pytest.mark.slow
fork = multiprocessing.get_context("fork")


@pytest.fixture(scope="module", autouse=True)
def one_thread_and_no_pause():
    """Threads do not survive a fork; and no update goes by without a saved state.

    tqdm's lock is shared between forks: a child killed while it holds it would stop all later ones.
    Commands are processes of their own and share none.
    """
    tqdm.set_lock(threading.RLock())
    threads, share = torch.get_num_threads(), states.LARGEST_SHARE
    torch.set_num_threads(1)
    states.LARGEST_SHARE = math.inf
    yield
    torch.set_num_threads(threads)
    states.LARGEST_SHARE = share


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> SmallRun:
    return SmallRun(segment(tmp_path_factory.mktemp("small")))


@pytest.fixture(scope="module")
def uninterrupted(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    run.finish(folder / "out", folder / "state")
    assert not (folder / "state").exists()
    return outcome(folder / "out")


def finish_quietly(run: SmallRun, folder: Path, fatal_call: float = math.inf) -> None:
    """Run in this process; at the n-th call that commits to disk, be killed on the spot."""
    sys.stderr = (folder / "log").open("a", buffering=1)
    calls = itertools.count(1)
    for name in ("fsync", "replace", "rename"):
        setattr(os, name, _fatal(getattr(os, name), calls, fatal_call))
    run.finish(folder / "out", folder / "state")


def _fatal(function, calls, fatal_call):
    def wrapped(*arguments):
        if next(calls) == fatal_call:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments)

    return wrapped


def start(run: SmallRun, folder: Path, fatal_call: float = math.inf):
    folder.mkdir(exist_ok=True)
    process = fork.Process(target=finish_quietly, args=(run, folder, fatal_call))
    process.start()
    return process


def killed(run: SmallRun, folder: Path, fatal_call: float) -> None:
    process = start(run, folder, fatal_call)
    process.join()
    assert process.exitcode == -signal.SIGKILL


def test_f29_killed_at_each_step_of_writing(run, uninterrupted, tmp_path):
    """The k-th run dies at its k-th commit to disk; then one goes to the end.

    A state takes eight commits: flush, rename and flush of the folder for each of two files, then
    rename and flush of its own folder. So 16 in a row go through every step of two states.
    """
    for call in range(1, 17):
        killed(run, tmp_path / "run", call)
    start(run, tmp_path / "run").join()
    assert outcome(tmp_path / "run" / "out") == uninterrupted


def test_finished_outputs_are_placed_again_without_training(run, tmp_path, monkeypatch, capfd):
    """Under an engine that did not record them. Damaged ones are not, nor by hand."""
    monkeypatch.setenv("HEADCOUNT_JOB", "1")
    run.finish(tmp_path / "out", tmp_path / "state")
    first = {p.relative_to(tmp_path): p.read_bytes() for p in (tmp_path / "out").rglob("*.*")}
    shutil.copytree(tmp_path / "state", tmp_path / "damaged")
    (finished,) = (tmp_path / "damaged").glob("*/finished")
    flip(finished / "masks.csv", -2)
    for state, training in (("state", False), ("damaged", True)):
        shutil.rmtree(tmp_path / "out")
        capfd.readouterr()
        run.finish(tmp_path / "out", tmp_path / state)
        printed = capfd.readouterr().err
        assert ("trained before; outputs taken from" in printed) != training
        assert ("dev" in printed) == training == (f"{finished}: damaged" in printed)
        assert first.keys() == {p.relative_to(tmp_path) for p in (tmp_path / "out").rglob("*.*")}
    monkeypatch.delenv("HEADCOUNT_JOB")
    run.finish(tmp_path / "out", tmp_path / "state")
    assert not (tmp_path / "state").exists()


def test_f29_killed_at_each_step_of_the_last_writes(run, uninterrupted, tmp_path, monkeypatch):
    """After the last update: outputs half there, or all there and the states half gone.

    Under an engine, which may be killed before it has recorded them; so training never starts anew.
    """
    monkeypatch.setenv("HEADCOUNT_JOB", "1")
    process = start(run, tmp_path / "almost")
    while not list((tmp_path / "almost" / "state").glob("*/update-000000023")):
        assert process.is_alive()
        time.sleep(0.001)
    process.kill()
    process.join()
    for call in itertools.count(1):
        folder = tmp_path / f"run{call}"
        shutil.copytree(tmp_path / "almost", folder)
        process = start(run, folder, call)
        process.join()
        finished = process.exitcode == 0
        start(run, folder).join()
        assert outcome(folder / "out") == uninterrupted
        log = (folder / "log").read_text()
        starts = log.count("going on from update 2") + log.count("trained before; outputs taken")
        assert starts == 2  # twice started, never from zero
        if finished:
            break
    # Two kept, weights, last, description, curve, masks, slopes and manifest take three commits
    # each, the set two, the files but the manifest three more in their places.
    assert call > 3 * 9 + 2 + 3 * 8


def test_x03_a_state_folder_deleted_during_training_is_noticed_and_the_next_run_is_whole(
    run, uninterrupted, tmp_path, monkeypatch
):
    """Update 5 is to be kept; the folder goes in update 10, whose state cannot be saved."""
    from headcount.training.train import Trainer

    plain = Trainer._update

    def update_and_delete(trainer):
        plain(trainer)
        if trainer.progress.update == 10:
            shutil.rmtree(tmp_path / "state")

    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "_update", update_and_delete)
        with pytest.raises(UserError, match=r"kept/5\.safetensors: the weights of update 5"):
            run.finish(tmp_path / "out", tmp_path / "state")
    assert not (tmp_path / "out").exists()
    run.finish(tmp_path / "out", tmp_path / "state")
    assert outcome(tmp_path / "out") == uninterrupted


def test_x05_x06_stopped_for_a_while_and_under_a_clock_that_runs_backwards(
    run, uninterrupted, tmp_path, monkeypatch
):
    clock = itertools.count(time.time(), -3600)
    monkeypatch.setattr(time, "time", lambda: next(clock))
    process = start(run, tmp_path / "run")
    while not list((tmp_path / "run" / "state").glob("*/update-*")):
        assert process.is_alive()
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(0.3)
    assert process.is_alive()
    os.kill(process.pid, signal.SIGCONT)
    process.join()
    assert process.exitcode == 0
    assert outcome(tmp_path / "run" / "out") == uninterrupted


@pytest.mark.parametrize(
    "signals", [(signal.SIGTERM,), (signal.SIGINT,), (signal.SIGTERM, signal.SIGTERM)]
)
def test_f30_a_signal_saves_and_the_next_run_goes_on(run, uninterrupted, tmp_path, signals):
    """SIGTERM also twice, as SLURM sends it at a time limit."""
    for update in (3, 11):
        assert stop_at(run, tmp_path, update, *signals) == 128 + signals[0]
        assert list((tmp_path / "state").glob(f"*/update-{update:09d}/state.json"))
    run.finish(tmp_path / "out", tmp_path / "state")
    assert outcome(tmp_path / "out") == uninterrupted


@pytest.mark.parametrize(("here", "there", "taken"), [(True, False, "bf16"), (False, True, "fp32")])
def test_auto_goes_on_in_the_format_that_it_was_begun_in(
    run, tmp_path, monkeypatch, capfd, here, there, taken
):
    """Begun on a machine with or without AMX, taken up in update 4 on one of the other kind."""
    able = {"amx_bf16": here}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: able, raising=False)
    wide = run.model.model_copy(update={"d_model": 128, "heads": 4})
    short = {"updates": 5, "dev_interval": 2, "keep_updates": [], "precision": "auto"}
    auto = replace(run, model=wide, train=run.train.model_copy(update=short))
    auto.finish(tmp_path / "whole", tmp_path / "state")
    assert f"auto takes {taken}, for a model of width 128 here" in capfd.readouterr().err
    stop_at(auto, tmp_path, 3, signal.SIGTERM)
    capfd.readouterr()
    able["amx_bf16"] = there
    auto.finish(tmp_path / "out", tmp_path / "state")
    told = capfd.readouterr().err
    assert f"auto takes {taken}, as the training was begun" in told
    assert "going on from update 3" in told
    assert ("this CPU has no bf16 arithmetic" in told) == (taken == "bf16")
    assert outcome(tmp_path / "out") == outcome(tmp_path / "whole")
    assert read_json(tmp_path / "out" / "model" / "model.json")["precision"] == taken
    auto.finish(tmp_path / "other", tmp_path / "state")  # anew, as this machine would have it
    assert (
        outcome(tmp_path / "other")["weights.safetensors"]
        != outcome(tmp_path / "out")["weights.safetensors"]
    )


def stop_at(run: SmallRun, folder: Path, update: int, *signals: int) -> int:
    """The exit code of a run that gets the signals in the middle of an update."""
    process = fork.Process(target=_stop_at, args=(run, folder, update, *signals))
    process.start()
    process.join()
    return process.exitcode


def _stop_at(run: SmallRun, folder: Path, update: int, *signals: int) -> None:
    """Send ourselves the signals in the middle of an update."""
    from headcount.training.train import Trainer

    plain = Trainer._update
    # A job that a shell began with & ignores Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def update_and_stop(trainer):
        if trainer.progress.update == update - 1:
            for number in signals:
                os.kill(os.getpid(), number)
        plain(trainer)

    Trainer._update = update_and_stop
    try:
        run.finish(folder / "out", folder / "state")
    except Interrupted as fault:
        os._exit(fault.exit_code)


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT])
def test_f30_ctrl_c_after_a_signal_kills_at_once(run, tmp_path, first):
    # The exit code of KeyboardInterrupt, which nobody catches.
    assert stop_at(run, tmp_path, 3, first, signal.SIGINT) == 1
    assert not list((tmp_path / "state").glob("*/update-000000003"))


def test_f35_other_settings_or_text_start_from_zero_and_say_why(run, tmp_path, capfd):
    stop_at(run, tmp_path, 9, signal.SIGTERM)
    assert list((tmp_path / "state").glob("*/update-000000009"))
    other = SmallRun(run.bpe, run.train.model_copy(update={"batch_tokens": 160}))
    other.finish(tmp_path / "other", tmp_path / "state")
    words = capfd.readouterr().err
    assert "starting from zero" in words
    assert "settings.train.batch_tokens: 150 there, 160 here" in words
    alone = tmp_path / "alone"
    other.finish(alone / "out", alone / "state")
    assert outcome(tmp_path / "other") == outcome(alone / "out")

"""Several processes that train one model make what one process makes."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from named_runs import run_flag
from project_copy import ROOT
from small_run import GATES, MODEL, TRAIN, outcome, segment
from warm_python import clients

from headcount.base.errors import UserError
from headcount.base.settings.flags import as_flags
from headcount.base.settings.section import Section
from headcount.base.settings.train import TrainSettings
from headcount.training.processes import (
    add_up,
    agree,
    is_first,
    own_share,
    together,
)

COLD = (sys.executable,)
IMPORTANT = run_flag("impt-3-signed-ema0.5-rest1")


@dataclass(frozen=True)
class Command:
    """A script that trains, in a folder of its own."""

    script: str
    bpe: Path
    folder: Path
    flags: tuple[object, ...]
    launcher: tuple[str, ...] = COLD

    def start(self, train: Section, warm: bool = False) -> subprocess.Popen:
        """Begin; everything that it prints goes into the file log.

        `warm`: with libraries loaded, where Python starts it. Signals would not reach it.
        """
        self.folder.mkdir(exist_ok=True)
        launcher = (clients() / "python",) if warm and self.launcher == COLD else self.launcher
        flags = [*self.flags, *as_flags(train), "--bpe", self.bpe, "--seed", 3, "--out", "out"]
        words = [*launcher, ROOT / "scripts" / self.script, *flags, "--state", "state"]
        with (self.folder / "log").open("a") as log:
            return subprocess.Popen(
                [*map(str, words), "--save-seconds", "1000"],
                cwd=self.folder, stdout=log, stderr=log,
            )  # fmt: skip

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def made(self, train: Section) -> dict[str, bytes | list[str]]:
        """What it writes, but for the settings that model.json tells."""
        assert self.start(train, warm=True).wait(120) == 0, self.log()
        found = outcome(self.folder / "out")
        return {name: found[name] for name in found if name != "model.json"}


def two(train: TrainSettings) -> TrainSettings:
    return train.model_copy(update={"processes": 2})


def train_command(bpe: Path, folder: Path, *run: str) -> Command:
    return Command("train.py", bpe, folder, (*run, *as_flags(MODEL)))


def test_one_process_shares_nothing_and_asks_nobody():
    assert list(own_share("abc")) == [(0, "a"), (1, "b"), (2, "c")]
    numbers = torch.tensor([1.5])
    add_up([numbers])
    assert is_first() and agree(True) and not agree(False) and numbers.item() == 1.5


def test_another_number_of_processes_than_were_started(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "3")
    with (
        pytest.raises(UserError, match="processes.*: expected 3, as many .*, found 2"),
        together(2, gpus=False),
    ):
        pass


@pytest.fixture(scope="module")
def bpe(tmp_path_factory) -> Path:
    return segment(tmp_path_factory.mktemp("text"))


@pytest.fixture(scope="module")
def alone(bpe, tmp_path_factory) -> dict:
    """What one process makes of a training with dropout and a first pass for importance."""
    return train_command(bpe, tmp_path_factory.mktemp("alone"), *IMPORTANT).made(TRAIN)


# So high a rate that dev loss turns long before the end.
WILD = {"updates": 60, "dev_interval": 2, "peak_lr": 0.3, "average": "none", "patience": 2}
WILD["keep_updates"] = []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["importance", "random", "drophead", "patience", "gates"])
def test_two_processes_make_the_bytes_of_one(bpe, alone, tmp_path, kind):
    """Two batches an update: the sum of two numbers is the same in either order."""
    train = TRAIN.model_copy(update=WILD if kind == "patience" else {})
    names = {"random": "random-3-rest1", "drophead": "drophead-0.4"}
    run = run_flag(names[kind]) if kind in names else IMPORTANT
    commands = [train_command(bpe, tmp_path / name, *run) for name in ("one", "both")]
    if kind == "gates":
        train_command(bpe, tmp_path / "start", *run_flag("baseline")).made(TRAIN)
        start = tmp_path / "start" / "out" / "model"
        flags = (*run_flag("gates-all-l0.05"), "--init-from", start, *as_flags(GATES))
        commands = [replace(each, script="prune.py", flags=flags) for each in commands]
    one = alone if kind == "importance" else commands[0].made(train)
    assert commands[1].made(two(train)) == one
    tables = {"gates.csv", "heads.csv"} if kind == "gates" else {"masks.csv", "slopes.csv"}
    assert tables < {*one}
    losses = [float(row.split(",")[3]) for row in one["curve"][1:]]
    assert kind != "patience" or (len(losses) < 30 and min(losses) == losses[-3])


@pytest.mark.slow
def test_two_processes_with_four_batches_each_agree_but_for_rounding(bpe, tmp_path):
    """(a + c + …) + (b + d + …) is not a + b + c + d + … in its last bits."""
    long = TRAIN.model_copy(update={"accumulate": 8, "updates": 6})
    long = long.model_copy(update={"keep_updates": [], "dev_interval": 3})
    losses = []
    for name, train in (("one", long), ("both", two(long))):
        found = train_command(bpe, tmp_path / name, *run_flag("random-4")).made(train)
        losses += [float(row.split(",")[3]) for row in found["curve"][1:]]
    assert losses[2:] == pytest.approx(losses[:2], rel=1e-6)


@pytest.mark.slow
def test_torchrun_starts_them_as_well(bpe, alone, tmp_path):
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--standalone")
    command = Command(
        "train.py", bpe, tmp_path / "run", (*IMPORTANT, *as_flags(MODEL)),
        (*torchrun, "--nproc-per-node=2", "--"),
    )  # fmt: skip
    assert command.made(two(TRAIN)) == alone
    assert command.log().count("update 24/24") == 1  # the first alone speaks


def wait_for(command: Command, text: str, process: subprocess.Popen) -> None:
    end = time.monotonic() + 60
    while text not in command.log():
        assert process.poll() is None and time.monotonic() < end, command.log()
        time.sleep(0.02)


def others_of(process: subprocess.Popen) -> list[int]:
    """The processes that a command has started."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(child) for child in children.split()]


# Long enough for a signal to meet it, and each validation says so.
LONG = TRAIN.model_copy(update={"updates": 70, "keep_updates": []})


@pytest.fixture(scope="module")
def long_alone(bpe, tmp_path_factory) -> dict:
    return train_command(bpe, tmp_path_factory.mktemp("long"), *IMPORTANT).made(LONG)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_a_signal_to_either_stops_both_and_both_go_on(bpe, long_alone, tmp_path):
    command = train_command(bpe, tmp_path / "run", *IMPORTANT)
    update = 0
    for first, word in ((False, "update 14/"), (True, "update 42/")):
        process = command.start(two(LONG))
        wait_for(command, word, process)
        assert (f"going on from update {update}\n" in command.log()) == first
        stopped = process.pid if first else others_of(process)[0]
        for _ in range(2):  # as SLURM does at a time limit
            os.kill(stopped, signal.SIGTERM)
            time.sleep(0.05)
        assert process.wait(30) == 128 + signal.SIGTERM
        told = command.log().count("stopped by signal 15; the same command goes on from here")
        assert told == 1 + first
        state = max((tmp_path / "run" / "state").glob("*/update-*"))
        update = int(state.name.removeprefix("update-"))
        assert update < LONG.updates
    refused = train_command(bpe, tmp_path / "run", *IMPORTANT).start(LONG)
    wait_for(command, "train.processes: 2 there, 1 here", refused)
    refused.kill()
    refused.wait()
    assert command.made(two(LONG)) == long_alone
    assert f"going on from update {update}\n" in command.log()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_one_that_is_killed_ends_the_others_with_a_line(bpe, tmp_path):
    command = train_command(bpe, tmp_path / "run", *run_flag("baseline"))
    process = command.start(two(LONG))
    wait_for(command, "update 14/", process)
    os.kill(others_of(process)[0], signal.SIGKILL)
    assert process.wait(30) == 3
    message = "error: of the 2 processes of this training process 2 ended with -9: it said nothing"
    assert message in command.log() and "Traceback" not in command.log()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_none_outlives_the_first(bpe, tmp_path):
    command = train_command(bpe, tmp_path / "run", *run_flag("baseline"))
    process = command.start(two(LONG))
    wait_for(command, "update 14/", process)
    (other,) = others_of(process)
    process.kill()
    process.wait()
    end = time.monotonic() + 10
    while Path(f"/proc/{other}").exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not Path(f"/proc/{other}").exists()


@pytest.mark.slow
def test_outputs_that_lie_finished_are_taken_by_both(bpe, alone, tmp_path, monkeypatch):
    """Under an engine they lie beside the states until they are recorded."""
    monkeypatch.setenv("HEADCOUNT_JOB", str(os.getpid()))
    command = train_command(bpe, tmp_path / "run", *IMPORTANT)
    assert command.made(two(TRAIN)) == alone
    (tmp_path / "run" / "out" / "run.json").unlink()
    assert command.made(two(TRAIN)) == alone
    assert "trained before; outputs taken from" in command.log()
    assert (tmp_path / "run" / "out" / "run.json").exists()


SHORT = TrainSettings(updates=6, batch_tokens=150, warmup_updates=2, dev_interval=3, threads=2)


def train(bpe: Path, folder: Path, cores: set[int], **variables: str) -> dict:
    """What a training writes that may use these cores and sees these variables."""
    folder.mkdir()
    flags = [*as_flags(MODEL), *as_flags(SHORT), "--bpe", bpe, *run_flag("impt-3"), "--seed", "3"]
    command = [sys.executable, ROOT / "scripts" / "train.py", *flags, "--out", "out"]
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        subprocess.run(
            [*map(str, command), "--state", "state"],
            cwd=folder,
            env=os.environ | variables,
            check=True,
            capture_output=True,
        )
    finally:
        os.sched_setaffinity(0, before)
    return outcome(folder / "out")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="cores are Linux's to give")
def test_f42_cores_and_variables_change_no_byte(tmp_path):
    """One core and a variable that asks for 7 threads; all cores and one that asks for 1."""
    bpe, cores = segment(tmp_path / "text"), os.sched_getaffinity(0)
    one = train(bpe, tmp_path / "one", {min(cores)}, OMP_NUM_THREADS="7", MKL_NUM_THREADS="7")
    other = train(bpe, tmp_path / "all", cores, OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    assert one == other and len(one) >= 5

"""Exit codes of commands, and their end with the workflow's."""

import errno
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from script_runner import run_script

from headcount.base import command, ending
from headcount.base.errors import EnvironmentFault, Interrupted, UserError

MISNAMED = FileNotFoundError(errno.ENOENT, "No such file or directory", "/x.json")
FULL = OSError(errno.ENOSPC, "No space left on device", "/x/weights")
LOG_FULL = OSError(errno.ENOSPC, "No space left on device")


def raising(fault):
    def main():
        print("half of a result")
        raise fault

    return main


@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [
        (UserError("a.yaml:3: x: unknown key"), 2, "error: a.yaml:3: x: unknown key"),
        (EnvironmentFault("no GPU"), 3, "error: no GPU"),
        (MISNAMED, 2, "error: /x.json: No such file or directory"),
        (FULL, 3, "error: /x/weights: No space left on device"),
        (LOG_FULL, 3, "error: standard output, or a file without a name: No space left on device"),
        (MemoryError(), 3, "out of memory (MemoryError); lower the sizes of the model or of the"),
        (Interrupted(signal.SIGTERM), 143, "the same command goes on from here"),
        (KeyboardInterrupt(), 130, ""),  # as in a shell, 128 + 2
    ],
)
def test_faults_end_in_plain_words(fault, code, words, capsys):
    with pytest.raises(SystemExit) as left:
        command.run(raising(fault))
    assert left.value.code == code
    out, told = capsys.readouterr()
    assert out == "half of a result\n" and told.count("\n") == bool(words) and words in told


def test_f38_a_tensor_that_memory_does_not_hold_is_no_bug(capsys):
    """2^50 bytes, which torch refuses at once by a RuntimeError; and any other stays a bug."""
    with pytest.raises(SystemExit) as left:
        command.run(lambda: torch.empty(1 << 50, dtype=torch.uint8))
    assert left.value.code == 3
    assert "you tried to allocate 1125899906842624" in capsys.readouterr().err
    with pytest.raises(RuntimeError, match="must match the size"):
        command.run(lambda: torch.ones(2) + torch.ones(3))


@pytest.mark.parametrize("fault", [ZeroDivisionError("a bug"), BrokenPipeError(errno.EPIPE, "")])
def test_bugs_keep_their_traceback(fault):
    with pytest.raises(type(fault)):
        command.run(raising(fault))


SYNTHETIC = ("--corpus", "s", "--train-pairs", 2, "--dev-pairs", 2, "--test-pairs", 2)


@pytest.mark.parametrize(
    ("script", "flags", "words"),
    [
        ("attention_map", ("--weights", "loop", "--out", "map.svg"), "loop: Too many levels of"),
        (
            "attention_map",
            ("--weights", "maps.json", "--out", f"{'a' * 300}.svg"),
            "too long",
        ),
        ("synthetic", (*SYNTHETIC, "--out", "loop/manifest.json"), "loop: File exists"),
        ("synthetic", (*SYNTHETIC, "--out", "other.json"), "a file named manifest.json"),
    ],
)
def test_x13_names_that_no_disk_takes_and_links_without_an_end(
    script, flags, words, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    Path("maps.json").write_text(ONE_MAP)
    assert run_script(script, flags) == 2
    printed = capsys.readouterr().err
    assert words in printed and "Traceback" not in printed


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full: Linux's")
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_f32_a_log_on_a_full_disk_costs_the_message_but_not_the_exit_code(stream):
    with open("/dev/full", "w") as full:
        found = subprocess.run(
            [sys.executable, "-c", SAYING, stream],
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: full},
            text=True,
        )
    assert found.returncode == {"stderr": 2, "stdout": 3}[stream]
    if stream == "stdout":
        assert found.stderr.startswith("error: standard output, or a file without a name: No space")


SAYING = """
import sys
from headcount.base import command, ending
from headcount.base.errors import UserError
def main():
    if sys.argv[1] == "stderr":
        raise UserError("wrong")
    print("a result")
command.run(main)
"""
ONE_MAP = json.dumps(
    {
        "head": {"kind": "enc_self", "layer": 0, "head": 0},
        "level": "word",
        "maps": [{"queries": ["a"], "keys": ["b"], "weights": [[1.0]]}],
    }
)


CHILD = """
import sys, time
from headcount.base import command, ending
def main():
    print("ready", flush=True)
    time.sleep(60)
command.run(main)
"""
PARENT = """
import os, subprocess, sys, time
child = [sys.executable, "-c", sys.argv[1]]
process = subprocess.Popen(child, env=os.environ | {"HEADCOUNT_JOB": str(os.getpid())})
print(process.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the death signal is Linux's")
def test_a_job_ends_when_its_parent_is_killed():
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, CHILD], stdout=subprocess.PIPE, text=True
    )
    child = int(parent.stdout.readline())
    assert parent.stdout.readline() == "ready\n"
    parent.kill()
    parent.wait()
    end = time.monotonic() + 5
    while _runs(child) and time.monotonic() < end:
        time.sleep(0.01)
    assert not _runs(child)


@pytest.mark.parametrize("engine", ["1999999999", "yes"])
def test_x14_a_variable_left_in_a_shell_changes_nothing(engine, monkeypatch):
    monkeypatch.setenv("HEADCOUNT_JOB", engine)
    monkeypatch.setattr(ending, "die_with_parent", pytest.fail)
    calls = []
    command.run(lambda: calls.append(1))
    assert calls == [1]


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split(")")[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("script", "flags"),
    [
        ("export", "--model in --out in"),
        ("remove", "--model in/model --importance x.csv --out in"),
        ("import_model", "--bpe x --pretrained in --out in"),
        ("imported_run", "--bpe in --pretrained x --out in/run"),
        ("train", "--bpe x --seed 1 --state s --run baseline --pretrained link --out in"),
        ("prune", "--bpe x --seed 1 --state s --run y --init-from in/model --out in"),
        ("segment", "--src-lang a --tgt-lang b --pretrained in --out-folder link/bpe"
         " --train-src x --train-tgt x --dev-src x --dev-tgt x"),
        ("bpe", "--src-lang a --tgt-lang b --out-folder in"
         " --train-src in/a --train-tgt x --dev-src x --dev-tgt x"),
    ],
)  # fmt: skip
def test_a_folder_of_inputs_is_not_written(script, flags, tmp_path, monkeypatch, capsys):
    """The folder itself, one around an input, one in it; before anything is read."""
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("link").symlink_to("in")
    assert run_script(script, flags.split()) == 2
    assert "expected a folder apart from all inputs" in capsys.readouterr().err
    assert not list(Path("in").iterdir())

"""Exit codes of commands, and their end with the workflow's."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headcount.base import command
from headcount.base.errors import EnvironmentFault, Interrupted, UserError

MISNAMED = FileNotFoundError(errno.ENOENT, "No such file or directory", "/x.json")
FULL = OSError(errno.ENOSPC, "No space left on device", "/x/weights")


@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [
        (UserError("a.yaml:3: x: unknown key"), 2, "error: a.yaml:3: x: unknown key"),
        (EnvironmentFault("no GPU"), 3, "error: no GPU"),
        (MISNAMED, 2, "error: /x.json: No such file or directory"),
        (FULL, 3, "error: /x/weights: No space left on device"),
        (MemoryError(), 3, "out of memory"),
        (Interrupted(signal.SIGTERM), 143, "the same command goes on from here"),
    ],
)
def test_faults_end_in_plain_words(fault, code, words, capsys):
    def main():
        raise fault

    with pytest.raises(SystemExit) as left:
        command.run(main)
    assert left.value.code == code
    printed = capsys.readouterr().err
    assert words in printed and "Traceback" not in printed


def test_bugs_keep_their_traceback():
    def main():
        raise ZeroDivisionError("a bug")

    with pytest.raises(ZeroDivisionError, match="a bug"):
        command.run(main)


def test_other_errors_of_the_system_count_as_bugs():
    def main():
        raise OSError(errno.EPIPE, "Broken pipe")

    with pytest.raises(BrokenPipeError):
        command.run(main)


CHILD = """
import sys, time
from headcount.base import command
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


@pytest.mark.skipif(sys.platform != "linux", reason="the death signal is Linux's")
def test_a_job_whose_parent_is_gone_already_does_not_start():
    env = os.environ | {"HEADCOUNT_JOB": "1999999999"}
    found = subprocess.run([sys.executable, "-c", CHILD], env=env, capture_output=True, timeout=30)
    assert found.returncode == 3 and found.stdout == b""


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split(")")[1].split()[0] != "Z"
    except FileNotFoundError:
        return False

"""One run at a time in a folder, and none by a plan that another run has made out of date."""

import os

import pytest
from workflow_modules import load

from headcount.base.files import hold


@pytest.fixture
def lock(monkeypatch, tmp_path):
    """The module as a new process has it, in a folder of its own; leaving raises the fault."""
    monkeypatch.chdir(tmp_path)
    found = load(monkeypatch, "lock")

    def leave(fault):
        raise fault

    monkeypatch.setattr(found, "leave", leave)
    monkeypatch.setattr(found, "_held", [])
    monkeypatch.setattr(found, "_noted", [])
    return found


def test_a_run_alone_takes_the_folder_and_another_after_it(lock):
    for _ in range(2):
        lock._noted.clear()
        lock.note_lock()
        lock.hold_folder()
        lock._held.pop().close()


def test_f43_a_run_beside_another_names_it(lock):
    other = hold(lock.LOCK, "running")
    lock.note_lock()
    with pytest.raises(Exception, match=f"process {os.getpid()} is running this workflow"):
        lock.hold_folder()
    other.close()


@pytest.mark.parametrize("begun_before", [True, False])
def test_f43_a_plan_that_another_run_has_ended_beside_is_not_carried_out(lock, begun_before):
    """What that one has finished would be deleted as in the way, and made again."""
    first = hold(lock.LOCK, "running")
    if not begun_before:
        first.close()
        os.utime(lock.LOCK, (1000, 1000))
        lock.note_lock()
        first = hold(lock.LOCK, "running")
    else:
        lock.note_lock()
    first.close()
    with pytest.raises(Exception, match="another run in .* has ended while this one planned"):
        lock.hold_folder()

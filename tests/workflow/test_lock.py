"""One run at a time in a folder, and none by a plan that another run has made out of date."""

import os

import pytest
from workflow_modules import load

from headcount.base.errors import EnvironmentFault, UserError
from headcount.base.files import hold


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

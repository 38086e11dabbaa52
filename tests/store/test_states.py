"""Training states and averages of weights: damaged, lost, of another run, by hand."""

import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from damage import flip

from headcount.base.errors import EnvironmentFault, UserError
from headcount.training.optimiser import Average
from headcount.training.states import State, StateStore

IDENTITY = {"settings": {"train": {"updates": 7}}, "seed": 3}


def state_of(value):
    return State({"model/w": torch.full((2, 3), float(value))}, {"progress": {"update": value}})


@pytest.fixture
def store(tmp_path):
    """A store with the states of updates 2, 5 and 11."""
    store = StateStore(tmp_path, IDENTITY, 1e9)
    for update in (2, 5, 11):
        store.save(update, state_of(update))
    return store


def test_the_newest_two_states_stay(store):
    store.save(11, state_of(11))  # once more
    assert [path.name for path in store.saved()] == ["update-000000005", "update-000000011"]
    state = store.load()
    assert torch.equal(state.tensors["model/w"], torch.full((2, 3), 11.0))
    assert state.facts["progress"] == {"update": 11}
    assert not store.due()


def test_f29_a_half_written_set_is_never_loaded(store):
    part = store.folder / ".part-000000020"
    shutil.copytree(store.saved()[-1], part)
    assert store.load().facts["progress"] == {"update": 11}
    store.save(30, state_of(30))
    assert not part.exists()  # left by a run that was killed; no use to anyone
    assert sorted(path.name[-2:] for path in store.folder.iterdir()) == ["11", "30"]


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("tensors.safetensors", lambda p: p.write_bytes(b"")),
        ("tensors.safetensors", lambda p: p.write_bytes(p.read_bytes()[:-1])),
        ("tensors.safetensors", lambda p: flip(p, -1)),
        ("tensors.safetensors", lambda p: p.unlink()),
        ("state.json", lambda p: p.write_bytes(p.read_bytes()[:-9])),
        ("state.json", lambda p: p.unlink()),
        ("state.json", lambda p: p.write_text(p.read_text().replace('"kept"', '"k"'))),
        ("state.json", lambda p: p.write_text(p.read_text().replace('"format": 1', '"format": 2'))),
    ],
)
def test_f33_a_damaged_state(store, name, damage):
    newest = store.saved()[-1]
    damage(newest / name)
    with pytest.raises(UserError, match=re.escape(str(newest / name))) as fault:
        store.load()
    assert f"Delete {newest}" in str(fault.value)
    shutil.rmtree(newest)  # as the message says
    assert store.load().facts["progress"] == {"update": 5}


def test_f11_states_of_other_settings_are_not_looked_at(store, tmp_path):
    other = StateStore(tmp_path, {**IDENTITY, "seed": 4}, 1e9)
    assert other.folder != store.folder
    assert other.load() is None


def test_f11_a_state_moved_to_another_run_is_refused_with_its_key(store, tmp_path):
    settings = {"train": {"updates": 8}}
    other = StateStore(tmp_path, {**IDENTITY, "settings": settings}, 1e9)
    shutil.copytree(store.folder, other.folder)
    with pytest.raises(UserError, match=r"settings\.train\.updates: 7 .*, 8 "):
        other.load()


WEIGHTS = {"w": torch.ones(3)}


@pytest.mark.parametrize("damage", [lambda p: p.unlink(), lambda p: flip(p, -1)])
def test_x03_a_state_whose_kept_weights_are_lost(tmp_path, damage):
    store = StateStore(tmp_path, IDENTITY, 1e9)
    store.save(2, state_of(2))
    store.save_checkpoint(4, WEIGHTS)
    assert torch.equal(store.load_checkpoint(4)["w"], torch.ones(3))
    store.save(5, state_of(5))
    damage(store.checkpoint(4))
    with pytest.raises(UserError, match=r"kept/4\.safetensors"):
        store.load_checkpoint(4)
    again = StateStore(tmp_path, IDENTITY, 1e9)
    with pytest.raises(UserError, match=r"kept/4\.safetensors") as fault:
        again.load()
    assert f"Delete {store.saved()[-1]}" in str(fault.value)
    shutil.rmtree(store.saved()[-1])
    assert again.load().facts == {"progress": {"update": 2}}
    again.save_checkpoint(4, WEIGHTS)  # as training does on its way
    again.save(5, state_of(5))
    assert StateStore(tmp_path, IDENTITY, 1e9).load().facts == {"progress": {"update": 5}}
    shutil.rmtree(tmp_path)
    with pytest.raises(UserError, match=r"kept/4\.safetensors"):
        again.save(6, state_of(6))


def test_x04_a_second_training_in_one_state_folder_is_told_of_the_first(store, tmp_path):
    with store.locked():
        other = StateStore(tmp_path, {**IDENTITY, "seed": 4}, 1e9)
        with pytest.raises(EnvironmentFault, match=f"process {os.getpid()} "), other.locked():
            pass
    with store.locked():  # free again
        assert len(store.saved()) == 2


def test_a_job_of_the_workflow_waits_for_the_training_that_it_takes_the_place_of(
    store, tmp_path, monkeypatch, capfd
):
    """The first one has saved another state when the second begins."""
    monkeypatch.setenv("HEADCOUNT_JOB", "1")

    def second() -> list[str]:
        with StateStore(tmp_path, IDENTITY, 1e9).locked():
            return [path.name for path in store.saved()]

    with ThreadPoolExecutor() as pool:
        with store.locked():
            found = pool.submit(second)
            with pytest.raises(TimeoutError):
                found.result(timeout=0.2)
            store.save(17, state_of(17))
        assert found.result(timeout=10)[-1] == "update-000000017"
    assert f"process {os.getpid()} " in capfd.readouterr().err


def test_who_waited_for_a_lock_that_was_removed_holds_the_new_one(tmp_path, monkeypatch):
    """The first one saves nothing and removes the folder; a third must not come in beside."""
    monkeypatch.setenv("HEADCOUNT_JOB", "1")
    root = tmp_path / "states"
    first, second = (StateStore(root, IDENTITY, 1e9) for _ in range(2))

    def wait() -> str:
        with second.locked():
            monkeypatch.delenv("HEADCOUNT_JOB")
            third = StateStore(root, IDENTITY, 1e9)
            with pytest.raises(EnvironmentFault) as refused, third.locked():
                pass
            return str(refused.value)

    with ThreadPoolExecutor() as pool:
        with first.locked():
            found = pool.submit(wait)
            with pytest.raises(TimeoutError):
                found.result(timeout=0.2)
        assert f"process {os.getpid()} " in found.result(timeout=10)
    assert not root.exists()


def weights_of(value):
    """Two tensors that move in opposite directions."""
    return {
        "a": torch.full((2,), float(value), requires_grad=True),
        "b": torch.tensor([[-float(value)]]),
    }


def value_of(weights):
    assert weights["a"][0] == weights["a"][1] == -weights["b"][0, 0]
    return weights["a"][0].item()


def restored(average, fresh):
    """A fresh average that took over a copy of the state of another."""
    fresh.restore({name: tensor.detach().clone() for name, tensor in average.state().items()})
    return fresh


def test_moving_average_by_hand():
    average = Average("ema", weights_of(0))
    average.after_update(weights_of(11), 1)  # decay 2/11: 0 + 9/11 · 11
    assert value_of(average.at_validation({})) == pytest.approx(9)
    average.after_update(weights_of(1), 2)  # decay 3/12: 0.25 · 9 + 0.75 · 1
    assert value_of(average.at_validation({})) == pytest.approx(3)
    average.after_update(weights_of(1003), 9990)  # 9991/10000 is above 0.999: 2.997 + 1.003
    assert value_of(average.at_validation({})) == pytest.approx(4)


def test_last_average_by_hand():
    """The mean of five copies. A look between two validations takes nothing in."""
    average, weights = Average("last", {}), weights_of(1)
    assert value_of(average.at_validation(weights)) == 1
    with torch.no_grad():
        weights["a"] += 100
    assert value_of(average.between(weights_of(5))) == 3
    found = [value_of(average.at_validation(weights_of(value))) for value in (4, 10, 1, 4, 11)]
    assert found == [2.5, 5, 4, 4, 6]  # the first is no longer one of the last five


@pytest.mark.parametrize("kind", ["none", "ema", "last"])
@pytest.mark.parametrize("seen", [1, 7])
def test_a_restored_average_goes_on_alike(kind, seen):
    average = Average(kind, weights_of(1))
    for value in range(seen):
        average.at_validation(weights_of(value * value))
        average.after_update(weights_of(value), value)
    again = restored(average, Average(kind, weights_of(77)))
    for value in (1000, 2000):
        for each in (average, again):
            each.after_update(weights_of(value), value)
        found = [value_of(each.at_validation(weights_of(value))) for each in (average, again)]
        assert found[0] == found[1]

"""Training states on disk, and the outputs of a finished training until they are on record."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from headcount.base.command import has_engine
from headcount.base.errors import EnvironmentFault, UserError
from headcount.base.files import hold, remove_folder, sha256, whole_folder, write_json
from headcount.base.fingerprint import digest
from headcount.store.finished import FinishedSet
from headcount.store.model_folder import FORMAT, load_weights, read_facts, save_weights

LARGEST_SHARE = 0.05
"""Of the time of a run, for saving states."""

Weights = dict[str, Tensor]


@dataclass
class State:
    """All that a training run needs to go on as if never stopped."""

    tensors: Weights
    facts: dict[str, Any]  # counters, curve so far, best loss


def joined(groups: dict[str, Weights]) -> Weights:
    """All tensors, under `<group>/<name>`."""
    return {f"{group}/{name}": t for group, held in groups.items() for name, t in held.items()}


def grouped(tensors: Weights) -> dict[str, Weights]:
    """The tensors that `joined` named, by group and name; a group without any is not there."""
    groups: dict[str, Weights] = {}
    for key, tensor in tensors.items():
        group, name = key.split("/", 1)
        groups.setdefault(group, {})[name] = tensor
    return groups


class StateStore:
    """The states of one run, in a folder named by the run's identity.

    A set is written aside and committed by one rename of its folder. The newest two stay. States
    of other settings, data, code or threads lie in folders of their own and are never looked at.
    The weights that `keep` puts by belong to every state after them: their checksums stand in it.
    """

    def __init__(self, root: Path, identity: dict[str, Any], seconds: float):
        """`seconds`: time between two saves; it stretches to keep within `LARGEST_SHARE`."""
        self.identity = {"format": FORMAT, **identity}
        self.root = root
        self.folder = root / digest(self.identity)
        self.finished = FinishedSet(self.folder / "finished")
        self.seconds = seconds
        self._kept: dict[str, str] = {}  # SHA-256 of the weights put by, by update
        self._next = time.monotonic() + seconds

    def due(self) -> bool:
        """Whether it is time to save."""
        return time.monotonic() >= self._next

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes out. Raises EnvironmentFault naming the one that is at this run.

        A job of the workflow waits for it: on a node that a cluster takes for lost, the job that it
        is to take the place of may live on.
        """
        doing = f"at this training, with its states in {self.root}"
        lock = self.root / "lock"
        with hold(lock, doing, wait=has_engine()):
            try:
                yield
            finally:
                if [path for path in self.root.rglob("*") if path.is_file()] == [lock]:
                    remove_folder(self.root)  # nothing was saved

    def save(self, update: int, state: State) -> None:
        """Commit the state after an update; older ones but the last go.

        Raises EnvironmentFault if weights that were put by have vanished meanwhile.
        """
        start = time.monotonic()
        for kept in self._kept:
            if not self.kept(int(kept)).is_file():
                raise self._lost(int(kept))
        for unfinished in self.folder.glob(".part-*"):
            remove_folder(unfinished)
        with whole_folder(self.folder / f"update-{update:09d}") as part:
            save_weights(part / "tensors.safetensors", state.tensors)
            checksum = sha256(part / "tensors.safetensors")
            about = {"identity": self.identity, "sha256": checksum, "kept": self._kept}
            write_json(part / "state.json", {**about, **state.facts})
        for older in self.saved()[:-2]:
            remove_folder(older)
        now = time.monotonic()
        self._next = now + max(self.seconds, (now - start) / LARGEST_SHARE)

    def saved(self) -> list[Path]:
        """Folders of the complete sets, oldest first."""
        return sorted(self.folder.glob("update-*"))

    def begun_in(self) -> str | None:
        """The number format of the newest state, fp32 or bf16; None if there is no state."""
        for folder in reversed(self.saved()):
            try:
                return read_facts(folder / "state.json").get("precision")
            except UserError:
                continue  # `load` will refuse it, and say what to do
        return None

    def load(self) -> State | None:
        """The newest state whose kept weights are all there, or None.

        Newer ones cannot be gone on from, and are dropped with a line on standard error. Raises
        UserError if a state itself is damaged or not of this run.
        """
        for folder in reversed(self.saved()):
            try:
                state = self._read(folder)
            except UserError as fault:
                raise UserError(
                    f"{fault}\nDelete {folder} to go on from the state before it, if any."
                ) from fault
            kept = state.facts.pop("kept")
            lost = [name for name, checksum in kept.items() if not self._is_kept(name, checksum)]
            if not lost:
                self._kept = kept
                return state
            remove_folder(folder)
            print(
                f"{self.kept(int(lost[0]))}: gone or damaged, and without these weights the state "
                f"of {folder.name} cannot become the whole run; it is dropped, and training goes "
                "on from the state before it, or from zero",
                file=sys.stderr,
                flush=True,
            )
        return None

    def refused(self) -> str:
        """Why the states that lie below the root are not this run's; empty if there are none."""
        found = sorted(self.root.glob("*/update-*/state.json"))
        others = [path for path in found if path.parents[1] != self.folder]
        if not others:
            return ""
        found = f"{others[-1].parent} is the state of another run and is not loaded"
        try:
            return f"{found}; {self._differences(read_facts(others[-1])['identity'])}"
        except UserError as fault:
            return f"{found}; {fault}"

    def keep(self, update: int, weights: Weights) -> None:
        """Put the weights of an update by until the run is finished."""
        save_weights(self.kept(update), weights)
        self._kept[str(update)] = sha256(self.kept(update))

    def kept(self, update: int) -> Path:
        """Where `keep` puts the weights of an update."""
        return self.folder / "kept" / f"{update}.safetensors"

    def take(self, update: int) -> Weights:
        """The weights that were put by. Raises EnvironmentFault if they are not what was kept."""
        if not self._is_kept(str(update), self._kept[str(update)]):
            raise self._lost(update)
        return load_weights(self.kept(update))

    def drop(self) -> None:
        """Forget the states of this run, but not its finished set."""
        for folder in [*self.saved(), self.folder / "kept"]:
            remove_folder(folder)

    def _is_kept(self, update: str, checksum: str) -> bool:
        path = self.kept(int(update))
        return path.is_file() and sha256(path) == checksum

    def _lost(self, update: int) -> EnvironmentFault:
        return EnvironmentFault(
            f"{self.kept(update)}: the weights of update {update} were put here, and are gone or "
            "changed; something else writes in this folder. The same command goes on from the last "
            "state before that update, or from zero"
        )

    def _differences(self, found: dict[str, Any]) -> str:
        """The first keys in which another identity is not this run's, in words."""
        there, here = _flat(found), _flat(self.identity)
        keys = [key for key in here | there if there.get(key) != here.get(key)]
        return "; ".join(f"{k}: {there.get(k)!r} there, {here.get(k)!r} here" for k in keys[:3])

    def _read(self, folder: Path) -> State:
        facts = read_facts(folder / "state.json")
        if differences := self._differences(facts.pop("identity", {})):
            raise UserError(
                f"{folder}: the state of another run, never loaded into this one; {differences}"
            )
        if not {"sha256", "kept"} <= facts.keys():
            raise UserError(f"{folder / 'state.json'}: damaged, not a description of a state")
        tensors = folder / "tensors.safetensors"
        if not tensors.is_file() or sha256(tensors) != facts.pop("sha256"):
            raise UserError(f"{tensors}: damaged; its SHA-256 is not the one in state.json")
        return State(load_weights(tensors), facts)


def _flat(value: Any, name: str = "") -> dict[str, Any]:
    """Nested settings as one level of dotted keys."""
    if not isinstance(value, dict):
        return {name: value}
    inner = (_flat(part, f"{name}.{key}" if name else str(key)) for key, part in value.items())
    return {key: found for level in inner for key, found in level.items()}

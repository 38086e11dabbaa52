"""Training states on disk, and the outputs of a finished training until they are recorded."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from headcount.base.ending import has_engine
from headcount.base.errors import UserError
from headcount.base.files import hold, remove_folder, sha256, whole_folder, write_json
from headcount.base.fingerprint import digest
from headcount.store.finished import FinishedSet
from headcount.store.model_folder import FORMAT, load_weights, read_facts, save_weights

LARGEST_SHARE = 0.05
"""Largest share of the time of a run for saving states."""

Weights = dict[str, Tensor]


@dataclass
class State:
    """All that a training run needs to go on as if never stopped."""

    tensors: Weights
    facts: dict[str, Any]  # counters, curve so far, best loss


def joined(groups: dict[str, Weights]) -> Weights:
    """Return all tensors, named `<group>/<name>`."""
    return {f"{group}/{name}": t for group, part in groups.items() for name, t in part.items()}


def grouped(tensors: Weights) -> dict[str, Weights]:
    """Return the tensors that `joined` named, by group and name. Empty groups are missing."""
    groups: dict[str, Weights] = {}
    for key, tensor in tensors.items():
        group, name = key.split("/", 1)
        groups.setdefault(group, {})[name] = tensor
    return groups


class StateStore:
    """The states of one run, in a folder named by the run's identity, of which the newest two stay.

    A state is committed by one rename of its folder, and has the checksums of the checkpoints saved
    before it. States of other settings, data, code or threads lie elsewhere and are never loaded.
    """

    def __init__(self, root: Path, identity: dict[str, Any], seconds: float):
        """`seconds`: time between two saves. It stretches to keep within `LARGEST_SHARE`."""
        self.identity = {"format": FORMAT, **identity}
        self.root = root
        self.folder = root / digest(self.identity)
        self.finished = FinishedSet(self.folder / "finished")
        self.seconds = seconds
        self._checksums: dict[str, str] = {}  # SHA-256 of the checkpoints, by update
        self._next = time.monotonic() + seconds

    def due(self) -> bool:
        """Return True if it is time to save."""
        return time.monotonic() >= self._next

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes out. Raises EnvironmentFault naming the process at this run.

        A job of the workflow waits: the job that it replaces may live on, on a node taken for lost.
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
        """Commit the state after an update, and remove all but the newest two."""
        start = time.monotonic()
        for kept in self._checksums:
            self._require(kept, whole=False)
        for unfinished in self.folder.glob(".part-*"):
            remove_folder(unfinished)
        with whole_folder(self.folder / f"update-{update:09d}") as part:
            save_weights(part / "tensors.safetensors", state.tensors)
            checksum = sha256(part / "tensors.safetensors")
            about = {"identity": self.identity, "sha256": checksum, "kept": self._checksums}
            write_json(part / "state.json", {**about, **state.facts})
        for older in self.saved()[:-2]:
            remove_folder(older)
        now = time.monotonic()
        self._next = now + max(self.seconds, (now - start) / LARGEST_SHARE)

    def saved(self) -> list[Path]:
        """Return the folders of the complete states, oldest first."""
        return sorted(self.folder.glob("update-*"))

    def precision(self) -> str | None:
        """Return the number format of the newest state, fp32 or bf16. None without a state."""
        for folder in reversed(self.saved()):
            with suppress(UserError):  # `load` will raise it
                return read_facts(folder / "state.json").get("precision")
        return None

    def load(self) -> State | None:
        """Return the newest state, or None."""
        if not (saved := self.saved()):
            return None
        try:
            state = self._read(saved[-1])
            self._checksums = state.facts.pop("kept")
            for update in self._checksums:
                self._require(update)
        except UserError as fault:
            advice = f"Delete {saved[-1]} to go on from the state before it, if any."
            raise UserError(f"{fault}\n{advice}") from fault
        return state

    def refused(self) -> str:
        """Return the difference between this run and saved states of others. Empty without any."""
        paths = sorted(self.root.glob("*/update-*/state.json"))
        others = [path for path in paths if path.parents[1] != self.folder]
        if not others:
            return ""
        try:
            reason = self._differences(read_facts(others[-1])["identity"])
        except UserError as fault:
            reason = str(fault)
        return f"{others[-1].parent} is the state of another run and is not loaded; {reason}"

    def save_checkpoint(self, update: int, weights: Weights) -> None:
        """Save the weights after an update until the run is finished."""
        path = self.checkpoint(update)
        save_weights(path, weights)
        self._checksums[str(update)] = sha256(path)

    def checkpoint(self, update: int) -> Path:
        """Return the file of the weights after an update."""
        return self.folder / "kept" / f"{update}.safetensors"

    def load_checkpoint(self, update: int) -> Weights:
        """Return saved weights. Raises UserError if they have changed since."""
        self._require(str(update))
        return load_weights(self.checkpoint(update))

    def drop(self) -> None:
        """Remove the states of this run, but not its finished set."""
        for folder in [*self.saved(), self.folder / "kept"]:
            remove_folder(folder)

    def _require(self, update: str, whole: bool = True) -> None:
        path = self.checkpoint(int(update))
        if not path.is_file() or whole and sha256(path) != self._checksums[update]:
            raise UserError(f"{path}: the weights of update {update} are missing or changed")

    def _differences(self, other: dict[str, Any]) -> str:
        """Return the first keys in which another identity differs from this run's."""
        there, here = _flat(other), _flat(self.identity)
        keys = [key for key in here | there if there.get(key) != here.get(key)]
        return "; ".join(f"{k}: {there.get(k)!r} there, {here.get(k)!r} here" for k in keys[:3])

    def _read(self, folder: Path) -> State:
        facts = read_facts(folder / "state.json")
        if differences := self._differences(facts.pop("identity", {})):
            raise UserError(f"{folder}: the state of another run, not loaded; {differences}")
        if not {"sha256", "kept"} <= facts.keys():
            raise UserError(f"{folder / 'state.json'}: damaged, not a description of a state")
        tensors = folder / "tensors.safetensors"
        if not tensors.is_file() or sha256(tensors) != facts.pop("sha256"):
            raise UserError(f"{tensors}: damaged; its SHA-256 is not the one in state.json")
        return State(load_weights(tensors), facts)


def _flat(value: Any, name: str = "") -> dict[str, Any]:
    """Return nested settings as one level of dotted keys."""
    if not isinstance(value, dict):
        return {name: value}
    inner = (_flat(part, f"{name}.{key}" if name else str(key)) for key, part in value.items())
    return {key: leaf for level in inner for key, leaf in level.items()}

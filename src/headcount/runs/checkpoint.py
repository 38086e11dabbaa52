"""Models and training states on disk: safetensors and JSON, whole or absent, never pickled."""

import json
import os
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from pydantic import ValidationError
from torch import Tensor

from headcount.base.errors import UserError
from headcount.base.files import flush_to_disk, read_json, sha256, whole_file, write_json
from headcount.base.fingerprint import digest
from headcount.base.settings.model import ModelSettings
from headcount.model.transformer import Transformer

FORMAT = 1
LARGEST_SHARE = 0.05
"""Of the time of a run, for saving states."""


def save_weights(path: Path, weights: dict[str, Tensor]) -> None:
    """Write tensors as safetensors, whole or not at all."""
    contiguous = {name: weight.detach().contiguous() for name, weight in weights.items()}
    with whole_file(path, sum(weight.nbytes for weight in contiguous.values())) as part:
        try:
            safetensors.torch.save_file(contiguous, part)
        except safetensors.SafetensorError as fault:
            raise _system_error(fault) from fault


def _system_error(fault: safetensors.SafetensorError) -> Exception:
    """The error of the system that the library tells in words alone; its own if it is none."""
    found = re.search(r"\(os error (\d+)\)", str(fault))
    return OSError(int(found[1]), os.strerror(int(found[1]))) if found else fault


def load_weights(path: Path) -> dict[str, Tensor]:
    """Tensors of a safetensors file; raises UserError if it is not one, or is damaged."""
    if not path.is_file():
        raise UserError(f"{path}: expected a weights file, found none; train the model first")
    try:
        return safetensors.torch.load_file(path)
    except safetensors.SafetensorError as fault:
        raise UserError(f"{path}: not a whole safetensors file ({fault}); make it again") from fault


def save_model(
    folder: Path, model: Transformer, weights: dict[str, Tensor], facts: dict[str, Any]
) -> None:
    """Write `weights.safetensors` and `model.json`; the two are enough to load the model alone.

    `model.json` holds the SHA-256 of these weights and of others that lie in the folder already.
    """
    save_weights(folder / "weights.safetensors", weights)
    shape = {
        "format": FORMAT,
        "model": model.settings.model_dump(mode="json"),
        "src_size": model.src_embedding.num_embeddings,
        "tgt_size": model.tgt_embedding.num_embeddings,
        "joint": model.own_src_embedding is None,
        "sha256": {path.name: sha256(path) for path in sorted(folder.glob("*.safetensors"))},
    }
    write_json(folder / "model.json", {**shape, **facts})


def load_model(folder: Path, weights: str = "weights.safetensors") -> Transformer:
    """The model in a folder, in evaluation mode. Raises UserError naming the first mismatch."""
    facts = _read_facts(folder / "model.json")
    path = folder / weights
    try:
        settings = ModelSettings.model_validate(facts["model"])
        model = Transformer(settings, facts["src_size"], facts["tgt_size"], facts["joint"])
        expected = facts["sha256"].get(weights)
    except (AttributeError, KeyError, TypeError, ValidationError) as fault:
        raise UserError(
            f"{folder / 'model.json'}: damaged, not a description written by training: {fault}"
        ) from fault
    tensors = load_weights(path)
    if expected and sha256(path) != expected:
        raise UserError(
            f"{path}: damaged or changed; its SHA-256 is not the one in model.json. "
            "Fetch it again or train the model again"
        )
    fill(model, tensors, path)
    return model.eval()


def fill(model: Transformer, weights: dict[str, Tensor], source: Path) -> None:
    """Copy weights into a model; raises UserError naming the first that is missing or misshapen."""
    own = dict(model.named_parameters())
    for name in [*own, *weights]:
        if name not in weights or name not in own:
            where = "the model" if name in own else "the file"
            raise UserError(
                f"{source}: only {where} has {name}; this file belongs to another model"
            )
        if own[name].shape != weights[name].shape:
            raise UserError(
                f"{source}: {name} has shape {list(weights[name].shape)}, the model's has "
                f"{list(own[name].shape)}; this file belongs to another model or vocabulary"
            )
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(weights[name])


@dataclass
class State:
    """All that a training run needs to go on as if never stopped."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]  # counters, curve so far, best loss


class StateStore:
    """The states of one run, in a folder named by the run's identity.

    A set is written aside and committed by one rename of its folder. The newest two stay. States
    of other settings, data, code or threads lie in folders of their own and are never looked at.
    """

    def __init__(self, root: Path, identity: dict[str, Any], seconds: float):
        """`seconds`: time between two saves; it stretches to keep within `LARGEST_SHARE`."""
        self.identity = {"format": FORMAT, **identity}
        self.root = root
        self.folder = root / digest(self.identity)
        self.seconds = seconds
        self._next = time.monotonic() + seconds

    def due(self) -> bool:
        """Whether it is time to save."""
        return time.monotonic() >= self._next

    def save(self, update: int, state: State) -> None:
        """Commit the state after an update; older ones but the last go."""
        start = time.monotonic()
        final = self.folder / f"update-{update:09d}"
        part = self.folder / f".part-{update:09d}"
        for unfinished in self.folder.glob(".part-*"):
            shutil.rmtree(unfinished)
        part.mkdir(parents=True)
        save_weights(part / "tensors.safetensors", state.tensors)
        checksum = sha256(part / "tensors.safetensors")
        write_json(
            part / "state.json", {"identity": self.identity, "sha256": checksum, **state.facts}
        )
        if final.exists():
            shutil.rmtree(part)
        else:
            os.rename(part, final)
        flush_to_disk(self.folder)
        for older in self.saved()[:-2]:
            shutil.rmtree(older)
        now = time.monotonic()
        self._next = now + max(self.seconds, (now - start) / LARGEST_SHARE)

    def saved(self) -> list[Path]:
        """Folders of the complete sets, oldest first."""
        return sorted(self.folder.glob("update-*"))

    def load(self) -> State | None:
        """The newest state, or None. Raises UserError if it is damaged or not of this run."""
        self._sweep()
        if not self.saved():
            return None
        folder = self.saved()[-1]
        try:
            return self._read(folder)
        except UserError as fault:
            raise UserError(
                f"{fault}\nDelete {folder} to go on from the state before it, if any."
            ) from fault

    def refused(self) -> str:
        """Why the states that lie below the root are not this run's; empty if there are none."""
        found = sorted(self.root.glob("*/update-*/state.json"))
        others = [path for path in found if path.parents[1] != self.folder]
        if not others:
            return ""
        differences = self._differences(_read_facts(others[-1])["identity"])
        return f"{others[-1].parent} is the state of another run and is not loaded; {differences}"

    def keep(self, update: int, weights: dict[str, Tensor]) -> None:
        """Put the weights of an update by until the run is finished."""
        save_weights(self.kept(update), weights)

    def kept(self, update: int) -> Path:
        """Where `keep` puts the weights of an update."""
        return self.folder / "kept" / f"{update}.safetensors"

    def discard(self) -> None:
        """Forget every state below the root at once: the run is finished."""
        self._sweep()
        if self.root.exists():
            self.root.rename(self._discarded)
            self._sweep()

    @property
    def _discarded(self) -> Path:
        return self.root.with_name(f".part-{self.root.name}")

    def _sweep(self) -> None:
        """Remove states that were discarded, also by a run that was killed while at it."""
        shutil.rmtree(self._discarded, ignore_errors=True)

    def _differences(self, found: dict[str, Any]) -> str:
        """The first keys in which another identity is not this run's, in words."""
        there, here = _flat(found), _flat(self.identity)
        keys = [key for key in [*here, *there] if there.get(key) != here.get(key)]
        listed = (
            f"{key}: {there.get(key)!r} there, {here.get(key)!r} here"
            for key in list(dict.fromkeys(keys))[:3]
        )
        return "; ".join(listed)

    def _read(self, folder: Path) -> State:
        facts = _read_facts(folder / "state.json")
        if differences := self._differences(facts.pop("identity", {})):
            raise UserError(
                f"{folder}: the state of another run, never loaded into this one; {differences}"
            )
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


def _read_facts(path: Path) -> dict[str, Any]:
    try:
        facts = read_json(path)
        found = facts["format"] if "format" in facts else facts["identity"]["format"]
    except FileNotFoundError as fault:
        raise UserError(f"{path}: expected this file, found none; train the model first") from fault
    except (json.JSONDecodeError, UnicodeDecodeError, TypeError, KeyError) as fault:
        raise UserError(f"{path}: damaged, not a description written by training") from fault
    if found != FORMAT:
        raise UserError(f"{path}: format {found}, expected {FORMAT}; make it with this version")
    return facts

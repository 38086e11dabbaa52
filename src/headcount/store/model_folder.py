"""The folder of a trained model: weights as safetensors and a description as JSON."""

import os
import re
from argparse import Namespace
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from headcount.base.addresses import Head, HeadGrid
from headcount.base.errors import UserError, reading
from headcount.base.files import read_json, sha256, whole_file, write_json
from headcount.base.folders import DESCRIPTION, MODEL_FILES, SEGMENTATION, SIDES, WEIGHTS
from headcount.base.settings.model import ModelSettings
from headcount.model import machine
from headcount.model.transformer import Transformer, copy_weights
from headcount.store.pair_folder import SUBWORD_FILES, Checksums, PairFolder

FORMAT = 1


def save_weights(path: Path, weights: dict[str, Tensor]) -> None:
    """Write tensors as safetensors, whole or not at all."""
    contiguous = {name: weight.detach().contiguous() for name, weight in weights.items()}
    with whole_file(path) as part:
        try:
            safetensors.torch.save_file(contiguous, part)
        except safetensors.SafetensorError as fault:
            if number := re.search(r"\(os error (\d+)\)", str(fault)):  # as text alone
                raise OSError(int(number[1]), os.strerror(int(number[1]))) from fault
            raise


def load_weights(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file. Raises UserError if it is missing or damaged."""
    if not path.is_file():
        raise UserError(f"{path}: expected a weights file, found none; train the model first")
    try:
        return safetensors.torch.load_file(path)
    except safetensors.SafetensorError as fault:
        raise UserError(f"{path}: not a whole safetensors file ({fault}); make it again") from fault


def check_shapes(model: Transformer, weights: dict[str, Tensor], source: Path) -> None:
    """Raise UserError with the name of the first weight that is missing or has another shape."""
    wanted, given = (
        {name: list(weight.shape) for name, weight in tensors.items()}
        for tensors in (dict(model.named_parameters()), weights)
    )
    for name in wanted | given:
        if wanted.get(name) != given.get(name):
            raise UserError(
                f"{source}: {name} has shape {given.get(name)}, the model's has "
                f"{wanted.get(name)}; this file belongs to another model or vocabulary"
            )


def read_facts(path: Path) -> dict[str, Any]:
    """Return model.json or state.json. Raises UserError if it is missing, damaged or newer."""
    with reading(path, "training"):
        facts = read_json(path)
        version = facts["format"] if "format" in facts else facts["identity"]["format"]
    if version != FORMAT:
        raise UserError(f"{path}: format {version}, expected {FORMAT}; make it with this version")
    return facts


@dataclass(frozen=True)
class ModelFolder:
    """A folder with a trained model."""

    path: Path

    @property
    def files(self) -> list[Path]:
        """Files with which the model loads alone."""
        return [self.path / name for name in MODEL_FILES]

    @property
    def weights(self) -> Path:
        """File of the weights that the model is used with."""
        return self.path / WEIGHTS

    @property
    def weight_files(self) -> list[Path]:
        """Files of weights, which identify the model."""
        return [self.weights]

    @property
    def settings(self) -> ModelSettings:
        """Sizes of the model. Raises UserError if the description is damaged."""
        facts = self.facts()
        with reading(self.path / DESCRIPTION, "training"):
            return ModelSettings.model_validate(facts["model"])

    def facts(self) -> dict[str, Any]:
        """Return the description. Raises UserError if it is missing, damaged or newer."""
        return read_facts(self.path / DESCRIPTION)

    def save(self, model: Transformer, weights: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """Write weights, and a description with the model's shape, `facts` and SHA-256 sums."""
        save_weights(self.weights, weights)
        shape = {
            "format": FORMAT,
            "model": model.settings.model_dump(mode="json"),
            "src_size": model.src_embedding.num_embeddings,
            "tgt_size": model.tgt_embedding.num_embeddings,
            "joint": model.own_src_embedding is None,
            "sha256": {path.name: sha256(path) for path in sorted(self.path.glob("*.safetensors"))},
        }
        write_json(self.path / DESCRIPTION, {**shape, **facts})

    def load(self, device: str = "cpu", weights: str = WEIGHTS) -> Transformer:
        """Return the model in evaluation mode, on `cpu`, `cuda` or `auto`."""
        facts, settings, path = self.facts(), self.settings, self.path / weights
        tensors = load_weights(path)
        with reading(self.path / DESCRIPTION, "training"):
            sizes = facts["src_size"], facts["tgt_size"], facts["joint"]
            checksum = facts["sha256"].get(weights)
            words = facts["tgt_size"] + facts["src_size"] * (not facts["joint"])
            least = settings.layer_weights + settings.d_model * words
        if checksum and sha256(path) != checksum:
            raise UserError(f"{path}: damaged or changed since {DESCRIPTION}; fetch it again")
        # Before false sizes take memory.
        if (weight_count := sum(weight.numel() for weight in tensors.values())) < least:
            wanted = f"at least {least} parameters, as {DESCRIPTION} says"
            raise UserError(
                f"{path}: expected {wanted}, found {weight_count}; the file is of another model"
            )
        with reading(self.path / DESCRIPTION, "training"):
            model = Transformer(settings, *sizes)
        check_shapes(model, tensors, path)
        copy_weights(model, tensors)
        return model.eval().to(machine.pick_device(device))

    def pair(self, named: Path | None) -> PairFolder:
        """Return the named folder of subwords, or the model's own. Raises UserError for none."""
        if named is None and not (self.path / SEGMENTATION).is_file():
            self.facts()  # raises if there is no model either
            raise UserError(
                f"{self.path / SEGMENTATION}: expected the model's subwords, found no such file; "
                "name the pair's folder with --bpe, or run scripts/export.py --to headcount"
            )
        return PairFolder(named or self.path)

    def subwords(self) -> Checksums:
        """Return checksums of the model's subwords. Raises UserError without them."""
        facts = self.facts()
        with reading(self.path / DESCRIPTION, "training"):
            return {key: {side: facts[key][side] for side in SIDES} for key in SUBWORD_FILES}

    def check(self, pair: PairFolder) -> None:
        """Raise UserError unless the model was trained on the subwords of this pair."""
        trained, own = self.subwords(), pair.subwords()
        for key, (end, words) in SUBWORD_FILES.items():
            for side in SIDES:
                if trained[key][side] != own[key][side]:
                    raise UserError(
                        f"{pair.path / side}.{end}: not the {words} that the model in {self.path} "
                        "was trained on; name the folder of these"
                    )
        with reading(pair.path, "scripts/bpe.py"):
            vocabularies = pair.vocabularies()
        facts = self.facts()
        with reading(self.path / DESCRIPTION, "training"):
            for side, words in zip(SIDES, vocabularies, strict=True):
                rows = facts["tgt_size" if facts["joint"] else f"{side}_size"]
                if len(words) > rows:
                    raise UserError(f"{pair.path}: {side}.vocab: the model has {rows} words")

    def original_heads(self, grid: HeadGrid) -> list[Head]:
        """Return addresses of the heads in the original model that was pruned, in flat order."""
        listed = self.facts().get("kept_heads")
        if listed is None:
            return grid.heads()
        with reading(self.path / DESCRIPTION, "training"):
            heads = list(map(Head.parse, listed))
            layers = groupby(heads, itemgetter(0, 1))
            listed_counts = [(kind, len(list(of_layer))) for (kind, _), of_layer in layers]
            counts = [(kind, span.stop - span.start) for kind, _, span in grid.layers()]
            if listed_counts != [one for one in counts if one[1]]:  # whole layers may be gone
                raise ValueError("kept_heads does not fit the model")
            return heads


def open_model(args: Namespace, threads: int) -> tuple[ModelFolder, PairFolder]:
    """Return the folders of --model and --bpe, see `ModelFolder.pair`, and set torch's threads."""
    machine.use_threads(threads)
    folder = ModelFolder(args.model)
    return folder, folder.pair(args.bpe)


def check_measured(path: Path, weights: list[Path], script: str) -> None:
    """Raise UserError if the JSON beside a file of measures names other weights."""
    beside = path.with_suffix(".json")
    if beside.is_file() and read_json(beside).get("weights") != sha256(*weights):
        raise UserError(
            f"{path}: measured on another model than {weights[0].parent}: {beside.name} names "
            f"other weights; run {script} again"
        )

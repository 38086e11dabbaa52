"""Weights and descriptions on disk: safetensors and JSON, whole or absent, never pickled."""

import json
import os
import re
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from headcount.base.errors import UserError
from headcount.base.files import read_json, whole_file
from headcount.model.transformer import Transformer, copy_weights

FORMAT = 1


def save_weights(path: Path, weights: dict[str, Tensor]) -> None:
    """Write tensors as safetensors, whole or not at all."""
    contiguous = {name: weight.detach().contiguous() for name, weight in weights.items()}
    with whole_file(path, sum(weight.nbytes for weight in contiguous.values())) as part:
        try:
            safetensors.torch.save_file(contiguous, part)
        except safetensors.SafetensorError as fault:
            # The library tells an error of the system in words alone.
            found = re.search(r"\(os error (\d+)\)", str(fault))
            if found is None:
                raise
            raise OSError(int(found[1]), os.strerror(int(found[1]))) from fault


def load_weights(path: Path) -> dict[str, Tensor]:
    """Tensors of a safetensors file; raises UserError if it is not one, or is damaged."""
    if not path.is_file():
        raise UserError(f"{path}: expected a weights file, found none; train the model first")
    try:
        return safetensors.torch.load_file(path)
    except safetensors.SafetensorError as fault:
        raise UserError(f"{path}: not a whole safetensors file ({fault}); make it again") from fault


def fill(model: Transformer, weights: dict[str, Tensor], source: Path) -> None:
    """Copy weights into a model; raises UserError naming the first that is missing or misshapen."""
    check_shapes(model, weights, source)
    copy_weights(model, weights)


def check_shapes(model: Transformer, weights: dict[str, Tensor], source: Path) -> None:
    """Raise UserError naming the first weight that is missing or misshapen; see `fill`."""
    parameters = dict(model.named_parameters())
    for name in [*parameters, *weights]:
        if name not in weights or name not in parameters:
            where = "the model" if name in parameters else "the file"
            raise UserError(
                f"{source}: only {where} has {name}; this file belongs to another model"
            )
        if parameters[name].shape != weights[name].shape:
            raise UserError(
                f"{source}: {name} has shape {list(weights[name].shape)}, the model's has "
                f"{list(parameters[name].shape)}; this file belongs to another model or vocabulary"
            )


def read_facts(path: Path) -> dict[str, Any]:
    """What model.json or state.json says. Raises UserError if it is missing, damaged or newer."""
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

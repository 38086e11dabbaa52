"""The file of weights in a folder of Hugging Face's library: safetensors, whole, and fractions."""

from pathlib import Path

from torch import Tensor

from headcount.base.errors import UserError
from headcount.store.model_folder import load_weights

WEIGHTS = "model.safetensors"

_NOT_READ = {
    "pytorch_model.bin": "a pickle can run code, so it is never read: load it where you trust it, "
    "and save it with save_pretrained",
    "model.safetensors.index.json": "save the parts as one, with save_pretrained and a larger "
    "max_shard_size",
}
"""Other files of weights, and what to do about them."""


def weights_file(folder: Path) -> Path:
    """The one that holds a model's weights. Raises UserError where there are others or none."""
    path = folder / WEIGHTS
    if not path.exists():
        others = [name for name in _NOT_READ if (folder / name).exists()]
        advice = "".join(f"; {_NOT_READ[name]}" for name in others)
        found = " and ".join(others) or "none"
        raise UserError(f"{path}: expected a weights file, found {found}{advice}")
    return path


def read_weights(folder: Path) -> dict[str, Tensor]:
    """The weights in a folder, by their own names and in the format that they are stored in.

    Raises UserError if they are missing, damaged, in several files, a pickle, or no fractions.
    """
    path = weights_file(folder)
    try:
        weights = load_weights(path)
    except UserError as fault:
        raise UserError(f"{fault}, or fetch it again") from fault
    for name, weight in weights.items():
        if not weight.is_floating_point():
            raise UserError(
                f"{path}: {name}: expected floating-point numbers, found {number_format(weight)}; "
                "take the model before it was quantised"
            )
    return weights


def number_format(weight: Tensor) -> str:
    """That which a weight is stored in, as `float16`."""
    return str(weight.dtype).removeprefix("torch.")

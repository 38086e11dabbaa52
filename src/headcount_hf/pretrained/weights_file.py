"""The file of weights in a folder of Hugging Face's library: safetensors, whole, and fractions.

Tables of sinusoids in such a file are constants. They are compared with ours and never read.
"""

import math
from pathlib import Path

import torch
from torch import Tensor

from headcount.base.errors import UserError
from headcount.model.attention import sinusoids
from headcount.store.model_folder import load_weights
from headcount_hf.pretrained.families import Config

WEIGHTS = "model.safetensors"

_NOT_READ = {
    "pytorch_model.bin": "a pickle can run code, so it is never read: load it where you trust it, "
    "and save it with save_pretrained",
    "model.safetensors.index.json": "save the parts as one, with save_pretrained and a larger "
    "max_shard_size",
}
"""Other files of weights, and what to do about them."""
_PARTS = ("shared.", "encoder.", "decoder.")
"""How names begin in a file that the library's base class, such as MarianModel, has saved."""


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
    """Return the weights in a folder by their names, in the format that they are stored in.

    Names of the base class get `model.` in front, as the library reads them. Raises UserError if
    weights are missing, damaged, in several files, a pickle, no fractions, or not finite.
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
        check_finite(f"{path}: {name}", weight)
    if twice := [name for name in weights if f"model.{name}" in weights]:
        raise UserError(f"{path}: {twice[0]}: found model.{twice[0]} too, expected one of both")
    return {"model." * name.startswith(_PARTS) + name: weights[name] for name in weights}


def check_finite(place: str, weight: Tensor) -> None:
    """Raise UserError if a weight is NaN or infinite, or too large for float32."""
    if not torch.isfinite(weight.float()).all():
        raise UserError(
            f"{place}: expected finite numbers in float32, found NaN or infinite ones; take a "
            "checkpoint from before the training broke down"
        )


def number_format(weight: Tensor) -> str:
    """That which a weight is stored in, as `float16`."""
    return str(weight.dtype).removeprefix("torch.")


def positions_name(side: str) -> str:
    """Return the name of the table of positions of a side, `encoder` or `decoder`."""
    return f"model.{side}.embed_positions.weight"


def sinusoid_names(config: Config) -> set[str]:
    """Return the names that files of a family without learnt positions have for its tables."""
    if config.family.positions == "table":
        return set()
    names = map(positions_name, ("encoder", "decoder"))
    return {f"{name}{end}" for name in names for end in ("", "s")}  # older versions say "weights"


def their_sinusoids(config: Config, count: int) -> Tensor:
    """Return the library's table [count, d] of a family without learnt positions."""
    width = config["d_model"]
    if config.family.positions == "sinusoids":
        table = sinusoids(count, width)
        return torch.cat((table[:, 0::2], table[:, 1::2]), 1)
    half = width // 2
    rates = torch.exp(torch.arange(half) * (-math.log(10000) / (half - 1)))
    angles = torch.arange(count)[:, None] * rates
    table = torch.cat((angles.sin(), angles.cos()), 1)
    pad = config["pad_token_id"]
    table[pad : pad + 1] = 0
    return table


def check_sinusoids(place: str, stored: Tensor, config: Config) -> None:
    """Raise UserError unless a stored table equals ours within the rounding of its format.

    The rounding of bfloat16 is always allowed, as the model may have been in it before. Angles may
    have been computed in float32, so the error allowed also grows with the positions.
    """
    expected = their_sinusoids(config, len(stored))
    coarsest = max(torch.finfo(kind).eps for kind in (stored.dtype, torch.bfloat16))
    allowed = coarsest / 2 + len(stored) * torch.finfo(torch.float32).eps
    same = stored.shape == expected.shape
    if not (same and (stored.float() - expected).abs().max() <= allowed):
        raise UserError(
            f"{place}: expected the sinusoids of {config['model_type']}, found a table of other "
            "values or width; our Transformer computes no other positions"
        )

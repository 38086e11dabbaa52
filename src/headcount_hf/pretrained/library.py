"""Hugging Face's library: models and tokenisers of local folders.

Nothing of theirs is ever run: weights are read as safetensors, and code beside them is left alone.
"""

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import safetensors
import torch
from torch import nn

from headcount.base.errors import UserError
from headcount.base.folders import CLASSIFIER_SOURCES
from headcount.base.packages import optional_package
from headcount.data.fetching.models import RECORD
from headcount_hf.pretrained.families import CONFIG

LOCAL = {"local_files_only": True, "trust_remote_code": False}
"""What every folder is read with: nothing is fetched, and no code beside the files is run."""

_OF_TOKENISERS = ("tokenizer*", "vocab*", "merges.txt", "*.spm", "*.model")
"""Files of which every tokeniser of the library has one."""
_FORMATS = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
"""Formats of weights that are not quantised, as their files call them."""


class Kind(NamedTuple):
    """A kind of model: the library's class, and what people call it."""

    automatic: str  # such as AutoModelForSeq2SeqLM
    name: str
    extra: str  # of this project, that installs the library for it


SEQ2SEQ = Kind("AutoModelForSeq2SeqLM", "encoder-decoder", "pretrained")


def of_hugging_face(package: str, kind: Kind) -> Any:
    """Return one of their packages. Raises EnvironmentFault where it is missing."""
    theirs = optional_package(package, f"{kind.name}s", f"run: pip install -e '.[{kind.extra}]'")
    if package == "transformers":
        theirs.utils.logging.disable_progress_bar()
    return theirs


def no_weights(name: Path | str) -> UserError:
    """Return the fault of a folder, or of a model on the hub, that has pickles only."""
    return UserError(
        f"{name}: expected weights as .safetensors, found none; pickled weights "
        "(.bin, .pt) can run code and are not read. Convert the model, or name another"
    )


def input_files(folder: Path, kinds: Sequence[str] = CLASSIFIER_SOURCES) -> list[Path]:
    """Return the files that a model and its tokeniser are read from."""
    found = {path for kind in kinds for path in folder.glob(kind)}
    return sorted(path for path in found if path.name != RECORD)


def stored_formats(folder: Path) -> dict[str, str]:
    """Return the format, such as `float16`, of each weight in a folder.

    Raises UserError for a folder without weights, a damaged file and quantised weights.
    """
    found = {}
    for path in sorted(folder.glob("*.safetensors")):
        try:
            with safetensors.safe_open(path, "pt") as file:
                kinds = {name: file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118
        except (safetensors.SafetensorError, OSError) as fault:
            raise UserError(
                f"{path}: not a whole safetensors file ({fault}); fetch it again"
            ) from fault
        for name, kind in kinds.items():
            if kind not in _FORMATS:
                raise UserError(
                    f"{path}: {name}: expected floating-point numbers, found {kind}; take the "
                    "model before it was quantised"
                )
            found[name] = _FORMATS[kind]
    if not found:
        raise no_weights(folder)
    return found


def open_tokeniser(folder: Path, kind: Kind = SEQ2SEQ, **more: Any) -> Any:
    """Return the tokeniser of a folder; `more`: arguments of the library.

    Raises UserError for a folder without one that the library can read alone, EnvironmentFault
    where the library is missing.
    """
    theirs = of_hugging_face("transformers", kind)
    if not any(path for pattern in _OF_TOKENISERS for path in folder.glob(pattern)):
        raise UserError(  # the library would make one up for some families, without any word
            f"{folder}: expected a tokeniser beside the weights, found no file of one; "
            "copy the tokeniser that the model was trained with here. What scripts/export.py made "
            "of a model of ours has none: give the folder that it was made from to "
            "scripts/importance.py, masking.py or ablation.py"
        )
    return _opened(theirs.AutoTokenizer, folder, kind, more)


class Opened(NamedTuple):
    """A model, and names of weights."""

    model: nn.Module  # in evaluation mode, in fp32
    missing: list[str]  # that the folder lacks, which the library makes up
    unknown: list[str]  # that the library passes over


def open_model(folder: Path, kind: Kind = SEQ2SEQ, **more: Any) -> Opened:
    """Return the model of a folder.

    Raises UserError for a folder without a model of this kind, with weights in pickles only,
    quantised, or not finite, and for a model that needs code of its own; EnvironmentFault where
    the library is missing.
    """
    theirs = of_hugging_face("transformers", kind)
    stored = stored_formats(folder)
    more |= {"use_safetensors": True, "dtype": torch.float32}
    more |= {"output_loading_info": True, "ignore_mismatched_sizes": True}
    model, report = _opened(getattr(theirs, kind.automatic), folder, kind, more)
    for name, found, expected in sorted(report["mismatched_keys"]):
        raise UserError(
            f"{folder}: {name}: expected the shape {list(expected)}, as {CONFIG} says, found "
            f"{list(found)}; fetch both files again"
        )
    for name, weight in model.state_dict().items():
        check_finite(f"{folder}: {name}", weight)
    missing = {*report["missing_keys"], *_lacking_output(folder, model, stored)}
    return Opened(model.eval(), sorted(missing), sorted(report["unexpected_keys"]))


def open_whole(folder: Path) -> nn.Module:
    """Return an encoder-decoder; UserError if weights lack or are another model's too."""
    model, missing, unknown = open_model(folder)
    if missing:
        raise drawn_at_random(folder, missing[0], "is it whole?")
    # Tables of positions that the library computes itself may be there.
    if others := [name for name in unknown if "embed_positions.weight" not in name]:
        raise UserError(
            f"{folder}: expected the weights that {CONFIG} describes and no others, found "
            f"{len(others)} more, the first of them {others[0]}; fetch both files again"
        )
    return model


def _opened(reader: Any, folder: Path, kind: Kind, more: dict[str, Any]) -> Any:
    try:
        return reader.from_pretrained(folder, **LOCAL, **more)
    except MemoryError:
        raise
    except Exception as fault:  # whatever the library's parts raise, bare Exception among it
        if "tiktoken" in str(fault):  # what it tries last; before that it reads SentencePiece
            optional_package("google.protobuf", f"{folder}", "run: pip install protobuf")
        files = ", ".join(path.name for path in input_files(folder))
        raise UserError(
            f"{folder}: expected a whole {kind.name} and its tokeniser that need no code of their "
            f"own: {' '.join(str(fault).split())[:200]}; the files there are {files}"
        ) from fault


def check_finite(place: str, weight: torch.Tensor) -> None:
    """Raise UserError if a weight is NaN or infinite, or too large for float32."""
    if not torch.isfinite(weight).all():
        raise UserError(
            f"{place}: expected finite numbers in float32, found NaN or infinite ones; take a "
            "checkpoint from before the training broke down"
        )


def _lacking_output(folder: Path, model: nn.Module, stored: Collection[str]) -> set[str]:
    """Return the output layer's weight where config.json says it is not tied and no file has it.

    The library ties it without a word. T5's config even forgets that it is not tied.
    """
    told, output = json.loads((folder / CONFIG).read_bytes()), model.get_output_embeddings()
    if output is None or told.get("tie_word_embeddings") is not False:
        return set()
    place = next(name for name, module in model.named_modules() if module is output)
    return {f"{place}.{name}" for name, _ in output.named_parameters()} - {*stored}


@torch.no_grad()
def compute_sinusoids(folder: Path, model: nn.Module) -> None:
    """Put computed sinusoids in place of tables that a file may hold in half precision.

    Raises UserError for a table with other values.
    """
    for module in model.modules():
        if hasattr(module, "create_weight"):  # of Marian's and Pegasus's tables
            computed = module.create_weight()
            if not torch.allclose(module.weight, computed, rtol=0, atol=1e-2):
                raise UserError(
                    f"{folder}: expected positions as sinusoids, found a table of other values; "
                    "our Transformer computes no other positions"
                )
            module.weight.copy_(computed)


def drawn_at_random(folder: Path, weight: str, asked: str) -> UserError:
    """Return the fault of a folder that lacks a weight, with what to ask oneself."""
    return UserError(
        f"{folder}: the weights lack {weight}, which the library would draw at "
        f"random, or copy from the embedding; {asked}"
    )

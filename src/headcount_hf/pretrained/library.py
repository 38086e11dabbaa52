"""Models and tokenisers of Hugging Face's library, read from local folders.

Code of a folder never runs: weights are read as safetensors, and Python files are left alone.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import safetensors
import torch
from torch import nn

from headcount.base.errors import UserError, install, optional_package
from headcount.base.folders import PRETRAINED_SOURCES
from headcount.data.fetching.models import RECORD
from headcount_hf.pretrained.families import CONFIG

LOCAL = {"local_files_only": True, "trust_remote_code": False}

_OF_TOKENISERS = ("tokenizer*", "vocab*", "merges.txt", "*.spm", "*.model")
"""Every tokeniser of the library has at least one of these files."""
_FORMATS = ("F64", "F32", "F16", "BF16")
"""Formats of weights that are not quantised, as safetensors names them."""


class Kind(NamedTuple):
    """A kind of model."""

    automatic: str  # class of the library, such as AutoModelForSeq2SeqLM
    name: str
    extra: str  # of this project, that installs the library


SEQ2SEQ = Kind("AutoModelForSeq2SeqLM", "encoder-decoder", "pretrained")
SPEECH = Kind("AutoModelForSpeechSeq2Seq", "speech model", "pretrained")


def of_hugging_face(package: str, kind: Kind) -> Any:
    """Return one of their packages. Raises EnvironmentFault where it is missing."""
    theirs = optional_package(package, f"{kind.name}s", install(kind.extra))
    if package == "transformers":
        theirs.utils.logging.disable_progress_bar()
    return theirs


def input_files(folder: Path) -> list[Path]:
    """Return the files that a model and its tokeniser are read from."""
    paths = (path for kind in PRETRAINED_SOURCES for path in folder.glob(kind))
    return sorted(path for path in paths if path.name != RECORD)


def whole_files(folder: Path) -> list[Path]:
    """Return `input_files`. Raises UserError for pickled weights alone, which can run code."""
    paths = input_files(folder)
    if not any(path.suffix == ".safetensors" for path in paths):
        raise UserError(
            f"{folder}: expected weights as .safetensors, found none; pickles (.bin, .pt) are not "
            "read. Convert the model by save_pretrained"
        )
    return paths


def _stored_names(folder: Path) -> set[str]:
    """Return the names of all weights. Raises UserError for quantised weights."""
    names = set()
    for path in (path for path in whole_files(folder) if path.suffix == ".safetensors"):
        try:
            with safetensors.safe_open(path, "pt") as file:
                kinds = {name: file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118
        except (safetensors.SafetensorError, OSError) as fault:
            raise UserError(f"{path}: not a whole safetensors file ({fault})") from fault
        for name in (name for name, kind in kinds.items() if kind not in _FORMATS):
            raise UserError(
                f"{path}: {name}: expected floating-point numbers, found {kinds[name]}; take the "
                "model before it was quantised"
            )
        names |= kinds.keys()
    return names


def open_tokeniser(folder: Path, kind: Kind = SEQ2SEQ, **more: Any) -> Any:
    """Return the tokeniser of a folder. Raises UserError if the library cannot read one there."""
    theirs = of_hugging_face("transformers", kind)
    if not any(path for pattern in _OF_TOKENISERS for path in folder.glob(pattern)):
        raise UserError(  # the library would invent one for some families without a warning
            f"{folder}: expected a tokeniser beside the weights, found no file of one; copy it "
            "here. For an export of a model that was trained here, use scripts/importance.py, "
            "masking.py or ablation.py with the model's own folder"
        )
    tokeniser = _opened(theirs.AutoTokenizer, folder, kind, more)
    if getattr(tokeniser, "legacy_behaviour", False):
        raise UserError(
            f"{folder}: legacy_behaviour: expected false, with which the code of a language stands "
            "before a sentence as in NLLB's training, found true"
        )
    return tokeniser


def open_model(
    folder: Path, kind: Kind, needed: str = "", **more: Any
) -> tuple[nn.Module, list[str]]:
    """Return the model of a folder in fp32, and names of unknown weights.

    Raises UserError for a missing weight with `needed` in its name, which the library would make
    up.
    """
    theirs = of_hugging_face("transformers", kind)
    stored = _stored_names(folder)
    more |= {"use_safetensors": True, "dtype": torch.float32}
    more |= {"output_loading_info": True, "ignore_mismatched_sizes": True}
    model, report = _opened(getattr(theirs, kind.automatic), folder, kind, more)
    for name, shape, expected in sorted(report["mismatched_keys"]):
        raise UserError(
            f"{folder}: {name}: expected the shape {list(expected)}, as {CONFIG} says, found "
            f"{list(shape)}"
        )
    for name, weight in model.state_dict().items():
        if not torch.isfinite(weight).all():
            raise UserError(f"{folder}: {name}: expected finite numbers, found NaN or infinity")
    missing, output = set(report["missing_keys"]), model.get_output_embeddings()
    config = json.loads((folder / CONFIG).read_bytes())
    if output is not None and config.get("tie_word_embeddings") is False:
        # The library would tie an output layer that is missing.
        place = next(name for name, module in model.named_modules() if module is output)
        missing |= {f"{place}.{name}" for name, _ in output.named_parameters()} - stored
    if lacking := sorted(name for name in missing if needed in name):
        raise UserError(
            f"{folder}: the weights lack {lacking[0]}, which the library would draw at random or "
            "copy from the embedding; take a whole model that was trained for this task"
        )
    return model.eval(), sorted(report["unexpected_keys"])


def open_sound(folder: Path) -> Any:
    """Return what makes features of sound. Raises UserError if there is nothing."""
    theirs = of_hugging_face("transformers", SPEECH)
    return _opened(theirs.AutoFeatureExtractor, folder, SPEECH, {})


def open_whole(folder: Path, kind: Kind = SEQ2SEQ) -> nn.Module:
    """Return an encoder-decoder. Raises UserError for missing weights or another model's."""
    model, unknown = open_model(folder, kind)
    # Tables of positions that the library computes itself may be there.
    if others := [name for name in unknown if "embed_positions.weight" not in name]:
        raise UserError(
            f"{folder}: expected only the weights that {CONFIG} describes, found {len(others)} "
            f"more, the first of them {others[0]}"
        )
    return model


def _opened(reader: Any, folder: Path, kind: Kind, more: dict[str, Any]) -> Any:
    """Return what a class of the library reads from a folder. Raises UserError where it cannot."""
    try:
        return reader.from_pretrained(folder, **LOCAL, **more)
    except (MemoryError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as fault:  # bare Exception, and panics of Rust, which are none
        if "tiktoken" in str(fault):  # its last attempt after SentencePiece failed
            optional_package("google.protobuf", f"{folder}", "run: pip install protobuf")
        files = ", ".join(path.name for path in input_files(folder))
        raise UserError(
            f"{folder}: expected a whole {kind.name} and its tokeniser that need no code of their "
            f"own: {' '.join(str(fault).split())[:200]}; the files there are {files}"
        ) from fault


@torch.no_grad()
def compute_sinusoids(folder: Path, model: nn.Module) -> None:
    """Replace rounded tables of sinusoids. Raises UserError for other values."""
    for module in model.modules():
        if hasattr(module, "create_weight"):  # of Marian's and Pegasus's tables
            computed = module.create_weight()
            if not torch.allclose(module.weight, computed, rtol=0, atol=1e-2):
                raise UserError(f"{folder}: expected positions as sinusoids, found other values")
            module.weight.copy_(computed)

"""Hugging Face's library: models and tokenisers of local folders.

Nothing of theirs is ever run: weights are read as safetensors, and code beside them is left alone.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import safetensors
import torch
from torch import nn

from headcount.base.errors import EnvironmentFault, UserError
from headcount.base.folders import CLASSIFIER_SOURCES
from headcount.base.packages import optional_package
from headcount_hf.pretrained.families import CONFIG
from headcount_hf.pretrained.weights_file import check_finite

LOCAL = {"local_files_only": True, "trust_remote_code": False}
"""What every folder is read with: nothing is fetched, and no code beside the files is run."""
OF_WEIGHTS = {**LOCAL, "use_safetensors": True, "dtype": torch.float32}
"""What every model is read with."""

_OF_TOKENISERS = ("tokenizer*", "vocab*", "merges.txt", "*.spm", "*.model")
"""Files of which every tokeniser of the library has one."""


class Kind(NamedTuple):
    """A kind of model: the library's class, and what people call it."""

    automatic: str  # such as AutoModelForSeq2SeqLM
    name: str
    extra: str  # of this project, that installs the library for it


class Loaded(NamedTuple):
    """What a folder holds."""

    tokeniser: Any
    model: nn.Module  # in evaluation mode
    missing: list[str]  # weights that the folder lacks, which the library makes up
    unknown: Sequence[str] = ()  # weights in the folder that the library passes over


def of_hugging_face(package: str, kind: Kind) -> Any:
    """One of their packages. Raises EnvironmentFault where it is missing."""
    return optional_package(package, f"{kind.name}s", f"run: pip install -e '.[{kind.extra}]'")


def no_weights(name: Path | str) -> UserError:
    """The fault of a folder, or of a model on the hub, that has pickles only."""
    return UserError(
        f"--model {name}: expected weights as .safetensors, found none; pickled weights "
        "(.bin, .pt) can run code and are not read. Convert the model, or name another"
    )


def input_files(folder: Path) -> list[Path]:
    """The files that a model and its tokeniser are read from."""
    return sorted(path for pattern in CLASSIFIER_SOURCES for path in folder.glob(pattern))


def load_whole(
    folder: Path, kind: Kind, of_tokeniser: Mapping[str, Any], of_model: Mapping[str, Any]
) -> Loaded:
    """Tokeniser and model of a folder, each told more by name; in fp32 however it is stored.

    Raises UserError for a folder without a whole model of this kind, with weights in pickles only,
    without a tokeniser, with weights that are NaN or infinite, and for a model that needs code of
    its own; EnvironmentFault where the library is missing.
    """
    theirs = of_hugging_face("transformers", kind)
    if not list(folder.glob("*.safetensors")):
        raise no_weights(folder)
    if not any(path for pattern in _OF_TOKENISERS for path in folder.glob(pattern)):
        raise UserError(  # the library would make one up for some families, without any word
            f"--model {folder}: expected a tokeniser beside the weights, found no file of one; "
            "copy the tokeniser that the model was trained with here. What scripts/export.py made "
            "of a model of ours has none: give the folder that it was made from to "
            "scripts/importance.py, masking.py or ablation.py"
        )
    try:
        tokeniser = theirs.AutoTokenizer.from_pretrained(folder, **LOCAL, **of_tokeniser)
        model, report = getattr(theirs, kind.automatic).from_pretrained(
            folder, **OF_WEIGHTS, **of_model, output_loading_info=True
        )
    except MemoryError:
        raise
    except Exception as fault:  # whatever the library's parts raise, bare Exception among it
        if "tiktoken" in str(fault):  # what it tries last, and asks for by this name
            raise EnvironmentFault(
                f"--model {folder}: expected the package protobuf, by which the library reads a "
                "SentencePiece model without a tokenizer.json, found none; run: pip install "
                "protobuf"
            ) from fault
        raise UserError(
            f"--model {folder}: expected a whole {kind.name} and its tokeniser that need no code "
            f"of their own: {' '.join(str(fault).split())[:200]}"
        ) from fault
    for name, weight in model.state_dict().items():
        check_finite(f"--model {folder}: {name}", weight)
    missing = {*report["missing_keys"], *_lacking_output(folder, model)}
    return Loaded(tokeniser, model.eval(), sorted(missing), sorted(report["unexpected_keys"]))


def _lacking_output(folder: Path, model: nn.Module) -> set[str]:
    """Return the output layer's weight where config.json says it is not tied and no file has it.

    The library ties it without a word. T5's config even forgets that it is not tied.
    """
    told, output = json.loads((folder / CONFIG).read_bytes()), model.get_output_embeddings()
    if output is None or told.get("tie_word_embeddings") is not False:
        return set()
    place = next(name for name, module in model.named_modules() if module is output)
    names = {f"{place}.{name}" for name, _ in output.named_parameters()}
    for path in folder.glob("*.safetensors"):
        with safetensors.safe_open(path, "pt") as file:
            names -= set(file.keys())
    return names


@torch.no_grad()
def compute_sinusoids(model: nn.Module) -> None:
    """Put computed sinusoids in place of tables that a file may hold in half precision."""
    for module in model.modules():
        if hasattr(module, "create_weight"):  # of Marian's and Pegasus's tables
            module.weight.copy_(module.create_weight())


def target_codes(tokeniser: Any) -> list[str]:
    """Codes such as >>fra<< of a Marian's tokeniser, which stand before sources."""
    return [word for word in getattr(tokeniser, "encoder", ()) if re.fullmatch(">>.+<<", word)]


def drawn_at_random(folder: Path, weight: str, asked: str) -> UserError:
    """The fault of a folder that lacks a weight, with what to ask oneself."""
    return UserError(
        f"--model {folder}: the weights lack {weight}, which the library would draw at "
        f"random, or copy from the embedding; {asked}"
    )


def check_whole(folder: Path, found: Loaded) -> None:
    """Raise UserError if a folder lacks weights of its model, or has weights of another.

    Tables of positions that the library computes itself may be there.
    """
    if found.missing:
        raise drawn_at_random(folder, found.missing[0], "is it whole?")
    unknown = [name for name in found.unknown if "embed_positions.weight" not in name]
    if unknown:
        raise UserError(
            f"--model {folder}: expected the weights that {CONFIG} describes and no others, found "
            f"{len(unknown)} more, the first of them {unknown[0]}; fetch both files again"
        )

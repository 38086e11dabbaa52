"""The files of a Hugging Face classifier: a folder, or one fixed version of a model on the hub.

Nothing of theirs is ever run: weights are read as safetensors, and code beside them is left alone.
"""

import re
from pathlib import Path
from typing import Any

from torch import nn

from headcount.base.errors import EnvironmentFault, UserError

_READ = ("*.json", "*.safetensors", "*.txt", "*.model")
"""What a tokeniser and a model are read from; no code and no pickles."""
_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
_COMMIT = re.compile(r"[0-9a-f]{40}")


def fetch_classifier(name: str, commit: str | None) -> Path:
    """The folder of a model: the one of that name, or a copy of the hub's as of a commit.

    Raises UserError for a name that is neither, and unless the commit of a model on the hub is
    given in full: its name alone may mean other weights tomorrow. Raises EnvironmentFault where
    the library is missing, or the hub cannot be reached and no copy is here.
    """
    if Path(name).is_dir():
        if commit:
            raise UserError(f"--revision: {name} is a folder, which has one version; leave it out")
        return Path(name)
    if not _HUB_NAME.fullmatch(name):
        raise UserError(
            f"--model {name}: expected a folder, or a name on the hub as in google/bert, found "
            "neither"
        )
    if not _COMMIT.fullmatch(commit or ""):
        raise UserError(
            f"--model {name}: no folder here, and a model on the hub may change; expected the "
            f"commit to take as --revision, 40 digits and letters a to f, found {commit}. The "
            "hub shows them under 'Files and versions', 'History'"
        )
    return _download(name, commit)


def classifier_inputs(folder: Path) -> list[Path]:
    """The files that a model and its tokeniser are read from."""
    return sorted(path for pattern in _READ for path in folder.glob(pattern))


def read_classifier(folder: Path) -> tuple[Any, nn.Module]:
    """Tokeniser and model, ready to be scored.

    Raises UserError for a folder without a whole classifier, with weights in pickles only, and for
    a model that needs code of its own; EnvironmentFault where the library is missing.
    """
    try:
        from transformers import AutoModelForSequenceClassification, AutoTokenizer
    except ImportError as fault:
        raise _missing_library() from fault
    if not list(folder.glob("*.safetensors")):
        raise UserError(
            f"--model {folder}: expected weights as .safetensors, found none; pickled weights "
            "(.bin, .pt) can run code and are not read. Convert the model, or name another"
        )
    rules = {"local_files_only": True, "trust_remote_code": False}
    try:
        tokeniser = AutoTokenizer.from_pretrained(folder, **rules)
        model, report = AutoModelForSequenceClassification.from_pretrained(
            folder, **rules, use_safetensors=True, output_loading_info=True
        )
    except MemoryError:
        raise
    except Exception as fault:  # whatever the library's parts raise, bare Exception among it
        raise UserError(
            f"--model {folder}: expected a whole classifier and its tokeniser that need no code of "
            f"their own: {' '.join(str(fault).split())[:200]}"
        ) from fault
    if report["missing_keys"]:
        raise UserError(
            f"--model {folder}: the weights lack {sorted(report['missing_keys'])[0]}, which the "
            "library would draw at random; is the model trained to classify?"
        )
    return tokeniser, model.eval()


def _download(name: str, commit: str) -> Path:
    try:
        from huggingface_hub import errors, snapshot_download
    except ImportError as fault:
        raise _missing_library() from fault
    try:
        return Path(snapshot_download(name, revision=commit, allow_patterns=list(_READ)))
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as fault:
        raise UserError(
            f"--model {name}: the hub has no such model for everyone, or none of commit {commit}; "
            "look both up there, or name a local folder"
        ) from fault
    except OSError as fault:
        raise EnvironmentFault(
            f"--model {name}: could not be fetched from the hub "
            f"({' '.join(str(fault).split())[:120]}); look at the network and give the same "
            "command again, or name a local folder"
        ) from fault


def _missing_library() -> EnvironmentFault:
    return EnvironmentFault("classifiers need the Hugging Face library; pip install -e '.[bert]'")

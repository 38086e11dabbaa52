"""The files of a Hugging Face classifier: a folder, or one fixed version of a model on the hub.

Nothing of theirs is ever run: weights are read as safetensors, and code beside them is left alone.
"""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn

from headcount.base.errors import EnvironmentFault, UserError
from headcount.base.files import check_apart, whole_file
from headcount.base.folders import CLASSIFIER_SOURCES
from headcount.base.settings.pretrained import COMMIT, HUB_NAME
from headcount.data.fetching.models import check_record, write_record
from headcount_hf.pretrained.library import (
    Kind,
    drawn_at_random,
    input_files,
    no_weights,
    of_hugging_face,
    open_model,
    open_tokeniser,
)

_KIND = Kind("AutoModelForSequenceClassification", "classifier", "bert")
_OF_LAYER = ".layer."  # in the names of weights of an encoder's layers


def fetch_classifier(name: str, commit: str | None) -> Path:
    """Return the folder of a model: the one of that name, or a copy of a commit of the hub.

    Of a folder with a record its files are compared. Raises UserError for a name that is neither,
    for a file that is not as recorded, and unless the commit of a model on the hub is
    given in full: its name alone may mean other weights tomorrow. Raises EnvironmentFault where
    the library is missing, or the hub cannot be reached and no copy is here.
    """
    if Path(name).is_dir():
        if commit:
            raise UserError(f"--revision: {name} is a folder, which has one version; leave it out")
        check_record(Path(name))
        return Path(name)
    if not re.fullmatch(HUB_NAME, name):
        raise UserError(
            f"--model {name}: expected a folder, or a name on the hub as in google/bert, found "
            "neither"
        )
    if not re.fullmatch(COMMIT, commit or ""):
        raise UserError(
            f"--model {name}: no folder here, and a model on the hub may change; expected the "
            f"commit to take as --revision, 40 digits and letters a to f, found {commit}. The "
            "hub shows them under 'Files and versions', 'History'"
        )
    return _download(name, commit)


def copy_classifier(name: str, commit: str | None, record: Path) -> None:
    """Copy the files of a model into the folder of `record`, which is written in the end.

    Raises UserError and EnvironmentFault as `fetch_classifier` does, and UserError for a model
    without weights as safetensors.
    """
    folder = fetch_classifier(name, commit)
    check_apart(record.parent, [folder])
    found = input_files(folder)
    if not any(path.suffix == ".safetensors" for path in found):
        raise no_weights(name)
    for path in found:
        with whole_file(record.parent / path.name, path.stat().st_size) as part:
            shutil.copyfile(path, part)
    origin = {"model": name, "revision": commit}
    write_record(record.parent, origin, [path.name for path in found])


def training_library() -> Any:
    """Return the Hugging Face library. Raises EnvironmentFault where it cannot train."""
    of_hugging_face("accelerate", _KIND)  # what its trainer runs on
    return of_hugging_face("transformers", _KIND)


def read_classifier(folder: Path, labels: Sequence[str] = ()) -> tuple[Any, nn.Module]:
    """Return tokeniser and model, ready to be scored, or with `labels` to be trained on these.

    Then the model needs no classifying layer. Raises UserError for a folder without a whole
    classifier, with weights in pickles only, and for a model that needs code of its own;
    EnvironmentFault where the library is missing.
    """
    names = {"id2label": dict(enumerate(labels))} if labels else {}
    if labels:
        names["label2id"] = {label: number for number, label in enumerate(labels)}
    model, missing, _ = open_model(folder, _KIND, **names)
    tokeniser = open_tokeniser(folder, _KIND)
    lacking = [key for key in missing if not labels or _OF_LAYER in key]
    if lacking:
        asked = "is it whole?" if labels else "is the model trained to classify?"
        raise drawn_at_random(folder, lacking[0], asked)
    return tokeniser, model


def _download(name: str, commit: str) -> Path:
    hub = of_hugging_face("huggingface_hub", _KIND)
    errors = of_hugging_face("huggingface_hub.errors", _KIND)  # the package does not import it
    try:
        kinds = list(CLASSIFIER_SOURCES)
        return Path(hub.snapshot_download(name, revision=commit, allow_patterns=kinds))
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

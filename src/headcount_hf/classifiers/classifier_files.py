"""Files of a Hugging Face classifier: a folder, or one version of a model on the hub.

Code of a folder never runs: weights are read as safetensors, and Python files are left alone.
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
    of_hugging_face,
    open_model,
    open_tokeniser,
    whole_files,
)

LONGEST = 128  # subwords of a pair, which is cut there
CLASSIFIER = Kind("AutoModelForSequenceClassification", "classifier", "bert")


def fetch_classifier(name: str, commit: str | None) -> Path:
    """Return the folder of a model, or of a copy of a commit of the hub.

    Raises UserError for an unknown name, a file that differs from the folder's record, and a model
    of the hub without its full commit, as its weights may change. Raises EnvironmentFault where
    the library is missing, or the hub cannot be reached.
    """
    if Path(name).is_dir():
        if commit:
            raise UserError(f"--revision: expected none for the folder {name}, found {commit}")
        check_record(Path(name))
        return Path(name)
    if not re.fullmatch(HUB_NAME, name):
        raise UserError(f"--model {name}: expected a folder, or a name on the hub as google/bert")
    if not re.fullmatch(COMMIT, commit or ""):
        raise UserError(
            f"--model {name}: expected a full commit of the hub as --revision, 40 digits and "
            f"letters a to f, found {commit}; see 'Files and versions', 'History' there"
        )
    hub = of_hugging_face("huggingface_hub", CLASSIFIER)
    errors = of_hugging_face("huggingface_hub.errors", CLASSIFIER)  # the package does not import it
    try:
        kinds = list(CLASSIFIER_SOURCES)
        return Path(hub.snapshot_download(name, revision=commit, allow_patterns=kinds))
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as fault:
        raise UserError(f"--model {name}: the hub has no such public model or commit") from fault
    except OSError as fault:
        raise EnvironmentFault(
            f"--model {name}: could not be fetched from the hub "
            f"({' '.join(str(fault).split())[:120]}); give the same command again, or name a folder"
        ) from fault


def copy_classifier(name: str, commit: str | None, record: Path) -> None:
    """Copy the files of a model into the folder of `record`, and write the record last."""
    folder = fetch_classifier(name, commit)
    check_apart(record.parent, [folder])
    paths = whole_files(folder)
    for path in paths:
        with whole_file(record.parent / path.name) as part:
            shutil.copyfile(path, part)
    write_record(record.parent, {"model": name, "revision": commit}, [path.name for path in paths])


def read_classifier(folder: Path, labels: Sequence[str] = ()) -> tuple[Any, nn.Module]:
    """Return tokeniser and model. With `labels`, the classifying layer may be missing."""
    named = dict(enumerate(labels))
    names = {"id2label": named, "label2id": {v: k for k, v in named.items()}} if labels else {}
    model, _ = open_model(folder, CLASSIFIER, ".layer." if labels else "", **names)
    return open_tokeniser(folder, CLASSIFIER), model

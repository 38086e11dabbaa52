"""Files of a Hugging Face classifier: a folder, or one version of a model on the hub."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn

from headcount.base.errors import UserError
from headcount.base.files import check_apart, whole_file
from headcount.data.fetching.models import check_record, fetch_commit, write_record
from headcount_hf.pretrained.library import Kind, open_model, open_tokeniser, whole_files

LONGEST = 128  # subwords of a pair, which is cut there
CLASSIFIER = Kind("AutoModelForSequenceClassification", "classifier", "bert")


def fetch_classifier(name: str, commit: str | None, record: Path) -> None:
    """Copy a model's folder, or a commit of the hub, beside `record`, which is written last.

    Raises UserError for a changed file, a shortened commit, and without weights as safetensors.
    """
    if not commit and not Path(name).is_dir():
        raise UserError(f"--model {name}: expected a folder, or a name on the hub with --revision")
    with tempfile.TemporaryDirectory() as aside:
        folder = Path(aside if commit else name)
        if commit:
            fetch_commit(name, commit, folder)
        check_record(folder)
        check_apart(record.parent, [folder])
        paths = whole_files(folder)
        for path in paths:
            with whole_file(record.parent / path.name, path.stat().st_size) as part:
                shutil.copyfile(path, part)
    write_record(record.parent, {"model": name, "revision": commit}, [path.name for path in paths])


def read_classifier(folder: Path, labels: Sequence[str] = ()) -> tuple[Any, nn.Module]:
    """Return tokeniser and model. With `labels`, the classifying layer may be missing."""
    named = dict(enumerate(labels))
    names = {"id2label": named, "label2id": {v: k for k, v in named.items()}} if labels else {}
    model, _ = open_model(folder, CLASSIFIER, ".layer." if labels else "", **names)
    return open_tokeniser(folder, CLASSIFIER), model

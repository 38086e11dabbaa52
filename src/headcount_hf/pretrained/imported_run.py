"""A run that nothing has trained here: an imported model as it is, with a training's files."""

from pathlib import Path
from typing import Any

from headcount.base.files import read_json, sha256, write_json
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.runs import write_run
from headcount.base.settings.train import TrainSettings
from headcount.base.settings.training_runs import BASELINE
from headcount.data.fetching.models import RECORD
from headcount.model.machine import pick_device
from headcount.model.transformer import parameter_count
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount.training.progress import CURVE_COLUMNS
from headcount.training.score import mean_loss
from headcount.training.training_run import MASK_COLUMNS, SLOPE_COLUMNS, write_rows
from headcount_hf.pretrained.check import compare_with_library
from headcount_hf.pretrained.families import Config, check_sizes
from headcount_hf.pretrained.imports import (
    import_for,
    imported_files,
    with_settings,
)
from headcount_hf.pretrained.languages import GENERATION

IMPORT_FILE = "import.json"


def write_imported_run(
    folder: Path,
    pair: PairFolder,
    settings: ModelSettings,
    train: TrainSettings,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Write the pretrained model in `folder` to `out` as a training of the baseline would be.

    Writes model/weights.safetensors, model/model.json, run.json, curves.csv whose one row is the
    dev loss before any update, masks.csv and slopes.csv without a row, and import.json: what
    was read, and how far scores lie from the library's. Of `train` only device and budget of a
    batch count. Raises UserError where `settings` are not the model's own, and as `import_for`
    does.
    """
    check_sizes(folder, settings)
    imported, dev = import_for(folder, pair), pair.read("dev")
    check = compare_with_library(imported, pair.first_pairs("dev", None), pair)
    model = with_settings(imported.model, settings).to(pick_device(train.device))
    loss = mean_loss(model, dev, train.batch_tokens)
    row = dict.fromkeys(CURVE_COLUMNS) | {"step": 0, "epoch": 0, "dev_loss": loss, "seconds": 0}
    write_rows(out / "curves.csv", CURVE_COLUMNS, [row])
    write_rows(out / "masks.csv", MASK_COLUMNS, [])
    write_rows(out / "slopes.csv", SLOPE_COLUMNS, [])
    write_run(out, BASELINE)
    facts = {"parameters": parameter_count(model), "update": 0, "dev_loss": loss}
    facts |= {**pair.subwords(), "provenance": origin}
    ModelFolder(out / "model").save(model, dict(model.named_parameters()), facts)
    write_json(out / IMPORT_FILE, _told(folder) | {"stored_as": imported.format, "check": check})


def _told(folder: Path) -> dict[str, Any]:
    """Return where a model comes from, its files, and how its makers search."""
    record, search = folder / RECORD, folder / GENERATION
    known = read_json(record) if record.exists() else {"model": str(folder), "revision": None}
    files = {
        path.name: {"sha256": sha256(path), "bytes": path.stat().st_size}
        for path in imported_files(folder)
    }
    return {
        "model": known["model"],
        "revision": known["revision"],
        "model_type": Config.read(folder).model_type,
        "files": files,
        "generation": read_json(search) if search.exists() else None,
    }

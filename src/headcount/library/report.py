"""The report and the atlas of one model, by the analysis of an experiment with one run."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from headcount.base.errors import optional_package
from headcount.base.files import read_json
from headcount.base.settings.heads import ImportanceSettings
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.pretrained import ExperimentModel
from headcount.base.settings.runs import write_run
from headcount.base.settings.training_runs import BASELINE

_KINDS = ("importance", "importance_facts", "removal", "attention", "positions", "syntax")
_KINDS += ("sentence_maps", "trained_runs")  # of `analysis/inputs.yaml`, which one model has
_OTHERS = {"measures": ("importance.csv", "attention.csv"), "alignment": ("alignment.csv",)}
MEASURES = [f"{name}.csv" for name in ("importance", "removal", "attention", "positions", "syntax")]
MEASURES += ["importance.json", "sentences.jsonl", "alignment.csv"]
"""Names of the files of measures."""
_LEFT_OUT = ("claims", "cost")  # chapters about experiments
_EXTRA = "run: pip install 'headcount[report]'"


def write_pages(
    out: Path, model: ModelSettings, pair: str, title: str, origin: dict[str, Any]
) -> Path:
    """Write tables, figures and pages from the measures in `out`, and return the report."""
    require_packages()
    from headcount.analysis.build import write_outputs
    from headcount.analysis.frames import Data
    from headcount.analysis.inputs import INPUTS
    from headcount.analysis.outputs import chapters
    from headcount.analysis.report.page import write_report

    with TemporaryDirectory() as work:
        run = Path(work, f"text.{pair}", BASELINE.label, "seed1")
        run.mkdir(parents=True)
        write_run(run, BASELINE)
        for path in out.glob("*.*"):
            os.symlink(path.resolve(), run / path.name)
        names = {kind: INPUTS[kind].names for kind in _KINDS} | _OTHERS
        paths = {kind: [run / name for name in own] for kind, own in names.items()}
        files = {kind: list(filter(Path.exists, known)) for kind, known in paths.items()}
        sentences = read_json(out / "importance.json")["sentences"]
        text = {"sentences": sentences, "data": "the text"}
        known = {"importance": ImportanceSettings().model_copy(update=text)}
        known |= {"model": ExperimentModel(**model.model_dump())}
        able = [kind for kind, paths in files.items() if paths]
        for chapter in chapters():
            made = chapter.made_from(able)
            shown = tuple(item for item in made.outputs if item.form != "numbers")
            if shown and chapter.name not in _LEFT_OUT:
                given = {name: section() for name, section in made.sections.items()} | known
                chosen = made.model_copy(update={"outputs": shown})
                write_outputs(chosen, Data(files, given), out, origin)
    write_report({out: title}, (), out / "report.html")
    return out / "report.html"


def require_packages() -> None:
    """Raise EnvironmentFault without the packages of the report."""
    for package in ("jinja2", "matplotlib", "scipy", "tabulate", "vl_convert"):
        optional_package(package, "the report", _EXTRA)

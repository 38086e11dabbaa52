"""The RO-Crate of an experiment, read back from its archive."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from datetime import datetime

import pytest
from project_copy import ROOT

pytest.importorskip("rocrate")
CRATE = ROOT / "workflow/crate.py"
REPORT = "results/quickstart/report.html"


@pytest.fixture
def project(tmp_path):
    """A project with a finished experiment of two jobs, of 30 s and 5 s, an hour apart."""
    for name in ("CITATION.cff", "LICENSE", "README.md", "pyproject.toml", "environment.yml"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "config", tmp_path / "config")
    files = {
        "workflow/Snakefile": "",
        "scripts/train.py": "pass",
        "workflow/x/__pycache__/x.py": "",
    }
    files |= {REPORT: "<p>", "results/quickstart/tables/bleu.csv": "bleu\n1\n"}
    files |= {"results/quickstart/train/p/model/weights.safetensors": "much"}
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    for name, seconds, end in (("train", 30, 1_700_000_000), ("bleu", 5, 1_700_003_600)):
        job = tmp_path / f"results/quickstart/benchmarks/{name}/p.tsv"
        job.parent.mkdir(parents=True)
        job.write_text(f"s\th:m:s\n{seconds}\t0\n")
        os.utime(job, (end, end))
    return tmp_path


def pack(project, *flags):
    """Pack the experiment, and return the ended process."""
    command = [sys.executable, CRATE, "quickstart", *flags]
    return subprocess.run(command, cwd=project, capture_output=True, text=True)


def test_a_crate_has_workflow_settings_results_and_the_run(project):
    assert pack(project).returncode == 0
    archive = zipfile.ZipFile(project / "results/quickstart.crate.zip")
    entities = {e["@id"]: e for e in json.loads(archive.read("ro-crate-metadata.json"))["@graph"]}
    described = {name for name, entity in entities.items() if "File" in entity["@type"]}
    assert described == {*archive.namelist()} - {"ro-crate-metadata.json"}
    assert {REPORT, "config/quickstart.yaml", "scripts/train.py"} <= described
    assert not any("__pycache__" in name or "weights" in name for name in described)
    root = entities["./"]
    assert root["mainEntity"] == {"@id": "workflow/Snakefile"}
    assert len(root["conformsTo"]) == 3 and root["license"]["@id"].endswith("/MIT")
    run = entities[root["mentions"]["@id"]]
    assert run["@type"] == "CreateAction" and run["instrument"] == root["mainEntity"]
    assert run["object"] == {"@id": "config/quickstart.yaml"}
    assert {REPORT, "results/quickstart/tables/bleu.csv"} == {r["@id"] for r in run["result"]}
    moments = [datetime.fromisoformat(run[name]).timestamp() for name in ("startTime", "endTime")]
    assert moments == [1_700_000_000 - 30, 1_700_003_600]


def test_results_have_their_author_and_licence_and_the_code_keeps_its_own(project):
    flags = ("--out", "x.zip", "--author", "A. Reader", "--license", "CC-BY-4.0")
    assert pack(project, *flags).returncode == 0
    metadata = zipfile.ZipFile(project / "x.zip").read("ro-crate-metadata.json")
    entities = {entity["@id"]: entity for entity in json.loads(metadata)["@graph"]}
    root = entities["./"]
    author = entities[root["author"]["@id"]]
    assert (author["@type"], author["name"]) == ("Person", "A. Reader")
    assert entities[root["mentions"]["@id"]]["agent"] == {"@id": author["@id"]}
    assert root["license"] == {"@id": "https://spdx.org/licenses/CC-BY-4.0"}
    for name in ("workflow/Snakefile", "scripts/train.py", "LICENSE"):
        assert entities[name]["license"] == {"@id": "https://spdx.org/licenses/MIT"}
        assert entities[entities[name]["author"]["@id"]]["@type"] == "Organization"
    assert not {"license", "author"} & entities["config/quickstart.yaml"].keys()


def test_a_licence_that_is_no_name_of_spdx_is_refused(project):
    ended = pack(project, "--license", "my own terms")
    assert ended.returncode == 2 and "my own terms" in ended.stderr
    assert not (project / "results/quickstart.crate.zip").exists()


def test_an_experiment_that_has_not_ended_is_refused(project):
    (project / REPORT).unlink()
    ended = pack(project, "--out", "crate.zip")
    assert ended.returncode == 2 and REPORT in ended.stderr and "Traceback" not in ended.stderr
    assert not (project / "crate.zip").exists()

"""Kept runs: a new clone takes them up, makes what is missing, and tables without any of it."""

import json
import re

import pytest
from project_copy import ProjectCopy, planned
from shared_results import GATHERED, QUIET, ROLES, own_copy

pytestmark = pytest.mark.slow

KEPT = "docs/results/quickstart/kept/synthetic.en-art"
RUNS = ["baseline", "gates-all-l0", "gates-all-l0.03", "speed"]
RESULTS = "results/quickstart"
CURVES = f"{RESULTS}/train/synthetic.en-art/baseline/seed1/curves.csv"
CLOCKED = {"cost.csv"}  # of benchmarks of tables, too
EVERY_TABLE = {*GATHERED, *ROLES}


@pytest.fixture
def first(origin, tmp_path) -> ProjectCopy:
    """A machine that has finished all runs, and kept them."""
    copy = own_copy(origin, tmp_path)
    shared = tmp_path / "shared.git"
    copy.call("git", "clone", "-q", "--bare", str(copy.folder), str(shared))
    copy.call("git", "remote", "add", "origin", str(shared))
    copy.call("git", "push", "-q", "--set-upstream", "origin", "main")
    told = copy.shell('python workflow/kept.py keep quickstart --machine "two cores of a laptop"')
    assert "4 runs kept, 0 stay as they are, 0 are not finished here" in told
    copy.shell("git add docs/results/quickstart")
    copy.shell('git commit -m "Runs of lab"')
    copy.shell("git push ")
    return copy


@pytest.fixture
def second(first) -> ProjectCopy:
    """A clone of it, which has the kept runs and nothing else."""
    folder = first.folder.parent / "second"
    first.call("git", "clone", "-q", str(first.folder.parent / "shared.git"), str(folder))
    return ProjectCopy.of(folder)


def make_text(copy: ProjectCopy) -> None:
    copy.shell("snakemake --cores all prepare --config experiment=quickstart")


def tables(folder) -> dict[str, str]:
    found = {path.name: path.read_text() for path in folder.glob("*.csv")}
    return {name: text for name, text in found.items() if name not in CLOCKED}


def test_a_new_clone_trains_no_kept_run_again(first, second):
    archives = {path.name for path in (second.folder / KEPT).iterdir()}
    assert archives == {f"{run}.seed1.tar.xz" for run in RUNS}
    make_text(second)
    told = second.shell("python workflow/kept.py take quickstart")
    assert re.search(r"^4 kept runs: \d+ files taken, 0 stay", told, re.M)
    assert not list((second.folder / "results").rglob("*.safetensors"))
    assert planned(second.run("-n")[1]).keys() == EVERY_TABLE
    second.shell("snakemake --cores all --config experiment=quickstart")
    assert QUIET in second.run("-n")[1]
    ours = tables(first.folder / RESULTS / "tables")
    assert len(ours) > 5 and tables(second.folder / RESULTS / "tables") == ours
    again = second.call("python", "workflow/kept.py", "keep", "quickstart", "--machine", "x")
    assert "0 runs kept, 4 stay as they are, 0 are not finished here" in again


def test_what_is_missing_is_made_and_kept_beside(first, second):
    (second.folder / KEPT / "gates-all-l0.03.seed1.tar.xz").unlink()
    make_text(second)
    second.shell("python workflow/kept.py take quickstart")
    plan = planned(second.run("-n")[1])
    assert plan["train"] == 1  # what is missing starts from the baseline's model
    assert plan["gates"] == 2 and plan["importance"] == 1  # what was made from that as well


def test_the_page_has_all_kept_runs_without_the_runs(first, second):
    ours = tables(first.folder / RESULTS / "tables")
    told = second.shell("python workflow/kept.py page quickstart --short HM-03")
    made = tables(second.folder / "results/kept/quickstart/tables")
    assert "files of text are not here" in told and "headmask_table3.csv" not in made
    make_text(second)
    told = second.shell("python workflow/kept.py page quickstart --short HM-03")
    assert "docs/results/quickstart.md: 4 kept runs" in told and "left out" not in told
    assert tables(second.folder / "docs/results/quickstart/tables") == ours
    page = (second.folder / "docs/results/quickstart.md").read_text()
    assert "| machine | two cores of a laptop |" in page
    model = first.folder / RESULTS / "train/synthetic.en-art/baseline/seed1/model/model.json"
    weights = json.loads(model.read_text())["sha256"]["weights.safetensors"][:12]
    assert re.search(rf"\| synthetic.en-art \| baseline \| 1 \| .* \| {weights} \|\n", page)
    second.shell("git add docs/results/quickstart docs/results/quickstart.md")
    second.shell('git commit -m "Page of quickstart"')

    second.change("config/quickstart.yaml", "  updates: 60\n", "  updates: 61\n")
    told = second.call("python", "workflow/kept.py", "page", "quickstart", fails=True)
    assert "found none" in told and "train.updates was 60 and is 61" in told
    second.change("config/quickstart.yaml", "  updates: 61\n", "  updates: 60\n")
    (second.folder / KEPT / "baseline.seed1.tar.xz").unlink()
    told = second.call("python", "workflow/kept.py", "page", "quickstart", fails=True)
    assert "left out: speed, seed 1 of synthetic.en-art: no baseline of this pair and" in told


def test_a_kept_run_is_checked_against_one_that_is_here(first, second):
    assert "4 kept runs are the same here" in first.shell(
        "python workflow/kept.py check quickstart"
    )
    first.shell("python workflow/kept.py check quickstart synthetic.en-art baseline 1")
    told = second.call("python", "workflow/kept.py", "check", "quickstart", fails=True)
    assert "0 kept runs are the same here, 4 are not here" in told
    curves = first.folder / CURVES
    header, row, *rest = curves.read_text().splitlines()
    cells = row.split(",")
    place = header.split(",").index("dev_loss")
    was, cells[place] = cells[place], "99.5"
    curves.unlink()
    told = first.call("python", "workflow/kept.py", "check", "quickstart", fails=True)
    assert f"{CURVES}: is kept and is not here" in told and "3 kept runs are" in told
    curves.write_text("\n".join([header, ",".join(cells), *rest, ""]))
    code, told = first.end("python", "workflow/kept.py", "check", "quickstart")
    assert code == 2 and f"{CURVES}: 1 of " in told
    assert f"row 1, dev_loss: kept '{was}', here '99.5'" in told and "3 kept runs are" in told
    told = first.call(
        "python", "workflow/kept.py", "keep", "quickstart", "--machine", "x", fails=True
    )
    assert f"{CURVES}: changed since rule train wrote it" in told


def test_old_scores_of_a_new_model_are_not_kept(first):
    model = first.folder / RESULTS / "train/synthetic.en-art/baseline/seed1/model"
    first.change("config/quickstart.yaml", "  updates: 60\n", "  updates: 70\n")
    first.shell("snakemake --cores all --until train")
    keeping = ["python", "workflow/kept.py", "keep", "quickstart", "--machine", "x", "--replace"]
    told = first.call(*keeping)
    assert "0 runs kept, 4 stay as they are" in told and model.is_dir()
    (first.folder / KEPT / "baseline.seed1.tar.xz").unlink()
    told = first.call(*keeping)
    assert "1 are not finished here\n" in told
    assert "was made from another" in told
    assert "than is here: baseline, seed 1 of synthetic.en-art" in told


def test_a_kept_run_of_other_settings_is_named_and_replaced_when_asked(first):
    config = first.folder / "config/quickstart.yaml"
    config.write_text(config.read_text() + "\nfine_tuning: {batch: 31}\n")  # nothing is fine-tuned
    keeping = ["python", "workflow/kept.py", "keep", "quickstart", "--machine", "x"]
    told = first.call(*keeping)
    others = "kept with other settings or code; --replace keeps those that are here: baseline, "
    assert "0 runs kept, 4 stay as they are" in told and others in told
    assert "fine_tuning.batch was 32 and is 31" in told
    assert "4 runs kept, 0 stay as they are" in first.call(*keeping, "--replace")
    told = first.call(*keeping)
    assert "0 runs kept, 4 stay as they are" in told and "other settings" not in told

"""The notebook on the heads of one model, whose cells run as they stand."""

import json

import pytest
from project_copy import ROOT

NOTEBOOK = ROOT / "docs/notebooks/heads_of_a_model.ipynb"


def cells() -> list[dict]:
    return [c for c in json.loads(NOTEBOOK.read_text())["cells"] if c["cell_type"] == "code"]


def test_it_has_pictures_and_is_small():
    kinds = [kind for cell in cells() for out in cell["outputs"] for kind in out.get("data", ())]
    assert "image/png" in kinds and NOTEBOOK.stat().st_size < 300_000
    assert not any(out["output_type"] == "error" for cell in cells() for out in cell["outputs"])


@pytest.mark.slow
def test_its_cells_run(tmp_path, monkeypatch):
    """With a shorter training. Fewer heads than before are left, and BLEU has changed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    names = {}
    for cell in cells():
        source = "".join(cell["source"]).replace("updates=700", "updates=35")
        exec(compile(source, "a cell", "exec"), names)
    assert names["smaller"].heads and len(names["smaller"].heads) == len(names["model"].heads) - 5
    assert set(names["found"]["order"]) == {"none", "5 least", "10 least", "15 least", "5 most"}
    assert (tmp_path / "smaller/model.json").exists()

"""BLEU, size and speed of a model in all its forms: one function, measured in turns."""

import csv
import json

import pytest
from learnt_model import LEARNT, learnt
from script_runner import run_script
from small_run import segment

from headcount.data.lines import clean_lines, write_lines
from headcount_hf.export.measured import COLUMNS, speed


def test_speed_and_its_interval():
    """Logarithms 3 ln 2 and ln 2: mean 2 ln 2, standard error ln 2; t of 97.5 % is 12.7062."""
    mean, low, high = speed(8, [1.0, 4.0])
    assert mean == pytest.approx(4)
    assert low == pytest.approx(4 * 2**-12.7062, rel=1e-4)
    assert high == pytest.approx(4 * 2**12.7062, rel=1e-4)
    assert speed(6, [2.0]) == [pytest.approx(3), "", ""]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model that knows three sentences; they, and an empty line, with their translations."""
    folder = tmp_path_factory.mktemp("measured")
    bpe = segment(folder / "text", pairs=20)
    learnt(bpe, folder, 3, d_model=12)
    for side in ("src", "tgt"):
        lines = list(clean_lines(folder / f"text/dev.{side}"))
        write_lines(folder / f"known.{side}", [*(lines[number] for number in LEARNT), ""])
    return folder


@pytest.mark.slow
def test_every_form_is_the_same_model_on_the_scales(folder, capsys):
    pytest.importorskip("ctranslate2")
    model = ["--model", folder / "model", "--bpe", folder / "text/bpe"]
    forms = ["headcount", "ctranslate2", "huggingface"]
    for form in forms:
        assert run_script("export", [*model, "--to", form, "--out", folder / form]) == 0
    out = folder / "measured.csv"
    words = ["--source", folder / "known.src", "--reference", folder / "known.tgt", "--beam", 2]
    words += ["--models", *(folder / form for form in forms), "--repeats", 2, "--out", out]
    words += ["--compute-types", "float32", "int8"]
    assert run_script("measure", words) == 0
    assert "95 % interval over rounds; threads: 1" in capsys.readouterr().out
    rows = list(csv.DictReader(out.open()))
    assert tuple(rows[0]) == COLUMNS
    kinds = [(row["program"], row["compute_type"]) for row in rows]
    fp32 = [(form, "float32") for form in forms]
    assert kinds == [*fp32[:2], ("ctranslate2", "int8"), fp32[2]]
    files = ["weights.safetensors", "model.bin", "model.bin", "model.safetensors"]
    for row, weights in zip(rows, files, strict=True):
        assert float(row["bleu"]) == pytest.approx(100)
        assert row["heads"] == "24" and row["sentences"] == "4" and row["repeats"] == "2"
        size = (folder / row["program"] / weights).stat().st_size
        assert float(row["megabytes"]) == pytest.approx(size / 1e6)
        assert 0 < float(row["low"]) < float(row["sentences_per_s"]) < float(row["high"])
        assert "nrefs:1|case:mixed|eff:no|tok:13a" in row["signature"]
    facts = json.loads(out.with_suffix(".json").read_text())
    assert facts["length_penalty"] == 0.0 and len(facts["seconds"]) == 4

"""BLEU, size and speed of a model in all its forms: one function, measured in turns."""

import csv
import json

import pytest
from learnt_model import LEARNT, learnt
from script_runner import run_script
from small_run import segment

from headcount.base.settings.decode import DecodeSettings
from headcount.data.lines import clean_lines, write_lines
from headcount.search.translation import translate_lines
from headcount.store.model_folder import ModelFolder
from headcount_hf.export.measured import COLUMNS, open_models, speed


def test_speed_and_its_interval():
    """Logarithms 3 ln 2 and ln 2: mean 2 ln 2, standard error ln 2; t of 97.5 % is 12.7062."""
    mean, low, high = speed(8, [1.0, 4.0])
    assert mean == pytest.approx(4)
    assert low == pytest.approx(4 * 2**-12.7062, rel=1e-4)
    assert high == pytest.approx(4 * 2**12.7062, rel=1e-4)
    assert speed(6, [2.0]) == (pytest.approx(3), "", "")


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
    assert run_script("measure", words) == 0
    assert "95 % interval over rounds; threads: 1" in capsys.readouterr().out
    rows = list(csv.DictReader(out.open()))
    assert tuple(rows[0]) == COLUMNS
    assert [row["program"] for row in rows] == forms
    for row, weights in zip(
        rows, ["weights.safetensors", "model.bin", "model.safetensors"], strict=True
    ):
        assert float(row["bleu"]) == pytest.approx(100)
        assert row["heads"] == "24" and row["sentences"] == "4" and row["repeats"] == "2"
        size = (folder / row["program"] / weights).stat().st_size
        assert float(row["megabytes"]) == pytest.approx(size / 1e6)
        assert 0 < float(row["low"]) < float(row["sentences_per_s"]) < float(row["high"])
        assert "nrefs:1|case:mixed|eff:no|tok:13a" in row["signature"]
    facts = json.loads(out.with_suffix(".json").read_text())
    assert facts["length_penalty"] == 0.0 and len(facts["seconds"]) == 3


@pytest.mark.slow
def test_what_cannot_be_measured_is_named(folder, tmp_path, capsys):
    words = ["--source", folder / "known.src", "--out", tmp_path / "out.csv"]
    reference = ["--reference", folder / "known.tgt"]
    write_lines(tmp_path / "short", ["one"])
    exported, other = tmp_path / "exported", segment(tmp_path / "other", pairs=30)
    model = ["--model", folder / "model", "--bpe", folder / "text/bpe"]
    assert run_script("export", [*model, "--to", "huggingface", "--out", exported]) == 0
    for more, message in (
        ([*reference, "--models", folder / "model"], "expected src.vocab in one of"),
        ([*reference, "--models", tmp_path, "--bpe", folder / "text/bpe"], "expected a model, mod"),
        ([*reference, "--models", exported, "--bpe", other], f"{other}/src.codes: expected the"),
        (["--reference", tmp_path / "short", "--models", folder / "model"], "has 4 lines"),
        ([*reference, "--models", folder / "model", "--repeats", 0], "--repeats: expected at leas"),
    ):
        assert run_script("measure", [*words, *more]) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.slow
def test_an_imported_model_is_measured_with_its_own_words(folder, tmp_path):
    """Its words are those of ours under no length penalty, up to the longest output."""
    from small_marian import write_marian

    import headcount

    texts = tuple(folder / f"text/train.{side}" for side in ("src", "tgt"))
    write_marian(tmp_path / "opus", texts)
    model = headcount.import_pretrained(tmp_path / "opus", "en", "art", tmp_path / "ours")
    model.without(["enc_self.0.2"]).export(tmp_path / "back", "huggingface", tmp_path / "opus")
    settings = DecodeSettings(beam=2, length_penalty=0.0, max_length_factor=0.01)
    folders = [tmp_path / "ours", tmp_path / "back"]
    models, target = open_models(folders, None, settings)
    assert [(model.search.facts["engine"], model.heads) for model in models] == [
        ("headcount", 24),
        ("huggingface", 23),
    ]
    assert target.language == "art" and ModelFolder(folders[0]).settings.grid.size == 24
    lines = list(clean_lines(folder / "known.src"))
    found = translate_lines(models[1].search, lines)[0]
    assert found[3] == "" and all(found[:3])
    # At the longest output ours ends, and theirs takes another piece, of three letters here.
    expected = model.translate(lines, mask="enc_self.0.2", decode=settings)
    for mine, theirs in zip(expected[:3], found[:3], strict=True):
        assert theirs.startswith(mine[:-3]) and len(mine) > 12

"""Folders, texts and languages that cannot be: one line says so, and nothing is half-written."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
import safetensors.torch
import torch
from script_runner import run_script
from small_tokenizers import LINES, write_small, write_text

from headcount.base.files import read_json
from headcount.model import machine


@dataclass(frozen=True)
class Folders:
    """A copy of theirs, a text, and where pieces and model would lie."""

    theirs: Path
    text: Path
    pieces: Path
    model: Path

    def segment(self, src: str, tgt: str, *more: object) -> int:
        texts = [f"--{split}-{side}" for split in ("train", "dev") for side in ("src", "tgt")]
        flags = [word for flag in texts for word in (flag, self.text)]
        languages = ["--src-lang", src, "--tgt-lang", tgt]
        where = ["--pretrained", self.theirs, "--out-folder", self.pieces]
        return run_script("segment", [*where, *languages, *flags, *more])

    def import_it(self) -> int:
        where = ["--pretrained", self.theirs, "--bpe", self.pieces, "--out", self.model]
        return run_script("import_model", where)

    def change(self, name: str, **values: object) -> None:
        path = self.theirs / name
        found = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps(found | values))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Makes each folder once, when it is asked for."""
    root, known = tmp_path_factory.mktemp("bad"), {}
    text = write_text(root / "train.txt")

    def make(layout: str) -> Path:
        if layout not in known:
            known[layout] = write_small(layout, root / layout, text).folder
        return known[layout]

    return make, text


@pytest.fixture
def folders(made, tmp_path):
    def copy(layout: str) -> Folders:
        theirs = shutil.copytree(made[0](layout), tmp_path / "theirs")
        return Folders(theirs, made[1], tmp_path / "pieces", tmp_path / "model")

    return copy


def told(capsys) -> str:
    """The one line on standard error that says what is wrong."""
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error:")]
    assert len(lines) == 1
    return lines[0]


def refused(found: Folders, capsys, code: int) -> str:
    """What is told, when the exit code is 2 and no whole folder is left."""
    assert code == 2
    assert not (found.pieces / "segmentation.json").exists()
    assert not (found.model / "model.json").exists()
    return told(capsys)


@pytest.mark.parametrize(
    ("layout", "languages", "more", "message"),
    [
        (
            "nllb_json",
            ("eng_Latn", "de"),
            (),
            "--tgt-code: expected one of the 202 languages of {}, found 'de'; the nearest are "
            "deu_Latn,",
        ),
        (
            "nllb_spm",
            ("en", "de"),
            ("--src-code", "engLatn"),
            "--src-code: expected one of the 202",
        ),
        ("mbart_json", ("en", "de_DE"), (), "found 'en'; the nearest are en_XX,"),
        ("mbart50_spm", ("en_XX", "de"), (), "of the 52 languages of {}, found 'de'; the nearest"),
        (
            "m2m100",
            ("en", "deu"),
            (),
            "of the 100 languages of {}, found 'deu'; the nearest are de,",
        ),
        (
            "marian",
            ("en", "de"),
            (),
            "--tgt-code: expected one of the 2 languages of {}, found 'de'; the nearest are deu,",
        ),
        (
            "marian",
            ("en", "deu"),
            ("--src-code", "eng"),
            "--src-code: expected none, as this model is not told that language, found 'eng'",
        ),
        ("bart_json", ("en", "de"), ("--tgt-code", "de"), "--tgt-code: expected none"),
    ],
)
def test_languages_that_a_model_does_not_have(folders, capsys, layout, languages, more, message):
    found = folders(layout)
    told = refused(found, capsys, found.segment(*languages, *more))
    assert message.format(found.theirs) in told


@pytest.mark.parametrize(
    ("layout", "stated", "languages", "more", "message"),
    [
        ("bart_json", ("de", "en"), ("en", "de"), (), "source_lang of tokenizer_config.json: "),
        ("bart_json", ("eng", "fra"), ("en", "de_AT"), (), "target_lang of tokenizer_config.json"),
        ("bart_json", ("eng", "deu"), ("en", "de_AT"), (), None),
        ("bart_json", ("mul", "ROMANCE"), ("en", "fr"), (), None),
        ("marian", ("eng", "gmw"), ("en", "nl"), ("--tgt-code", "nld"), None),
        ("marian", ("eng", "gmw"), ("en", "nl"), ("--tgt-code", "deu"), "--tgt-code: expected nl"),
        ("nllb_json", ("", ""), ("eng_Latn", "deu_Latn"), ("--src-code", "deu_Latn"), "--src-code"),
    ],
)
def test_languages_of_another_direction(folders, capsys, layout, stated, languages, more, message):
    found = folders(layout)
    found.change("tokenizer_config.json", source_lang=stated[0], target_lang=stated[1])
    code = found.segment(*languages, *more)
    assert message in refused(found, capsys, code) if message else code == 0


def test_a_model_made_for_another_target_language(folders, capsys):
    found = folders("nllb_json")
    ids = {
        each["content"]: each["id"]
        for each in json.loads((found.theirs / "tokenizer.json").read_text())["added_tokens"]
    }
    found.change("generation_config.json", forced_bos_token_id=ids["fra_Latn"])
    told = refused(found, capsys, found.segment("eng_Latn", "deu_Latn"))
    assert "forced_bos_token_id: expected the id of deu_Latn, found that of fra_Latn" in told
    assert found.segment("eng_Latn", "fra_Latn") == 0


def test_a_code_may_be_written_as_its_piece(folders):
    found = folders("marian")
    assert found.segment("en", "de", "--tgt-code", ">>deu<<") == 0
    assert read_json(found.pieces / "segmentation.json")["language_codes"] == [None, "deu"]


def test_a_lone_code_is_told_if_it_is_asked_for(folders):
    found = folders("marian")
    table = json.loads((found.theirs / "vocab.json").read_text())
    table["left over"] = table.pop(">>nld<<")
    (found.theirs / "vocab.json").write_text(json.dumps(table))
    for flags, codes in (((), [None, None]), (("--tgt-code", "deu"), [None, "deu"])):
        assert found.segment("en", "de", *flags) == 0
        assert read_json(found.pieces / "segmentation.json")["language_codes"] == codes
        line = (found.pieces / "dev.src").read_text().splitlines()[0]
        assert line.startswith(">>deu<< ") == bool(flags)


def test_codes_behind_a_sentence_are_refused(folders, capsys):
    found = folders("nllb_json")
    found.change("tokenizer_config.json", legacy_behaviour=True)
    told = refused(found, capsys, found.segment("eng_Latn", "deu_Latn"))
    assert "legacy_behaviour: expected false" in told


@pytest.mark.parametrize("layout", ["bart_json", "mbart_spm", "m2m100"])
def test_lines_longer_than_the_positions(folders, tmp_path, capsys, layout):
    found = folders(layout)
    text = tmp_path / "long.txt"
    text.write_text("\n".join([LINES[0], "on " * 80, LINES[1]]) + "\n")
    codes = {"mbart_spm": ("en_XX", "de_DE"), "m2m100": ("en", "de")}.get(layout, ("en", "de"))
    told = refused(found, capsys, Folders(found.theirs, text, *[found.pieces] * 2).segment(*codes))
    assert f"{text}:2: expected at most 63 pieces, one less than the model has positions" in told
    assert "leave the line out of both sides" in told


def test_a_source_longer_than_the_positions(folders, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(machine, "use_threads", torch.set_num_threads)
    found = folders("bart_merges")
    assert found.segment("en", "de") == found.import_it() == 0
    source = tmp_path / "test.txt"
    source.write_text("the\n\n" + "on " * 80 + "\n")
    flags = ["--model", found.model, "--bpe", found.pieces, "--source", source]
    flags += ["--out", tmp_path / "out.txt", "--facts", tmp_path / "facts.json"]
    capsys.readouterr()
    assert run_script("translate", flags) == 2
    assert f"{source}:3: expected at most 63 subwords, one less than the model" in told(capsys)
    assert not (tmp_path / "out.txt").exists()
    assert run_script("translate", [*flags, "--max-source", 63, "--beam", 1]) == 0
    assert read_json(tmp_path / "facts.json")["truncated"] == 1


@pytest.mark.parametrize(
    ("layout", "name", "content", "message"),
    [
        ("nllb_json", "tokenizer.json", b'{"model": {', "its tokeniser that need no code"),
        ("nllb_json", "tokenizer.json", b'{"model": 3}', "its tokeniser that need no code"),
        ("mbart_json", "tokenizer_config.json", b"[]", "tokenizer_config.json: damaged, expected"),
        (
            "mbart_spm",
            "sentencepiece.bpe.model",
            None,
            "a piece for each of the 119 words",
        ),
        ("pegasus_spm", "spiece.model", b"short", "its tokeniser that need no code"),
        ("bart_merges", "merges.txt", None, "its tokeniser that need no code"),
        ("bart_merges", "merges.txt", b"#version: 0.2\na b c\n", "Merges text file invalid"),
        ("bart_merges", "merges.txt", b"a zz\n", "Token `zz` out of vocabulary"),
        ("bart_merges", "vocab.json", b'{"a": 0}', "Token `h` out of vocabulary"),
        ("m2m100", "config.json", b'{"model_type": "t5"}', "model_type: expected one of marian, "),
    ],
)
def test_files_that_are_missing_or_damaged(folders, capsys, layout, name, content, message):
    found = folders(layout)
    (found.theirs / name).unlink()
    if content is not None:
        (found.theirs / name).write_bytes(content)
    languages = {"nllb_json": ("eng_Latn", "deu_Latn"), "m2m100": ("en", "de")}
    code = found.segment(*languages.get(layout, ("en_XX", "de_DE")))
    assert message in refused(found, capsys, code)


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (200, "from 0 to 199 as its id, as many as {} says that there are words, found "),
        (
            458,
            "expected a piece for each of the 458 words of {}, found none for 128, the first of "
            "them 330; fewer than 128 may fill",
        ),
    ],
)
def test_pieces_that_do_not_fit_the_weights(folders, capsys, size, message):
    found = folders("bart_json")
    found.change("config.json", vocab_size=size)
    told = refused(found, capsys, found.segment("en", "de"))
    assert message.format(found.theirs / "config.json") in told


def test_holes_and_doubles_among_the_pieces(folders, capsys):
    found = folders("bart_merges")
    path = found.theirs / "vocab.json"
    ids = json.loads(path.read_text())
    path.write_text(json.dumps({piece: number for piece, number in ids.items() if number != 40}))
    told = refused(found, capsys, found.segment("en", "de"))
    assert "expected a piece for each of the 330 words" in told
    assert "found none for 1, the first of them 40" in told
    path.write_text(json.dumps(ids | {"other": 40}))
    told = refused(found, capsys, found.segment("en", "de"))
    assert "expected an id of its own for each piece, found 40 of more than one" in told


def test_pieces_of_another_model(folders, capsys):
    """A pair cut for one language pair does not belong to a model of another."""
    found = folders("mbart_json")
    assert found.segment("en_XX", "de_DE") == 0
    about = read_json(found.pieces / "segmentation.json")
    about["language_codes"] = ["ro_RO", "de_DE"]
    (found.pieces / "segmentation.json").write_text(json.dumps(about))
    assert found.import_it() == 2
    assert "expected text cut into the pieces of" in told(capsys)
    assert not found.model.exists()


def test_weights_that_are_not_read(folders, capsys):
    found = folders("nllb_json")
    assert found.segment("eng_Latn", "deu_Latn") == 0
    weights = found.theirs / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    assert found.import_it() == 2
    assert "model.safetensors: not a whole safetensors file" in told(capsys)
    weights.unlink()
    (found.theirs / "pytorch_model.bin").write_bytes(b"")
    assert found.import_it() == 2
    assert "expected weights as .safetensors, found none; pickled weights" in told(capsys)
    assert not found.model.exists()


def test_numbers_that_are_no_fractions(folders, capsys):
    found = folders("bart_json")
    assert found.segment("en", "de") == 0
    path = found.theirs / "model.safetensors"
    weights = safetensors.torch.load_file(path)
    weights["model.encoder.layers.1.fc1.weight"] = weights["model.encoder.layers.1.fc1.weight"].to(
        torch.int8
    )
    safetensors.torch.save_file(weights, path)
    assert found.import_it() == 2
    assert "fc1.weight: expected floating-point numbers, found I8; take the" in told(capsys)


def test_text_that_was_cut_before_there_were_marks(folders, capsys):
    found = folders("bart_json")
    assert found.segment("en", "de") == 0
    path = found.pieces / "segmentation.json"
    about = read_json(path)
    del about["marks"]
    path.write_text(json.dumps(about))
    assert found.import_it() == 2
    message = told(capsys)
    assert "an object with joint, marks, pretokenised" in message
    assert "or scripts/segment.py for a pretrained model" in message

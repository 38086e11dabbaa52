"""Folders, texts and languages that are refused: exit 2, one error line, nothing half-written."""

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
import safetensors.torch
import torch
from script_runner import run_script
from small_tokenizers import LINES, write_small, write_text

from headcount.base.files import read_json

GONE = object()


@dataclass(frozen=True)
class Folders:
    """A copy of their folder, a text, and folders for pieces and model."""

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
        before = json.loads(path.read_text()) if path.exists() else {}
        after = {key: value for key, value in (before | values).items() if value is not GONE}
        path.write_text(json.dumps(after))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Make each folder once, when it is first needed."""
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


def error(capsys) -> str:
    """Return the one error line on standard error."""
    lines = capsys.readouterr().err.splitlines()
    (line,) = (line for line in lines if line.startswith("error:"))
    return line


def refused(folders: Folders, capsys, code: int) -> str:
    """Return the error of a command that left no whole folder."""
    assert code == 2
    assert not (folders.pieces / "segmentation.json").exists()
    assert not (folders.model / "model.json").exists()
    return error(capsys)


@pytest.mark.parametrize(
    ("layout", "languages", "more", "message"),
    [
        ("nllb_json", ("eng_Latn", "de"), (), "--tgt-code: .* 202 .* 'de'; .* are deu_Latn,"),
        ("nllb_spm", ("en", "de"), ("--src-code", "engLatn"), "--src-code: .* 202 "),
        ("mbart_json", ("en", "de_DE"), (), "'en'; the nearest are en_XX,"),
        ("mbart50_spm", ("en_XX", "de"), (), "--tgt-code: .* 52 .* 'de'"),
        ("m2m100", ("en", "deu"), (), "--tgt-code: .* 100 .* 'deu'; the nearest are de,"),
        ("marian", ("en", "de"), (), "--tgt-code: .* 2 .* 'de'; the nearest are deu,"),
        ("marian", ("en", "deu"), ("--src-code", "eng"), "--src-code: expected none.* 'eng'"),
        ("bart_json", ("en", "de"), ("--tgt-code", "de"), "--tgt-code: expected none"),
    ],
)
def test_languages_that_a_model_does_not_have(folders, capsys, layout, languages, more, message):
    at = folders(layout)
    assert re.search(message, refused(at, capsys, at.segment(*languages, *more)))


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
    at = folders(layout)
    at.change("tokenizer_config.json", source_lang=stated[0], target_lang=stated[1])
    code = at.segment(*languages, *more)
    assert message in refused(at, capsys, code) if message else code == 0


def test_a_model_made_for_another_target_language(folders, capsys):
    at = folders("nllb_json")
    tokens = json.loads((at.theirs / "tokenizer.json").read_text())["added_tokens"]
    ids = {token["content"]: token["id"] for token in tokens}
    at.change("generation_config.json", forced_bos_token_id=ids["fra_Latn"])
    message = refused(at, capsys, at.segment("eng_Latn", "deu_Latn"))
    assert re.search("forced_bos_token_id: .* deu_Latn, .* fra_Latn", message)
    assert at.segment("eng_Latn", "fra_Latn") == 0
    (at.pieces / "segmentation.json").unlink()
    at.change("tokenizer_config.json", legacy_behaviour=True)
    message = refused(at, capsys, at.segment("eng_Latn", "fra_Latn"))
    assert "legacy_behaviour: " in message  # codes behind a sentence


def test_a_lone_code_is_used_if_it_is_given_also_as_its_piece(folders):
    at = folders("marian")
    table = json.loads((at.theirs / "vocab.json").read_text())
    table["left over"] = table.pop(">>nld<<")
    (at.theirs / "vocab.json").write_text(json.dumps(table))
    for flags, code in (
        ((), None),
        (("--tgt-code", "deu"), "deu"),
        (("--tgt-code", ">>deu<<"), "deu"),
    ):
        assert at.segment("en", "de", *flags) == 0
        assert read_json(at.pieces / "segmentation.json")["language_codes"] == [None, code]
        line = (at.pieces / "dev.src").read_text().splitlines()[0]
        assert line.startswith(">>deu<< ") == bool(flags)


@pytest.mark.parametrize("layout", ["bart_json", "mbart_spm", "m2m100"])
def test_lines_longer_than_the_positions(folders, tmp_path, capsys, layout):
    at = folders(layout)
    text = tmp_path / "long.txt"
    text.write_text("\n".join([LINES[0], "on " * 80, LINES[1]]) + "\n")
    codes = {"mbart_spm": ("en_XX", "de_DE")}.get(layout, ("en", "de"))
    message = refused(at, capsys, Folders(at.theirs, text, *[at.pieces] * 2).segment(*codes))
    assert f"{text}:2: expected at most 63 pieces" in message


def test_a_source_longer_than_the_positions(folders, tmp_path, capsys):
    at = folders("bart_merges")
    assert at.segment("en", "de") == at.import_it() == 0
    source = tmp_path / "test.txt"
    source.write_text("the\n\n" + "on " * 80 + "\n")
    flags = ["--model", at.model, "--bpe", at.pieces, "--source", source]
    flags += ["--out", tmp_path / "out.txt", "--facts", tmp_path / "facts.json"]
    capsys.readouterr()
    assert run_script("translate", flags) == 2
    assert f"{source}:3: expected at most 63 subwords" in error(capsys)
    assert not (tmp_path / "out.txt").exists()
    assert run_script("translate", [*flags, "--max-source", 63, "--beam", 1]) == 0
    assert read_json(tmp_path / "facts.json")["source_truncated"] == 1


UNREADABLE = "its tokeniser that need no code"


@pytest.mark.parametrize(
    ("layout", "name", "content", "message"),
    [
        ("nllb_json", "tokenizer.json", b'{"model": {', UNREADABLE),
        ("nllb_json", "tokenizer.json", b'{"model": 3}', UNREADABLE),
        ("mbart_json", "tokenizer_config.json", b"[]", "tokenizer_config.json: damaged or missing"),
        ("mbart_spm", "sentencepiece.bpe.model", None, "119 words"),
        ("pegasus_spm", "spiece.model", b"short", UNREADABLE),
        ("bart_merges", "merges.txt", None, UNREADABLE),
        ("bart_merges", "merges.txt", b"#version: 0.2\na b c\n", "Merges text file invalid"),
        ("bart_merges", "vocab.json", b'{"a": 0}', "Token `h` out of vocabulary"),
        ("m2m100", "config.json", b'{"model_type": "t5"}', "model_type: expected one of marian, "),
    ],
)
def test_files_that_are_missing_or_damaged(folders, capsys, layout, name, content, message):
    at = folders(layout)
    (at.theirs / name).unlink()
    if content is not None:
        (at.theirs / name).write_bytes(content)
    languages = {"nllb_json": ("eng_Latn", "deu_Latn"), "m2m100": ("en", "de")}
    code = at.segment(*languages.get(layout, ("en_XX", "de_DE")))
    assert message in refused(at, capsys, code)


def test_pieces_of_another_pair_or_of_an_older_format(folders, capsys):
    at = folders("mbart_json")
    assert at.segment("en_XX", "de_DE") == 0
    path = at.pieces / "segmentation.json"
    about = read_json(path)
    for changed, message in (
        (about | {"language_codes": ["ro_RO", "de_DE"]}, "expected text cut into the pieces of"),
        ({key: about[key] for key in about if key != "marks"}, "segmentation.json"),
    ):
        path.write_text(json.dumps(changed))
        assert at.import_it() == 2
        assert message in error(capsys) and not at.model.exists()


def test_weights_that_are_not_read(folders, capsys):
    """Quantised ones, half a file, and pickles."""
    at = folders("nllb_json")
    assert at.segment("eng_Latn", "deu_Latn") == 0
    path, name = at.theirs / "model.safetensors", "model.encoder.layers.1.fc1.weight"
    weights = safetensors.torch.load_file(path)
    safetensors.torch.save_file(weights | {name: weights[name].to(torch.int8)}, path)
    assert at.import_it() == 2
    assert f"{name}: expected floating-point numbers, found I8" in error(capsys)
    path.write_bytes(path.read_bytes()[:5000])
    assert at.import_it() == 2
    assert f"{path}: not a whole safetensors file" in error(capsys)
    path.unlink()
    (at.theirs / "pytorch_model.bin").write_bytes(b"")
    assert at.import_it() == 2
    assert "expected weights as .safetensors, found none" in error(capsys)
    assert not at.model.exists()


VALUES = {
    "encoder_attention_heads": (5, "4"),  # 5 does not divide the width, 32
    "encoder_layers": (True, 1001),
    "decoder_layers": (0,),
    "d_model": (32.0,),
    "vocab_size": (10**12,),
    "max_position_embeddings": ("64",),
    "encoder_ffn_dim": (None,),
    "decoder_ffn_dim": (0,),
    "dropout": (None, float("nan")),
    "attention_dropout": (1,),
    "scale_embedding": ("no",),
    "tie_word_embeddings": (None, False),
    "pad_token_id": (None, GONE, -1),
    "eos_token_id": ([0, 5],),
    "decoder_start_token_id": (None, 99999),
    "model_type": (["bart"], "t5"),
    "activation_function": (["relu"], "tanh"),
}


@pytest.mark.parametrize("key", VALUES)
def test_values_of_config_json_that_are_not_read(folders, capsys, key):
    at = folders("bart_merges")
    before = json.loads((at.theirs / "config.json").read_text())
    for value in VALUES[key]:
        both = {"decoder_attention_heads": value} if key == "encoder_attention_heads" else {}
        at.change("config.json", **before | {key: value} | both)
        code = run_script("describe_model", ["--pretrained", at.theirs])
        assert f"{at.theirs / 'config.json'}: {key}" in refused(at, capsys, code)
        code = at.segment("en", "de")
        assert f"{at.theirs / 'config.json'}: {key}" in refused(at, capsys, code)

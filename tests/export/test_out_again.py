"""A model of OPUS-MT's kind and one of ours, out again by the commands that a person gives."""

import json
import shutil
from pathlib import Path

import pytest
from imported_marian import import_marian
from learnt_model import LEARNT, learn
from script_runner import run_script
from small_pretrained import EndAtLongest
from small_run import SmallRun

from headcount.data.fetching.models import RECORD
from headcount.data.text import read_clean
from headcount.deployment.export import Deployed
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount_hf.export.export import export_model

pytestmark = pytest.mark.slow

LONGEST = 40
SEARCH = ["--beam", 2, "--length-penalty", 0]
SEARCH += ["--max-length-factor", 0.01, "--max-length-extra", LONGEST]
SILENT = ["enc_self.0.1", "enc_self.1.0", "dec_self.0.0", "dec_self.0.1", "dec_self.0.2",
          "dec_self.0.3", "dec_enc.1.2"]  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    """A folder like OPUS-MT's in opus, its model in model, its pieces in bpe, text in text."""
    return import_marian(tmp_path_factory.mktemp("out_again"))


@pytest.fixture
def flags(root) -> list[object]:
    return ["--model", root / "model", "--bpe", root / "bpe"]


def translations(flags, text: Path, out: Path) -> list[str]:
    words = [*SEARCH, "--source", text, "--out", out, "--facts", out.with_suffix(".json")]
    assert run_script("translate", [*flags, *words]) == 0
    return out.read_text().splitlines()


def translations_there(folder: Path, text: Path) -> list[str]:
    """Translate by the library's own classes, as `SEARCH` does."""
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSeq2SeqLM.from_pretrained(folder)
    found = []
    for line in text.read_text().splitlines():
        ids = model.generate(
            **tokenizer([line], return_tensors="pt"), num_beams=2, length_penalty=0.0,
            early_stopping="never", max_new_tokens=LONGEST, do_sample=False, max_length=None,
            forced_eos_token_id=None, suppress_tokens=[model.config.pad_token_id],
            logits_processor=[EndAtLongest(0, LONGEST)],
        )[0]  # fmt: skip
        found.append(tokenizer.decode(ids, skip_special_tokens=True))
    return found


def test_a_pruned_marian_goes_to_their_library_with_its_tokenizer(root, flags, tmp_path, capsys):
    out, text = tmp_path / "out", root / "text/dev.src"
    words = ["--to", "huggingface", "--pretrained", root / "opus", "--mask", *SILENT, "--out", out]
    record = root / "opus" / RECORD  # what was fetched, and is not what goes out
    record.write_text("{}")
    assert run_script("export", [*flags, *words]) == 0
    record.unlink()
    assert "7 of its heads are zeros" in capsys.readouterr().out
    names = {path.name for path in out.iterdir()}
    assert RECORD not in names
    assert {"source.spm", "target.spm", "vocab.json", "model.safetensors", "config.json"} < names
    expected = translations([*flags, "--mask", *SILENT], text, tmp_path / "masked.txt")
    assert translations_there(out, text) == expected
    assert len(set(expected)) > 1
    facts = json.loads((out / "export.json").read_text())
    assert (facts["model_type"], facts["silent_heads"]) == ("marian", 7)
    assert facts["heads"]["dec_self"] == [0, 4]


def test_a_marian_without_units_goes_through_all_programs(root, flags, tmp_path, capsys):
    """Half of its 192 feed-forward units go by importance, then two layers. Then it is tuned."""
    pytest.importorskip("ctranslate2")
    measured = ["--importance", tmp_path / "units.csv"]
    assert run_script("importance", [*flags, "--units", "--out", measured[1]]) == 0
    words = ["--scope", "ffn", "--keep", 96, "--out", tmp_path / "smaller"]
    assert run_script("remove", [*flags[:2], *measured, *words]) == 0
    source, gone = ModelFolder(tmp_path / "smaller/model"), ["enc_layer.0", "dec_layer.1"]
    assert sum(map(sum, source.settings.ffn_widths.values())) == 96
    what = Deployed.open(source, PairFolder(root / "bpe"), gone)
    layers = [*what.model.encoder.parameters(), *what.model.decoder.parameters()]
    learn(what.model, what.pair.read("dev"), layers, updates=400, lr=0.01)
    export_model(what, "headcount", None, tmp_path / "tuned", {})
    lines, text = (root / "text/dev.src").read_text().splitlines(), tmp_path / "text"
    text.write_text("".join(f"{lines[number]}\n" for number in LEARNT))
    flags = ["--model", tmp_path / "tuned"]
    expected = translations(flags, text, tmp_path / "ours.txt")
    assert len(set(expected)) == len(LEARNT)
    for kind in ("float32", "int8"):
        words = ["--engine", "ctranslate2", "--compute-type", kind]
        assert translations([*flags, *words], text, tmp_path / f"{kind}.txt") == expected
    words = ["--to", "huggingface", "--pretrained", root / "opus", "--out", tmp_path / "back"]
    assert run_script("export", [*flags, *words]) == 0
    assert translations_there(tmp_path / "back", text) == expected
    capsys.readouterr()
    assert run_script("describe_model", ["--pretrained", tmp_path / "back"]) == 0
    assert "encoder_layers: 1" in capsys.readouterr().out


def test_a_folder_of_our_own_needs_no_other(root, flags, tmp_path, capsys):
    """Twice: what is left counts its heads anew, and still knows their first addresses."""
    text, one, two = root / "text/dev.src", tmp_path / "one", tmp_path / "two"
    words = ["--to", "headcount", "--out"]
    assert run_script("export", [*flags, "--mask", *SILENT[:6], *words, one]) == 0
    assert "18 heads, none of them silent; as --model" in capsys.readouterr().out
    again = ["--model", one, "--mask", "dec_enc.1.2", "enc_self.1.0"]
    assert run_script("export", [*again, *words, two]) == 0
    assert ModelFolder(two).settings.heads == {
        "enc_self": [3, 2], "dec_self": [0, 4], "dec_enc": [4, 3]}  # fmt: skip
    facts = json.loads((two / "model.json").read_text())
    gone = {*SILENT, "enc_self.1.1"}  # number 0 of what was left is number 1 of all
    grid = ModelFolder(root / "model").settings.grid
    assert facts["kept_heads"] == [h.name() for h in grid.heads() if h.name() not in gone]
    assert facts["closed_layers"] == ["dec_self.0"]
    masked = translations([*flags, "--mask", *sorted(gone)], text, tmp_path / "masked.txt")
    assert translations(["--model", two], text, tmp_path / "alone.txt") == masked


def test_their_translations_of_our_model_are_checked(root, tmp_path, capsys):
    """A model trained here for a moment; its folder is a Pegasus, its ids and subwords are ours."""
    bpe = root / "text/bpe"
    SmallRun(bpe).finish(tmp_path / "run", tmp_path / "state")
    flags = ["--model", tmp_path / "run/model", "--bpe", bpe, "--out", tmp_path / "out"]
    words = ["--to", "huggingface", "--check", root / "text/dev.src", "--mask", "enc_self.0.1"]
    assert run_script("export", [*flags, *words, "--max-length-factor", 4]) == 0
    summary = capsys.readouterr().out
    assert "a pegasus of" in summary and "translations are the same" in summary
    assert (tmp_path / "out/src.codes").is_file()


def test_what_does_not_fit_together_is_refused(root, flags, tmp_path, capsys):
    other = shutil.copytree(root / "opus", tmp_path / "opus")
    ids = json.loads((other / "vocab.json").read_text())
    pieces = sorted(ids, key=ids.get)
    pieces[5], pieces[6] = pieces[6], pieces[5]
    (other / "vocab.json").write_text(json.dumps({piece: n for n, piece in enumerate(pieces)}))
    for words, message in (
        (["--pretrained", other, "--to", "huggingface"], "bpe: expected text cut into the pieces"),
        (["--pretrained", other], "--pretrained: expected with --to huggingface alone, found --to"),
        (["--to", "headcount", "--check", "x"], "--check: expected with --to ctranslate2 or hugg"),
        (
            ["--mask", "dec_self.2.0"],
            "mask: dec_self.2.0 is no file: expected a head",
        ),
    ):
        assert run_script("export", [*flags, *words, "--out", tmp_path / "out"]) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert len(read_clean(root / "text/dev.src")) == 12

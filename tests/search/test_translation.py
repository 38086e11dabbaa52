"""From a file of text to a file of translations."""

import io
import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from script_runner import ROOT, run_script
from small_run import MODEL, segment

from headcount.base.settings.decode import DecodeSettings
from headcount.data.vocabulary import EOS, Vocabulary
from headcount.model.transformer import Transformer
from headcount.search import beam_search as decode
from headcount.search.translation import open_own_search, translate_file
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

SETTINGS = DecodeSettings(beam=2, max_length_factor=1.0, max_length_extra=3, max_source=40)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """An untrained model and the segmented text it belongs to."""
    folder = tmp_path_factory.mktemp("translation")
    bpe = segment(folder)
    size = len(Vocabulary.load(bpe / "src.vocab"))
    torch.manual_seed(1)
    model = Transformer(MODEL, size, size, joint=True)
    with torch.no_grad():
        model.tgt_embedding.weight[EOS] = 0.0  # some word is always likelier than the end
    facts = PairFolder(bpe).subwords()
    ModelFolder(folder / "model").save(model, dict(model.named_parameters()), facts)
    return ModelFolder(folder / "model"), PairFolder(bpe)


def translate(folders, tmp_path, text: bytes) -> tuple[list[str], dict]:
    source, out, facts = (tmp_path / name for name in ("source", "out", "facts"))
    source.write_bytes(text)
    translate_file(open_own_search(*folders, (), SETTINGS), source, out, facts, {})
    return out.read_text().split("\n")[:-1], json.loads(facts.read_text())


def test_a_line_for_each_line_and_empty_ones_stay_empty(folders, tmp_path):
    lines, facts = translate(folders, tmp_path, b"the dog sleeps .\n\na cat .\n")
    assert len(lines) == 3 and lines[0] and lines[2] and lines[1] == ""
    assert (facts["sentences"], facts["empty"], facts["beam"]) == (3, 1, 2)


def test_f19_text_from_elsewhere_is_read_by_the_line_rule(folders, tmp_path):
    plain, _ = translate(folders, tmp_path, b"the dog sleeps .\na cat .\n")
    other, _ = translate(folders, tmp_path, "\ufeffthe\u00a0dog  sleeps .\r\na cat .".encode())
    assert other == plain and all(plain)


def test_f22_a_long_line_is_cut_and_counted(folders, tmp_path):
    lines, facts = translate(folders, tmp_path, b"the dog sleeps .\n" + b"dog " * 20000 + b"\n")
    assert len(lines) == 2 and facts["source_truncated"] == 1
    # At most 1.0 · 40 + 3 subwords with EOS, so at most 42 words.
    assert 0 < len(lines[1].split()) <= 42


def piped(monkeypatch, capfdbinary, flags, text: bytes) -> tuple[int, list[str], str]:
    """Exit code, lines and complaints of the command with a text on standard input."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    code = run_script("translate", flags)
    out, err = capfdbinary.readouterr()
    return code, out.decode().split("\n")[:-1], err.decode()


FLAGS = ["--beam", 2, "--max-length-factor", 1.0, "--max-length-extra", 3, "--max-source", 40]


@pytest.mark.slow
def test_lines_of_a_pipe_are_those_of_a_file(folders, tmp_path, monkeypatch, capfdbinary):
    """Order, empty lines and the line rule too; and with heads masked."""
    model, pair = folders
    text = "\ufeffthe\u00a0dog sleeps .\r\n\na cat .".encode()
    flags = ["--model", model.path, "--bpe", pair.path, *FLAGS]
    expected, _ = translate(folders, tmp_path, text)
    code, lines, err = piped(monkeypatch, capfdbinary, flags, text)
    assert (code, lines) == (0, expected) and len(lines) == 3 and lines[1] == ""
    assert "warning: of 3 lines 0 were cut to 40 subwords, and 2 translations at their" in err
    mask = ["--mask", "enc_self.1.2", "dec_enc.0.0"]
    _, masked, _ = piped(monkeypatch, capfdbinary, [*flags, *mask], text)
    assert masked != expected
    (tmp_path / "source").write_bytes(text)
    files = ["--source", tmp_path / "source", "--out", tmp_path / "out", "--facts", tmp_path / "f"]
    assert run_script("translate", [*flags, *mask, *files]) == 0
    assert (tmp_path / "out").read_text().split("\n")[:-1] == masked
    assert json.loads((tmp_path / "f").read_text())["provenance"]["settings"]["mask"] == mask[1:]


@pytest.mark.slow
def test_a_line_is_answered_before_the_next_one_comes(folders):
    """By another process, which waits for the answer; then it leaves without reading the rest."""
    words = [sys.executable, ROOT / "scripts/translate.py", "--model", folders[0].path]
    words += ["--bpe", folders[1].path, *FLAGS]
    with subprocess.Popen(
        list(map(str, words)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        for _ in range(2):
            process.stdin.write(b"the dog sleeps .\n")
            process.stdin.flush()
            assert process.stdout.readline().strip()
        process.stdout.close()
        process.stdin.write(b"the dog sleeps .\n")
        process.stdin.close()
        assert process.stderr.read() == b"" and process.wait(60) == 128 + signal.SIGPIPE


@pytest.fixture
def damageable(folders, tmp_path):
    """Copies of the model and of the segmented text, and the flags that translate with them."""
    model, bpe = (Path(shutil.copytree(each.path, tmp_path / each.path.name)) for each in folders)
    (tmp_path / "source").write_text("the dog .\n")
    flags = ["--model", model, "--bpe", bpe, "--source", tmp_path / "source"]
    return model, bpe, [*flags, "--out", tmp_path / "out", "--facts", tmp_path / "facts"]


def sized(text: str, size: int) -> str:
    """A description with another target vocabulary."""
    return re.sub(r'"tgt_size": \d+', f'"tgt_size": {size}', text)


DAMAGED = "model/model.json: damaged"
# File, its new text, and words of the message. Codes cut to 5 merges would give nonsense, and at
# garbage the library ends by itself. Sizes: 96 TB of weights, and as many as fit no number.
DAMAGES = [
    ("tgt.vocab", lambda text: "".join(text.splitlines(True)[::-1]), "tgt.vocab: not the vocab"),
    ("src.codes", lambda text: "".join(text.splitlines(True)[:6]), "src.codes: not the BPE codes"),
    ("src.codes", lambda text: "garbage\n\x00", "src.codes: not the BPE codes"),
    ("segmentation.json", lambda text: "[]", "segmentation.json: damaged"),
    ("model.json", lambda text: text[:-40], DAMAGED),
    ("model.json", lambda text: "[]", DAMAGED),
    ("model.json", lambda text: text.replace('"vocabularies"', '"words"'), DAMAGED),
    ("model.json", lambda text: text.replace('"codes": {', '"codes": 4, "old": {'), DAMAGED),
    ("model.json", lambda text: text.replace('"format": 1', '"format": 2'), "format 2, expected 1"),
    ("model.json", lambda text: text.replace('"tgt_size"', '"size"'), DAMAGED),
    ("model.json", lambda text: sized(text, 10**17), "as model.json says"),
    ("model.json", lambda text: text.replace('"d_ff": 32', '"d_ff": 1000000000000'), DAMAGED),
]


@pytest.mark.parametrize(("name", "damage", "words"), DAMAGES)
def test_f33_f38_damaged_files_are_refused(damageable, tmp_path, name, damage, words, capsys):
    model, bpe, flags = damageable
    path = (model if name == "model.json" else bpe) / name
    text = path.read_text()
    assert (changed := damage(text)) != text
    path.write_text(changed)
    assert run_script("translate", flags) == 2
    assert not (tmp_path / "out").exists()
    message = capsys.readouterr().err
    assert words in message and str(path.parent) in message


def test_f38_a_search_without_memory_names_its_budget(damageable, monkeypatch, capsys):
    monkeypatch.setattr(decode.BeamSearch, "run", lambda search: torch.empty(1 << 50))
    assert run_script("translate", [*damageable[2], "--batch-tokens", 600]) == 3
    assert "resources.batch_tokens 600" in capsys.readouterr().err

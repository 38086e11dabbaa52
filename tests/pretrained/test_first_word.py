"""Every command that searches gives an imported NLLB the code of its language as the first word."""

import pytest
import torch
from script_runner import run_script
from small_tokenizers import LINES, write_small, write_text

from headcount.ablation.masked_bleu import MaskedModel
from headcount.base.head_values import read_head_values
from headcount.base.settings.decode import DecodeSettings
from headcount.model import machine
from headcount.search.beam_search import translate
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

pytestmark = pytest.mark.slow

SEARCH = DecodeSettings(beam=2, length_penalty=0.6, max_length_factor=0.5, max_length_extra=6)
FLAGS = ["--beam", 2, "--max-length-factor", 0.5, "--max-length-extra", 6]


@pytest.fixture(autouse=True)
def threads(monkeypatch):
    """The number of threads can be set many times, the rest of `use_threads` once."""
    monkeypatch.setattr(machine, "use_threads", torch.set_num_threads)


def test_commands_begin_translations_with_the_code(tmp_path):
    """BLEU reads `de`, the model `deu_Latn`. Text of both sides begins with its code."""
    text, dev, bpe = write_text(tmp_path / "train.txt"), tmp_path / "dev.txt", tmp_path / "bpe"
    theirs = write_small("nllb_json", tmp_path / "theirs", text).folder
    dev.write_text("\n".join(LINES[:12]) + "\n", encoding="utf-8")
    flags = ["--pretrained", theirs, "--src-lang", "en", "--src-code", "eng_Latn"]
    flags += ["--tgt-lang", "de", "--tgt-code", "deu_Latn", "--out-folder", bpe]
    flags += ["--train-src", text, "--train-tgt", text, "--dev-src", dev, "--dev-tgt", dev]
    assert run_script("segment", flags) == 0
    given = ["--bpe", bpe, "--out", tmp_path / "model"]
    assert run_script("import_model", ["--pretrained", theirs, *given]) == 0
    pair, model = PairFolder(bpe), ModelFolder(tmp_path / "model").load()
    src, tgt = pair.segmenters()
    sources, code = [src.encode(line) for line in LINES[:12]], tgt.vocabulary.ids(["deu_Latn"])
    assert tgt.language == "de" and tgt.prefix == pair.prefix() == code
    for path, first in zip(pair.texts("dev"), ("eng_Latn", "deu_Latn"), strict=True):
        assert all(line.split()[0] == first for line in path.read_text().splitlines())
    translations = translate(model, sources, SEARCH, prefix=code)
    assert all(translation.ids[:1] == code for translation in translations)
    free = translate(model, sources, SEARCH)
    assert [translation.ids for translation in free] != [t.ids for t in translations]
    expected = [tgt.decode(translation.ids) for translation in translations]
    assert not any("deu" in line for line in expected) and len(set(expected)) > 1
    flags = ["--model", tmp_path / "model", "--bpe", bpe]
    where = ["--source", dev, "--out", tmp_path / "out", "--facts", tmp_path / "facts"]
    assert run_script("translate", [*flags, *FLAGS, *where]) == 0
    assert (tmp_path / "out").read_text().splitlines() == expected
    masked = MaskedModel(model, src, tgt, SEARCH)
    under = masked.translations(LINES[:12], [(), (0, 5)], lambda count: None)
    assert under[()] == expected and under[0, 5] != expected
    out = tmp_path / "importance.csv"
    assert run_script("importance", [*flags, "--out", out]) == 0
    assert (read_head_values(out, "importance", model.grid) > 0).all()

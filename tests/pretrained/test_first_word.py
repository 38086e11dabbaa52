"""Every command that searches gives an imported NLLB the code of its language as the first word."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from script_runner import run_script
from small_tokenizers import LINES, write_small, write_text

from headcount.ablation.masked_bleu import MaskedModel
from headcount.base.head_values import read_head_values
from headcount.base.settings.decode import DecodeSettings, TranslateSettings
from headcount.data.batches import ParallelText, collate
from headcount.deployment.deployed import Deployed
from headcount.model import machine
from headcount.model.loss import token_losses
from headcount.search.beam_search import translate
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount_hf.export.agreement import check_export
from headcount_hf.export.ctranslate2_search import search_with
from headcount_hf.export.export import export_model

pytestmark = pytest.mark.slow

SEARCH = DecodeSettings(beam=2, length_penalty=0.6, max_length_factor=0.5, max_length_extra=6)
FLAGS = ["--beam", 2, "--max-length-factor", 0.5, "--max-length-extra", 6]


@dataclass(frozen=True)
class Made:
    """What the commands segment and import_model leave, and twelve lines of text."""

    pair: PairFolder
    model: ModelFolder
    text: Path

    @property
    def flags(self) -> list[object]:
        return ["--model", self.model.path, "--bpe", self.pair.path]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Made:
    root = tmp_path_factory.mktemp("first_word")
    text = write_text(root / "train.txt")
    theirs = write_small("nllb_json", root / "theirs", text).folder
    dev = root / "dev.txt"
    dev.write_text("\n".join(LINES[:12]) + "\n", encoding="utf-8")
    flags = ["--pretrained", theirs, "--src-lang", "en", "--src-code", "eng_Latn"]
    flags += ["--tgt-lang", "de", "--tgt-code", "deu_Latn", "--out-folder", root / "bpe"]
    flags += ["--train-src", text, "--train-tgt", text, "--dev-src", dev, "--dev-tgt", dev]
    assert run_script("segment", flags) == 0
    flags = ["--pretrained", theirs, "--bpe", root / "bpe", "--out", root / "model"]
    assert run_script("import_model", flags) == 0
    return Made(PairFolder(root / "bpe"), ModelFolder(root / "model"), dev)


@pytest.fixture(autouse=True)
def threads(monkeypatch):
    """The number of threads can be set many times, the rest of `use_threads` once."""
    monkeypatch.setattr(machine, "use_threads", torch.set_num_threads)


@pytest.fixture(scope="module")
def expected(made) -> list[str]:
    """Translations that begin with the code, unlike those of a free search, without the code."""
    src, tgt = made.pair.segmenters()
    sources = [src.encode(line) for line in LINES[:12]]
    model, prefix = made.model.load(), made.pair.prefix()
    translations = translate(model, sources, SEARCH, prefix=prefix)
    code = tgt.vocabulary.ids(["deu_Latn"])
    assert tgt.prefix == prefix == code
    assert all(translation.ids[:1] == code for translation in translations)
    free = translate(model, sources, SEARCH)
    assert [translation.ids for translation in free] != [t.ids for t in translations]
    lines = [tgt.decode(translation.ids) for translation in translations]
    assert not any("deu" in line for line in lines) and len(set(lines)) > 1
    return lines


def test_commands_begin_with_the_code(made, expected, tmp_path):
    """BLEU reads `de`, the model `deu_Latn`. Text of both sides begins with its code."""
    assert made.pair.segmenters()[1].language == "de"
    for path, code in zip(made.pair.texts("dev"), ("eng_Latn", "deu_Latn"), strict=True):
        assert all(line.split()[0] == code for line in path.read_text().splitlines())
    where = ["--source", made.text, "--out", tmp_path / "out", "--facts", tmp_path / "facts"]
    assert run_script("translate", [*made.flags, *FLAGS, *where]) == 0
    assert (tmp_path / "out").read_text().splitlines() == expected
    masked = MaskedModel(made.model.load(), *made.pair.segmenters(), SEARCH)
    translations = masked.translations(LINES[:12], [(), (0, 5)], lambda count: None)
    assert translations[()] == expected and translations[0, 5] != expected
    out = tmp_path / "importance.csv"
    assert run_script("importance", [*made.flags, "--out", out]) == 0
    assert (read_head_values(out, "importance", made.model.settings.grid) > 0).all()


def test_ctranslate2_is_given_it_too(made, tmp_path):
    """After a few sentences have been learnt, so that their translations end by themselves.

    Neither engine would choose the code.
    """
    pytest.importorskip("ctranslate2")
    model, text = made.model.load(), made.pair.read("dev")
    optimiser = torch.optim.Adam([w for w in model.parameters() if w.requires_grad], lr=0.01)
    batch = collate(ParallelText(text.src, [[*ids[:1], *ids[:0:-1]] for ids in text.tgt]), range(4))
    for _ in range(200):
        optimiser.zero_grad()
        loss = token_losses(model, batch).mean()
        loss.backward()
        optimiser.step()
        if loss < 0.05:
            break
    with torch.no_grad():
        model.output_bias[made.pair.prefix()] = -20.0
    learnt = tmp_path / "learnt.txt"
    learnt.write_text("\n".join(LINES[:4]) + "\n", encoding="utf-8")
    what = Deployed(model, model.grid.heads(), made.model, made.pair)
    longer = SEARCH.model_copy(update={"max_length_factor": 2.0})

    def check(engine):
        return check_export(model, made.pair, engine, learnt, longer)

    summary = export_model(what, "ctranslate2", None, tmp_path / "out", {}, check)
    assert "4 of 4 translations are the same" in summary
    settings = TranslateSettings(**longer.model_dump(), engine="ctranslate2")
    found = search_with(what, settings).translate(text.src[:4], lambda sentences: None)
    ours = translate(model, text.src[:4], longer, prefix=made.pair.prefix())
    assert [best.ids for best in found] == [best.ids for best in ours]

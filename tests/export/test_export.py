"""Models for CTranslate2: pruned and masked ones too. Translations where the package is there."""

import json

import numpy as np
import pytest
import torch
from learnt_model import learnt
from script_runner import run_script
from small_models import UNEVEN, make_model, make_settings
from small_run import segment

from headcount.base.addresses import Head
from headcount.base.errors import HeadcountError, UserError
from headcount.base.head_values import write_head_values
from headcount.base.settings.decode import DecodeSettings
from headcount.deployment.export import Deployed
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount_hf.export.ctranslate2_search import CTranslate2Search
from headcount_hf.export.export import Agreement, check_export, export_model
from headcount_hf.export.exported import Best

BARE = {"enc_self": [0, 2], "dec_self": [0, 0, 0], "dec_enc": [0, 1, 0]}
NONE = {"enc_self": [0, 0], "dec_self": [0, 0, 0], "dec_enc": [0, 0, 0]}
DECODE = DecodeSettings(beam=3, max_length_factor=2.0, max_length_extra=5)

pytest.importorskip("ctranslate2")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Initializing zero-element")]


@pytest.fixture(scope="module")
def bpe(tmp_path_factory):
    return segment(tmp_path_factory.mktemp("export"), pairs=20)


@pytest.fixture(scope="module")
def two_heads(bpe, tmp_path_factory):
    """The folder of a model with two heads a layer, and of the sentences it has learnt."""
    folder = tmp_path_factory.mktemp("two_heads")
    learnt(bpe, folder, 2)
    return folder


def opened(folder, bpe, *mask) -> Deployed:
    return Deployed.open(ModelFolder(folder), PairFolder(bpe), mask)


def to_ctranslate2(what, out, origin=None):
    """Write it there, and give the folder."""
    export_model(what, "ctranslate2", None, out, origin or {})
    return out


def agreement(what, engine, text) -> Agreement:
    return check_export(what, engine, text, DECODE)


@pytest.mark.parametrize(
    ("heads", "padded"), [(3, (3, 3)), (BARE, (2, 1)), (UNEVEN, (3, 3)), (NONE, (1, 1))]
)
def test_an_exported_model_translates_alike(bpe, tmp_path, heads, padded, capsys):
    """Layers get as many heads as the largest one of their side."""
    model = learnt(bpe, tmp_path, heads)
    flags = ["--model", model, "--bpe", bpe, "--out", tmp_path / "out"]
    flags += ["--check", tmp_path / "learnt.txt", "--beam", 3]
    assert run_script("export", flags) == 0
    assert "3 of 3 translations are the same" in capsys.readouterr().out
    facts = json.loads((tmp_path / "out" / "export.json").read_text())
    grid = ModelFolder(model).settings.grid
    assert tuple(facts["heads_a_layer"].values()) == padded
    assert facts["heads"] == {kind: list(counts) for kind, counts in grid.counts.items()}
    assert {*facts["files"]} > {"model.bin", "src.codes", "tgt.codes", "segmentation.json"}


UNITS = ["enc_layer.0", "dec_layer.1", "enc_self.1.0", "dec_enc.2.1"]
UNITS += [f"enc_ffn.1.{unit}" for unit in range(25)] + [f"dec_ffn.2.{unit}" for unit in range(40)]


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_model_without_units_translates_alike(bpe, tmp_path, norm, capsys):
    """Of 2 + 3 layers with 3 heads and 40 feed-forward units, a layer of each side is gone."""
    sizes = {"d_model": 12, "d_ff": 40, "norm": norm}
    grid = make_settings(**sizes).unit_grid
    gates = torch.from_numpy(grid.mask(map(Head.parse, UNITS)))
    model = learnt(bpe, tmp_path, 3, 400, gates, lr=0.01, **sizes)
    flags = ["--model", model, "--bpe", bpe, "--check", tmp_path / "learnt.txt", "--beam", 3]
    # 15, 40 and 0 units: up to 16, 48 and 16 in one form, 15, 40 and 40 in the other.
    for form, zeros in (("ctranslate2", 1 + 8 + 16), ("huggingface", 40)):
        words = ["--to", form, "--out", tmp_path / form]
        assert run_script("export", [*flags, *words, "--mask", *UNITS]) == 0
        assert "3 of 3 translations are the same" in capsys.readouterr().out
        facts = json.loads((tmp_path / form / "export.json").read_text())
        assert facts["heads"] == {"enc_self": [2], "dec_self": [3, 3], "dec_enc": [3, 2]}
        assert facts["feed_forward_units"] == {"enc_ffn": [15], "dec_ffn": [40, 0]}
        assert facts["zero_feed_forward_units"] == zeros
    words = ["--mask", "enc_layer.0", "enc_layer.1", "--out", tmp_path / "none"]
    assert run_script("export", [*flags, *words, "--to", "huggingface"]) == 2
    assert "found 0 in the encoder and 3 in the decoder" in capsys.readouterr().err


def test_translations_of_another_sentence_are_refused(bpe, two_heads, tmp_path, monkeypatch):
    """Scores agree, so that only the search can be at fault; the first sentence is right."""
    what = opened(two_heads / "model", bpe)
    engine = to_ctranslate2(what, tmp_path / "out")
    right = CTranslate2Search.translate

    def shifted(*given):
        found = right(*given)
        return [found[0], found[2], found[1]]

    monkeypatch.setattr(CTranslate2Search, "translate", shifted)
    with pytest.raises(HeadcountError, match=r"learnt\.txt:2: .* export: 2; "):
        agreement(what, engine, two_heads / "learnt.txt")


def test_one_less_likely_translation_among_many_is_counted(bpe, two_heads, tmp_path, monkeypatch):
    """Of 24 sentences one has the translation of another: 4.2 %, and 5 % are allowed."""
    what = opened(two_heads / "model", bpe)
    engine = to_ctranslate2(what, tmp_path / "out")
    right = CTranslate2Search.translate
    text = tmp_path / "long.txt"
    text.write_text((two_heads / "learnt.txt").read_text(encoding="utf-8") * 8, encoding="utf-8")

    def one_wrong(*given):
        found = right(*given)
        return [found[1], *found[1:]]

    monkeypatch.setattr(CTranslate2Search, "translate", one_wrong)
    result = agreement(what, engine, text)
    assert (result.sentences, result.same, result.worse) == (24, 23, 1)


def test_another_translation_that_is_as_likely_is_accepted(bpe, two_heads, tmp_path, monkeypatch):
    """The beginning of our translation, cut off without an end, is never less likely."""
    what = opened(two_heads / "model", bpe)
    engine = to_ctranslate2(what, tmp_path / "out")
    right = CTranslate2Search.translate

    def shorter(*arguments):
        return [Best(best.ids[:-1], True) for best in right(*arguments)]

    monkeypatch.setattr(CTranslate2Search, "translate", shorter)
    result = agreement(what, engine, two_heads / "learnt.txt")
    assert (result.same, result.sentences) == (0, 3)


def test_a_mask_is_exported_and_makes_a_difference(bpe, tmp_path):
    gates = np.ones(make_model(heads=UNEVEN).grid.size)
    gates[[0, 5, 6, 7, 8, 9]], gates[12] = 0.0, 0.5  # all decoder self-attention among them
    folder = learnt(bpe, tmp_path, UNEVEN, gates=torch.tensor(gates, dtype=torch.float32))
    plain = opened(folder, bpe)
    write_head_values(tmp_path / "heads.csv", plain.model.grid, {"gate": gates})
    masked = opened(folder, bpe, tmp_path / "heads.csv")
    engine = to_ctranslate2(masked, tmp_path / "out")
    assert agreement(masked, engine, tmp_path / "learnt.txt").gap < 1e-5
    with pytest.raises(HeadcountError, match="expected the same model"):
        agreement(plain, engine, tmp_path / "learnt.txt")


def test_an_export_replaces_nothing_but_its_own_files(bpe, tmp_path):
    """A person's file beside an export, and a folder that no export wrote, stay as they are."""
    what = opened(learnt(bpe, tmp_path, 2, updates=1), bpe)
    out, other = tmp_path / "out", tmp_path / "other"
    for origin in ({}, {"made": "again"}):
        export_model(what, "headcount", None, out, origin)
    for folder in (out, other):
        folder.mkdir(exist_ok=True)
        (folder / "thesis.txt").write_text("mine")
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        with pytest.raises(UserError, match=rf"{folder}: .* found other files: thesis\.txt; move"):
            export_model(what, "headcount", None, folder, {})
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_an_export_that_fails_its_check_leaves_what_was_there(bpe, two_heads, tmp_path, capsys):
    words = ["--model", two_heads / "model", "--bpe", bpe, "--out", tmp_path / "out"]
    (tmp_path / "empty.txt").write_text("\n")
    for earlier in (set(), {"model.bin", "export.json"}):
        assert run_script("export", [*words, "--check", tmp_path / "empty.txt"]) == 2
        assert "expected a sentence whose translation" in capsys.readouterr().err
        assert earlier <= {path.name for path in tmp_path.glob("out/*")}
        assert (tmp_path / "out").exists() == bool(earlier)
        assert not list(tmp_path.glob(".part-*"))
        assert run_script("export", words) == 0

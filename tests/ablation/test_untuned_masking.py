"""Masking as many heads as gates closed: which ones, and every row against its own translation."""

import csv
import json
from functools import cache

import numpy as np
import pytest
import torch
from script_runner import run_script
from small_run import segment

from headcount.ablation import masked_bleu
from headcount.ablation.masked_bleu import MaskedInputs, Point
from headcount.ablation.masking import UNTUNED_COLUMNS, list_untuned, write_untuned
from headcount.base.errors import UserError
from headcount.base.files import write_json
from headcount.base.head_values import write_head_values
from headcount.base.settings.ablation import MaskingSettings
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.runs import PrunedSettings
from headcount.data.bpe import Segmenter
from headcount.data.lines import clean_lines, write_lines
from headcount.data.vocabulary import EOS, Vocabulary
from headcount.model import machine
from headcount.model.transformer import Transformer
from headcount.scoring.bleu import score_corpus
from headcount.search.beam_search import translate
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

pytestmark = pytest.mark.slow  # a step from files to files, or models that are trained

HEADS = {"enc_self": [2, 1], "dec_self": [3], "dec_enc": [1]}
SIZES = {"encoder_layers": 2, "decoder_layers": 1, "d_model": 24, "d_ff": 32, "d_head": 7}
MODEL = ModelSettings(preset="tiny", heads=HEADS, **SIZES)
DECODE = DecodeSettings(beam=2, max_length_factor=0.4, max_length_extra=3)
SETTINGS = MaskingSettings(draws=2, test_sets=["test"])
# Flat order: enc_self.0.0, enc_self.0.1, enc_self.1.0, dec_self.0.0, .1, .2, dec_enc.0.0.
IMPORTANCE = [0.5, 3.0, 1.0, 0.2, 4.0, 0.1, 2.0]
GATES = {
    "gates-all-l0": [1.0] * 7,
    "gates-all-l0.01": [0.0, 0.7, 1.0, 1.0, 1.0, 0.0, 0.0],  # a fraction is open
    "gates-all-l0.1": [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0],
    "gates-enc_self-l0.1": [1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0],
}


@pytest.fixture(autouse=True)
def threads(monkeypatch):
    """The number of threads can be set many times, the rest of `use_threads` once."""
    monkeypatch.setattr(machine, "use_threads", torch.set_num_threads)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> MaskedInputs:
    """An untrained model whose references are its own translations."""
    folder = tmp_path_factory.mktemp("untuned_masking")
    bpe = segment(folder)
    size = len(Vocabulary.load(bpe / "src.vocab"))
    torch.manual_seed(1)
    model = Transformer(MODEL, size, size, joint=True)
    with torch.no_grad():
        model.tgt_embedding.weight[EOS] = 0.0  # some word is always likelier than the end
        model.tgt_embedding.weight.mul_(4.0)
    facts = PairFolder(bpe).subwords()
    ModelFolder(folder / "model").save(model, dict(model.named_parameters()), facts)
    write_head_values(folder / "importance.csv", model.grid, {"importance": IMPORTANCE})
    for name, values in GATES.items():
        write_head_values(folder / f"{name}.csv", model.grid, {"gate": values})
    found = MaskedInputs(ModelFolder(folder / "model"), PairFolder(bpe), folder, DECODE)
    lines = list(clean_lines(folder / "dev.src"))[:6]
    write_lines(folder / "test.src", lines)
    write_lines(folder / "test.tgt", translated(found, np.ones(7)))
    return found


def points(inputs: MaskedInputs, draws: int, seed: int) -> list[Point]:
    gates = ranks(inputs)["gates"]
    return list_untuned(MODEL.grid, np.array(IMPORTANCE), gates, draws, seed)


def ranks(inputs: MaskedInputs) -> dict:
    """The files that tell which heads are masked: of importance, and of gates by run."""
    gates = {PrunedSettings.model_validate(name): inputs.text / f"{name}.csv" for name in GATES}
    return {"importance": inputs.text / "importance.csv", "gates": gates}


@cache
def _loaded(model: ModelFolder, pair: PairFolder) -> tuple[Transformer, Segmenter, Segmenter]:
    return model.load(), *pair.segmenters()


def translated(inputs: MaskedInputs, mask: np.ndarray) -> list[str]:
    """The test set under one mask, by a search of its own."""
    model, src, tgt = _loaded(inputs.model, inputs.pair)
    sources = [src.encode(line) for line in clean_lines(inputs.text / "test.src")]
    found = translate(model, sources, DECODE, torch.tensor(mask).float())
    return [tgt.decode(translation.ids) for translation in found]


def cuts_of(inputs: MaskedInputs, run: str, order: str) -> list[tuple[int, ...]]:
    found = points(inputs, draws=2, seed=5)
    return [point.heads for point in found if point.cells[:2] == (order, run)]


def test_which_heads_are_masked_by_hand(inputs):
    assert cuts_of(inputs, "gates-all-l0", "gates") == [()]
    assert cuts_of(inputs, "gates-all-l0", "ranked") == [()]
    assert cuts_of(inputs, "gates-all-l0.01", "gates") == [(0, 5, 6)]
    assert cuts_of(inputs, "gates-all-l0.01", "ranked") == [(0, 3, 5)]  # .5, .2 and .1
    assert cuts_of(inputs, "gates-all-l0.1", "ranked") == [(0, 1, 2, 3, 5, 6)]  # all but 4.
    # Of the encoder's three heads alone: .5 and 1., though two decoder heads have less.
    assert cuts_of(inputs, "gates-enc_self-l0.1", "gates") == [(1, 2)]
    assert cuts_of(inputs, "gates-enc_self-l0.1", "ranked") == [(0, 2)]


def test_random_heads_are_as_many_of_the_scope_and_follow_the_seed(inputs):
    for run, count, scope in (("gates-all-l0.01", 3, 7), ("gates-enc_self-l0.1", 2, 3)):
        drawn = cuts_of(inputs, run, "drawn")
        assert len(drawn) == 2 and all(len(set(heads)) == count for heads in drawn)
        assert all(set(heads) <= set(range(scope)) for heads in drawn)
        assert drawn == cuts_of(inputs, run, "drawn")
    few, many = (cuts_of(inputs, f"gates-all-l{lambda_}", "drawn") for lambda_ in ("0.01", "0.1"))
    assert all(set(a) < set(b) for a, b in zip(few, many, strict=True))
    other = points(inputs, draws=20, seed=6)
    of_run = {p.heads for p in other if p.cells[0] == "drawn" and len(p.heads) == 3}
    assert len(of_run) > 10  # of 35


def flags(inputs: MaskedInputs, out) -> list:
    files = ranks(inputs)
    return [
        *("--seed", 5, "--out", out, "--model", inputs.model.path),
        *("--bpe", inputs.pair.path, "--text", inputs.text, "--importance", files["importance"]),
        *("--runs", *GATES, "--gates", *files["gates"].values()),
        *("--draws", 2, "--test-sets", '["test"]', "--beam", 2),
        *("--max-length-factor", 0.4, "--max-length-extra", 3),
    ]


@pytest.mark.slow
def test_every_row_is_a_translation_under_that_mask_alone(inputs, tmp_path):
    out = tmp_path / "untuned_masking.csv"
    assert run_script("untuned_masking", flags(inputs, out)) == 0
    rows = list(csv.DictReader(out.open()))
    assert tuple(rows[0]) == UNTUNED_COLUMNS and len(rows) == len(GATES) * (1 + 1 + 2)
    references = list(clean_lines(inputs.text / "test.tgt"))
    by_name = {head.name(): head for head in MODEL.grid.heads()}
    scores = set()
    for row in rows:
        mask = MODEL.grid.mask(by_name[name] for name in row["heads"].split())
        assert int(row["heads_masked"]) == 7 - mask.sum()
        expected = score_corpus(translated(inputs, mask), references, "art")[0].score
        assert float(row["bleu"]) == pytest.approx(expected)
        assert float(row["delta"]) == pytest.approx(expected - 100)
        scores.add(round(expected))
    assert len(scores) > 3  # masks make a difference
    (own,) = (row for row in rows if (row["as_run"], row["order"]) == ("gates-all-l0.01", "gates"))
    assert own["heads"] == "enc_self.0.0 dec_self.0.2 dec_enc.0.0" and own["draw"] == ""
    facts = json.loads(out.with_suffix(".json").read_text())
    assert facts["sentences"] == {"test": 6}
    assert facts["distinct_masks"] == len({row["heads"] for row in rows})


def refused(inputs, tmp_path, monkeypatch, told, **changes):
    """Nothing is translated and nothing written."""
    monkeypatch.setattr(masked_bleu, "translate", None)
    files, out = ranks(inputs) | changes, tmp_path / "untuned_masking.csv"
    with pytest.raises(UserError, match=told):
        write_untuned(inputs, **files, settings=SETTINGS, seed=5, out=out, origin={})
    assert not (tmp_path / "untuned_masking.csv").exists()


def test_gates_and_importance_of_another_model_are_refused(inputs, tmp_path, monkeypatch):
    path = tmp_path / "heads.csv"
    lines = (inputs.text / "gates-all-l0.csv").read_text()
    path.write_text(lines + "dec_self,0,3,gate,1.0\n")
    told = r"heads\.csv:9: decoder self-attention layer 0 head 3 does not exist"
    gates = {PrunedSettings.model_validate("gates-all-l0"): path}
    refused(inputs, tmp_path, monkeypatch, told, gates=gates)
    told = r"heads\.csv: encoder self-attention layer 0 head 0 has no importance"
    refused(inputs, tmp_path, monkeypatch, told, importance=path.with_name("heads.csv"))
    importance = tmp_path / "importance.csv"
    importance.write_bytes((inputs.text / "importance.csv").read_bytes())
    write_json(importance.with_suffix(".json"), {"weights": "0" * 64})  # those of another seed
    told = "measured on another model than .*: importance.json names other weights"
    refused(inputs, tmp_path, monkeypatch, told, importance=importance)

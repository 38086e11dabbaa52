"""Masking experiments: every row held against a translation under that mask alone."""

import csv
import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from small_run import segment

from headcount.ablation import masked_bleu
from headcount.ablation.masked_bleu import MaskedInputs
from headcount.ablation.masking import COLUMNS, read_rankings, write_masking
from headcount.base.errors import UserError
from headcount.base.files import sha256
from headcount.base.head_values import write_head_values
from headcount.base.settings.ablation import MaskingSettings
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.model import ModelSettings
from headcount.data.bpe import Segmenter
from headcount.data.lines import clean_lines, write_lines
from headcount.data.vocabulary import EOS, Vocabulary
from headcount.model.transformer import Transformer
from headcount.scoring.bleu import score_corpus
from headcount.scoring.bootstrap import compare_systems
from headcount.search.beam_search import translate
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

MODEL = ModelSettings(
    preset="tiny",
    encoder_layers=2,
    decoder_layers=1,
    d_model=24,
    d_ff=32,
    d_head=7,
    heads={"enc_self": [2, 0], "dec_self": [3], "dec_enc": [1]},
)
DECODE = DecodeSettings(beam=2, max_length_factor=0.4, max_length_extra=3)
SETTINGS = MaskingSettings(groups=4, draws=2, test_sets=["easy", "half"])
# Flat order: enc_self.0.0, enc_self.0.1, dec_self.0.0, .1, .2, dec_enc.0.0.
OWN = [0.5, 3.0, 1.0, 4.0, 0.1, 2.0]  # ranked 3 1 5 2 0 4: groups (1 3) (2 5) (0) (4)
BASELINES = [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]


pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Initializing zero-element"),
]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> MaskedInputs:
    """An untrained model, two rankings, and two test sets: its own translations, and those with
    one head masked.
    """
    folder = tmp_path_factory.mktemp("masking")
    bpe = segment(folder)
    size = len(Vocabulary.load(bpe / "src.vocab"))
    torch.manual_seed(2)
    model = Transformer(MODEL, size, size, joint=True)
    with torch.no_grad():
        model.tgt_embedding.weight[EOS] = 0.0  # some word is always likelier than the end
        model.tgt_embedding.weight.mul_(4.0)
    facts = PairFolder(bpe).subwords()
    ModelFolder(folder / "model").save(model, dict(model.named_parameters()), facts)
    for name, values in (("own", OWN), ("baseline", BASELINES)):
        write_head_values(folder / f"{name}.csv", model.grid, {"importance": values})
    found = MaskedInputs(ModelFolder(folder / "model"), PairFolder(bpe), folder, DECODE)
    lines = list(clean_lines(folder / "dev.src"))
    write_lines(folder / "easy.src", lines[:7])
    write_lines(folder / "easy.tgt", translated(found, lines[:7], np.ones(6)))
    write_lines(folder / "half.src", lines[3:])
    write_lines(folder / "half.tgt", translated(found, lines[3:], np.array([1, 1, 1, 0, 1, 1])))
    return found


def rankings(inputs: MaskedInputs) -> dict[str, Path]:
    """Files of importance by name."""
    return {name: inputs.text / f"{name}.csv" for name in ("own", "baseline")}


def lines_of(inputs: MaskedInputs, test_set: str) -> list[list[str]]:
    """Source lines and references."""
    return [list(clean_lines(inputs.text / f"{test_set}.{end}")) for end in ("src", "tgt")]


@cache
def _loaded(model: ModelFolder, pair: PairFolder) -> tuple[Transformer, Segmenter, Segmenter]:
    return model.load(), *pair.segmenters()


def translated(inputs: MaskedInputs, lines: list[str], mask: np.ndarray) -> list[str]:
    """Lines translated under one mask, by a search of its own."""
    model, src, tgt = _loaded(inputs.model, inputs.pair)
    sources = [src.encode(line) for line in lines]
    found = translate(model, sources, DECODE, torch.tensor(mask).float())
    return [tgt.decode(translation.ids) for translation in found]


def written(inputs: MaskedInputs, out, settings=SETTINGS) -> list[dict[str, str]]:
    write_masking(inputs, rankings(inputs), settings, 5, out, {"seed": 5})
    with out.open() as file:
        assert tuple(next(csv.reader(file))) == COLUMNS
    with out.open() as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def rows(inputs, tmp_path_factory) -> list[dict[str, str]]:
    return written(inputs, tmp_path_factory.mktemp("out") / "headmask.csv")


def heads_of(rows, test_set: str, ranking: str, order: str) -> list[str]:
    keys = (test_set, ranking, order)
    return [r["heads"] for r in rows if (r["test_set"], r["ranking"], r["order"]) == keys]


def test_which_heads_are_masked_by_hand(rows):
    groups = ["enc_self.0.1 dec_self.0.1", "dec_self.0.0 dec_enc.0.0", "enc_self.0.0"]
    for test_set in ("easy", "half"):
        assert heads_of(rows, test_set, "own", "none") == [""]
        assert heads_of(rows, test_set, "own", "group") == [*groups, "dec_self.0.2"]
        assert heads_of(rows, test_set, "baseline", "group")[0] == "enc_self.0.0 enc_self.0.1"
        assert heads_of(rows, test_set, "own", "ascending")[:3] == [
            "",
            "dec_self.0.2",
            "enc_self.0.0 dec_self.0.2",
        ]
        assert heads_of(rows, test_set, "own", "descending")[1] == groups[0]
        assert len(heads_of(rows, test_set, "own", "random_group")) == 2 * 4
        assert len(heads_of(rows, test_set, "own", "random_cumulative")) == 2 * 6  # 0 1 2 4 5 6
        assert not heads_of(rows, test_set, "baseline", "random_group")
    for row in rows:
        assert int(row["heads_masked"]) == len(row["heads"].split())
        assert (row["draw"] in ("1", "2")) == row["order"].startswith("random")
        assert row["draw"] == "" or row["order"].startswith("random")


# Searches of their own take time: every third row in the fast tests.
@pytest.mark.parametrize(
    ("step", "scores_of"), [(3, 3), pytest.param(1, 4, marks=pytest.mark.slow)]
)
def test_every_row_is_a_translation_under_that_mask_alone(inputs, rows, step, scores_of):
    grid = inputs.model.load().grid
    by_name = {head.name(): head for head in grid.heads()}
    for test_set in ("easy", "half"):
        lines, references = lines_of(inputs, test_set)
        scores = {}
        for row in [row for row in rows if row["test_set"] == test_set][::step]:
            if (names := row["heads"]) not in scores:
                mask = grid.mask(by_name[name] for name in names.split())
                found = score_corpus(translated(inputs, lines, mask), references, "de")
                scores[names] = found[0].score
            assert float(row["bleu"]) == pytest.approx(scores[names])
            assert float(row["delta"]) == pytest.approx(scores[names] - scores[""])
            low, delta, high = (float(row[f"delta{end}"]) for end in ("_low", "", "_high"))
            assert low - 1e-9 <= delta <= high + 1e-9
            assert row["signature"].startswith("nrefs:1|bs:1000|seed:12345|case:mixed|")
        assert (
            len({round(score) for score in scores.values()}) >= scores_of
        )  # masks make a difference


def test_p_values_are_those_of_the_paired_bootstrap(inputs, rows):
    lines, references = lines_of(inputs, "half")
    plain = translated(inputs, lines, np.ones(6))
    row = next(r for r in rows if r["test_set"] == "half" and r["heads"] == "dec_self.0.2")
    masked = translated(inputs, lines, np.array([1, 1, 1, 1, 0, 1]))
    (expected,) = compare_systems(plain, [masked], references, "de")
    found = [float(row[name]) for name in ("p", "delta_low", "delta_high")]
    assert found == [expected.p_value, expected.low, expected.high]


def test_no_mask_loses_nothing(rows):
    for row in (row for row in rows if row["heads"] == ""):
        assert (row["delta"], row["delta_low"], row["delta_high"], row["p"]) == ("0.0",) * 3 + (
            "1.0",
        )
        assert row["test_set"] == "half" or float(row["bleu"]) == pytest.approx(100)
    assert sum(row["heads"] == "" for row in rows) == 2 * (3 + 3 + 2)


def test_f09_each_distinct_mask_is_translated_once(inputs, tmp_path, monkeypatch, capsys):
    calls = []

    def counted(model, sources, settings, multiplier, done, prefix):
        calls.append(multiplier)
        return translate(model, sources, settings, multiplier, done, prefix)

    monkeypatch.setattr(masked_bleu, "translate", counted)
    settings = MaskingSettings(groups=3, draws=0, test_sets=["easy"])
    found = written(inputs, tmp_path / "headmask.csv", settings)
    told = (
        "warning: 8 of 12 masks leave a layer without heads; only its residual path is left there"
    )
    assert told in capsys.readouterr().err
    # No head and all heads; for either ranking three groups of 2, and two unions of 4: a union of
    # one group is the group.
    (rows_of_masks,) = calls
    assert rows_of_masks.shape == ((2 + 2 * 5) * 7, 6)
    masks = {tuple(mask) for mask in rows_of_masks.tolist()}
    assert len(masks) == 12 == len({row["heads"] for row in found})
    facts = json.loads((tmp_path / "headmask.json").read_text())
    assert (facts["distinct_masks"], facts["sentences"]) == (12, {"easy": 7})
    assert (facts["beam"], facts["provenance"]) == (2, {"seed": 5})
    # Layers of heads 0 1, 2 3 4 and 5. By `own`: (5 2), (3 1 5 2) and (5 2 0 4); by `baseline`:
    # (0 1), (4 5), (0 1 2 3) and (2 3 4 5); and all heads.
    assert facts["masks_closing_a_layer"] == 8


def test_only_the_first_sentences(inputs, tmp_path):
    short = MaskingSettings(groups=2, draws=0, test_sets=["half"], sentences=5)
    found = written(inputs, tmp_path / "headmask.csv", short)
    lines, references = (side[:5] for side in lines_of(inputs, "half"))
    expected = score_corpus(translated(inputs, lines, np.zeros(6)), references, "de")[0].score
    last = [row for row in found if row["heads_masked"] == "6"]
    assert len(last) == 4 and all(float(row["bleu"]) == pytest.approx(expected) for row in last)
    assert json.loads((tmp_path / "headmask.json").read_text())["sentences"] == {"half": 5}


def refused(inputs, tmp_path, monkeypatch, told, settings=SETTINGS, own=None, text=None):
    """Nothing is translated and nothing written."""
    monkeypatch.setattr(masked_bleu, "translate", None)
    files = rankings(inputs) | ({"own": own} if own else {})
    with pytest.raises(UserError, match=told):
        other = replace(inputs, text=text or inputs.text)
        write_masking(other, files, settings, 5, tmp_path / "headmask.csv", {})
    assert not (tmp_path / "headmask.csv").exists()


def test_f09_a_ranking_of_another_model_is_refused(inputs, tmp_path, monkeypatch):
    path = tmp_path / "importance.csv"
    lines = rankings(inputs)["own"].read_text().splitlines()
    path.write_text("\n".join([*lines, "enc_self,1,0,importance,1.0"]) + "\n")
    told = r"importance\.csv:8: encoder self-attention layer 1 head 0 does not exist; this layer"
    refused(inputs, tmp_path, monkeypatch, told, own=path)
    path.write_text("\n".join(lines[:-1]) + "\n")
    told = r"importance\.csv: encoder–decoder attention layer 0 head 0 has no importance"
    refused(inputs, tmp_path, monkeypatch, told, own=path)


def test_f09_so_is_that_of_a_model_with_as_many_heads(inputs, tmp_path, monkeypatch):
    path = tmp_path / "importance.csv"
    path.write_text(rankings(inputs)["own"].read_text())
    weights = sha256(inputs.model.weights)
    path.with_suffix(".json").write_text(json.dumps({"weights": "0" + weights[1:]}))
    told = (
        r"importance\.csv: measured on another model than .*: "
        r"importance\.json names other weights"
    )
    refused(inputs, tmp_path, monkeypatch, told, own=path)
    path.with_suffix(".json").write_text(json.dumps({"weights": weights}))
    found = read_rankings({"own": path}, inputs.model, MODEL.grid)
    assert found == {"own": [3, 1, 5, 2, 0, 4]}


def test_more_groups_than_heads_are_refused(inputs, tmp_path, monkeypatch):
    settings = MaskingSettings(groups=7, test_sets=["easy"])
    told = r"masking\.groups: expected at most 6, the number of the model's heads, found 7"
    refused(inputs, tmp_path, monkeypatch, told, settings)


def test_a_test_set_must_be_named_and_have_two_equal_sides(inputs, tmp_path, monkeypatch):
    told = r"masking\.test_sets: expected the name of a test set, found none"
    refused(inputs, tmp_path, monkeypatch, told, MaskingSettings(groups=2))
    text = tmp_path / "text"
    write_lines(text / "easy.src", ["a", "b"])
    write_lines(text / "easy.tgt", ["a"])
    settings = MaskingSettings(groups=2, test_sets=["easy"])
    told = r"easy\.src has 2 lines, easy\.tgt has 1; expected as many on both sides"
    refused(inputs, tmp_path, monkeypatch, told, settings, text=text)
    for end in ("src", "tgt"):
        write_lines(text / f"easy.{end}", [])
    told = r"easy\.src has 0 lines, .* at least one"
    refused(inputs, tmp_path, monkeypatch, told, settings, text=text)


def test_every_file_that_shapes_the_outcome_is_named(inputs):
    files = inputs.files(SETTINGS.test_sets)
    assert len(set(files)) == 2 + 5 + 4 and all(path.is_file() for path in files)


def test_a_test_set_of_another_pair_is_refused(inputs, tmp_path, monkeypatch):
    text = tmp_path / "text"
    for end in ("src", "tgt"):
        write_lines(text / f"easy.{end}", ["a"])
    settings = MaskingSettings(groups=2, test_sets=["easy"])
    own = json.loads((inputs.pair.path / "segmentation.json").read_text())
    about = {"src_lang": own["tgt_lang"], "tgt_lang": own["src_lang"]}
    (text / "easy.json").write_text(json.dumps(about))
    told = rf"easy\.json: easy is {own['tgt_lang']}-{own['src_lang']}, expected "
    told += f"{own['src_lang']}-{own['tgt_lang']}"
    refused(inputs, tmp_path, monkeypatch, told, settings, text=text)
    (text / "easy.json").write_text(json.dumps(own))
    assert replace(inputs, text=text).read_tests(["easy"], None) == {"easy": (["a"], ["a"])}

"""Masking experiments, also as many heads as gates closed: every row by its own translation."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from masked_run import (
    DECODE,
    DECODE_FLAGS,
    MODEL,
    folder_flags,
    masked_bleu,
    masked_inputs,
    translated,
)
from named_runs import RUNS
from script_runner import run_script

from headcount.ablation import masked_bleu as module
from headcount.ablation.masked_bleu import MaskedInputs
from headcount.ablation.masking import (
    COLUMNS,
    UNTUNED_COLUMNS,
    list_untuned,
    read_rankings,
    write_masking,
    write_untuned,
)
from headcount.base.errors import UserError
from headcount.base.files import sha256, write_json
from headcount.base.head_values import write_head_values
from headcount.base.settings.flags import run_as_flag
from headcount.base.settings.heads import MaskingSettings
from headcount.base.settings.runs import PrunedSettings
from headcount.data.lines import clean_lines, write_lines
from headcount.model import machine
from headcount.scoring.bootstrap import compare_systems
from headcount.search.beam_search import translate

pytestmark = pytest.mark.slow  # steps from files to files

SETTINGS = MaskingSettings(groups=4, draws=2, test_sets=["test", "other"])
# Flat order: enc_self.0.0, .0.1, .1.0, dec_self.0.0, .0.1, .0.2, dec_enc.0.0, .0.1.
OWN = [0.5, 3.0, 1.0, 4.0, 0.1, 2.0, 0.3, 0.2]  # groups (3 1) (5 2) (0 6) (7 4)
BASELINES = [8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]
GATES = {
    "gates-all-l0": [1.0] * 8,
    "gates-all-l0.01": [0.0, 0.7, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0],  # a fraction is open
    "gates-all-l0.1": [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0],
    "gates-enc_self-l0.1": [1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0],
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> MaskedInputs:
    made = masked_inputs(tmp_path_factory.mktemp("masking"))
    for name, values in (("own", OWN), ("baseline", BASELINES)):
        write_head_values(made.text / f"{name}.csv", MODEL.grid, {"importance": values})
    for name, values in GATES.items():
        write_head_values(made.text / f"{name}.csv", MODEL.grid, {"gate": values})
    return made


def rankings(inputs: MaskedInputs) -> dict[str, Path]:
    return {name: inputs.text / f"{name}.csv" for name in ("own", "baseline")}


def gates(inputs: MaskedInputs) -> dict[PrunedSettings, Path]:
    return {RUNS[name]: inputs.text / f"{name}.csv" for name in GATES}


def written(inputs: MaskedInputs, out: Path, settings=SETTINGS) -> list[dict[str, str]]:
    write_masking(inputs, rankings(inputs), settings, 5, out, {"seed": 5})
    return list(csv.DictReader(out.open()))


@pytest.fixture(scope="module")
def rows(inputs, tmp_path_factory) -> list[dict[str, str]]:
    return written(inputs, tmp_path_factory.mktemp("out") / "headmask.csv")


@pytest.fixture(scope="module")
def untuned(inputs, tmp_path_factory) -> list[dict[str, str]]:
    """Rows of the script."""
    out = tmp_path_factory.mktemp("out") / "untuned_masking.csv"
    flags = [
        "--seed",
        5,
        "--out",
        out,
        *folder_flags(inputs),
        "--runs",
        *map(run_as_flag, gates(inputs)),
    ]
    flags += ["--importance", inputs.text / "own.csv", "--gates", *gates(inputs).values()]
    flags += ["--draws", 2, "--test-sets", '["test"]', *DECODE_FLAGS]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "use_threads", torch.set_num_threads)
        assert run_script("untuned_masking", flags) == 0
    return list(csv.DictReader(out.open()))


def heads_of(rows, test_set: str, ranking: str, order: str) -> list[str]:
    keys = (test_set, ranking, order)
    return [r["heads"] for r in rows if (r["test_set"], r["ranking"], r["order"]) == keys]


def test_which_heads_are_masked_by_hand(rows):
    assert tuple(rows[0]) == COLUMNS
    groups = ["enc_self.0.1 dec_self.0.0", "enc_self.1.0 dec_self.0.2"]
    groups += ["enc_self.0.0 dec_enc.0.0", "dec_self.0.1 dec_enc.0.1"]
    for test in ("test", "other"):
        assert heads_of(rows, test, "own", "none") == [""]
        assert heads_of(rows, test, "own", "group") == groups
        assert heads_of(rows, test, "baseline", "group")[0] == "enc_self.0.0 enc_self.0.1"
        two = "enc_self.0.0 dec_self.0.1 dec_enc.0.0 dec_enc.0.1"
        assert heads_of(rows, test, "own", "ascending")[:3] == ["", groups[-1], two]
        assert heads_of(rows, test, "own", "descending")[1] == groups[0]
        assert len(heads_of(rows, test, "own", "random_group")) == 2 * 4
        assert len(heads_of(rows, test, "own", "random_cumulative")) == 2 * 5
        assert not heads_of(rows, test, "baseline", "random_group")
    for row in rows:
        assert (row["draw"] in ("1", "2")) == row["order"].startswith("random")
        assert row["draw"] == "" or row["order"].startswith("random")


def test_which_heads_are_masked_as_gates_closed_them(inputs, untuned):
    points = list_untuned(MODEL.grid, np.array(OWN), gates(inputs), 2, 5)
    by_run = {
        (run, order): [p.heads for p in points if p.cells[:2] == (order, run)]
        for run in GATES
        for order in ("gates", "ranked", "drawn")
    }
    assert by_run["gates-all-l0", "gates"] == by_run["gates-all-l0", "ranked"] == [()]
    assert by_run["gates-all-l0.01", "gates"] == [(0, 5, 6)]
    assert by_run["gates-all-l0.01", "ranked"] == [(4, 6, 7)]  # .1, .2 and .3
    assert by_run["gates-all-l0.1", "ranked"] == [(0, 1, 2, 4, 5, 6, 7)]  # all but 4.
    # Of the encoder's three heads alone: .5 and 1., though two decoder heads have less.
    assert by_run["gates-enc_self-l0.1", "gates"] == [(1, 2)]
    assert by_run["gates-enc_self-l0.1", "ranked"] == [(0, 2)]
    few, many = (by_run[f"gates-all-l{lambda_}", "drawn"] for lambda_ in ("0.01", "0.1"))
    assert [len({*heads}) for heads in few] == [3, 3] and few[0] != few[1]
    assert all(set(a) < set(b) for a, b in zip(few, many, strict=True))
    assert all({*heads} < {0, 1, 2} for heads in by_run["gates-enc_self-l0.1", "drawn"])
    assert tuple(untuned[0]) == UNTUNED_COLUMNS and len(untuned) == len(GATES) * (1 + 1 + 2)
    (row,) = (r for r in untuned if (r["matched_run"], r["order"]) == ("gates-all-l0.01", "gates"))
    assert row["heads"] == "enc_self.0.0 dec_self.0.2 dec_enc.0.0" and row["draw"] == ""


@pytest.mark.parametrize("table", ["rows", "untuned"])
def test_every_row_is_a_translation_under_that_mask_alone(inputs, request, table):
    scores = {}
    for row in request.getfixturevalue(table):
        key = (row["test_set"], row["heads"])
        for names in ("", row["heads"]):
            if (row["test_set"], names) not in scores:
                scores[row["test_set"], names] = masked_bleu(inputs, row["test_set"], names)
        assert int(row["heads_masked"]) == len(row["heads"].split())
        assert float(row["bleu"]) == pytest.approx(scores[key])
        assert float(row["delta"]) == pytest.approx(scores[key] - scores[row["test_set"], ""])
        low, delta, high = (float(row[f"delta{end}"]) for end in ("_low", "", "_high"))
        assert low - 1e-9 <= delta <= high + 1e-9
        assert row["signature"].startswith("nrefs:1|bs:1000|seed:12345|case:mixed|")
        if not row["heads"]:
            assert (low, delta, high, row["p"]) == (0, 0, 0, "1.0")
    assert len({round(score) for score in scores.values()}) > 3  # masks make a difference
    assert scores["test", ""] == pytest.approx(100)


def test_p_values_are_those_of_the_paired_bootstrap(inputs, rows):
    plain = translated(inputs, "other", np.ones(8))
    (row, *_) = (r for r in rows if r["test_set"] == "other" and len(r["heads"].split()) == 2)
    heads = {head.name(): head for head in MODEL.grid.heads()}
    mask = MODEL.grid.mask(heads[name] for name in row["heads"].split())
    references = list(clean_lines(inputs.text / "other.tgt"))
    masked = translated(inputs, "other", mask)
    (expected,) = compare_systems(plain, [masked], references, "art")
    found = [float(row[name]) for name in ("p", "delta_low", "delta_high")]
    assert found == [expected.p_value, expected.low, expected.high]


def test_f09_each_distinct_mask_is_translated_once(inputs, tmp_path, monkeypatch, capsys):
    calls = []

    def counted(model, sources, settings, multiplier, *others):
        calls.append(multiplier)
        return translate(model, sources, settings, multiplier, *others)

    monkeypatch.setattr(module, "translate", counted)
    settings = MaskingSettings(groups=3, draws=0, test_sets=["test"], sentences=4)
    found = written(inputs, tmp_path / "headmask.csv", settings)
    assert "warning: 9 of 12 masks leave a layer without heads" in capsys.readouterr().err
    # No head and all heads; for either ranking three groups of 3, 3 and 2, and two unions: a union
    # of one group is the group.
    (multiplier,) = calls
    assert multiplier.shape == ((2 + 2 * 5) * 4, 8)
    masks = {tuple(mask) for mask in multiplier.tolist()}
    assert len(masks) == 12 == len({row["heads"] for row in found})
    facts = json.loads((tmp_path / "headmask.json").read_text())
    assert (facts["distinct_masks"], facts["sentences"]) == (12, {"test": 4})
    assert (facts["beam"], facts["provenance"]) == (DECODE.beam, {"seed": 5})
    # Layers of heads 0 1, 2, 3 4 5 and 6 7. By `own`: (2 0 6), (3 1 5 2 0 6) and (2 0 6 7 4); by
    # `baseline`: (0 1 2), (3 4 5), (6 7), (0 1 2 3 4 5) and (3 4 5 6 7); and all heads.
    assert facts["masks_closing_a_layer"] == 9


def refused(inputs, tmp_path, monkeypatch, match, settings=SETTINGS, own=None):
    """Nothing is translated and nothing written."""
    monkeypatch.setattr(module, "translate", None)
    files = rankings(inputs) | ({"own": own} if own else {})
    with pytest.raises(UserError, match=match):
        write_masking(inputs, files, settings, 5, tmp_path / "headmask.csv", {})
    assert not (tmp_path / "headmask.csv").exists()


def test_f09_a_ranking_of_another_model_is_refused(inputs, tmp_path, monkeypatch):
    path = tmp_path / "importance.csv"
    lines = rankings(inputs)["own"].read_text().splitlines()
    path.write_text("\n".join([*lines, "enc_self,1,1,importance,1.0"]) + "\n")
    refused(inputs, tmp_path, monkeypatch, r"importance\.csv:10: ", own=path)
    path.write_text("\n".join(lines[:-1]) + "\n")
    refused(inputs, tmp_path, monkeypatch, r"importance\.csv: .* has no importance", own=path)
    path.write_text("\n".join(lines) + "\n")  # as many heads, of other weights
    weights = sha256(inputs.model.weights)
    write_json(path.with_suffix(".json"), {"weights": "0" * 64})
    refused(inputs, tmp_path, monkeypatch, r"importance\.json names other weights", own=path)
    write_json(path.with_suffix(".json"), {"weights": weights})
    assert read_rankings({"own": path}, inputs.model, MODEL.grid) == {
        "own": [3, 1, 5, 2, 0, 6, 7, 4]
    }


def test_gates_and_importance_of_another_model_are_refused(inputs, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "translate", None)
    path, out = tmp_path / "heads.csv", tmp_path / "untuned_masking.csv"
    path.write_text((inputs.text / "gates-all-l0.csv").read_text() + "dec_self,0,3,gate,1.0\n")
    other = {RUNS["gates-all-l0"]: path}
    own = inputs.text / "own.csv"
    for importance, closed, match in (
        (own, other, r"heads\.csv:10: "),
        (path, gates(inputs), r"heads\.csv: .* has no importance"),
    ):
        with pytest.raises(UserError, match=match):
            write_untuned(inputs, importance, closed, SETTINGS, 5, out, {})
    assert not out.exists()


def test_more_groups_than_heads_are_refused(inputs, tmp_path, monkeypatch):
    settings = MaskingSettings(groups=9, test_sets=["test"])
    refused(inputs, tmp_path, monkeypatch, r"masking\.groups: .* 8.*, found 9", settings)


@pytest.mark.parametrize(("sources", "targets"), [(["a", "b"], ["a"]), ([], []), (["a"], ["a"])])
def test_a_test_set_must_be_named_have_equal_sides_and_the_pairs_languages(
    inputs, tmp_path, sources, targets
):
    other = replace(inputs, text=tmp_path)
    for end, lines in (("src", sources), ("tgt", targets)):
        write_lines(tmp_path / f"easy.{end}", lines)
    if sources == targets == ["a"]:
        facts = json.loads((inputs.pair.path / "segmentation.json").read_text())
        write_json(tmp_path / "easy.json", facts)
        assert other.read_tests(["easy"], None) == {"easy": (["a"], ["a"])}
        turned = {"src_lang": facts["tgt_lang"], "tgt_lang": facts["src_lang"]}
        write_json(tmp_path / "easy.json", turned)
    with pytest.raises(UserError, match=r"easy\.(json: |src has \d lines)"):
        other.read_tests(["easy"], None)
    with pytest.raises(UserError, match=r"masking\.test_sets: "):
        other.read_tests([], None)

"""Heads removed one by one and all but one: which, and every row against its own translation."""

import csv
import json

import pytest
from masked_run import DECODE_FLAGS, MODEL, folder_flags, masked_bleu, masked_inputs
from script_runner import run_script

from headcount.ablation.masked_bleu import MaskedInputs
from headcount.ablation.masking import ABLATION_COLUMNS, all_but_one, single_heads, with_dev
from headcount.base.addresses import Head
from headcount.base.settings.heads import AblationSettings

pytestmark = pytest.mark.slow  # a step from files to files, or models that are trained

TESTS = ("dev", "test", "other")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> MaskedInputs:
    return masked_inputs(tmp_path_factory.mktemp("ablation"))


@pytest.fixture(scope="module")
def written(inputs, tmp_path_factory):
    """The CSV's path and rows."""
    out = tmp_path_factory.mktemp("out") / "ablation.csv"
    flags = [*folder_flags(inputs), "--out", out, *DECODE_FLAGS]
    assert run_script("ablation", [*flags, "--test-sets", '["test", "other"]']) == 0
    return out, list(csv.DictReader(out.open()))


def of(rows, test: str, order: str) -> list[dict[str, str]]:
    return [row for row in rows if (row["test_set"], row["order"]) == (test, order)]


def test_which_heads_are_silent_by_hand():
    assert [point.heads for point in single_heads(MODEL.grid)] == [(n,) for n in range(8)]
    points = [point for layer in all_but_one(MODEL.grid) for point in layer]
    assert [(Head(*point.cells[2:]).name(), point.heads) for point in points] == [
        ("enc_self.0.0", (1,)),
        ("enc_self.0.1", (0,)),  # enc_self.1 has one head: nothing to take away
        ("dec_self.0.0", (4, 5)),
        ("dec_self.0.1", (3, 5)),
        ("dec_self.0.2", (3, 4)),
        ("dec_enc.0.0", (7,)),
        ("dec_enc.0.1", (6,)),
    ]


def test_every_row_is_a_translation_under_that_mask_alone(inputs, written):
    _, rows = written
    assert tuple(rows[0]) == ABLATION_COLUMNS
    plain = [(test, "") for test in TESTS]
    scores = {key: masked_bleu(inputs, *key) for key in plain}
    for row in rows[::4]:  # searches of their own take time
        key = (row["test_set"], row["heads"])
        if key not in scores:
            scores[key] = masked_bleu(inputs, *key)
        assert float(row["bleu"]) == pytest.approx(scores[key])
        whole = scores[row["test_set"], ""]
        assert float(row["delta"]) == pytest.approx(scores[key] - whole)
        assert int(row["heads_masked"]) == len(row["heads"].split())
    assert len({round(score) for score in scores.values()}) > 3  # masks make a difference
    assert scores["test", ""] == pytest.approx(100)


def test_each_test_set_has_every_single_head(written):
    _, rows = written
    assert list(dict.fromkeys(row["test_set"] for row in rows)) == list(TESTS)
    for test in TESTS:
        (none,) = of(rows, test, "none")
        assert (none["index"], none["kind"], none["heads"]) == ("0", "", "")
        single = of(rows, test, "single")
        assert [row["heads"] for row in single] == [head.name() for head in MODEL.grid.heads()]
        assert [row["index"] for row in single] == [str(n) for n in range(1, 9)]
        for row in single:
            assert f"{row['kind']}.{row['layer']}.{row['head']}" == row["heads"]


def test_the_head_that_a_layer_keeps_is_chosen_on_dev(written):
    _, rows = written
    dev = of(rows, "dev", "all_but_one")
    assert len(dev) == 7 and all("|bs:1600|" in row["signature"] for row in rows)  # 200 · 8 heads
    layers = {("enc_self", "0"): 2, ("dec_self", "0"): 3, ("dec_enc", "0"): 2}
    for test in ("test", "other"):
        kept = of(rows, test, "all_but_one")
        assert {(row["kind"], row["layer"]) for row in kept} == set(layers) and len(kept) == 3
        for row in kept:
            rivals = [r for r in dev if (r["kind"], r["layer"]) == (row["kind"], row["layer"])]
            assert len(rivals) == layers[row["kind"], row["layer"]]
            best = max(rivals, key=lambda rival: float(rival["bleu"]))
            assert row["head"] == best["head"] and row["heads"] == best["heads"]
    # dev's references were made without enc_self.0.1: keeping the other one gives them back.
    (first,) = (row for row in of(rows, "test", "all_but_one") if row["kind"] == "enc_self")
    assert first["head"] == "0"


def test_every_file_that_shapes_the_outcome_is_named_and_dev_is_first(inputs, written):
    for given in (["test", "dev"], ["dev", "test"], ["test"]):
        assert with_dev(AblationSettings(test_sets=given)) == ["dev", "test"]
    facts = json.loads(written[0].with_suffix(".json").read_text())
    assert facts["sentences"] == {"dev": 7, "test": 6, "other": 7} and facts["dev"] == "dev"
    files = inputs.files(with_dev(AblationSettings(test_sets=["test", "other"])))
    assert len(set(files)) == 2 + 5 + 6 and all(path.is_file() for path in files)

"""What pruned models save: a model that knows its test set, and the same without some units."""

import json

import pandas as pd
import pytest
import torch
from learnt_model import LEARNT, learnt
from letter_overlap import COMMAND
from script_runner import run_script
from small_run import segment

from headcount.base.multiply_adds import Lengths, multiply_adds
from headcount.data.lines import clean_lines, write_lines
from headcount.model.removal import remove_units
from headcount.model.units import UnitTransformer
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount_hf.export.savings import COLUMNS

pytest.importorskip("ctranslate2")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The folder with a model and its smaller copy, and the measurement of both."""
    folder = tmp_path_factory.mktemp("savings")
    bpe = segment(folder / "text", pairs=20)
    whole = ModelFolder(learnt(bpe, folder, 3, d_model=12))
    for side in ("src", "tgt"):
        lines = list(clean_lines(folder / f"text/dev.{side}"))
        write_lines(folder / f"known.{side}", [lines[number] for number in LEARNT])
    units = UnitTransformer.of(whole.load())
    mask = torch.ones(units.grid.size)
    mask[units.grid.span("dec_layer", 0)] = mask[units.grid.span("enc_ffn", 1)] = 0
    small = remove_units(units, mask)
    ModelFolder(folder / "small").save(
        small, dict(small.named_parameters()), PairFolder(bpe).subwords()
    )
    texts = ["--source", folder / "known.src", "--reference", folder / "known.tgt"]
    models = ["--runs", "baseline", "less", "--models", whole.path, folder / "small"]
    how = ["--savings-compute-types", '["float32", "int8"]', "--savings-repeats", 2]
    how += ["--savings-sentences", 4, "--savings-batch-sizes", "[1, 4]", "--beam", 2]
    how += ["--savings-seconds", 0.1]
    how += ["--metrics", json.dumps({"letters": {"command": COMMAND, "scale": 100}})]
    given = ["--bpe", bpe, *texts, *models, *how, "--out", folder / "savings.csv"]
    assert run_script("savings", given) == 0
    return folder, pd.read_csv(folder / "savings.csv")


def test_every_model_is_timed_in_every_program_format_and_batch_size(measured):
    folder, rows = measured
    assert tuple(rows) == COLUMNS
    formats = {("headcount", "float32"), ("ctranslate2", "float32"), ("ctranslate2", "int8")}
    wanted = {
        (m, *f, s, t) for m in ("baseline", "less") for f in formats for s in (1, 4) for t in (1, 2)
    }
    keys = ["model", "program", "compute_type", "batch_size", "repeat"]
    assert {*rows[keys].itertuples(index=False, name=None)} == wanted and len(rows) == len(wanted)
    assert (rows["seconds"] >= 0.1).all() and (rows["sentences"] % 4 == 0).all()
    assert rows["sentences"].max() > 4  # a tiny batch takes less than 0.1 s
    facts = json.loads((folder / "savings.json").read_text())
    assert (facts["threads"], facts["length_penalty"], facts["test_set"]) == (1, 0, "known")


def test_a_smaller_model_has_less_of_everything_that_its_parts_count(measured):
    folder, rows = measured
    text = PairFolder(folder / "text/bpe").read("train")
    lengths = [sum(len(ids) + 1 for ids in side) / len(text) for side in (text.src, text.tgt)]
    for name, path in (("baseline", folder / "model"), ("less", folder / "small")):
        model, own = ModelFolder(path).load(), rows[rows["model"] == name]
        count = sum(weight.numel() for weight in model.parameters())
        assert set(own["parameters"]) == {count}
        work = multiply_adds(model.settings, len(model.tgt_embedding.weight), Lengths(*lengths))
        assert own["multiply_adds"].to_numpy() == pytest.approx(work)
        size = (
            own.set_index(["program", "compute_type"])["weight_bytes"].groupby(level=[0, 1]).first()
        )
        assert size["headcount", "float32"] == 4 * count
        assert size["ctranslate2", "int8"] < size["ctranslate2", "float32"]
    first = rows.groupby("model")[["multiply_adds", "weight_bytes"]].max()
    assert (first.loc["less"] < first.loc["baseline"]).all()


@pytest.mark.parametrize("metric", ["bleu", "letters"])
def test_losses_are_to_the_whole_model_in_the_same_program(measured, metric):
    folder, rows = measured
    if metric != "bleu":
        rows = pd.read_csv(folder / f"savings.{metric}.csv")
    whole = rows[rows["model"] == "baseline"]
    assert whole[metric].to_numpy() == pytest.approx(100)
    assert (whole["delta"] == 0).all()
    less = rows[rows["model"] == "less"]
    assert less["delta"].to_numpy() == pytest.approx(less[metric].to_numpy() - 100)
    assert (less["delta_low"] <= less["delta"]).all() and (less["delta"] < 0).all()


def test_memory_is_that_of_a_process_with_one_model(measured):
    _, rows = measured
    known = rows["memory_bytes"].dropna()  # empty but on Linux
    assert (known < 200e6).all()  # the package itself takes more
    large = rows["memory_bytes"] >= rows["weight_bytes"]
    assert large[rows["memory_bytes"].notna() & (rows["program"] == "headcount")].all()

"""Pruned models: heads left, settings and updates, from a model of four heads."""

from types import SimpleNamespace

import pandas as pd
import pytest
from named_runs import RUNS

from headcount.analysis.tables.voita import pruning
from headcount.base.addresses import HeadGrid
from headcount.base.errors import UserError

GRID = HeadGrid({"enc_self": (1, 0, 1), "dec_self": (1,), "dec_enc": (1,)})
SETTINGS = {"model": SimpleNamespace(grid=GRID)}
PLACES = [("enc_self", 0), ("enc_self", 2), ("dec_self", 0), ("dec_enc", 0)]


def kept(gates: dict[str, list[float]]) -> pd.DataFrame:
    """Return the gates of four heads by run."""
    rows = [
        ("p.en-de", run, 1, *place, 0, "gate", value)
        for run, values in gates.items()
        for place, value in zip(PLACES, values, strict=False)
    ]
    columns = ["pair", "run", "seed", "kind", "layer", "head", "statistic", "value"]
    return pd.DataFrame(rows, columns=columns)


def models_of(heads: pd.DataFrame) -> pd.DataFrame:
    runs = {name: RUNS[name] for name in heads["run"].unique()}
    return pruning.models(pruning.layers(heads, runs, SETTINGS), heads)


def test_a_model_has_its_heads_by_attention_type_and_layer():
    heads = kept({"gates-enc_self-l0": [1, 1, 1, 1], "gates-enc_self-l0.1": [0, 0.5, 1, 1]})
    chances = heads.iloc[4:6].assign(statistic="p_zero", value=[0.95, 0.3])
    opened = heads.iloc[4:6].assign(statistic="p_one", value=[0.01, 0.2])
    control, model = models_of(pd.concat([heads, chances, opened])).to_dict("records")
    assert (model["method"], model["scope"], model["lambda"]) == ("gates", "enc_self", 0.1)
    assert (model["start"], model["control"]) == ("baseline", "gates-enc_self-l0")
    assert (model["heads"], model["heads_left"]) == (4, 3)
    assert (model["scope_heads"], model["scope_left"]) == (2, 1)
    assert model["enc_self"] == 1
    assert (control["enc_self_layers"], model["enc_self_layers"]) == ("1 0 1", "0 0 1")
    assert model["polarised"] == 0.5  # one of the two gates is surely 0
    assert pd.isna(control["polarised"])
    models = pd.DataFrame({"pair": ["p.en-de"], "seed": 1, "method": "gates", "run": "gates"})
    models = models.assign(start="random weights", gates_run="gates")
    assert pruning.updates(models, curves(), curves(gates=30))["updates_before"].tolist() == [0]
    assert pruning.with_all_heads(models)["run"].tolist() == ["baseline"]


REFUSED = {
    "ranked-gates-all-l1 .* has 2 heads": {"ranked-gates-all-l1": [1, 1, 0, 0]},
    "the run gates-all-l0-from-random-2;": {"gates-all-l1-from-random-2": [1, 1, 1, 0]},
    "for each of 4 heads, found 3 gates": {"gates-all-l2": [1, 1, 1]},
}


@pytest.mark.parametrize(("words", "gates"), REFUSED.items())
def test_models_that_cannot_be_compared_are_refused(words: str, gates: dict) -> None:
    heads = kept({"gates-all-l0": [1, 1, 1, 1], "gates-all-l1": [1, 1, 1, 0]} | gates)
    with pytest.raises(UserError, match=words):
        models_of(heads)


def curves(**steps: int) -> pd.DataFrame:
    """Return two validations of every run, at update 1 and at its last update."""
    rows = [("p.en-de", run, 1, step) for run, last in steps.items() for step in (1, last)]
    return pd.DataFrame(rows, columns=["pair", "run", "seed", "step"])


def test_updates_are_of_the_model_and_of_its_start() -> None:
    models = pd.DataFrame({"pair": "p.en-de", "seed": 1, "method": ["gates", "scratch"]})
    models = models.assign(run=models["method"], start="baseline", gates_run="gates")
    spent = pruning.updates(models, curves(baseline=100), curves(gates=30, scratch=130))
    assert spent["updates"].tolist() == [30, 130]
    assert spent["updates_before"].tolist() == [100, 100]
    assert "start 100" in pruning.updates_spent(spent)

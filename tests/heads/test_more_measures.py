"""From a model and a text to files of measures, and back to what reads them."""

import json
import shutil

import numpy as np
import pytest
from masked_run import MODEL, masked_inputs

from headcount.ablation.masked_bleu import MaskedInputs
from headcount.base.errors import UserError
from headcount.base.files import write_csv
from headcount.base.head_values import read_head_values
from headcount.base.settings.heads import ImportanceSettings, MeasuresSettings
from headcount.data.batches import in_order
from headcount.heads.drawn_text import read_drawn
from headcount.heads.importance import integrated_gradients, measure_importance
from headcount.heads.loss_change import (
    MaskedLoss,
    measure_loss_change,
    random_orders,
    shapley_by_order,
)
from headcount.heads.measures_files import (
    COLUMNS,
    NOT_RANKED,
    beside,
    files_of,
    read_mean_outputs,
    read_measures,
    stays,
)
from headcount.heads.more_measures import MEASURES, Passes, write_measures

IMPORTANCE = ImportanceSettings(sentences=9, batch_tokens=60)
MORE = MeasuresSettings(points=3, orders=4, order_sentences=5)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> MaskedInputs:
    return masked_inputs(tmp_path_factory.mktemp("measures"))


@pytest.fixture(scope="module")
def path(inputs):
    out = inputs.text / "measures.csv"
    write_measures(inputs.model, inputs.pair, IMPORTANCE, MORE, out, {"seed": 4})
    return out


def test_the_files_have_what_each_measure_gives(inputs, path):
    """Each by itself, on the nine pairs drawn; Shapley values on the first five of them."""
    model, text = inputs.model.load(), read_drawn(inputs.pair, IMPORTANCE)
    assert len(text) == 9
    found = read_measures(path, inputs.model, model.grid)
    assert [*found.values] == [name for name in MEASURES if name not in NOT_RANKED]
    squares = IMPORTANCE.model_copy(update={"abs": "square"})
    expected = {
        "fisher": measure_importance(model, text, squares),
        "integrated_gradients": integrated_gradients(model, text, IMPORTANCE, 3),
        "output_norm": Passes(model, text, IMPORTANCE, MORE).first[1].norms(),
    }
    loss = MaskedLoss(model, in_order(text.part(range(5)), IMPORTANCE.batch_tokens))
    by_order = shapley_by_order(loss, random_orders(8, 4, seed=1))
    expected["shapley"] = by_order.mean(0)
    for name, values in expected.items():
        np.testing.assert_allclose(found.values[name], values, rtol=1e-4, atol=1e-6, err_msg=name)
    error = read_head_values(path, "shapley_error", model.grid)
    # Standard error of the mean of 4: √(Σ (x − mean)² / 3 / 4).
    spread = ((by_order - by_order.mean(0)) ** 2).sum(0) / 12
    np.testing.assert_allclose(error, np.sqrt(spread), rtol=1e-3, atol=1e-6)
    kept = read_head_values(path, "fisher_rearranged", model.grid)
    np.testing.assert_allclose(kept, stays(found.fisher, model.grid))
    np.testing.assert_allclose(np.diagonal(found.fisher), found.values["fisher"])
    _, by_zeros = measure_loss_change(model, text, IMPORTANCE)
    assert not np.allclose(found.values["mean_ablation"], by_zeros, rtol=0.01)


def test_mean_ablation_is_the_loss_with_each_heads_mean_in_the_bias(inputs, path):
    model, text = inputs.model.load(), read_drawn(inputs.pair, IMPORTANCE)
    found = read_measures(path, inputs.model, model.grid).values["mean_ablation"]
    means = read_mean_outputs(path.with_name("measures_means.csv"), inputs.model)
    whole, _ = MaskedLoss(model, in_order(text, IMPORTANCE.batch_tokens)).whole_and_none()
    attention = model.decoder[0].attention  # its head 2 is number 5 in flat order
    output, columns = attention.output, slice(2 * 7, 3 * 7)
    added = output.weight[:, columns].detach() @ output.weight.new_tensor(means[5])
    output.bias.data += added
    output.weight.data[:, columns] = 0
    without, _ = MaskedLoss(model, in_order(text, IMPORTANCE.batch_tokens)).whole_and_none()
    assert found[5] == pytest.approx(without - whole, rel=1e-3)


def test_the_facts_tell_how_far_sums_are_from_what_they_divide(inputs, path):
    facts = json.loads(path.with_suffix(".json").read_text())
    assert (facts["sentences"], facts["provenance"]) == (9, {"seed": 4})
    model, text = inputs.model.load(), read_drawn(inputs.pair, IMPORTANCE)
    for name, part in (("integrated_gradients", text), ("shapley", text.part(range(5)))):
        whole, none = MaskedLoss(model, in_order(part, IMPORTANCE.batch_tokens)).whole_and_none()
        assert facts[name]["loss_taken_off"] == pytest.approx(none - whole, rel=1e-4)
        total = read_head_values(path, name, model.grid).sum()
        assert facts[name]["sum"] == pytest.approx(total, rel=1e-6)
    shapley = facts["shapley"]
    assert shapley["sum"] == pytest.approx(shapley["loss_taken_off"], rel=1e-9)
    assert (shapley["orders"], shapley["sentences"]) == (4, 5)
    assert facts["integrated_gradients"]["points"] == 3
    for other in files_of(path):
        assert json.loads(other.with_suffix(".json").read_text())["weights"] == facts["weights"]


def test_measures_of_another_model_are_refused(inputs, path, tmp_path):
    copy = copied(path, tmp_path)
    for file in files_of(copy):
        file.with_suffix(".json").write_text('{"weights": "of another"}')
    with pytest.raises(UserError, match=r"measures\.csv: .*run scripts/more_measures\.py"):
        read_measures(copy, inputs.model, MODEL.grid)
    with pytest.raises(UserError, match=r"measures_means\.csv: "):
        read_mean_outputs(beside(copy, "means"), inputs.model)


def copied(path, folder):
    for file in files_of(path):
        shutil.copy(file, folder)
    return folder / path.name


def rewrite(path, part, change) -> None:
    """Write the file beside `path` again, with its rows changed."""
    file = beside(path, part)
    rows = [line.split(",") for line in file.read_text().splitlines()[1:]]
    write_csv(file, COLUMNS[part], change(rows))


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda rows: rows[:-1], ""),
        (lambda rows: [*rows, rows[0]], r":\d+"),
        (lambda rows: [[*rows[0][:4], "nan"], *rows[1:]], ":2"),
    ],
)
def test_damaged_files_are_refused_with_their_line(inputs, path, tmp_path, change, line):
    copy = copied(path, tmp_path)
    rewrite(copy, "fisher", change)
    with pytest.raises(UserError, match=rf"measures_fisher\.csv{line}: expected"):
        read_measures(copy, inputs.model, MODEL.grid)
    rewrite(copy, "means", change)
    with pytest.raises(UserError, match=rf"measures_means\.csv{line}: expected"):
        read_mean_outputs(beside(copy, "means"), inputs.model)

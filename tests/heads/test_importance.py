"""Importance of heads against finite differences and the chain rule, and its files."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from small_models import TEXT, UNEVEN, attention_of, make_model, one_pair, token_slopes
from small_run import segment

from headcount.base.addresses import HeadGrid
from headcount.base.errors import UserError
from headcount.base.files import sha256
from headcount.base.head_values import read_head_values
from headcount.base.settings.heads import ImportanceSettings
from headcount.data.batches import ParallelText
from headcount.data.vocabulary import Vocabulary
from headcount.heads.drawn_text import read_drawn
from headcount.heads.importance import (
    batch_importance,
    measure_importance,
    normalise_layers,
    write_importance,
)
from headcount.model.loss import token_losses
from headcount.model.transformer import Transformer
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

BATCH = TEXT.batch([0, 1, 2])


@pytest.fixture
def model():
    return make_model(heads=UNEVEN).double()


def losses_of(model, number: int):
    """Losses of the target tokens of one sentence alone."""
    with torch.no_grad():
        return token_losses(model, TEXT.batch([number]))


def measure(model, text=TEXT, **settings):
    return measure_importance(model, text, ImportanceSettings(**settings))


def test_batch_importance_is_the_mean_slope_over_single_sentences(model, slopes):
    slopes = np.array([each.sum(1) for each in slopes])
    found, _, loss = batch_importance(model, BATCH)
    np.testing.assert_allclose(found, np.abs(slopes).mean(0), atol=1e-8, rtol=1e-6)
    signed, _, _ = batch_importance(model, BATCH, "none")
    for unit in ("sentence", "batch", "position", "token", "none"):
        each = batch_importance(model, BATCH, unit)
        np.testing.assert_allclose(each.slopes, slopes, atol=1e-7, rtol=1e-6)
        assert each.loss.item() == pytest.approx(loss.item())
    np.testing.assert_allclose(signed, -slopes.mean(0), atol=1e-8, rtol=1e-6)
    assert (signed < 0).any() and (signed > 0).any()
    assert loss.item() == pytest.approx(sum(float(losses_of(model, n).sum()) for n in range(3)))


def test_the_model_is_left_as_it_was():
    model = make_model(heads=UNEVEN).train()
    model.encoder[1].eval()  # a mode of its own comes back too
    frozen = model.decoder[0].feed_forward.inner.weight.requires_grad_(False)
    token_losses(model, BATCH).sum().backward()
    weights = [weight.detach().clone() for weight in model.parameters()]
    gradients = [None if w.grad is None else w.grad.clone() for w in model.parameters()]
    random = torch.get_rng_state()
    first, _, loss = batch_importance(model, BATCH)
    assert torch.equal(torch.get_rng_state(), random)
    assert model.training and not model.encoder[1].training and model.decoder[2].training
    for weight, before, gradient in zip(model.parameters(), weights, gradients, strict=True):
        assert torch.equal(weight, before)
        assert weight.requires_grad == (weight is not frozen)
        assert gradient is weight.grad is None or torch.equal(weight.grad, gradient)
    again, _, loss_again = batch_importance(model.eval(), BATCH)
    assert torch.equal(first, again) and loss == loss_again  # so dropout was off
    with pytest.raises(IndexError):
        batch_importance(model.train(), ParallelText([[99]], [[5]]).batch([0]))
    assert model.training and not frozen.requires_grad and model.encoder[0].training
    assert model.tgt_embedding.weight.requires_grad


def test_label_smoothing_changes_the_loss_that_is_differentiated(model):
    plain, _, loss = batch_importance(model, BATCH)
    smooth, _, smooth_loss = batch_importance(model, BATCH, smoothing=0.3)
    expected = token_losses(model, BATCH, smoothing=0.3).sum().item()
    assert smooth_loss.item() == pytest.approx(expected) and abs(smooth_loss - loss) > 1e-3
    assert (smooth - plain).abs().max() > 1e-3


@pytest.fixture(scope="module")
def slopes():
    """Slopes of each sentence."""
    model = make_model(heads=UNEVEN).double()
    return [token_slopes(model, n, 0.0).numpy() for n in range(3)]


# What each unit of the absolute value makes of the slopes of one batch: [sentence][head, token].
EXPECTED = {
    "sentence": lambda slopes: sum(abs(each.sum(1)) for each in slopes),
    "token": lambda slopes: sum(abs(each).sum(1) for each in slopes),
    "batch": lambda slopes: abs(sum(each.sum(1) for each in slopes)),
    "none": lambda slopes: -sum(each.sum(1) for each in slopes),
}


@pytest.mark.parametrize("unit", EXPECTED)
def test_every_unit_matches_finite_differences(model, slopes, unit):
    found = measure(model, abs=unit)
    np.testing.assert_allclose(found, EXPECTED[unit](slopes) / 3, atol=1e-8, rtol=1e-6)


def test_by_position_it_is_the_chain_rule_with_absolute_values(model):
    """Σ |c · ∂L/∂c| by hooks of its own; without the bars it is ∂L/∂ξ (equation 2)."""
    with_bars, without = np.zeros(17), np.zeros(17)
    modules = [attention_of(model, kind, layer).output for kind, layer, _ in model.grid.heads()]
    kept = {}

    def keep(module, inputs):
        kept[module] = inputs[0]
        inputs[0].retain_grad()

    handles = [module.register_forward_pre_hook(keep) for module in set(modules)]
    for number in range(3):
        token_losses(model, TEXT.batch([number])).sum().backward()
        for position, (module, address) in enumerate(zip(modules, model.grid.heads(), strict=True)):
            shares = (kept[module] * kept[module].grad).detach()[0]  # [q, heads · 4]
            shares = shares[:, 4 * address.head : 4 * address.head + 4].sum(1)
            with_bars[position] += shares.abs().sum()
            without[position] += shares.sum().abs()
    for handle in handles:
        handle.remove()
    np.testing.assert_allclose(measure(model, abs="position"), with_bars / 3, rtol=1e-9)
    np.testing.assert_allclose(measure(model, abs="sentence"), without / 3, rtol=1e-9)
    assert (with_bars > without).any()


@pytest.mark.parametrize(
    "unit",
    ["sentence", *(pytest.param(u, marks=pytest.mark.slow) for u in ("token", "position", "none"))],
)
def test_padding_and_batch_composition_change_nothing(model, unit):
    more = ParallelText(TEXT.src * 2 + [[5, 6]], TEXT.tgt * 2 + [[4] * 12])  # padded by the last
    alone = [measure(model, one_pair(more, number), abs=unit) for number in range(7)]
    for budget in (1, 13, 100):
        found = measure(model, more, abs=unit, batch_tokens=budget)
        np.testing.assert_allclose(found, np.mean(alone, axis=0), rtol=1e-8)


@pytest.mark.filterwarnings("ignore:Initializing zero-element")
@pytest.mark.parametrize("unit", ["sentence", "token", "position", "batch", "none"])
def test_layers_without_heads_have_no_entry(unit):
    heads = {"enc_self": [0, 2], "dec_self": [0, 3, 0], "dec_enc": [2, 0, 1]}
    model = make_model(heads=heads).double()
    found = measure(model, abs=unit)
    assert found.shape == (8,) and np.isfinite(found).all() and (found != 0).all()
    if unit == "sentence":
        slopes = [token_slopes(model, number).sum(1).numpy() for number in range(3)]
        np.testing.assert_allclose(found, np.abs(slopes).mean(0), rtol=1e-6)


def test_a_layer_divided_by_its_norm():
    grid = HeadGrid({"enc_self": (2, 0), "dec_self": (1,), "dec_enc": (2,)})
    # (3, 4) has norm 5; -2 has norm 2; a layer of zeros stays zero.
    found = normalise_layers(np.array([3.0, 4.0, -2.0, 0.0, 0.0]), grid)
    assert found.tolist() == [0.6, 0.8, -1.0, 0.0, 0.0]


HEADS = {"enc_self": [3, 2], "dec_self": [1, 3, 2], "dec_enc": [2, 0, 1]}
NAMES = ("importance", "importance_first_half", "importance_second_half")


pytestmark = pytest.mark.filterwarnings("ignore:Initializing zero-element")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """An untrained model with uneven heads and the segmented text it belongs to."""
    folder = tmp_path_factory.mktemp("importance")
    bpe = segment(folder)
    size = len(Vocabulary.load(bpe / "src.vocab"))
    torch.manual_seed(1)
    model = Transformer(make_model(heads=HEADS).settings, size, size, joint=True)
    facts = PairFolder(bpe).subwords()
    ModelFolder(folder / "model").save(model, dict(model.named_parameters()), facts)
    return folder / "model", bpe


def written(folders, path, **settings) -> tuple[dict[str, np.ndarray], dict]:
    """The three statistics of a file, and the facts beside it."""
    model, pair = ModelFolder(folders[0]), PairFolder(folders[1])
    write_importance(model, pair, ImportanceSettings(**settings), path, {"seed": 4})
    grid = model.settings.grid
    values = {name: read_head_values(path, name, grid) for name in NAMES}
    return values, json.loads(path.with_suffix(".json").read_text())


def test_the_whole_is_the_mean_of_its_halves(folders, tmp_path):
    values, facts = written(folders, tmp_path / "importance.csv", sentences=9)
    assert (facts["data"], facts["sentences"], facts["halves"]) == ("train", 9, [4, 5])
    assert facts["provenance"] == {"seed": 4}
    assert facts["weights"] == sha256(folders[0] / "weights.safetensors")
    whole, first, second = (values[name] for name in NAMES)
    np.testing.assert_allclose(whole, (4 * first + 5 * second) / 9, rtol=1e-12)
    assert not np.allclose(first, second)


def test_a_small_text_is_measured_whole(folders, tmp_path):
    model, bpe = folders
    values, facts = written(folders, tmp_path / "importance.csv", data="dev", sentences=500)
    text = PairFolder(bpe).read("dev")
    assert facts["sentences"] == len(text) == 12
    expected = measure_importance(ModelFolder(model).load(), text, ImportanceSettings())
    np.testing.assert_allclose(values["importance"], expected, rtol=1e-4)


def drawn(text: ParallelText, **settings) -> ParallelText:
    """What is drawn of a text, which lies in bpe/dev.src."""
    pair = SimpleNamespace(read=lambda split: text, texts=lambda split: (Path("bpe/dev.src"),))
    return read_drawn(pair, ImportanceSettings(data="dev", **settings))


def test_no_pair_is_drawn_twice_and_all_draws_are_equal():
    text = ParallelText([[n] for n in range(4, 34)], [[n, n] for n in range(4, 34)])
    found = drawn(text, sentences=13)
    numbers = [ids[0] for ids in found.src]
    assert len(set(numbers)) == 13 and numbers != sorted(numbers)
    assert [[n, n] for n in numbers] == found.tgt
    assert drawn(text, sentences=13) == found


@pytest.mark.parametrize("count", [0, 1])
def test_too_small_a_text_is_refused(count):
    text = ParallelText([[4]] * count, [[5]] * count)
    with pytest.raises(UserError, match=rf"dev\.src: expected at least 2 .* found {count}; choose"):
        drawn(text)

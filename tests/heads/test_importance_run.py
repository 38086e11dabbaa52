"""From a model and a text to a file of head importance."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from small_models import make_model
from small_run import segment

from headcount.base.errors import UserError
from headcount.base.files import sha256
from headcount.base.head_values import read_head_values
from headcount.base.settings.heads import ImportanceSettings
from headcount.data.batches import ParallelText
from headcount.data.vocabulary import Vocabulary
from headcount.heads.drawn_text import read_drawn
from headcount.heads.importance import measure_importance, write_importance
from headcount.model.transformer import Transformer
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

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
    write_importance(
        ModelFolder(folders[0]),
        PairFolder(folders[1]),
        ImportanceSettings(**settings),
        path,
        {"seed": 4},
    )
    grid = ModelFolder(folders[0]).settings.grid
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

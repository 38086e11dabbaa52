"""Log-probabilities of models without units in CTranslate2."""

import pytest
import torch
from small_models import TEXT, make_model

from headcount.base.addresses import Head
from headcount.data.vocabulary import Vocabulary
from headcount.model.removal import remove_units
from headcount.model.units import UnitTransformer
from headcount.training.score import score_targets
from headcount_hf.export.ctranslate2_model import export

WORDS = [Vocabulary([(f"word{id}", 1) for id in range(4, size)]) for size in (9, 11)]
CASES = {
    "widths": ["enc_self.1.2", *(f"enc_ffn.0.{unit}" for unit in (0, 7, 33))],
    "no_units": [f"dec_ffn.1.{unit}" for unit in range(40)],
    "layers": ["enc_layer.0", "dec_layer.1", "dec_enc.2.0", "dec_ffn.2.39"],
}


def without(names, norm):
    """A model of 2 + 3 layers with 3 heads and 40 feed-forward units, without some."""
    model = UnitTransformer.of(make_model(norm=norm, d_ff=40))
    return remove_units(model, torch.from_numpy(model.grid.mask(map(Head.parse, names))))


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("case", CASES)
def test_log_probabilities_are_ours(case, norm, tmp_path):
    package = pytest.importorskip("ctranslate2")
    model = without(CASES[case], norm)
    export(model, *WORDS, tmp_path)
    translator = package.Translator(str(tmp_path), compute_type="float32")
    src, tgt = (
        [side.pieces(ids) for ids in rows]
        for side, rows in zip(WORDS, (TEXT.src, TEXT.tgt), strict=True)
    )
    found = [sum(each.log_probs) for each in translator.score_batch(src, tgt)]
    assert found == pytest.approx((-score_targets(model, TEXT, 100)).tolist(), abs=1e-4)

"""Loss without each head, against single sentences and against importance where that is exact."""

import numpy as np
import pytest
import torch
from small_models import TEXT, UNEVEN, make_model

from headcount.base.settings.heads import ImportanceSettings
from headcount.data.batches import collate
from headcount.heads.importance import measure_importance
from headcount.heads.loss_change import measure_loss_change
from headcount.model.loss import token_losses


@pytest.fixture
def model():
    return make_model(heads=UNEVEN).double()


def of_each(model) -> list[float]:
    with torch.no_grad():
        return [float(token_losses(model, collate(TEXT, [n])).sum()) for n in range(len(TEXT))]


@pytest.mark.parametrize("batch_tokens", [4096, 1])
def test_the_change_is_that_of_each_sentence_alone(model, batch_tokens):
    """Sentence by sentence, head by head, with that head's columns of W_O at 0."""
    settings = ImportanceSettings(batch_tokens=batch_tokens)
    size, rise = measure_loss_change(model, TEXT, settings)
    whole = of_each(model)
    for kind, layer, attention in model.attentions():
        span = model.grid.span(kind, layer)
        for head, place in enumerate(range(span.start, span.stop)):
            columns = slice(head * attention.d_head, (head + 1) * attention.d_head)
            kept = attention.output.weight[:, columns].detach().clone()
            with torch.no_grad():
                attention.output.weight[:, columns] = 0
                without = of_each(model)
                attention.output.weight[:, columns] = kept
            changes = np.array(without) - np.array(whole)
            assert rise[place] == pytest.approx(changes.mean(), abs=1e-9)
            assert size[place] == pytest.approx(np.abs(changes).mean(), abs=1e-9)
    assert (rise < 0).any() and (rise > 0).any() and not np.allclose(size, np.abs(rise))


def test_of_a_small_head_the_change_is_its_importance(model):
    """L(1) − L(0) is ∂L/∂ξ + O(ξ²): a small head leaves a small error."""
    with torch.no_grad():
        for _, _, attention in model.attentions():
            attention.output.weight /= 1e6
    settings = ImportanceSettings()
    importance = measure_importance(model, TEXT, settings)
    size, _ = measure_loss_change(model, TEXT, settings)
    np.testing.assert_allclose(size, importance, rtol=1e-4, atol=1e-14)

"""Translations that begin with words that nobody chose, such as the code of a language."""

import pytest
import torch
from small_models import UNEVEN, make_model

from headcount.base.settings.decode import DecodeSettings
from headcount.data.batches import ParallelText
from headcount.search.beam_search import translate
from headcount.training.score import score_targets

SOURCES = [[4, 8, 5, 6, 7], [7], [8, 4, 4], [5, 5], [6, 7, 8, 4]]
PREFIX = [9, 5]


def settings(**changes):
    return DecodeSettings(**{"beam": 3, "max_length_factor": 1.0, "max_length_extra": 4, **changes})


@pytest.mark.parametrize("beam", [1, 4])
def test_batches_and_masks_of_a_sentence_change_nothing(beam):
    """Together, alone and with a row of the multiplier each; scoring gives the log-probability."""
    model = make_model(3, heads=UNEVEN)
    masks = torch.ones(len(SOURCES), model.grid.size)
    masks[1, 2] = masks[3, 5] = masks[3, 9] = 0.0
    together = translate(model, SOURCES, settings(beam=beam), masks, prefix=PREFIX)
    for number, translation in enumerate(together):
        one = [SOURCES[number]], settings(beam=beam), masks[number]
        alone = translate(model, *one, prefix=PREFIX)[0]
        assert translation.ids == alone.ids and translation.ids[:2] == PREFIX
        assert translation.log_probability == pytest.approx(alone.log_probability, abs=1e-4)
    plain = translate(model, SOURCES, settings(beam=beam), prefix=PREFIX)
    text = ParallelText(SOURCES, [translation.ids for translation in plain])
    told = [-translation.log_probability for translation in plain]
    assert told == pytest.approx(score_targets(model, text, 100).tolist(), abs=1e-4)
    assert plain[0].ids != translate(model, SOURCES, settings(beam=beam))[0].ids


def test_an_output_without_room_ends_behind_the_prefix():
    short = settings(max_length_factor=0.01, max_length_extra=1)
    found = translate(make_model(), SOURCES, short, prefix=PREFIX)
    assert [translation.ids for translation in found] == [PREFIX] * len(SOURCES)
    assert all(translation.capped for translation in found)

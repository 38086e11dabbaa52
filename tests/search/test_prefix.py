"""Translations that begin with words that nobody chose, such as the code of a language."""

import itertools

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


@pytest.mark.parametrize("alpha", [0.0, 0.6, 3.0])
def test_the_best_of_all_that_begin_so(alpha):
    """The prefix counts in the length alone; the log-probability told is the whole one's."""
    # Words: unknown, 4 and 5; the prefix is 5 4. At most 3 words behind it before EOS, so 40
    # hypotheses, and a beam of 40 never drops one.
    model, prefix = make_model(2, tgt_size=6), [5, 4]
    sources = [[4, 8], [7, 7], [5, 6]]
    limit = settings(beam=40, max_length_extra=4, length_penalty=alpha)  # 2 + 4 positions
    found = translate(model, sources, limit, prefix=prefix)
    for source, translation in zip(sources, found, strict=True):
        every = [
            [*prefix, *ids]
            for count in range(4)
            for ids in itertools.product((3, 4, 5), repeat=count)
        ]
        text = ParallelText([source] * len(every), every)
        losses = score_targets(model, text, 500).tolist()
        # ln P(5) + ln P(4 | 5), from what ending there costs and what ending costs there.
        states = model.decode(
            torch.tensor([[1, *prefix]]), model.encode(torch.tensor([[*source, 2]]))
        )
        logs = model.logits(states)[0].log_softmax(-1)
        given = (logs[0, 5] + logs[1, 4]).item()
        values = [
            (-loss - given) / ((5 + len(ids) + 1) / 6) ** alpha
            for loss, ids in zip(losses, every, strict=True)
        ]
        best = max(range(len(every)), key=values.__getitem__)
        assert translation.ids == every[best]
        assert translation.log_probability == pytest.approx(-losses[best], abs=1e-4)


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


def test_no_prefix_is_the_empty_one():
    model = make_model(heads=UNEVEN)
    assert translate(model, SOURCES, settings()) == translate(model, SOURCES, settings(), prefix=[])

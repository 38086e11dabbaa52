"""The search as a GPU does it: the same translations, and none of its steps but a few wait for it.

A CPU shows both: it can look as seldom, and in fp64 it has a GPU's masks in place of sparse
attention.
"""

import pytest
import torch
from small_models import UNEVEN, make_model, search_of
from waits import Waits

from headcount.base.settings.decode import DecodeSettings
from headcount.data.vocabulary import EOS
from headcount.search import beam_search
from headcount.search.beam_search import translate

EVERY = beam_search._LOOK_EVERY["cuda"]
SOURCES = [[4 + (n + i) % 5 for i in range(n % 9 + 1)] for n in range(0, 60, 4)]  # 1 to 9 words


def settings(**changes):
    longest = {"max_length_factor": 2.0, "max_length_extra": 9}  # 11 to 27 positions
    return DecodeSettings(**{**longest, "batch_tokens": 60, **changes})


def long_winded(**changes):
    """A model in fp64 that ends its sentences late, at many lengths."""
    model = make_model(heads=UNEVEN, output_bias=True, **changes).double()
    with torch.no_grad():
        model.output_bias[EOS] -= 0.8
    return model


@pytest.fixture
def as_a_gpu(monkeypatch):
    """From its call on, searches look as seldom as on a GPU."""
    return lambda: monkeypatch.setitem(beam_search._LOOK_EVERY, "cpu", EVERY)


@pytest.mark.parametrize("changes", [{}, {"position_table": 14}])
@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("prefix", [(), (5, 6, 7, 8, 5)])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 3.0])
def test_who_leaves_late_finds_the_same(as_a_gpu, changes, beam, prefix, alpha):
    model = long_winded(**changes)
    draw = torch.Generator().manual_seed(1)
    multiplier = torch.rand(len(SOURCES), model.grid.size, generator=draw).round().double()
    limits, found = settings(beam=beam, length_penalty=alpha), []
    for change in (lambda: None, as_a_gpu):
        change()
        found.append(translate(model, SOURCES, limits, multiplier, prefix=prefix))
    for at_once, late in zip(*found, strict=True):
        assert (late.ids, late.hit_max_length, late.steps) == (
            at_once.ids,
            at_once.hit_max_length,
            at_once.steps,
        )
        assert late.log_probability == pytest.approx(at_once.log_probability, abs=1e-6)
    assert len({each.steps % EVERY for each in found[0]}) > 1  # some go on in vain


@pytest.mark.parametrize("beam", [1, 3, 5])
def test_steps_between_two_looks_wait_for_nothing(as_a_gpu, beam, monkeypatch):
    as_a_gpu()
    model = long_winded()
    limits = settings(beam=beam, length_penalty=3.0, max_length_extra=30)
    search = search_of(model, SOURCES, limits)
    decode = model.decode
    with torch.no_grad(), Waits() as waits:
        monkeypatch.setattr(model, "decode", lambda *a: waits.seen.append("step") or decode(*a))
        found = search.run()
    steps = " ".join(waits.seen).split("step")[1:]
    most = max(each.steps for each in found)
    assert most > 40 and most <= len(steps) < most + EVERY
    for number, waited in enumerate(map(str.split, steps), start=1):
        looked = number % EVERY == 0 or number == max(search.limit)
        # Who is done; and of those the words and the facts. To give up slots is to count them.
        assert len(waited) <= (4 if looked else 0), (number, waited)
        assert not looked or waited

"""Beam search against full enumeration, scoring, a plain search, and with a prefix."""

import itertools
import math

import pytest
import torch
from small_models import UNEVEN, make_model, search_of

from headcount.base.errors import UserError
from headcount.base.settings.decode import DecodeSettings
from headcount.data.batches import ParallelText, pad_sources
from headcount.data.vocabulary import BOS, EOS, PAD
from headcount.search.beam_search import Translation, translate
from headcount.training.score import score_targets


def settings(**changes):
    return DecodeSettings(**{"beam": 3, "max_length_factor": 1.0, "max_length_extra": 4, **changes})


def random_sources(count, seed=1):
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 9, (count,), generator=generator).tolist()
    return [torch.randint(4, 9, (n,), generator=generator).tolist() for n in lengths]


def seeds(count):
    """The first one is for the fast tests."""
    return [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, count))]


@pytest.mark.parametrize("changes", [{}, {"norm": "post"}, {"heads": UNEVEN}])
@pytest.mark.parametrize("beam", [1, 4])
def test_log_probability_is_what_scoring_gives_in_any_batch(changes, beam):
    model, sources = make_model(seed=beam, **changes), random_sources(15)
    found = translate(model, sources, settings(beam=beam, batch_tokens=40))
    text = ParallelText(sources, [translation.ids for translation in found])
    told = [-translation.log_probability for translation in found]
    assert told == pytest.approx(score_targets(model, text, 100).tolist(), abs=1e-4)
    alone = translate(model, sources, settings(beam=beam, batch_tokens=1))
    assert [translation.ids for translation in alone] == text.tgt


@pytest.mark.parametrize("alpha", [0.0, 0.6, 3.0])
@pytest.mark.parametrize("prefix", [[], [5, 4]])
@pytest.mark.parametrize("seed", seeds(3))
def test_a_beam_that_holds_everything_finds_the_best_of_all(seed, alpha, prefix):
    """A prefix counts in the length, but not in the scores that are compared."""
    # Words: unknown, 4 and 5. At most 3 of them before EOS: 1 + 3 + 9 + 27 = 40 hypotheses, so a
    # beam of 40 never drops one.
    model = make_model(seed, tgt_size=6)
    sources = [[4, 8], [7, 7], [5]]
    longest = [3, 3, 2]  # int(0.5 · length) + 3 positions, the last of which is EOS
    limit = settings(
        beam=40,
        max_length_factor=0.5,
        max_length_extra=3 + len(prefix),
        length_penalty=alpha,
    )
    found = translate(model, sources, limit, prefix=prefix)
    for source, words, translation in zip(sources, longest, found, strict=True):
        every = [
            [*prefix, *ids]
            for count in range(words + 1)
            for ids in itertools.product((3, 4, 5), repeat=count)
        ]
        losses = score_targets(model, ParallelText([source] * len(every), every), 500).tolist()
        memory = model.encode(pad_sources([source]))
        logs = model.logits(model.decode(torch.tensor([[BOS, *prefix]]), memory))[0].log_softmax(-1)
        given = sum(logs[place, word].item() for place, word in enumerate(prefix))
        values = [
            (-loss - given) / ((5 + len(ids) + 1) / 6) ** alpha
            for loss, ids in zip(losses, every, strict=True)
        ]
        best = max(range(len(every)), key=values.__getitem__)
        assert translation.ids == every[best]
        assert translation.log_probability == pytest.approx(-losses[best], abs=1e-4)
        assert translation.hit_max_length == (len(translation.ids) == words + len(prefix))


def always(probabilities):
    """A model with the same probabilities for every next word, padding first."""
    model = make_model(tgt_size=len(probabilities))
    with torch.no_grad():
        model.tgt_embedding.weight.zero_()
        model.tgt_embedding.weight[:, 0] = torch.tensor(probabilities).log()
        model.decoder_norm.weight.zero_()
        model.decoder_norm.bias.zero_()
        model.decoder_norm.bias[0] = 1.0
    return model


def test_beam_by_hand():
    # EOS 0.3, word 4 0.6, word 5 0.1; beam 2, 3 + 2 positions.
    # Length 1: 4 (0.6) and EOS (0.3). Length 2: 4 4 (0.36) and 4 EOS (0.18). So two have ended, as
    # many as the beam is wide, and one that is likelier is still on its way.
    # Length 5, the longest: 4 4 4 4 EOS, 0.3 · 0.6⁴ = 0.03888. EOS alone has ln 0.3 = -1.204.
    # α = 1: ln 0.18 / (7/6) = -1.470, ln 0.03888 / (10/6) = -1.948: EOS alone wins.
    # α = 2: ln 0.18 / (7/6)² = -1.260, ln 0.03888 / (10/6)² = -1.169: the longest wins.
    model = always([1e-9, 1e-9, 0.3, 1e-9, 0.6, 0.1])
    for alpha, ids, probability in ((0.0, [], 0.3), (1.0, [], 0.3), (2.0, [4] * 4, 0.03888)):
        changes = {"beam": 2, "length_penalty": alpha, "max_length_extra": 2}
        found = translate(model, [[4, 4, 4]], settings(**changes))[0]
        assert found.ids == ids and found.hit_max_length == bool(ids)
        assert found.log_probability == pytest.approx(math.log(probability), abs=1e-5)


def search_plainly(model, source, limit, beam, alpha):
    """The same search without cache or batch: (value, words) of the best hypothesis."""
    memory, live, ended = model.encode(pad_sources([source])), [(0.0, [])], []
    for length in range(1, limit + 1):
        candidates = []
        for score, ids in live:
            states = model.decode(torch.tensor([[BOS, *ids]]), memory)
            logs = model.logits(states)[0, -1].log_softmax(-1).tolist()
            words = [EOS] if length == limit else set(range(len(logs))) - {PAD, BOS}
            candidates += [(score + logs[word], [*ids, word]) for word in words]
        candidates.sort(reverse=True)
        ends = [(score, ids) for score, ids in candidates[:beam] if ids[-1] == EOS]
        ended += [(score / ((5 + length) / 6) ** alpha, ids[:-1]) for score, ids in ends]
        live = [each for each in candidates[: 2 * beam] if each[1][-1] != EOS][:beam]
        if len(ended) < beam or not live:
            continue
        if live[0][0] / ((5 + length) / 6) ** alpha <= max(ended)[0]:
            break
    return max(ended)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
@pytest.mark.parametrize("beam", [1, 2, 4])
@pytest.mark.parametrize("seed", seeds(3))
def test_beam_search_against_a_plain_one(seed, beam, alpha):
    model, sources = make_model(seed, heads=UNEVEN), random_sources(3, seed)
    limit = settings(beam=beam, length_penalty=alpha, max_length_extra=5)
    found = translate(model, sources, limit)
    for source, translation in zip(sources, found, strict=True):
        with torch.no_grad():
            value, ids = search_plainly(model, source, len(source) + 5, beam, alpha)
        assert translation.ids == ids
        scale = ((6 + len(ids)) / 6) ** alpha
        assert translation.log_probability / scale == pytest.approx(value, abs=1e-4)


@pytest.mark.parametrize(
    ("probabilities", "source", "beam", "extra", "alpha", "steps"),
    [
        # EOS, word 4, word 5. Step 1: EOS ends. α = 0: what is left is at most 0.3 and can only
        # become less. α = 3: with 1 + 3 positions, 4 may still divide by (9/6)³: ln 0.3 / 3.375 =
        # -0.36 against ln 0.6 = -0.51, so the search goes on. Step 2: the best left, 4 4, has
        # ln 0.09 / 3.375 = -0.71 at most.
        ([0.6, 0.3, 0.1], [4], 4, 3, 0.0, 1),
        ([0.6, 0.3, 0.1], [4], 4, 3, 3.0, 2),
        # 3 + 20 positions. EOS alone: ln 0.3 = -1.204. Step 2: 4 EOS ends, too; left is 4 4,
        # ln 0.36 / (7/6) = -0.876. Step 3: ln 0.216 / (8/6) = -1.149. Step 4: ln 0.1296 / (9/6) =
        # -1.362, though at length 23 it might divide by 28/6.
        ([0.3, 0.6, 0.1], [4, 4, 4], 2, 20, 1.0, 4),
    ],
)
def test_a_search_ends_when_none_left_can_win(probabilities, source, beam, extra, alpha, steps):
    end, four, five = probabilities
    model = always([1e-9, 1e-9, end, 1e-9, four, five])
    limits = settings(beam=beam, length_penalty=alpha, max_length_extra=extra)
    with torch.inference_mode():
        (found,) = search_of(model, [source], limits).run()
    assert (found.ids, found.steps) == ([], steps)


@pytest.mark.parametrize("beam", [1, 3])
def test_longest_output_is_kept_and_told(beam):
    # EOS hardly ever; padding and start, though likelier than word 5, are never written.
    model = always([0.4, 0.4, 1e-30, 1e-9, 0.18, 0.02])
    sources = [[4] * 5, [4], [4] * 3]
    found = translate(
        model, sources, settings(beam=beam, max_length_factor=1.5, max_length_extra=2)
    )
    # 7 + 2, 1 + 2 and 4 + 2 positions, the last one for EOS.
    for translation, words in zip(found, (8, 2, 5), strict=True):
        assert translation.ids == [4] * words
        assert translation.hit_max_length
        expected = words * math.log(0.18) + math.log(1e-30)
        assert translation.log_probability == pytest.approx(expected, abs=1e-3)


def test_order_is_kept_and_empty_stays_empty():
    model, sources = make_model(), [[], [7], *random_sources(5), [], [8, 8, 4]]
    counted = []
    found = translate(model, sources, settings(batch_tokens=12), done=counted.append)
    for source, translation in zip(sources, found, strict=True):
        if source:
            alone = translate(model, [source], settings())[0]
            assert translation.ids == alone.ids
        else:
            assert translation == Translation([], 0.0, False, 0)
    assert sum(counted) == 7  # the sources that are not empty
    assert translate(model, [], settings()) == []
    assert translate(model, [[]], settings()) == [Translation([], 0.0, False, 0)]


def test_threads_change_nothing():
    model, sources = make_model(heads=UNEVEN), random_sources(40)
    told = []
    one, three = (
        translate(model, sources, settings(batch_tokens=20, threads=threads), done=told.append)
        for threads in (1, 3)
    )
    assert one == three
    batches = len(told) // 2
    assert batches > 10 and told[:batches] == told[batches:]


@pytest.mark.parametrize("threads", [1, 2])
def test_f37_one_sentence_without_numbers_is_refused_beside_a_good_one(threads):
    model = always([1e-9, 1e-9, 1e-9, 1e-9, 0.6, 0.4])  # both go on to the longest output
    limits = settings(batch_tokens=20, threads=threads)
    assert len(translate(model, [[4, 5], [7, 5]], limits)) == 2
    with torch.no_grad():
        model.own_src_embedding.weight[7] = math.nan
    before = torch.get_num_threads()
    with pytest.raises(UserError, match="not finite numbers"):
        translate(model, [[4, 5], [7, 5]], limits)
    assert torch.get_num_threads() == before


def test_a_multiplier_by_sentence_stays_the_callers():
    model = always([1e-9, 1e-9, 1e-9, 1e-9, 0.6, 0.4])  # never ends by itself
    multiplier = torch.rand(3, model.grid.size)
    before = multiplier.clone()
    limits = settings(max_length_factor=1.0, max_length_extra=1)
    with torch.inference_mode():
        found = search_of(model, [[4], [4, 5, 4], [5, 4]], limits, multiplier).run()
    assert [each.steps for each in found] == [2, 4, 3]  # the first leaves while others go on
    assert torch.equal(multiplier, before)


SOURCES = [[4, 8, 5, 6, 7], [7], [8, 4, 4], [5, 5], [6, 7, 8, 4]]
PREFIX = [9, 5]


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
    assert all(translation.hit_max_length for translation in found)

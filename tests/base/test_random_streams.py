"""Random streams: the numbers that results were drawn with, and that never meet."""

import numpy as np

from headcount.base.random_streams import Stream


def test_a_stream_is_the_seed_its_counters_and_its_number():
    # The numbers are words in ASCII.
    names = {Stream.GATES: b"GATE", Stream.HEAD_MASK: b"MASK", Stream.KEPT_HEADS: b"DRAW"}
    names |= {Stream.SHAPLEY: b"SHAP", Stream.SUBSET: b"SUBS"}
    names |= {Stream.DROPOUT: b"DROP", Stream.PAIRS: b"PAIR", Stream.ENTAILMENT: b"MNLI"}
    assert set(names) == set(Stream)
    for stream, name in names.items():
        for counters in ([], [3], [3, 5]):
            expected = np.random.default_rng([7, *counters, int.from_bytes(name, "big")])
            found = stream.generator(7, *counters)
            assert found.integers(1 << 60, size=4).tolist() == (
                expected.integers(1 << 60, size=4).tolist()
            )
            found = stream.number(7, *counters)
            expected = np.random.default_rng([7, *counters, int.from_bytes(name, "big")])
            assert found == expected.integers(1 << 63)


def test_no_two_streams_meet_nor_the_order_of_batches():
    draws = {tuple(stream.generator(1, 2).random(3)) for stream in Stream}
    draws.add(tuple(np.random.default_rng([1, 2]).random(3)))  # as `BatchPlan` draws
    assert len(draws) == len(Stream.__members__) + 1

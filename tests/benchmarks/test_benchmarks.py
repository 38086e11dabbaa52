"""The benchmarks: what they count and how they take turns; the commands without any peer."""

import pytest
import torch
from small_models import TEXT, UNEVEN, make_settings
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import measuring
from benchmarks.data import sentence_lengths
from benchmarks.flops import forward_flops, training_flops
from benchmarks.measuring import Contender, Work, alternate
from benchmarks.results.timings import Ratio, Timed, table
from headcount.base.settings.model import ModelSettings
from headcount.data.batches import ParallelText
from headcount.data.vocabulary import EOS, Vocabulary
from headcount.model.loss import token_losses
from headcount.model.transformer import Transformer
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

CPU = torch.device("cpu")
NOTHING = Work({"tokens": 30.0}, 6e9)


def test_operations_of_an_uneven_model_by_hand():
    # d 10, ff 14, width of a head 4: 3 and 2 heads in the encoder's two layers; 1, 3, 2 and
    # 2, 3, 1 in the decoder's three. A product of [m, k] and [k, n] takes 2·m·k·n.
    settings = make_settings(heads=UNEVEN)
    # Encoder, one source token: four products of 10 × 4 for each of 5 heads, feed-forward twice.
    encoder = 5 * 4 * (2 * 10 * 4) + 2 * 2 * (2 * 10 * 14)
    assert encoder == 2720
    # The memory's keys and values: two products for each of the 6 encoder-decoder heads.
    memory = 6 * 2 * (2 * 10 * 4)
    # Decoder, one target token: four products for each of 6 heads, two (queries, output) for each
    # of the other 6, feed-forward three times, 11 words.
    decoder = 6 * 4 * 80 + 6 * 2 * 80 + 3 * 560 + 2 * 10 * 11
    # A head's score and weighted value take 2·4 each for each pair of positions. Source 5, target
    # 3: 25 pairs in the encoder; 1 + 2 + 3 that the decoder may see of itself; 15 across.
    pairs = 5 * 16 * 25 + 6 * 16 * 6 + 6 * 16 * 15
    expected = 5 * (encoder + memory) + 3 * decoder + pairs
    assert forward_flops(settings, 11, [(5, 3)]) == expected
    # Two hypotheses: what belongs to target positions twice, the source's once.
    twice = 5 * (encoder + memory) + 5 * 16 * 25 + 2 * (3 * decoder + 6 * 16 * 6 + 6 * 16 * 15)
    assert forward_flops(settings, 11, [(5, 3)], hypotheses=2) == twice
    assert training_flops(settings, 11, [(5, 3), (5, 3)]) == 6 * expected


@pytest.mark.slow
def test_operations_are_those_that_torch_counts():
    # One sentence without padding. Torch's counter takes all T² pairs of decoder self-attention;
    # with one target token that is no difference.
    settings = make_settings(dropout=0.0)
    model = Transformer(settings, 9, 11, False)
    batch = ParallelText([[4, 8, 5, 6]], [[]]).batch([0])
    # It counts the products of plain attention, not those inside a fused kernel.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        token_losses(model, batch)
    assert sentence_lengths(batch) == [(5, 1)]
    assert counter.get_total_flops() == forward_flops(settings, 11, [(5, 1)])


def test_lengths_leave_padding_out_and_count_the_end():
    # Pair 0 has 5 and 2 words, pair 1 one and six; each side ends in one more.
    assert sentence_lengths(TEXT.batch([0, 1])) == [(6, 3), (2, 7)]


class Clock:
    """A clock that moves only when a contender runs."""

    def __init__(self):
        self.now = 0.0
        self.log = ""

    def contender(self, name, seconds):
        def run():
            self.log += name
            self.now += seconds

        return Contender(name, run, NOTHING)


def test_contenders_take_turns_and_each_round_begins_with_another():
    clock = Clock()
    three = [clock.contender(name, seconds) for name, seconds in (("a", 1), ("b", 2), ("c", 4))]
    times = alternate(three, repeats=4, warm_up=2, device=CPU, threads=1, clock=lambda: clock.now)
    assert clock.log == "bca" + "cab" + "abc" + "bca" + "cab" + "abc"  # warm-up first
    assert times == {"a": [1.0] * 4, "b": [2.0] * 4, "c": [4.0] * 4}


def test_no_round_begins_when_the_time_is_over_and_none_is_broken_off(monkeypatch):
    # Each run takes a second on the wall as well. Warm-up and the first round end after 6 seconds,
    # beyond the 5 that are allowed: no second round. With 7 seconds there is one, and no third.
    clock = Clock()
    monkeypatch.setattr(measuring.time, "monotonic", lambda: clock.now)
    three = [clock.contender(name, 1) for name in "abc"]
    for seconds, rounds in ((5, 1), (7, 2), (1, 1)):
        clock.now = 0.0
        times = alternate(three, 9, 1, CPU, 1, lambda: clock.now, at_most=seconds)
        assert times == {name: [1.0] * rounds for name in "abc"}


def test_ratios_compare_within_a_round():
    # The machine is half as fast in the second round: the seconds double, the ratio stays.
    ours, peer = timed("ours", [2.0, 4.0]), timed("peer", [3.0, 6.0])
    assert Ratio.of(peer, ours) == Ratio(1.5, 1.5, 1.5)


def timed(name, seconds, precision="fp32"):
    return Timed(name, precision, {"tokens": 30.0}, 6e9, seconds)


def test_the_table_shows_rates_at_the_median():
    contenders = [
        timed("ours", [3.0, 2.0, 1.0]),
        timed("ours bf16", [2.0, 2.0, 2.0], "bf16"),
        timed("peer bf16", [3.0, 3.0, 4.0], "bf16"),
    ]
    lines = table(contenders, {"fp32": 12.0, "bf16": 20.0}).splitlines()
    # 30 tokens and 6e9 operations in 2 s: 15 tokens/s, 3 GFLOP/s, a quarter of 12; in 3 s, in
    # bf16: 10 tokens/s, 2 GFLOP/s, a tenth of 20. Ratios are to ours in the same number format.
    assert lines[2] == "| ours | 1.000 | 2.000 | 3.000 | 15 | 3.0 | 25% | 1.00 (1.00–1.00) |"
    assert lines[4] == "| peer bf16 | 3.000 | 3.000 | 4.000 | 10 | 2.0 | 10% | 1.50 (1.50–2.00) |"
    assert lines[6].startswith("3 repeats in turns; ratio")


def model_of(bpe, folder, end=2):
    """The folder of an untrained model on this pair whose sentences end at once, or never."""
    words = len(Vocabulary.load(bpe / "src.vocab"))
    sizes = ModelSettings(preset="tiny", encoder_layers=1, decoder_layers=1, norm="post")
    torch.manual_seed(1)
    model = Transformer(sizes, words, words, joint=True)
    with torch.no_grad():  # the last norm's bias makes the end likely whatever was read
        model.decoder[0].around_feed_forward.norm.bias.copy_(end * model.tgt_embedding.weight[EOS])
    facts = PairFolder(bpe).subwords()
    ModelFolder(folder).save(model, dict(model.named_parameters()), facts)
    return folder

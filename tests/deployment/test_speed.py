"""Timing of models: what is counted, by a clock that the work itself moves."""

import itertools
import time

import pytest
import torch
from masked_run import MODEL, masked_inputs
from small_models import TEXT, UNEVEN, make_model
from small_run import segment

from headcount.base.errors import UserError
from headcount.base.head_values import write_head_values
from headcount.base.settings.decode import DecodeSettings, SpeedSettings
from headcount.base.settings.heads import AblationSettings, ImportanceSettings
from headcount.data.vocabulary import Vocabulary
from headcount.deployment import speed
from headcount.deployment.speed import (
    COLUMNS,
    TimedModel,
    cut_batches,
    epoch_of,
    measure,
    read_sources,
    time_in_turns,
    without_shares,
    write_times,
)
from headcount.model.transformer import Transformer, parameter_count
from headcount.search.beam_search import BeamSearch, Translation
from headcount.store.pair_folder import PairFolder

DECODE = DecodeSettings(beam=2, max_length_factor=1.0, max_length_extra=2)
SOURCES = [[4, 5], [6], [7, 8, 4], [5], [8, 8]]


def test_each_work_is_timed_alone_after_a_round_that_warms_up(monkeypatch):
    done, ticks = [], itertools.count()
    works = [[("importance", lambda: done.append("i"))], [("training", lambda: done.append("t"))]]
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(ticks)))
    found = list(time_in_turns(works, 2))
    assert "".join(done) == "ti" + "it" + "ti"
    assert found == [
        ("importance", 1, None, 1.0), ("training", 1, None, 1.0),
        ("training", 2, None, 1.0), ("importance", 2, None, 1.0),
    ]  # fmt: skip


def test_batches_are_cut_by_length_and_nothing_is_lost():
    assert cut_batches(SOURCES, 2) == [[[7, 8, 4], [4, 5]], [[8, 8], [6]], [[5]]]
    assert cut_batches(SOURCES, 64) == [[[7, 8, 4], [4, 5], [8, 8], [6], [5]]]
    assert len(cut_batches(SOURCES, 1)) == 5


class WorkClock:
    """A clock that stands still but for work: 1 second an encoded batch, 10 a translated one."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        plain = Transformer.encode

        def encode(model, *arguments):
            self.now += 1
            return plain(model, *arguments)

        def translate_batch(model, batch, settings, prefix):
            assert not prefix
            self.now += 10
            return [Translation([], 0.0, False, len(source)) for source in batch]

        monkeypatch.setattr(Transformer, "encode", encode)
        monkeypatch.setattr(speed, "translate_batch", translate_batch)

    def __call__(self) -> float:
        return self.now


def test_rows_have_the_time_of_all_batches_and_no_warm_up(monkeypatch):
    monkeypatch.setattr(time, "perf_counter", WorkClock(monkeypatch))
    even, uneven = make_model(), make_model(heads=UNEVEN)
    models = [TimedModel("baseline", even, 900), TimedModel("gates-all-l0.01", uneven, 700)]
    settings = SpeedSettings(batch_sizes=[2, 5], repeats=3)
    found = measure(models, SOURCES, settings, DECODE)
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in found]
    assert len(rows) == 3 * 2 * 2 * 2  # rounds, models, sizes, phases
    # Five sentences are three batches of two, or one of five.
    expected = {("encode", 2): 3, ("encode", 5): 1, ("decode", 2): 30, ("decode", 5): 10}
    assert all(row["seconds"] == expected[row["phase"], row["batch_size"]] for row in rows)
    # This search takes as many steps as a sentence is long: 2 + 1 + 3 + 1 + 2.
    assert {(row["phase"], row["steps"]) for row in rows} == {("encode", 5), ("decode", 9)}
    assert [row["model"] for row in rows[::4]] == ["baseline", "gates-all-l0.01"] + [
        "gates-all-l0.01", "baseline"] + ["baseline", "gates-all-l0.01"]  # fmt: skip
    assert {(row["model"], row["heads_left"], row["file_bytes"]) for row in rows} == {
        ("baseline", 3 * (2 + 3 + 3), 900),
        ("gates-all-l0.01", 5 + 6 + 6, 700),
    }
    # A head of width 4 in a width of 10 has 3 · 4 · 11 weights and biases, and 4 · 10 in W_O.
    of_model = {row["model"]: row["parameters"] for row in rows}
    assert of_model["baseline"] - of_model["gates-all-l0.01"] == 7 * (132 + 40)
    assert {row["repeat"] for row in rows} == {1, 2, 3}


def test_both_phases_have_whole_batches_and_all_threads(monkeypatch):
    found = []

    def watch(owner, name, rows):
        plain = getattr(owner, name)

        def watched(*arguments):
            found.append((name, rows(*arguments), torch.get_num_threads()))
            return plain(*arguments)

        monkeypatch.setattr(owner, name, watched)

    watch(Transformer, "encode", lambda model, sources, *others: len(sources))
    watch(BeamSearch, "run", lambda search: len(search.limit))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    small = DECODE.model_copy(update={"batch_tokens": 1, "threads": 1})
    models = [TimedModel("baseline", make_model().eval(), 1)]
    measure(models, SOURCES, SpeedSettings(batch_sizes=[5], repeats=1), small)
    torch.set_num_threads(before)
    assert {each for each in found if each[0] == "run"} == {("run", 5, 2)}
    assert ("encode", 5, 2) in found


@pytest.fixture(scope="module")
def bpe(tmp_path_factory):
    return segment(tmp_path_factory.mktemp("speed"))


def test_sources_are_the_first_lines_with_words(bpe, tmp_path):
    vocabulary = Vocabulary.load(bpe / "src.vocab")
    (tmp_path / "src.vocab").write_text((bpe / "src.vocab").read_text())
    a, b = vocabulary.pieces([4, 5])
    (tmp_path / "dev.src").write_text(f"{a} {b} {a}\n\n{b}\n{a}\n")
    assert read_sources(PairFolder(tmp_path), 2, longest=2) == [[4, 5], [5]]
    (tmp_path / "dev.src").write_text("\n\n")
    settings = SpeedSettings(batch_sizes=[1], sentences=3)
    with pytest.raises(UserError, match="expected numbers up to 0, the sentences of .*dev.src"):
        write_times([], PairFolder(tmp_path), settings, DECODE, tmp_path / "out.csv", {})


def test_an_epoch_trains_a_copy_with_dropout_and_leaves_the_model_alone(monkeypatch):
    model, steps = make_model(), []
    before = [weight.detach().clone() for weight in model.parameters()]
    plain = torch.optim.Adam.step
    monkeypatch.setattr(torch.optim.Adam, "step", lambda self: steps.append(plain(self)))
    settings = ImportanceSettings(batch_tokens=1)  # a batch for each of the three sentences
    epoch_of(model, TEXT, settings.batch_tokens)()
    assert len(steps) == len(TEXT) == 3
    assert not model.training
    for weight, kept in zip(model.parameters(), before, strict=True):
        assert torch.equal(weight, kept) and weight.grad is None


IMPORTANCE = [0.5, 3.0, 1.0, 0.2, 4.0, 0.1, 2.0, 0.3]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    made = masked_inputs(tmp_path_factory.mktemp("speed"))
    write_head_values(made.text / "importance.csv", MODEL.grid, {"importance": IMPORTANCE})
    return made


@pytest.mark.slow
def test_the_least_important_heads_are_really_removed(inputs):
    asked = AblationSettings(timed=[30, 100], normalise="none")
    folders = (inputs.model, inputs.text / "importance.csv", inputs.pair)
    timed = list(without_shares(*folders, asked, "cpu"))
    assert [(model.name, model.model.grid.size) for model in timed] == [
        ("0", 8),
        ("30", 5),  # 2.4 heads, rounded up: of 0.1, 0.2 and 0.3
        ("100", 0),
    ]
    assert timed[1].model.grid.counts == {"enc_self": (2, 1), "dec_self": (1,), "dec_enc": (1,)}
    assert timed[0].file_bytes == 4 * parameter_count(inputs.model.load())

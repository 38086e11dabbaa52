"""Settings written out as flags and read back are the same settings."""

import argparse
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.base import command
from headcount.base.errors import UserError
from headcount.base.settings.ablation import MaskingSettings
from headcount.base.settings.data import BpeSettings, SyntheticSettings, TextSettings
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.flags import add_flags, as_flags, from_flags
from headcount.base.settings.importance import ImportanceSettings
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.section import Section
from headcount.base.settings.train import GatesSettings, TrainSettings


class Sample(Section):
    """A section with a key of every kind."""

    word: str = "w"
    """Text."""

    maybe: str | None = None
    """Text or nothing."""

    number: float = 0.5
    """A number, 50 % of one."""

    count: int = 3
    """A whole number."""

    switch: bool = True
    """True or false."""

    choice: Literal["one", "two"] = "one"
    """A choice."""

    counts: list[int] = []
    """A list."""

    layers: int | dict[Literal["a", "b"], list[int]] = 1
    """A number or a mapping."""


SAMPLES = st.builds(
    Sample,
    word=st.text(),
    maybe=st.none() | st.text(),
    number=st.floats(allow_nan=False, allow_infinity=False),
    count=st.integers(),
    switch=st.booleans(),
    choice=st.sampled_from(["one", "two"]),
    counts=st.lists(st.integers()),
    layers=st.integers() | st.dictionaries(st.sampled_from("ab"), st.lists(st.integers())),
)


def parse(section: type[Section], arguments: list[str]) -> Section:
    """What a script with this section would read."""
    parser = command.parser("A script.")
    add_flags(parser, section)
    return from_flags(parser.parse_args(arguments), section)


SAMPLE_PARSER = command.parser("A script.")
add_flags(SAMPLE_PARSER, Sample)


@given(SAMPLES)
def test_round_trip(sample):
    assert from_flags(SAMPLE_PARSER.parse_args(as_flags(sample)), Sample) == sample


@pytest.mark.parametrize(
    "section",
    [
        BpeSettings(joint=False),
        DecodeSettings(length_penalty=0, device="cpu"),
        GatesSettings(preset="paper", init=-0.5, eval="louizos", updates=20000),
        GatesSettings(init="glorot", lambda_warmup_updates=7),
        ImportanceSettings(abs="token", data="dev", sentences=30),
        MaskingSettings(groups=5, test_sets=["news.2020", "talks"], sentences=7),
        ModelSettings(preset="small", d_model=96, heads=3, dropout=0.0),
        ModelSettings(
            preset="small",
            encoder_layers=2,
            decoder_layers=1,
            d_head=7,
            heads={"enc_self": [0, 3], "dec_self": [2], "dec_enc": [5]},
        ),
        SyntheticSettings(seed=7),
        TextSettings(normal_form="none", drop_duplicates=True),
        TrainSettings(epsilon=1e-9, keep_updates=[3, 5], peak_lr=5e-3),
    ],
    ids=lambda section: type(section).__name__,
)
def test_round_trip_of_each_section(section):
    assert parse(type(section), as_flags(section)) == section


def test_flags_are_plain_words():
    flags = as_flags(BpeSettings(merges=500, joint=False), "merges", "joint")
    assert flags == ["--merges", "500", "--joint", "false"]
    assert as_flags(Sample(word="-x", counts=[1, 2], layers={"a": [4]})) == (
        ["--word=-x", "--number", "0.5", "--count", "3", "--switch", "true", "--choice", "one"]
        + ["--counts", "[1, 2]", "--layers", '{"a": [4]}']
    )


def test_a_flag_left_out_takes_the_default_of_the_section():
    assert parse(TrainSettings, ["--updates", "7000"]) == TrainSettings(updates=7000)
    small = parse(ModelSettings, ["--preset", "small"])
    assert (small.d_model, small.encoder_layers) == (256, 3)  # as the table of presets says


def test_two_sections_with_keys_of_one_name_stand_on_one_command_line():
    parser = command.parser("A script.")
    for section in (TrainSettings, GatesSettings):
        add_flags(parser, section)
    sections = TrainSettings(updates=5000, peak_lr=0.1), GatesSettings(updates=300, peak_lr=0.2)
    flags = [flag for section in sections for flag in as_flags(section)]
    assert flags[(i := flags.index("--gates-updates")) : i + 2] == ["--gates-updates", "300"]
    args = parser.parse_args(flags)
    assert from_flags(args, TrainSettings) == sections[0]
    assert from_flags(args, GatesSettings) == sections[1]
    args = parser.parse_args(["--gates-lr", "-1"])
    with pytest.raises(UserError, match=r"--gates-lr: expected a number, more than 0, found -1"):
        from_flags(args, GatesSettings)


def test_a_whole_number_will_do_for_a_number():
    assert parse(ModelSettings, ["--dropout", "0"]).dropout == 0.0


def test_text_that_looks_like_a_number_stays_text():
    sample = parse(Sample, ["--word", "010", "--maybe", "null"])
    assert (sample.word, sample.maybe) == ("010", "null")


@pytest.mark.parametrize(
    ("section", "arguments", "told"),
    [
        (TrainSettings, "--peak-lr -1", "--peak-lr: expected a number, more than 0, found -1"),
        (TrainSettings, "--peak-lr NaN", "--peak-lr: expected a number, more than 0, found nan"),
        (
            TrainSettings,
            "--updates ten",
            "--updates: expected a whole number, 1 or more, found 't",
        ),
        (TrainSettings, "--keep-updates [1,0]", "--keep-updates[1]: expected a whole number, 1"),
        (TextSettings, "--drop-overlap 1", "--drop-overlap: expected true or false, found 1"),
        (BpeSettings, "--merges true", "--merges: expected a whole number from 0 to 1000000, f"),
        (DecodeSettings, "--threads 1000000", "--threads: expected a whole number from 1 to 1024,"),
        (
            SyntheticSettings,
            "--dev-pairs 1000000000",
            "--dev-pairs: expected a whole number from 1 t",
        ),
        (ModelSettings, '--heads {"enc_slf":[1]}', "--heads.enc_slf: unknown key; nearest: enc_s"),
        (ModelSettings, "--d-model 100", "d_model 100 is not divisible by heads 8; change one"),
    ],
)
def test_f05_a_faulty_flag_is_named(section, arguments, told):
    with pytest.raises(UserError) as caught:
        parse(section, arguments.split())
    assert str(caught.value).startswith(told)


def test_f03_an_unknown_or_shortened_flag_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        parse(TrainSettings, ["--update", "7"])
    assert "unrecognized arguments: --update 7" in capsys.readouterr().err


def test_help_shows_meaning_range_and_default(capsys):
    with pytest.raises(SystemExit, match="0"):
        parse(Sample, ["--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "--number X A number, 50 % of one. [a number] (default: 0.5)" in text
    assert "--maybe X Text or nothing. [text] --number" in text


def test_a_size_of_the_model_shows_no_default(capsys):
    with pytest.raises(SystemExit, match="0"):
        parse(ModelSettings, ["--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "Width of embeddings and layers. [a whole number from 2 to 1000000] --d-ff" in text


def test_two_sections_with_one_key_do_not_mix():
    parser = command.parser("A script.")
    add_flags(parser, TrainSettings)
    with pytest.raises(argparse.ArgumentError, match="--batch-tokens"):
        add_flags(parser, DecodeSettings)

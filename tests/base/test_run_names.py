"""Training runs: what mappings and short names mean, how labels are printed, what is refused."""

import re
from functools import partial
from typing import get_args

import pytest

from headcount.base.errors import UserError
from headcount.base.settings.experiment import Experiment
from headcount.base.settings.flags import read_run_flag
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.runs import label
from headcount.base.settings.training_runs import BASELINE, RunSettings

impt = partial(RunSettings, method="importance")
random = partial(RunSettings, method="random")
SMALL = ModelSettings(preset="small")  # d_model 256, 4 heads


def read(text: str, heads: int) -> RunSettings:
    """The run on a model with so many heads, all of them in one layer."""
    grid = {"enc_self": [heads], "dec_self": [0], "dec_enc": [0]}
    model = ModelSettings(encoder_layers=1, decoder_layers=1, heads=grid, d_head=8)
    return read_run_flag(text, RunSettings, model)


@pytest.mark.parametrize(
    ("text", "run", "name"),
    [
        ("baseline", BASELINE, "baseline"),
        ("random-0", RunSettings(method="random", heads=0), "random-0"),
        ("random-052", RunSettings(method="random", heads=52), "random-52"),
        ("impt-7", impt(heads=7), "impt-7"),
        ("impt-7-p1-ema0", impt(heads=7), "impt-7"),  # both as in the paper
        ("impt-7-signed", impt(heads=7, signed=True), "impt-7-signed"),
        ("impt-7-batch", impt(heads=7, unit="batch"), "impt-7-batch"),
        (
            "impt-7-ema0.5-position-p0.5",
            impt(heads=7, probability=0.5, unit="position", decay=0.5),
            "impt-7-p0.5-position-ema0.5",
        ),
        ("impt-7-ema0.9", impt(heads=7, decay=0.9), "impt-7-ema0.9"),
        (
            "impt-25%-ema0.90-signed-p0.0500",  # in any order; 13 of 52
            impt(heads=13, probability=0.05, signed=True, decay=0.9),
            "impt-13-p0.05-signed-ema0.9",
        ),
        ("impt-7-token-p0.5", impt(heads=7, unit="token", probability=0.5), "impt-7-p0.5-token"),
        (
            "impt-7-held060-spare_dec_self-token",
            impt(heads=7, unit="token", spare="dec_self", held=60),
            "impt-7-token-spare_dec_self-held60",
        ),
        ("impt-7-held0", impt(heads=7), "impt-7"),
        ("impt-7-rest0", impt(heads=7), "impt-7"),
        (
            "impt-7-after9-rest03-signed",
            impt(heads=7, signed=True, rest=3, after=9),
            "impt-7-signed-rest3-after9",
        ),
        ("impt-7-held999999", impt(heads=7, held=999_999), "impt-7-held999999"),
        (
            "impt-7-after0100-held_in_enc_self-held60",
            impt(heads=7, held=60, held_in="enc_self", after=100),
            "impt-7-held60-held_in_enc_self-after100",
        ),
        ("random-7-d0.3-after20", random(heads=7, after=20, dropout=0.3), "random-7-after20-d0.3"),
        ("impt-7-after0", impt(heads=7), "impt-7"),
        ("impt-7-p0.0001", impt(heads=7, probability=0.0001), "impt-7-p0.0001"),
        ("baseline-d0.20", RunSettings(method="baseline", dropout=0.2), "baseline-d0.2"),
        ("baseline-d0", RunSettings(method="baseline", dropout=0.0), "baseline-d0"),
        ("baseline-d0.1", BASELINE, "baseline"),  # the model's own
        ("random-25%-d0", RunSettings(method="random", heads=13, dropout=0.0), "random-13-d0"),
        ("random-7-d0.1", RunSettings(method="random", heads=7), "random-7"),
        ("impt-7-d0.3-signed", impt(heads=7, signed=True, dropout=0.3), "impt-7-signed-d0.3"),
    ],
)
def test_a_name_is_read_and_printed(text, run, name):
    assert read(text, 52) == run
    assert label(run) == name
    assert read(name, 52) == run


@pytest.mark.parametrize(
    ("share", "heads", "count"),
    [
        ("12.5%", 48, 6),
        ("12.5%", 144, 18),
        ("10%", 24, 2),  # 2.4
        ("11%", 24, 3),  # 2.64
        ("12.5%", 20, 3),  # 2.5: halves go up
        ("12.4999%", 20, 2),
        ("0.1%", 48, 1),  # 0.048, but not 0 %
        ("0%", 48, 0),
        ("0.00%", 48, 0),
        ("100%", 17, 17),
        ("99.9%", 17, 17),  # 16.98
    ],
)
def test_a_share_is_the_nearest_count(share, heads, count):
    assert read(f"random-{share}", heads) == RunSettings(method="random", heads=count)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("random-49", "expected 0 to 48 heads, as many as the model has, found 49; nearest: rando"),
        ("impt--3", "--run: 'impt--3': heads: expected a whole number, 0 or more, found -3"),
        (
            "random-100.5%",
            "expected 0% to 100% of the heads, as .*, found 100.5%; nearest: 100%",
        ),
        (
            "impt--0.5%",
            "share: expected 0% to 100% of the heads, .* found -0.5%; nearest: 0%",
        ),
        ("impt-6-p0", "probability: expected a number, more than 0 and at most 1, found 0.0"),
        ("impt-6-p1.01", "probability: expected a number, more than 0 and at most 1, found 1.01"),
        ("impt-6-ema1", "decay: expected a number, 0 or more and less than 1, found 1.0"),
        (
            "impt-6-p0.5-signed-p0.5",
            "expected probability once, but -p0.5 sets it again in",
        ),
        ("impt-6-signed-signed", "expected signed once, but -signed sets it again"),
        ("impt-6-batch-position", "expected unit once, but -position sets it again"),
        ("impt-6-p", "expected baseline, .*-p<number>, .* found 'impt-6-p'"),
        ("impt-6-signed0.5", "expected baseline, .*; nearest: impt-6-signed"),
        ("impt-6-batch-signed", "signed takes no absolute value, so no unit; remove batch"),
        ("impt-6-sentence", "-signed, -batch, .*, found 'impt-6-sentence'"),
        ("impt-6-token-batch", "expected unit once, but -batch sets it again"),
        ("impt-6-held9-rest3", "held heads are masked in every update and cannot rest; remove one"),
        (
            "random-6-rst3",
            "random with -rest<number> or -after<number>, .*; nearest: random-6-rest",
        ),
        ("impt-6-token-signed", "signed takes no absolute value, so no unit; remove token"),
        ("impt-6-held", "expected baseline, .*-held<number>.*; nearest: impt-6-held6"),
        ("impt-6-held1.5", "expected baseline, .* found 'impt-6-held1.5'; nearest: impt-6-held6"),
        ("impt-6-held1000000", "held: expected a whole number from 0 to 999999, found 1000000"),
        ("impt-6-spare", "expected baseline, .*-spare_dec_enc, .*found 'impt-6-spare'"),
        ("impt-6-spare_decself", "found 'impt-6-spare_decself'; nearest: impt-6-spare_dec_self"),
        (
            "impt-6-spare_dec_enc-spare_dec_self",
            "expected spare once, but -spare_dec_self sets it again",
        ),
        ("impt-6-held_in_dec_self", "held_in says which heads are held: expected held too, as in"),
        ("impt-6-held9-held_in", "found 'impt-6-held9-held_in'; nearest: impt-6-held_in_"),
        (
            "impt-6-spare_dec_self-held9-held_in_dec_self",
            "expected other heads held than are spared, found dec_self twice",
        ),
        (
            "impt-6-held9-held_in_dec_self",
            "expected 0 to 0 heads, as many as the first layer of dec_self has, found 6; "
            "nearest: impt-0-held9-held_in_dec_self",
        ),
        ("impt-6-after", "expected baseline, .*-after<number>.*nearest: impt-6-after6"),
        ("baseline-after5", "baseline takes no after; remove it, or take method random or import"),
        ("random-6-held5", "method random takes no held; remove it, or take method importance"),
        ("baseline-held5", "method baseline takes no held; remove it, or take method importance"),
        ("impt-6-postion", "found 'impt-6-postion'; nearest: impt-6-position"),
        ("random-6-p0.5", "method random takes no probability; remove it, or take method importan"),
        ("random-6-d1", "dropout: expected a number, 0 or more and less than 1, found 1.0"),
        ("baseline-d", "expected baseline, .*, the others with -d<number> "),
        ("baseline-d0.1-d0.2", "expected dropout once, but -d0.2 sets it again"),
        ("baseline-signed", "method baseline takes no signed; remove it, or take method importa"),
        ("impt-6-h4", "method importance takes no attention_heads; .* take method baseline"),
        ("baseline-h0", "attention_heads: expected a whole number from 1 to 1000, found 0"),
        ("baseline-h", "expected baseline, baseline-h<heads of a layer>, .*nearest: baseline-h6"),
        ("baseline-h1.5", "expected baseline, .*; nearest: baseline-h1"),
        ("baseline-h4-h8", "expected attention_heads once, but -h8 sets it again"),
        ("randon-12.5%", "expected baseline, .*random-<N>, .* nearest: random-12.5%"),
        ("random6", "expected baseline, .*, found 'random6'; nearest: random-6"),
        ("impt-6-sign", "expected baseline, .*, found 'impt-6-sign'; nearest: impt-6-signed"),
        ("impt-6-p.5", "at most 4 decimals.* nearest: impt-6-p0.5"),
        ("impt-6-p0.12345", "at most 4 decimals"),
        ("impt-6-", "expected baseline"),
        ("impt-6-signed-", "expected baseline"),
        ("random-6.5", "expected baseline, .* nearest: random-6"),
        ("random-", "expected baseline, .* nearest: random-6"),
        ("random-6\n", r"found 'random-6\\n'"),
        ("impt-6-signed\n", r"found 'impt-6-signed\\n'"),
        ("../random-6", r"found '\.\./random-6'"),
        ("Baseline", "nearest: baseline"),
        ("", "found ''; known: baseline, random-6, impt-6"),
        ("x" * 500, "found 'x{100}'"),
    ],
)
def test_f06_a_wrong_name_says_what_is_expected(text, told):
    with pytest.raises(UserError, match=told):
        read(text, 48)


def test_names_are_safe_in_paths_and_commands():
    longest = "impt-100%-p0.5-signed-ema0.9999-spare_dec_enc-held60-after200"
    for text in ("baseline", "random-12.5%", longest):
        assert re.fullmatch(r"[a-z0-9._-]+", label(read(text, 48)))


@pytest.mark.parametrize("run", ["impt-7-spare_dec_self", "impt-90%-spare_dec_self"])
def test_no_more_heads_are_masked_than_are_not_spared(run):
    """The model has 3 + 2 + 4 heads, 7 of them outside decoder self-attention; 90 % are 8."""
    grid = {"enc_self": [3], "dec_self": [2], "dec_enc": [4]}
    model = ModelSettings(encoder_layers=1, decoder_layers=1, heads=grid, d_head=8)
    if "%" not in run:
        assert read_run_flag(run, RunSettings, model) == impt(heads=7, spare="dec_self")
    told = (
        "expected 0 to 7 heads, as many as the model has outside dec_self, found 8; nearest: impt-7"
    )
    with pytest.raises(UserError, match=f"{told}-spare_dec_self"):
        read_run_flag(run.replace("-7-", "-8-"), RunSettings, model)


def test_enough_heads_are_left_while_others_rest():
    """Of 48 heads, 5 updates in a row have 9 each; of 7 that are not spared, 3 updates have 2."""
    told = "0 to 9 heads, as many as the model has for each of 5 updates in a row, found 10"
    with pytest.raises(UserError, match=f"{told}; nearest: impt-9-rest4"):
        read("impt-10-rest4", 48)
    assert read("impt-12-rest3", 48) == impt(heads=12, rest=3)
    grid = {"enc_self": [3], "dec_self": [2], "dec_enc": [4]}
    model = ModelSettings(encoder_layers=1, decoder_layers=1, heads=grid, d_head=8)
    told = "0 to 2 heads, as many as the model has outside dec_self for each of 3 updates in a row"
    with pytest.raises(UserError, match=told):
        read_run_flag("impt-3-spare_dec_self-rest2", RunSettings, model)


def _choices(annotation) -> list[str]:
    """The words that a field may have; none if it has other values."""
    parts = [each for arg in get_args(annotation) for each in (arg, *get_args(arg))]
    return [part for part in parts if isinstance(part, str)]


def test_every_key_of_importance_alone_is_printed_and_read():
    """Also those that come later: a key that stands in no name would share its path with others."""
    for key, field in RunSettings.model_fields.items():
        if key in ("method", "heads", "share", "attention_heads"):
            continue
        words = [word for word in _choices(field.annotation) if word != field.default]
        kinds = {float: 0.25, int: 3, bool: True, type(None): 0.25}
        others = words or [kinds[type(field.default)]]
        for other in others:
            needed = {"held": 5} if key == "held_in" else {}
            plain = impt(heads=4, **needed)
            run = impt(heads=4, **needed, **{key: other})
            assert label(run) != label(plain)
            assert read_run_flag(label(run), RunSettings, SMALL) == run


def test_heads_of_a_layer_stand_in_the_name():
    for heads in (1, 2, 8, 256):
        run = RunSettings(method="baseline", attention_heads=heads)
        assert label(run) == f"baseline-h{heads}"
        assert read_run_flag(label(run), RunSettings, SMALL) == run


def test_as_many_heads_as_the_model_has_are_the_baseline():
    assert read_run_flag("baseline-h4", RunSettings, SMALL) == BASELINE


@pytest.mark.parametrize(
    ("model", "text", "told"),
    [
        (
            ModelSettings(preset="tiny", d_model=48),
            "baseline-h5",
            "--run: run 'baseline-h5': attention_heads: expected a divisor of d_model 48 "
            r"\(1, 2, 3, 4, 6, 8, 12, 16, 24, 48\), found 5",
        ),
        (
            ModelSettings(preset="small", d_head=64),
            "baseline-h2",
            "attention_heads: expected a model .* that names d_head; remove d_head from `model`",
        ),
    ],
)
def test_heads_that_make_no_model_of_the_same_width_are_refused(model, text, told):
    with pytest.raises(UserError, match=told):
        read_run_flag(text, RunSettings, model)


def test_a_run_has_a_model_of_its_own_heads():
    """3 + 3 layers: heads of 3 + 3 + 3 attention layers, each as wide as its share of 256."""
    for heads, width in ((1, 256), (2, 128), (8, 32)):
        model = RunSettings(method="baseline", attention_heads=heads).own_model(SMALL)
        assert model.grid.counts == dict.fromkeys(("enc_self", "dec_self", "dec_enc"), (heads,) * 3)
        assert (model.head_width, model.d_model) == (width, 256)
        assert model.model_dump(exclude={"heads"}) == SMALL.model_dump(exclude={"heads"})
    assert BASELINE.own_model(SMALL) == impt(heads=7).own_model(SMALL) == SMALL


@pytest.mark.parametrize(("attention", "then"), [(0.0, 0.0), (0.1, 0.3), (0.2, 0.3)])
def test_a_run_has_a_model_of_its_own_dropout(attention, then):
    """Weights of attention have it, too, if the model drops any of them."""
    model = ModelSettings(preset="small", dropout=0.1, attention_dropout=attention)
    for run in (RunSettings(method="baseline", dropout=0.3), impt(heads=7, dropout=0.3)):
        own = run.own_model(model)
        assert (own.dropout, own.attention_dropout) == (0.3, then)
        rest = {"dropout", "attention_dropout"}
        assert own.model_dump(exclude=rest) == model.model_dump(exclude=rest)
    assert RunSettings(method="baseline", dropout=0.1).own_model(model) == model


def test_heads_of_a_layer_and_dropout_go_together():
    both = RunSettings(method="baseline", attention_heads=2, dropout=0.3)
    assert label(both) == "baseline-h2-d0.3"
    assert read_run_flag("baseline-d0.3-h2", RunSettings, SMALL) == both
    assert (both.own_model(SMALL).heads, both.own_model(SMALL).dropout) == (2, 0.3)
    assert label(read_run_flag("baseline-h4-d0.3", RunSettings, SMALL)) == "baseline-d0.3"
    assert label(read_run_flag("baseline-h2-d0.1", RunSettings, SMALL)) == "baseline-h2"


def test_a_flag_may_hold_a_mapping():
    found = read('{"method": "importance", "share": "12.5%", "decay": 0.5}', 48)
    assert found == impt(heads=6, decay=0.5)
    with pytest.raises(UserError, match=r"--run: .*: hads: unknown key; nearest: heads"):
        read('{"method": "importance", "hads": 6}', 48)
    with pytest.raises(UserError, match=r"--run: '6': expected a mapping .*, found 6"):
        read("6", 48)


def experiment(run: str, updates: int) -> Experiment:
    train = {"updates": updates, "warmup_updates": 3}
    return Experiment.model_validate({"pairs": ["c.en-de"], "runs": [run], "train": train})


@pytest.mark.parametrize(
    ("run", "found", "enough"),
    # Of 30 updates none is left to choose heads in: 30, 20 + 10, and 31 are too many.
    [("random-6-after30", "30 [+] 0", 31), ("impt-6-held10-after20", "20 [+] 10", 31)]
    + [("impt-6-held31", "0 [+] 31", 32)],
)
def test_a_run_whose_method_never_begins_is_refused(run, found, enough):
    told = f"runs: '{run}': expected after [+] held below train.updates 30, found {found}, so that"
    with pytest.raises(ValueError, match=told):
        experiment(run, 30)
    assert label(experiment(run, enough).runs[0]) == run  # chooses in the last update

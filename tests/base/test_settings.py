"""Settings that are read: values, defaults, flags, and the page about them."""

import argparse
import re
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import RootModel, ValidationError

from headcount.base import command
from headcount.base.errors import UserError
from headcount.base.handbook import settings_page
from headcount.base.settings.checking import Schema
from headcount.base.settings.data import TextSettings, contradict, two_letters
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.experiment import (
    Experiment,
    experiment_names,
    load_experiment,
    shared_keys,
)
from headcount.base.settings.flags import add_flags, as_flags, from_flags
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.reader import read_settings
from headcount.base.settings.section import Pair, Section, parse_pair
from headcount.base.settings.train import GatesSettings, TrainSettings
from headcount.base.settings.training_runs import BASELINE

CONFIG = Path(__file__).parents[2] / "config"


class Anything(RootModel[dict[str, Any]]):
    """Takes every mapping."""


@pytest.fixture
def load(tmp_path: Path):
    """Return the experiment in a text, below a first line that names a pair."""

    def loaded(text: str = "") -> Experiment:
        (tmp_path / "x.yaml").write_text(f"pairs: [synthetic.en-art]\n{text}")
        return load_experiment("x", tmp_path)

    return loaded


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("1e-2", 0.01), ("5E3", 5000.0), (".5", 0.5), ("-0.25", -0.25), ("12", 12), ("-3", -3)),
        *(("true", True), ("false", False), ("null", None), ("", None), ("a word", "a word")),
        *((word, word) for word in ("no", "Y", "on", "True", "Null", ".inf", "e5", "news-2020")),
        *((word, word) for word in ("010", "0x1F", "1_000", "12:30", "2020-01-01", "9" * 41)),
        *(("'no'", "no"), ('"010"', "010"), ("1.2.3", "1.2.3"), ("04a0b7", "04a0b7")),
        *(("[1, a, [2.5]]", [1, "a", [2.5]]), ("{a: {b: true}}", {"a": {"b": True}})),
    ],
)
def test_f01_f02_plain_words_are_values_or_text(tmp_path, text, value):
    (tmp_path / "x.yaml").write_text(f"\ufeffkey: {text}")
    found = read_settings(tmp_path / "x.yaml", Anything).root["key"]
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize("name", experiment_names(CONFIG))
def test_every_experiment_file_is_valid(name):
    assert load_experiment(name, CONFIG).title


def test_defaults_and_presets(load):
    found = load()
    assert (found.runs, found.seeds, found.model.d_model) == ([BASELINE], [1], 512)
    model = load("model: {preset: small, encoder_layers: 2, heads: 8, dropout: 0}").model
    assert (model.encoder_layers, model.decoder_layers, model.head_width) == (2, 3, 32)
    assert load("model: {position_table: 1001}").decode.max_source == 1000
    with pytest.raises(ValidationError, match="frozen"):
        found.train.updates = 3


def test_all_sections_share_the_resources_but_for_keys_of_their_own(load):
    resources = "{device: cpu, threads: 3, precision: auto, batch_tokens: 77}"
    found = load(f"resources: {resources}\ntrain: {{updates: 9, warmup_updates: 2}}")
    train = found.train
    assert (train.device, train.threads, train.precision) == ("cpu", 3, "auto")
    assert (train.batch_tokens, train.updates, found.speed.threads) == (4096, 9, 1)
    for name in ("decode", "importance", "roles"):
        section = found.section(name)
        assert (section.device, section.threads, section.batch_tokens) == ("cpu", 3, 77)
    assert found.fine_tuning.precision == "auto"
    assert {found.lrp.threads, found.classifier_ablation.threads} == {3}


def test_scripts_get_the_sizes_of_an_imported_model_alone():
    model = {"imported": "opus", "preset": "small"}
    given = {"pairs": ["multi30k.en-de"], "text": {"normal_form": "none"}, "model": model}
    found = Experiment(**given)
    assert found.model.frozen and not Experiment(pairs=["a.b-c"]).model.frozen
    assert as_flags(found.section("model")) == as_flags(ModelSettings(preset="small"))
    tuned = {"model": model | {"fine_tune": True}, "seeds": [1, 2]}
    tuned["runs"] = ["baseline", {"method": "importance", "heads": 6}]
    assert not Experiment(**given | tuned).model.frozen


def test_the_page_names_every_key_once():
    page = settings_page()
    for name, field in Experiment.model_fields.items():
        keys = {
            one.alias or key for key, one in getattr(field.annotation, "model_fields", {}).items()
        }
        start = page.index(f"\n## `{name}`") if keys else 0
        table = page[start:].partition("\n## ")[2].partition("\n## ")[0] if keys else page
        listed = {key for key in keys if f"\n| `{key}` |" in table}
        assert keys - listed == shared_keys(name)
    assert "| `beam` | whole number ≥ 1 and ≤ 1000 | `4` |" in page


class Sample(Section):
    """A section with a key of every kind."""

    word: str = "w"
    """Text."""
    maybe: str | None = None
    """Text or nothing."""
    number: float = 0.5
    """A number, 50 % of one."""
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
    switch=st.booleans(),
    choice=st.sampled_from(["one", "two"]),
    counts=st.lists(st.integers()),
    layers=st.integers() | st.dictionaries(st.sampled_from("ab"), st.lists(st.integers())),
)
PARSER = command.parser("A script.")
add_flags(PARSER, Sample)


@given(SAMPLES)
def test_flags_give_the_section_back(sample):
    assert from_flags(PARSER.parse_args(as_flags(sample)), Sample) == sample


def values_of(node: dict[str, Any]) -> st.SearchStrategy:
    """Return the values that a schema of a single number, switch or choice allows."""
    low, high = node.get("minimum"), node.get("maximum")
    above, below = node.get("exclusiveMinimum"), node.get("exclusiveMaximum")
    first, last = (above if low is None else low), (below if high is None else high)
    bounds = {"exclude_min": above is not None, "exclude_max": below is not None}
    kinds = {
        "boolean": lambda: st.booleans(),
        "integer": lambda: st.integers(first, last),
        "number": lambda: st.floats(first, last, **bounds, allow_nan=False, allow_infinity=False),
    }
    choices = node.get("enum", [node["const"]] if "const" in node else [])
    return st.sampled_from(choices) if choices else kinds[node["type"]]()


SCHEMA = Schema(Experiment)
SINGLE = [
    (name, key, node)
    for name, field in Experiment.model_fields.items()
    if hasattr(field.annotation, "model_fields")
    for key in SCHEMA.keys((name,))
    for node in SCHEMA.options(SCHEMA.at((name, key)))
    if node["type"] in ("boolean", "integer", "number") or "enum" in node
]
CHANGES = st.sampled_from(SINGLE).flatmap(
    lambda x: st.tuples(*map(st.just, x[:2]), values_of(x[2]))
)


@given(CHANGES)
def test_a_setting_of_every_section_is_loaded_and_dumped(tmp_path_factory, change):
    """Or refused at its line, where it contradicts another one."""
    (name, key, value), folder = change, tmp_path_factory.getbasetemp()
    text = yaml.safe_dump({"pairs": ["synthetic.en-art"], name: {key: value}}, sort_keys=False)
    (folder / "x.yaml").write_text(text)
    try:
        section = getattr(load_experiment("x", folder), name)
    except UserError as fault:
        assert re.match(rf"{folder}/x\.yaml:[1-4]: \w+", str(fault))
        return
    assert getattr(section, key) == value
    assert type(section).model_validate(section.model_dump()) == section
    parser = command.parser("A script.")
    add_flags(parser, type(section))
    assert from_flags(parser.parse_args(as_flags(section)), type(section)) == section


def test_sections_with_keys_of_one_name_need_a_prefix():
    parser = command.parser("A script.")
    add_flags(parser, TrainSettings)
    with pytest.raises(argparse.ArgumentError, match="--device"):
        add_flags(parser, DecodeSettings)
    add_flags(parser, GatesSettings)
    sections = TrainSettings(updates=5000, peak_lr=0.1), GatesSettings(updates=300, init="glorot")
    args = parser.parse_args([flag for section in sections for flag in as_flags(section)])
    assert tuple(from_flags(args, type(section)) for section in sections) == sections
    assert from_flags(parser.parse_args([]), GatesSettings) == GatesSettings()


@pytest.mark.parametrize(
    ("section", "arguments", "flag"),
    [
        (TrainSettings, "--peak-lr -1", "--peak-lr: "),
        (TrainSettings, "--peak-lr NaN", "--peak-lr: "),
        (TrainSettings, "--keep-updates [1,0]", "--keep-updates[1]: "),
        (TrainSettings, "--updates 7", "--warmup-updates: "),
        (TextSettings, "--drop-overlap 1", "--drop-overlap: "),
        (GatesSettings, "--gates-lr 0", "--gates-lr: "),
        (ModelSettings, '--heads {"enc_slf":[1]}', "--heads.enc-slf: "),
    ],
)
def test_a_faulty_flag_is_named(section, arguments, flag):
    parser = command.parser("A script.")
    add_flags(parser, section)
    with pytest.raises(UserError) as caught:
        from_flags(parser.parse_args(arguments.split()), section)
    assert str(caught.value).startswith(flag)


def test_an_unknown_or_shortened_flag_is_refused_and_help_has_meaning_and_default(capsys):
    with pytest.raises(SystemExit, match="2"):
        PARSER.parse_args(["--numb", "7"])
    with pytest.raises(SystemExit, match="0"):
        PARSER.parse_args(["--help"])
    assert "A number, 50 % of one. [number] (default: 0.5)" in " ".join(
        capsys.readouterr().out.split()
    )


WRONG = "$(touch canary).en-de {input}.en-de ../up.en-de -n.en-de .en-de a.b.en-de multi30k.en- "
WRONG += "multi30k.en_de multi30k a.zh-Hans-de korpüs.en-de multi30k.en-en multi30k.en-de;rm"


@pytest.mark.parametrize("name", [*WRONG.split(" "), "multi30k.en-de\n", "x" * 65 + ".en-de", ""])
def test_pair_names_are_on_an_allow_list(name):
    with pytest.raises(UserError, match="expected <corpus>"):
        parse_pair(name)


def test_a_pair_reads_one_way():
    assert parse_pair("news-v15.en-pt_BR") == Pair("news-v15", "en", "pt_BR")
    assert str(Pair("multi30k", "en", "de")) == "multi30k.en-de"


@pytest.mark.parametrize(
    ("name", "letters"),
    [
        *(("en", "en"), ("jpn", "ja"), ("zh_TW", "zh"), ("CMN", "zh"), ("zho_Hant", "zh")),
        *(("zh_Hant_TW", "zh"), ("es_419", "es"), ("est", "et"), ("art", "art"), ("nor", "no")),
        *(("my_lang", "my_lang"), ("de_own", "de_own"), ("dea", "dea")),  # of no known language
    ],
)
def test_a_language_is_known_by_its_codes(name, letters):
    assert two_letters(name) == letters


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [("deu_Latn", "de", False), ("pt-BR", "por", False), ("nob", "no", False), ("roa", "de", False)]
    + [("art", "de", False), ("deu", "en", True), ("tur_Latn", "vi", True)],
)
def test_names_of_two_languages_contradict(first, second, expected):
    assert contradict(first, second) is contradict(second, first) is expected

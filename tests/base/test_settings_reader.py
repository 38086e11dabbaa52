"""The YAML reader: one meaning for every reader, and faults named by line and key."""

import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ConfigDict, RootModel

from headcount.base.errors import UserError
from headcount.base.settings.experiment import Experiment
from headcount.base.settings.reader import read_settings

PAIRS = "pairs: [synthetic.en-art]\n"


class Anything(RootModel[dict[str, Any]]):
    """Takes every mapping, so that a test sees the reader alone."""

    model_config = ConfigDict(strict=True)


@pytest.fixture
def read(tmp_path: Path):
    """Values read from a text."""
    return lambda text: read_settings(_file(tmp_path, text), Anything).root


@pytest.fixture
def fault(tmp_path: Path):
    """What the person is told about a text, without the folder's name."""

    def told(text: str | bytes, model: type = Experiment) -> str:
        with pytest.raises(UserError) as caught:
            read_settings(_file(tmp_path, text), model)
        return str(caught.value).replace(f"{tmp_path}/", "")

    return told


def _file(folder: Path, text: str | bytes) -> Path:
    file = folder / "x.yaml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-2", 0.01),  # PyYAML alone would give the text '1e-2'
        ("1.0e-2", 0.01),
        ("5E3", 5000.0),
        (".5", 0.5),
        ("-0.25", -0.25),
        ("12", 12),
        ("-3", -3),
        ("0", 0),
        ("true", True),
        ("false", False),
        ("null", None),
        ("", None),
        ("plain words", "plain words"),
        ("1.2.3", "1.2.3"),
        ("e5", "e5"),
        ("1e", "1e"),
        ("04a0b7", "04a0b7"),
        ("news-2020", "news-2020"),
        ("'no'", "no"),
        ('"010"', "010"),
        ("'2020-01-01'", "2020-01-01"),
        ("[1, a, [2.5]]", [1, "a", [2.5]]),
        ("{a: {b: true}}", {"a": {"b": True}}),
    ],
)
def test_values_are_those_of_yaml_1_2(read, text, value):
    found = read(f"key: {text}")["key"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("word", ["no", "No", "NO", "n", "N", "off", "OFF", "nO"])
def test_f01_unquoted_no_stops_with_quote_it(fault, word):
    told = f"{word} is false to one YAML reader and text to another; write false; if it is text, "
    assert fault(f"a: 1\nb: {word}", Anything) == f"x.yaml:2: b: {told}quote it: '{word}'"
    assert fault(f"a:\n  {word}: 1", Anything) == f"x.yaml:2: a.{word}: {told}quote it: '{word}'"


@pytest.mark.parametrize("word", ["yes", "Y", "on", "On"])
def test_f01_unquoted_yes_stops_with_quote_it(fault, word):
    assert f"x.yaml:1: a[1]: {word} is true to one" in fault(f"a: [x, {word}]", Anything)


@pytest.mark.parametrize("word", ["True", "FALSE", "Null"])
def test_f01_constants_have_one_spelling(fault, word):
    assert f"x.yaml:1: a: expected {word.lower()}, found {word}" in fault(f"a: {word}", Anything)


@pytest.mark.parametrize(
    "number",
    [
        "010",
        "09",
        "-07",
        "0o17",
        "0x1F",
        "0b11",
        "1_000",
        "1_0.5",
        "12:30",
        "12:30:45",
        "-1:30.5",
        "0_8",
        "018_",
        ".18e1",
        "01e7",
        "9_0e1",
        "._0",
        "2020-01-01",
        "010.5",
        "2020-01-01T10:00:00Z",
        "9" * 41,
    ],
)
def test_f02_numbers_that_readers_disagree_about_stop(fault, number):
    told = fault(f"a:\n- {number}", Anything)
    assert told.startswith("x.yaml:2: a[0]: not the same to every YAML reader; write a number in")
    assert "quote it: '" in told


def test_f02_a_quoted_number_is_no_number(fault):
    assert fault(PAIRS + "train: {peak_lr: '1e-2'}") == (
        "x.yaml:2: train.peak_lr: expected a number, more than 0, found '1e-2'"
    )


def test_f02_a_bare_number_is_no_text(fault):
    assert (
        fault(PAIRS + "title: 3")
        == "x.yaml:2: title: expected text, at most 200 characters, found 3; quote it"
    )


def test_f03_unknown_key_names_the_nearest_of_its_section(fault):
    told = fault(PAIRS + "train:\n  updates: 10\n  peek_lr: 1\n")
    assert told == "x.yaml:4: train.peek_lr: unknown key; nearest: peak_lr"


def test_f03_unknown_key_far_from_all_lists_those_there_are(fault):
    assert (
        fault(PAIRS + "bpe: {zzz: 1}")
        == "x.yaml:2: bpe.zzz: unknown key; known: unit, merges, joint, largest, unspaced"
    )


def test_f03_key_of_another_section_is_sent_there(fault):
    told = fault(PAIRS + "train: {dropout: 0.1}")
    assert told == "x.yaml:2: train.dropout: unknown key; it is a key of model"


def test_f03_unknown_key_at_the_top_and_inside_a_mapping_of_lists(fault):
    assert fault("pears: [a.b-c]\n" + PAIRS) == "x.yaml:1: pears: unknown key; nearest: pairs"
    told = fault(PAIRS + "model:\n  heads:\n    enc_slf: [1]\n")
    assert told == "x.yaml:4: model.heads.enc_slf: unknown key; nearest: enc_self"


def test_f03_every_fault_has_its_line_and_long_lists_are_cut(fault):
    lines = fault(PAIRS + "".join(f"zz{i}: 1\n" for i in range(20))).splitlines()
    assert lines[0].startswith("x.yaml:2: zz0: unknown key")
    assert lines[8].startswith("x.yaml:10: zz8: unknown key")
    assert lines[9:] == ["… and 11 more faults"]


def test_f04_duplicate_key_names_both_lines(fault):
    told = fault("train:\n  updates: 1\n  beta1: 0.9\n  updates: 2\n")
    assert told == "x.yaml:4: train.updates: stands in line 2 already; keep one of them"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("updates: null", "updates: expected a whole number, 1 or more, found null"),
        ("updates: true", "updates: expected a whole number, 1 or more, found true"),
        ("updates: 2.0", "updates: expected a whole number, 1 or more, found 2.0"),
        ("updates: 0", "updates: expected a whole number, 1 or more, found 0"),
        ("updates: [1]", "updates: expected a whole number, 1 or more, found [1]"),
        ("beta1: 1", "beta1: expected a number, 0 or more and less than 1, found 1"),
        ("peak_lr: false", "peak_lr: expected a number, more than 0, found false"),
        ("peak_lr: -1e-3", "peak_lr: expected a number, more than 0, found -0.001"),
        ("peak_lr: 1e999", "peak_lr: expected a number, more than 0, found inf"),
        ("select: bset", "select: expected best or last, found 'bset'"),
        ("keep_updates: 5", "keep_updates: expected a list (each a whole number, 1 or more), fo"),
        ("keep_updates: [5, x]", "keep_updates[1]: expected a whole number, 1 or more, found 'x'"),
    ],
)
def test_f05_wrong_values_name_what_was_expected(fault, text, told):
    assert fault(PAIRS + f"train:\n  {text}").startswith(f"x.yaml:3: train.{told}")


@pytest.mark.parametrize("number", [".nan", ".NaN", ".inf", "-.Inf"])
def test_f05_nan_and_infinity_stop(fault, number):
    told = fault(PAIRS + f"train: {{peak_lr: {number}}}")
    assert told.startswith(f"x.yaml:2: train.peak_lr: expected a finite number, found {number};")


def test_f05_long_values_are_cut(fault):
    assert fault(PAIRS + f"train: {'x' * 500}").endswith(f"found '{'x' * 59}…")


def test_f05_missing_key_is_named_where_it_belongs(fault):
    assert fault("seeds: [1]") == "x.yaml:1: pairs: missing; expected a list of at least 1 " + (
        "(each text), or classifiers.models"
    )


def test_f10_tags_anchors_aliases_and_merge_keys_are_not_read(fault, tmp_path):
    canary = tmp_path / "canary"
    told = fault(f"a: !!python/object/apply:pathlib.Path.touch [{canary}]", Anything)
    assert "x.yaml:1: tags ('tag:yaml.org,2002:python/object/apply:pathlib" in told
    assert not canary.exists()
    assert fault("a: 1\nb: !!str 2", Anything).startswith("x.yaml:2: tags (")
    assert fault("a: &b {c: 1}", Anything).startswith("x.yaml:1: anchors (&) and aliases (*)")
    assert fault("a: *b", Anything).startswith("x.yaml:1: anchors (&) and aliases (*)")
    assert fault("a:\n  <<: {b: 1}", Anything).startswith("x.yaml:2: a: merge keys (<<)")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "x.yaml:1: expected keys and values (`key: value`), found nothing"),
        ("# only this\n", "x.yaml:1: expected keys and values (`key: value`), found nothing"),
        ("- a", "x.yaml:1: expected keys and values (`key: value`), found a list"),
        ("a", "x.yaml:1: expected keys and values (`key: value`), found a single value"),
        ("a: 1\n---\nb: 2", "x.yaml:2: expected a single document in the stream, but found an"),
        ("a: [1,\n", "x.yaml:2: while parsing a flow node, did not find expected node content"),
        ("a: 1\n b: 2", "x.yaml:2: mapping values are not allowed in this context"),
        ("a:\n\tb: 1", "x.yaml:2: the character U+0009 is not read here; write spaces instead"),
        ("a: 1\t", "x.yaml:1: the character U+0009 is not read"),  # libyaml alone would read it
        ("a: \ufeffb", "x.yaml:1: the character U+FEFF is not read"),
        ("? [a]\n: 1", "x.yaml:1: expected plain text as a key, found a list"),
        ("a:\n  1: b", "x.yaml:2: a: keys are text; quote it: '1'"),
        ("é: 1\na: b\x00", "x.yaml:2: the character U+0000 is not read"),
        (b"a: 1\nb: caf\xe9", "x.yaml:2: expected UTF-8 text, found byte 0xe9 at offset 11"),
        ("a: b".encode("utf-16"), "x.yaml:1: expected UTF-8 text, found byte 0xff at offset 0"),
    ],
)
def test_files_that_are_no_settings_stop(fault, text, told):
    assert fault(text, Anything).startswith(told)


def test_lists_deeper_than_python_may_go_stop(fault):
    """Other tests in the same process may raise its limit."""
    text = "[" * sys.getrecursionlimit()
    assert fault(text, Anything) == "x.yaml: lists or mappings are nested too deeply"


def test_a_folder_or_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"gone\.yaml: cannot be read: No such file"):
        read_settings(tmp_path / "gone.yaml", Anything)
    with pytest.raises(UserError, match="cannot be read: Is a directory"):
        read_settings(tmp_path, Anything)

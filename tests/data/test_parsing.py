"""Trees predicted by stanza, with a stand-in: the real models are not here."""

import json
import sys
from types import ModuleType, SimpleNamespace

import pytest
from script_runner import run_script

from headcount.base.errors import EnvironmentFault
from headcount.data.lines import FoundText
from headcount.data.parsing import load_parser
from headcount.data.trees import Arc, read_trees


@pytest.fixture
def stanza(monkeypatch, tmp_path):
    """A parser that hangs every word from the one before; what it was asked is kept."""
    asked = []

    def word(place, text):
        relation = "dep" if place > 1 else "root"
        return SimpleNamespace(id=place, text=text, upos="X", head=place - 1, deprel=relation)

    def parse(sentences):
        asked.append(sentences)
        parsed = ([word(n, w) for n, w in enumerate(words, start=1)] for words in sentences)
        return SimpleNamespace(sentences=[SimpleNamespace(words=words) for words in parsed])

    def pipeline(language, folder, **options):
        weights = tmp_path / "models" / {"zh": "zh-hans"}.get(language, language) / "m.pt"
        if not weights.exists():
            assert options["download_method"] == "reuse_resources"
            asked.append((language, options["resources_version"]))
            weights.parent.mkdir(parents=True, exist_ok=True)
            weights.write_text("weights")
            (tmp_path / "models" / "resources.json").write_text('{"zh": {"alias": "zh-hans"}}')
        return parse

    module = ModuleType("stanza")
    module.Pipeline = pipeline
    monkeypatch.setitem(sys.modules, "stanza", module)
    return asked


def run(tmp_path, text: str, language: str = "en", *more: str) -> int:
    (tmp_path / "s").write_text(text, encoding="utf-8")
    flags = ["--source", tmp_path / "s", "--language", language, "--models", tmp_path / "models"]
    return run_script("parse", [*flags, "--out", tmp_path / "t.conllu", *more])


def test_trees_are_of_the_tokenisers_words_and_can_be_read_again(stanza, tmp_path):
    assert run(tmp_path, "I don't see.\n\nYou do.\n") == 0
    assert stanza == [("en", "1.15.0"), [["I", "don", "'t", "see", "."], ["You", "do", "."]]]
    first, second = read_trees(FoundText(tmp_path / "t.conllu"))
    assert (first.sentence, first.text) == ("line-1", "I don't see.")
    assert (second.sentence, second.arcs) == ("line-3", [Arc(1, 0, "dep"), Arc(2, 1, "dep")])
    about = json.loads((tmp_path / "t.json").read_text())
    assert about["sentences"] == 2 and list(about["models"]) == ["en/m.pt"]


def test_models_that_are_there_are_not_fetched_again(stanza, tmp_path):
    (tmp_path / "models" / "en").mkdir(parents=True)  # as a killed download leaves it
    for fetched in ([("en", "1.15.0")], []):
        assert run(tmp_path, "A dog.\n") == 0
        assert stanza == [*fetched, [["A", "dog", "."]]]
        stanza.clear()


def test_words_without_spaces_are_those_that_the_models_read(stanza, tmp_path, capsys):
    """By default each character is a word; stanza calls Chinese zh-hans."""
    assert run(tmp_path, "我们用 Python 写。\n", "zh") == 0
    assert stanza == [("zh", "1.15.0"), [["我", "们", "用", "Python", "写", "。"]]]
    about = json.loads((tmp_path / "t.json").read_text())
    assert list(about["models"]) == ["zh-hans/m.pt"]
    assert about["provenance"]["settings"]["unsegmented_scripts"] == "characters"
    assert run(tmp_path, "我们用 Python 写\n", "zh", "--unsegmented-scripts", "none") == 0
    assert stanza[2:] == [[["我们用", "Python", "写"]]]  # and nothing is fetched again
    assert run(tmp_path, "a\n", "zh", "--unsegmented-scripts", "jeiba") == 2
    assert "'jeiba' (choose from " in capsys.readouterr().err


def test_many_sentences_are_parsed_in_parts(stanza, tmp_path):
    assert run(tmp_path, "A dog.\n" * 150) == 0
    assert [len(part) for part in stanza[1:]] == [100, 50]
    assert len(list(read_trees(FoundText(tmp_path / "t.conllu")))) == 150


def test_f53_a_text_without_words_and_a_missing_parser_are_told(
    stanza, tmp_path, capsys, monkeypatch
):
    assert run(tmp_path, "\n \n") == 2
    assert "no line with a word" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "stanza", None)
    assert run(tmp_path, "A dog.\n") == 3
    assert "pip install -e '.[parse]'" in capsys.readouterr().err


def test_models_that_cannot_be_had_are_told(stanza, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise ValueError("Unsupported language: qq")

    monkeypatch.setattr(sys.modules["stanza"], "Pipeline", fail)
    with pytest.raises(EnvironmentFault, match="no models for 'qq' .* Unsupported language: qq"):
        load_parser("qq", tmp_path)

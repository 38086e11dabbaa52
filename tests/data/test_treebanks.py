"""Treebanks in the settings and in the plan of jobs."""

import json
from pathlib import Path

import pytest
from workflow_modules import load

from headcount.base.settings.corpora import load_corpora

HASH = "0123456789abcdef" * 4
TEXT = f"""\
made: {{licence: free, citation: A, generator: synthetic, settings: {{seed: 4}}}}
bank:
  licence: free
  citation: B
  trees:
    one.a: {{language: en, base_url: https://a.org/x, file: a.conllu, sha256: {HASH}}}
    two: {{language: xx, path: own/two.conllu}}
mine:
  licence: free
  citation: C
  splits:
    train: {{en: {{path: t.en}}, xx: {{path: t.xx}}}}
    dev: {{en: {{path: d.en}}, xx: {{path: d.xx}}}}
    test: {{en: {{path: e.en}}, xx: {{path: e.xx}}}}
"""


@pytest.fixture
def corpora(tmp_path: Path):
    (tmp_path / "corpora.yaml").write_text(TEXT)
    return load_corpora(tmp_path / "corpora.yaml")


@pytest.fixture
def of(monkeypatch, corpora):
    module = load(monkeypatch, "plan.layout")
    return lambda *named: module.Raw(list(named), corpora)


def test_a_pair_has_the_treebanks_in_its_source_language(of):
    raw = of("bank.two", "bank.one.a", "made.dev")
    assert raw.treebanks({"pair": "mine.en-xx"}) == ["bank.one.a", "made.dev"]
    assert raw.treebanks({"pair": "mine.xx-en"}) == ["bank.two"]


def test_without_names_a_generated_corpus_has_its_own(of):
    assert of().treebanks({"pair": "made.en-art"}) == ["made.test"]
    assert of().treebanks({"pair": "made.art-en"}) == of().treebanks({"pair": "mine.en-xx"}) == []


def test_a_fetched_treebank_is_a_corpus_of_one_split(of):
    raw = of("bank.one.a")
    one, own = raw.of_tree("bank.one.a"), raw.of_tree("bank.two")
    assert json.loads(one.entry) == {
        "base_url": "https://a.org/x",
        "splits": {"one.a": {"en": {"file": "a.conllu", "sha256": HASH}}},
    }
    assert (one.own, own.own) == ([], ["own/two.conllu"])
    assert one.manifest != own.manifest
    assert raw.of_tree("made.dev") == raw.of("made.en-art")  # comes with its corpus

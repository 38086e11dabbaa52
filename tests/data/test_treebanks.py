"""Treebanks in the settings and in the plan of jobs."""

import json
from pathlib import Path

import pytest
from workflow_modules import load

from headcount.base.errors import UserError
from headcount.base.settings.experiment import load_experiment
from headcount.base.settings.text.corpora import load_corpora

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
    module = load(monkeypatch, "plan.raw")
    return lambda *named: module.Raw(list(named), corpora)


def test_a_pair_has_the_treebanks_in_its_source_language(of):
    raw = of("bank.two", "bank.one.a", "made.dev")
    assert raw.treebanks("mine.en-xx") == ["bank.one.a", "made.dev"]
    assert raw.treebanks("mine.xx-en") == ["bank.two"]


def test_without_names_a_generated_corpus_has_its_own(of):
    assert of().treebanks("made.en-art") == ["made.test"]
    assert of().treebanks("made.art-en") == of().treebanks("mine.en-xx") == []


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


def test_subtypes_of_relations_are_allowed(tmp_path):
    (tmp_path / "x.yaml").write_text("pairs: [m.en-art]\nroles: {relations: ['nsubj:pass', obl]}\n")
    assert load_experiment("x", tmp_path).roles.relations == ["nsubj:pass", "obl"]


def test_a_corpus_without_trees_or_text_is_nothing(tmp_path):
    (tmp_path / "corpora.yaml").write_text("c: {licence: free, citation: A, trees: {}}")
    with pytest.raises(UserError, match="c: expected splits"):
        load_corpora(tmp_path / "corpora.yaml")
    trees = f"{{t: {{language: en, file: a, sha256: {HASH}}}}}"
    (tmp_path / "corpora.yaml").write_text(f"c: {{licence: free, citation: A, trees: {trees}}}")
    with pytest.raises(UserError, match="trees.t: a file needs a base_url"):
        load_corpora(tmp_path / "corpora.yaml")

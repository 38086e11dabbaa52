"""Treebanks in the settings and in the plan of jobs."""

import json
from pathlib import Path

import pytest
from workflow_modules import load

from headcount.base.errors import UserError
from headcount.base.settings.corpora import check_treebanks, load_corpora
from headcount.base.settings.experiment import load_experiment

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
    module = load(monkeypatch, "treebanks")
    return lambda *named: module.Treebanks(list(named), corpora)


def test_a_pair_has_the_treebanks_in_its_source_language(of):
    banks = of("bank.two", "bank.one.a", "made.dev")
    assert banks.of_pair("mine.en-xx") == ["bank.one.a", "made.dev"]
    assert banks.of_pair("mine.xx-en") == ["bank.two"]


def test_without_names_a_generated_corpus_has_its_own(of):
    assert of().of_pair("made.en-art") == ["made.test"]
    assert of().of_pair("made.art-en") == of().of_pair("mine.en-xx") == []


def folder_of(manifest: str) -> dict[str, str]:
    """Corpus and recipe of a folder of raw files."""
    return dict(zip(("corpus", "recipe"), Path(manifest).parent.parts[-2:], strict=True))


def test_a_fetched_treebank_is_a_corpus_of_one_split(of):
    banks = of("bank.one.a")
    folder = folder_of(banks.fetched("bank.one.a"))
    assert json.loads(banks.entry(folder)) == {
        "base_url": "https://a.org/x",
        "splits": {"one.a": {"en": {"file": "a.conllu", "sha256": HASH}}},
    }
    assert banks.own_files(folder) == []
    own = dict(
        zip(("corpus", "recipe"), Path(banks.fetched("bank.two")).parent.parts[-2:], strict=True)
    )
    assert own != folder and banks.own_files(own) == ["own/two.conllu"]
    assert banks.entry({"corpus": "mine", "recipe": "0" * 12}) == ""
    assert banks.is_generated("made.dev") and not banks.is_generated("bank.two")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bnak.two", "no corpus 'bnak' in corpora.yaml; nearest: bank"),
        ("bank.tow", "corpus bank has no trees 'tow'; nearest: two"),
        ("made.train", "corpus made has no trees 'train'; known: dev, test"),
    ],
)
def test_treebanks_that_do_not_exist_are_named(corpora, name, words):
    check_treebanks(["bank.two", "made.test"], corpora)
    with pytest.raises(UserError, match=words):
        check_treebanks(["bank.two", name], corpora)


@pytest.mark.parametrize(
    ("roles", "words"),
    [
        ("relations: [dobj]", "'dobj'; Universal Dependencies call it obj"),
        ("relations: [nsbuj]", "'nsbuj'; nearest: nsubj"),
        ("relations: [root]", "'root'"),
        ("relations: [nsubj, nsubj]", "'nsubj' is listed twice; name each entry once"),
        ("relations: []", "a list of at least 1"),
        ("trees: [ewt]", "expected <corpus>.<treebank> as in ud.ewt_dev, found 'ewt'"),
        ("eos: drop", "drop_both, drop_key, drop_query or keep"),
        ("positional_share: 1.2", "positional_share"),
    ],
)
def test_faults_in_the_settings_of_roles_are_told(tmp_path, roles, words):
    (tmp_path / "x.yaml").write_text(f"pairs: [made.en-art]\nroles: {{{roles}}}\n")
    with pytest.raises(UserError, match=words):
        load_experiment("x", tmp_path)


def test_subtypes_of_relations_are_allowed(tmp_path):
    (tmp_path / "x.yaml").write_text("pairs: [m.en-art]\nroles: {relations: ['nsubj:pass', obl]}\n")
    assert load_experiment("x", tmp_path).roles.relations == ["nsubj:pass", "obl"]


def test_a_corpus_without_trees_or_text_is_nothing(tmp_path):
    (tmp_path / "corpora.yaml").write_text("c: {licence: free, citation: A, trees: {}}")
    with pytest.raises(UserError, match="expected either splits"):
        load_corpora(tmp_path / "corpora.yaml")
    trees = f"{{t: {{language: en, file: a, sha256: {HASH}}}}}"
    (tmp_path / "corpora.yaml").write_text(f"c: {{licence: free, citation: A, trees: {trees}}}")
    with pytest.raises(UserError, match="a published treebank needs a base_url"):
        load_corpora(tmp_path / "corpora.yaml")

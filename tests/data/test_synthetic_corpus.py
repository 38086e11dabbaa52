"""The embedded corpus as a whole: determinism, separate splits, trees, targets by another route."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from script_runner import run_script

from headcount.base.settings.data import SyntheticSettings
from headcount.data.lines import FoundText
from headcount.data.synthetic.corpus import (
    Sentence,
    generate,
    generate_splits,
    lexicon,
    rules,
    write_corpus,
)
from headcount.data.trees import read_trees

ROOT = Path(__file__).parents[2]
RELATIONS = "root nsubj obj obl nmod amod advmod det case aux acl:relcl mark advcl punct"
UPOS = "NOUN PROPN PRON VERB AUX ADJ ADV DET ADP SCONJ PUNCT"


@pytest.fixture(scope="module")
def sentences() -> list[Sentence]:
    return generate(seed=5, count=2000)


class TreeReader:
    """Works the target out from a source tree alone, without the derivation behind it."""

    def __init__(self) -> None:
        words = lexicon()
        groups = ("animate", "inanimate", "names", "pronouns")
        nouns = [noun for group in groups for noun in words[group].items]
        self.nouns = {form: (noun, n) for noun in nouns for n, form in noun.forms.items()}
        verbs = words["transitive_verbs"].items + words["intransitive_verbs"].items
        self.verbs = {form: verb for verb in verbs for form in verb.forms.values()}
        plain = ("adjectives", "adverbs", "opening_adverbs", "conjunctions", "degree")
        listed = [word for group in plain for word in words[group].items]
        self.stems = {word.forms["form"]: word.stem() for word in listed}
        for determiner in words["determiners"].items:
            self.stems |= dict.fromkeys(determiner.forms.values(), determiner.stem())
        places = ("subject_prepositions", "verb_prepositions")
        listed = [word for place in places for word in words[place].items]
        self.prepositions = {word.forms["form"]: word for word in listed}

    def translate(self, sentence: Sentence) -> tuple[str, ...]:
        self.tree = (None, *sentence.tree)
        root = next(i for i, token in enumerate(sentence.tree, start=1) if token.head == 0)
        before = []
        for child in self.under(root, "advcl"):
            before += [*self.clause(child), *self.plain(child, "mark")]
        return (*before, *self.clause(root), ".")

    def under(self, head: int, relation: str) -> list[int]:
        numbered = enumerate(self.tree[1:], start=1)
        return [i for i, token in numbered if token.head == head and token.deprel == relation]

    def form(self, position: int) -> str:
        return self.tree[position].form

    def plain(self, head: int, relation: str) -> list[str]:
        return [self.stems[self.form(child)] for child in self.under(head, relation)]

    def marks(self, position: int) -> str:
        noun, number = self.nouns[self.form(position)]
        return rules()["agreement_gender"][noun.gender] + rules()["agreement_number"][number]

    def phrase(self, head: int, case: str, governor: str) -> list[str]:
        found = []
        for child in self.under(head, "acl:relcl"):
            found += [*self.clause(child), "ke"]
        for child in self.under(head, "nmod"):
            found += self.postposition(child, "noun")
        suffix = rules()["agreement_case"][case] + self.marks(head)
        found += [stem + suffix for stem in self.plain(head, "det") if stem]
        noun, number = self.nouns[self.form(head)]
        ending = rules()["noun_number"][number] + rules()["noun_case"][case]
        found += [noun.stem(governor) + ending] if noun.upos != "PRON" else []
        for child in self.under(head, "amod"):
            found += [self.stems[self.form(child)] + suffix, *self.plain(child, "advmod")]
        return found

    def postposition(self, noun: int, governor: str) -> list[str]:
        preposition = self.prepositions[self.form(self.under(noun, "case")[0])]
        stem = preposition.stem(governor)
        return self.phrase(noun, preposition.case, governor) + ([stem] if stem else [])

    def clause(self, head: int) -> list[str]:
        verb, outside = self.verbs[self.form(head)], self.tree[head].head
        arguments = self.under(head, "nsubj") + self.under(head, "obj")
        subject, *objects = [outside if self.form(a) == "that" else a for a in arguments]
        found = [] if subject == outside else self.phrase(subject, "nominative", verb.kind)
        adverbs = self.under(head, "advmod")
        found += [self.stems[self.form(a)] for a in adverbs if a < arguments[0]]
        for child in self.under(head, "obl"):
            found += self.postposition(child, verb.kind)
        for child in objects:
            found += self.phrase(child, "accusative", verb.kind) if child != outside else []
        found += [self.stems[self.form(a)] for a in adverbs if a > arguments[0]]
        return [*found, self.verb(head, subject, objects)]

    def verb(self, head: int, subject: int, objects: list[int]) -> str:
        verb = self.verbs[self.form(head)]
        tense = "past" if self.form(head) == verb.forms["past"] else "present"
        tense = "future" if self.under(head, "aux") else tense
        context = []
        for noun, number in (self.nouns[self.form(child)] for child in objects):
            context += [noun.animacy, number]
        return rules()["tense"][tense] + verb.stem(*context) + self.marks(subject)


def test_target_follows_from_the_source_tree(sentences):
    reader = TreeReader()
    for sentence in sentences:
        assert reader.translate(sentence) == sentence.target


def test_target_is_a_function_of_the_source(sentences):
    targets, trees = {}, {}
    for sentence in sentences:
        assert targets.setdefault(sentence.source, sentence.target) == sentence.target
        assert trees.setdefault(sentence.source, sentence.tree) == sentence.tree


@pytest.mark.slow
def test_same_files_under_another_hash_seed(tmp_path):
    sizes = ("--train-pairs", "300", "--dev-pairs", "50", "--test-pairs", "50")
    manifests = []
    for hash_seed in ("1", "2"):
        out = tmp_path / hash_seed / "manifest.json"
        script = [sys.executable, str(ROOT / "scripts/synthetic.py"), "--seed", "3", *sizes]
        subprocess.run(
            [*script, "--corpus", "synthetic", "--out", str(out)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
        )
        manifests.append(json.loads(out.read_text()))
    assert manifests[0] == manifests[1]
    assert list(manifests[0]) == ["corpus", "pretokenised", "links", "splits", "trees"]
    groups = [manifests[0][name].values() for name in ("splits", "trees", "links")]
    files = [entry["file"] for group in groups for split in group for entry in split.values()]
    assert sorted([*files, "manifest.json"]) == sorted(os.listdir(tmp_path / "1"))


def test_sentences_depend_on_seed_and_split_and_not_on_sizes():
    assert generate(1, 20) != generate(2, 20)
    assert generate(1, 20, "train") != generate(1, 20, "dev")
    few, many = generate_splits(4, 100, 40, 30), generate_splits(4, 250, 40, 30)
    assert many["train"][:100] == few["train"]
    assert (many["dev"], many["test"]) == (few["dev"], few["test"])
    assert generate_splits(4, 10, 90, 30)["dev"][:40] == few["dev"]


@pytest.mark.slow
def test_no_source_sentence_is_in_two_splits():
    splits = generate_splits(2, 2000, 600, 600)
    train, dev, test = ({s.source for s in splits[name]} for name in ("train", "dev", "test"))
    assert not train & dev and not train & test and not dev & test
    # The rule had work to do: without it some would have been in both.
    assert {s.source for s in generate(2, 2000)} & (dev | test)


def test_files_hold_the_sentences_and_valid_trees(tmp_path):
    size = SyntheticSettings(seed=6, train_pairs=50, dev_pairs=300, test_pairs=20)
    write_corpus(tmp_path, "synthetic", size)
    dev = generate_splits(6, 50, 300, 20)["dev"]
    source = (tmp_path / "dev.en").read_text().splitlines()
    assert source == [" ".join(sentence.source) for sentence in dev]
    target = (tmp_path / "dev.art").read_text().splitlines()
    reader = TreeReader()
    assert target == [" ".join(reader.translate(sentence)) for sentence in dev]
    links = (tmp_path / "dev.links").read_text().splitlines()
    assert links == [" ".join(f"{i}-{j}" for i, j in sentence.links) for sentence in dev]
    trees = list(read_trees(FoundText(tmp_path / "dev.conllu")))  # refuses a faulty tree
    assert [tree.text for tree in trees] == source
    assert [tree.sentence for tree in trees][:2] == ["dev-1", "dev-2"]
    assert [tuple(tree.tokens) for tree in trees] == [sentence.source for sentence in dev]


@pytest.mark.parametrize("changes", [{}, {"variation": 0.3}, {"variation": 0.1, "variety": "near"}])
def test_links_of_all_words_that_have_a_translation(changes):
    sentences = generate(5, 1000, **changes)
    content, dropped = {"NOUN", "PROPN", "VERB", "ADJ", "ADV", "SCONJ", "PUNCT"}, set()
    added: set[str] = set()
    for sentence in sentences:
        sources, targets = zip(*sentence.links, strict=True)
        assert len(set(targets)) == len(targets)
        added |= {word for j, word in enumerate(sentence.target) if j not in targets}
        assert list(sources) == sorted(set(sources))
        unlinked = [t for i, t in enumerate(sentence.tree) if i not in sources]
        assert not content & {token.upos for token in unlinked}
        dropped |= {token.form for token in unlinked}
        for i, j in sentence.links:
            if sentence.tree[i].upos == "PROPN":  # a copy, with a title
                assert sentence.target[j].startswith(sentence.source[i] + "sha")
    far = "variety" not in changes
    # The near language has an indefinite article before plurals, too: ni, case, gender, number.
    assert all(word[:2] == "ni" and word[-1] == "n" for word in added) and bool(added) != far
    assert dropped == ({"a", "of", "will", "he", "she", "it", "they"} if far else set())


def test_variation_changes_a_share_of_the_targets_alone(sentences):
    varied = generate(5, 2000, variation=0.1)
    assert [s.source for s in varied] == [s.source for s in sentences]
    synonyms = {w.synonym for group in lexicon().values() for w in group.items} - {""}
    adjectives = [w for w in lexicon()["adjectives"].items if w.synonym in synonyms]
    stems = tuple(w.stem() for w in adjectives), tuple(w.synonym for w in adjectives)
    words = [
        sentence.target[j]
        for sentence in varied
        for i, j in sentence.links
        if sentence.tree[i].upos == "ADJ"
    ]
    plain, others = (sum(word.startswith(some) for word in words) for some in stems)
    assert plain + others >= len(words) and 0.08 < others / len(words) < 0.13


def test_relations_tags_and_lengths(sentences):
    tokens = [token for sentence in sentences for token in sentence.tree]
    assert {token.deprel for token in tokens} == set(RELATIONS.split())
    assert {token.upos for token in tokens} == set(UPOS.split())
    lengths = [len(sentence.source) for sentence in sentences]
    assert min(lengths) == 4 and max(lengths) == 18
    assert 9.5 < sum(lengths) / len(lengths) < 11


def test_empty_splits_are_refused(tmp_path, capsys):
    flags = ["--corpus", "synthetic", "--out", tmp_path / "manifest.json", "--dev-pairs", "0"]
    assert run_script("synthetic", flags) == 2
    assert "error: --dev-pairs: " in capsys.readouterr().err

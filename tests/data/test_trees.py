"""Dependency trees: from CoNLL-U to tokens, arcs and the subwords of a model."""

import csv
import json
from pathlib import Path

import pytest

from headcount.base.errors import UserError
from headcount.base.settings.data import SpellingSettings
from headcount.data.bpe import PieceCutter, Segmenter
from headcount.data.fetching.download import fetch_corpus
from headcount.data.lines import FoundText
from headcount.data.manifest import find_text
from headcount.data.synthetic.corpus import conllu, generate
from headcount.data.trees import (
    Arc,
    _tree_faults,
    align_trees,
    read_aligned,
    read_trees,
    write_aligned,
)
from headcount.data.vocabulary import Vocabulary
from headcount.data.words import Tokeniser, normaliser

# French: `du` is de + le; an empty node stands after 3; `chat` has a subtype of relation.
FRENCH = """\
# sent_id = fr-1
# text = Il vient du chat.
1\tIl\til\tPRON\t_\t_\t2\tnsubj\t_\tEntity=1
2\tvient\tvenir\tVERB\t_\t_\t0\troot\t_\t_
3-4\tdu\t_\t_\t_\t_\t_\t_\t_\t_
3\tde\tde\tADP\t_\t_\t5\tcase\t_\t_
3.1\tqui\tqui\tPRON\t_\t_\t_\t_\t2:nsubj\t_
4\tle\tle\tDET\t_\t_\t5\tdet\t_\t_
5\tchat\tchat\tNOUN\t_\t_\t2\tobl:arg\t_\tSpaceAfter=No
6\t.\t.\tPUNCT\t_\t_\t2\tpunct\t_\t_

"""
# Nothing but a word that is not written.
EMPTY_NODE = "# sent_id = s-2\n0.1\tq\tq\tX\t_\t_\t_\t_\t0:root\t_\n\n"


def tree_text(*heads: int | str, sentence: str = "s-7") -> str:
    """Words a, b, … with these heads."""
    rows = [f"{n}\t{chr(96 + n)}\t_\tX\t_\t_\t{h}\tdep\t_\t_" for n, h in enumerate(heads, start=1)]
    return f"# sent_id = {sentence}\n" + "\n".join(rows) + "\n\n"


@pytest.fixture
def read(tmp_path: Path):
    def found(content: str):
        (tmp_path / "t.conllu").write_bytes(content.encode())
        return list(read_trees(FoundText(tmp_path / "t.conllu")))

    return found


def segmenter(*words: str, spelt: SpellingSettings | None = None) -> Segmenter:
    """Knows these words; every other is cut into characters."""
    vocabulary = Vocabulary([(word, 1) for word in words])
    tokeniser, cutter = Tokeniser("fr", True, "none"), PieceCutter("#version: 0.2\n")
    spell = normaliser(spelt or SpellingSettings())
    return Segmenter(tokeniser, cutter, vocabulary, spell)


def test_f26_tokens_of_several_words_are_one_and_empty_nodes_are_none(read):
    (tree,) = read(FRENCH)
    assert tree.sentence == "fr-1"
    assert tree.tokens == ["Il", "vient", "du", "chat", "."]
    # Both words of `du` hang from chat; none of its arcs stays inside it.
    assert tree.arcs == [
        Arc(0, 1, "nsubj"), Arc(2, 3, "case"), Arc(2, 3, "det"), Arc(3, 1, "obl:arg"),
        Arc(4, 1, "punct"),
    ]  # fmt: skip


def test_arcs_inside_one_token_are_left_out(read):
    joined = tree_text(2, 0, 2).replace("1\ta", "1-2\tab\t_\t_\t_\t_\t_\t_\t_\t_\n1\ta")
    (tree,) = read(joined)
    assert (tree.tokens, tree.arcs) == (["ab", "c"], [Arc(1, 0, "dep")])


def ranged(ranges: str, *heads: int) -> str:
    """A tree with such ranges of words before its first word."""
    rows = "".join(name + "\tx" + "\t_" * 8 + "\n" for name in ranges.split())
    return tree_text(*heads).replace("1\ta", f"{rows}1\ta", 1)


FAULTS = {
    "s-7: word 2 is in a cycle and hangs from no root": tree_text(2, 3, 2),
    "s-7: word 2 is in a cycle": tree_text(0, 2),
    "s-7: word 3 has the head 4, expected 0 to 3": tree_text(2, 0, 4),
    "s-7: word 2 has the head None": tree_text(0, "_"),
    "sentence 2: not CoNLL-U": tree_text(0) + tree_text(0, "x", sentence="s-8"),
    "s-7: expected words numbered from 1": tree_text(0, 1).replace("2\tb", "3\tb"),
    "s-7: expected one root, found 2: words 1, 3": tree_text(0, 1, 0),
    "s-7: word 2: .* called 'dobj'": tree_text(0, 1).replace("1\tdep", "1\tdobj"),
    "s-7: word 2: .* called 'SBJ:x'": tree_text(0, 1).replace("1\tdep", "1\tSBJ:x"),
    "s-7: word 2: .* called '_'": tree_text(0, 1).replace("1\tdep", "1\t_"),
    r"s-7: expected 10 columns in row 2, found 4 \(2 b _ X\)": tree_text(0, 1).replace(
        "2\tb\t_\tX\t_\t_\t1\tdep\t_\t_", "2\tb\t_\tX"
    ),
    "expected trees in CoNLL-U, found none with a word": "",
    "expected trees in CoNLL-U, found none": "# sent_id = s-1\n\n" + EMPTY_NODE,
    "sentence 1: not CoNLL-U": "Call me Ishmael.\n",
    "the range 1-300000000 of a token ends after": ranged("1-300000000", 0, 1, 1, 1, 1),
    "s-7: the range 4-6 of a token ends after the last word, 5": ranged("4-6", 0, 1, 1, 1, 1),
    "the range 2-4 of a token begins inside": ranged("1-3 2-4", 0, 1, 1, 1, 1),
    "the range 1-2 .* or before": ranged("3-4 1-2", 0, 1, 1, 1, 1),
    "the range 1-2 of a token begins": ranged("1-2 1-2", 0, 1, 1, 1, 1),
    # Numbers of thousands of digits.
    "not CoNLL-U .{,250}$": tree_text(0).replace("1\ta", "9" * 5000 + "\tx", 1),
    "not CoNLL-U .{,260}$": tree_text(0).replace("1\ta", "1\ta\t_\tX\t_\t_\t" + "9" * 5000, 1),
}


@pytest.mark.parametrize("words", FAULTS)
def test_f26_x15_x16_x18_faulty_trees_are_named_by_their_sentence(read, words):
    with pytest.raises(UserError, match=f"t.conllu: .*{words}"):
        read(FAULTS[words])


def test_f26_ranges_may_touch_and_reach_the_last_word(read):
    text = ranged("1-1", 0, 1, 1).replace("2\tb", "2-3\ty" + "\t_" * 8 + "\n2\tb", 1)
    (tree,) = read(text)
    assert tree.tokens == ["x", "y"] and tree.arcs == [Arc(1, 0, "dep"), Arc(1, 0, "dep")]


@pytest.mark.timeout(15)  # steps by the square of the words, 10^10, would take an hour
def test_f26_x17_each_word_of_a_long_sentence_is_looked_at_once():
    words = 100_000
    chain = {word: word + 1 for word in range(1, words)}
    assert not list(_tree_faults(chain | {words: 0}))
    assert "word 99999 is in a cycle" in next(_tree_faults(chain | {words: words - 1}))


def test_f18_a_line_ends_at_a_line_feed_alone(read):
    odd = FRENCH.replace("vient", "vi\u2028e\rn\u0085t").replace("\n", "\r\n", 3)
    (tree,) = read(odd)
    assert tree.tokens == ["Il", "vi\u2028e\rn\u0085t", "du", "chat", "."]


def test_f17_faults_in_ones_own_trees_name_ones_own_file(tmp_path):
    own = tmp_path / "own.conllu"
    own.write_text(tree_text(0, 5))
    fetch_corpus("c", {"splits": {"t": {"en": {"path": str(own)}}}}, tmp_path / "raw")
    with pytest.raises(UserError) as caught:
        found = find_text(tmp_path / "raw" / "manifest.json", "t", "en", trees=True)
        list(read_trees(found))
    assert str(caught.value).startswith(f"{own}: sentence s-7: word 2 has the head 5")


def test_trees_are_aligned_with_the_models_pieces(read, tmp_path):
    trees = read(FRENCH)
    aligned, counts = align_trees(trees, segmenter("Il", "vient", "du", "c@@", "h@@", "."))
    assert aligned[0].pieces[3] == ["c@@", "h@@", "a@@", "t"]
    assert aligned[0].arcs == trees[0].arcs
    assert counts["tokens"] == 5
    write_aligned(tmp_path / "x.y.jsonl", aligned, counts, {"more": 1})
    assert read_aligned(tmp_path / "x.y.jsonl") == aligned
    assert json.loads((tmp_path / "x.y.json").read_text())["sentences"] == 1
    with (tmp_path / "x.y.csv").open() as file:
        rows = {(row["relation"], row["offset"]): row["count"] for row in csv.DictReader(file)}
    # The dependent's position less the governor's.
    assert rows == {
        ("nsubj", "-1"): "1", ("case", "-1"): "1", ("det", "-1"): "1", ("obl:arg", "2"): "1",
        ("punct", "3"): "1",
    }  # fmt: skip


def test_trees_are_written_as_the_text_of_the_model_was(read):
    trees = read(FRENCH)
    for lowercase, pieces in ((True, ["i@@", "l"]), (False, ["I@@", "l"])):
        cuts = segmenter("i@@", "l", spelt=SpellingSettings(lowercase=lowercase))
        assert align_trees(trees, cuts)[0][0].pieces[0] == pieces


def test_f26_sentences_that_do_not_fit_are_dropped_and_counted(read):
    other_text = FRENCH.replace("fr-1", "fr-2").replace("chat.", "chien.")
    trees = read("# sent_id = s-1\n\n" + EMPTY_NODE + FRENCH + other_text)
    aligned, counts = align_trees(trees, segmenter())
    assert [tree.sentence for tree in aligned] == ["fr-1"]
    assert (counts["sentences_read"], counts["sentences"]) == (4, 1)
    assert (counts["dropped_empty"], counts["dropped_text"]) == (2, 1)


def wordless(text: str) -> str:
    """The trees without their words, as where a text may not be shared."""
    rows = (line.split("\t") for line in text.split("\n") if not line.startswith("# text"))
    return "\n".join("\t".join([*row[:1], "_", *row[2:]] if len(row) > 1 else row) for row in rows)


def test_sentences_whose_words_were_taken_out_are_dropped_and_counted(read):
    single = tree_text(0, 1).replace("\tb\t", "\t_\t")  # a word, as in English text
    trees = read(FRENCH + 2 * wordless(FRENCH) + single)
    aligned, counts = align_trees(trees, segmenter())
    assert [len(tree.pieces) for tree in aligned] == [5, 2]
    assert (counts["sentences_read"], counts["dropped_wordless"], counts["sentences"]) == (4, 2, 2)
    with pytest.raises(UserError, match="t.conllu: .* none with a word"):
        read(2 * wordless(FRENCH))


def test_empty_nodes_have_no_arcs_and_tokens_may_have_spaces(read):
    rows = ["0.1 I _", "1 Poured 0", "2 10~0 3", "3 l 1", "4-5 into~it _", "4 into 5", "5 it 1"]
    cells = [
        (
            n,
            form.replace("~", " "),
            *"_X__",
            head,
            "_" if head == "_" else "dep",
            "1.1:obl",
            "X=a|_",
        )
        for n, form, head in map(str.split, rows)
    ]
    (tree,) = read("\n".join(map("\t".join, cells)) + "\n\n")
    assert tree.tokens == ["Poured", "10 0", "l", "into it"]
    assert tree.arcs == [Arc(1, 2, "dep"), Arc(2, 0, "dep"), Arc(3, 0, "dep")]


def test_if_none_fits_the_fault_names_a_sentence(read):
    trees = read(FRENCH.replace("chat.", "chien."))
    with pytest.raises(UserError, match="is left of 1; the last: sentence fr-1: its words"):
        align_trees(trees, segmenter())
    blank = read(tree_text(0, 1).replace("\tb\t", "\t\u200b\u00a0\t"))
    blank[0].tokens[1] = "\u00a0"  # nothing but a space, which no model reads
    with pytest.raises(UserError, match="sentence s-7: a word has nothing"):
        align_trees(blank, segmenter())


def test_gold_trees_of_the_generated_corpus_come_back_whole(read):
    sentences = generate(1, 20, "test")
    for found, given in zip(read(conllu(sentences, "test")), sentences, strict=True):
        assert found.tokens == list(given.source)
        arcs = [(n, t.head - 1, t.deprel) for n, t in enumerate(given.tree) if t.head]
        assert [tuple(arc) for arc in found.arcs] == arcs


@pytest.mark.parametrize(("kind", "split"), [("trees", "test"), ("splits", "ewt")])
def test_treebanks_are_found_by_either_kind_of_manifest(tmp_path, kind, split):
    """Of a generated corpus and of a fetched treebank."""
    (tmp_path / "a.conllu").write_text("")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # SHA-256 of nothing
    manifest = tmp_path / "manifest.json"
    place = FoundText(tmp_path / "a.conllu")
    for sha256 in (empty, "00"):
        entry = {"file": "a.conllu", "sha256": sha256, "bytes": 0}
        manifest.write_text(json.dumps({"splits": {}} | {kind: {split: {"en": entry}}}))
        if sha256 == empty:
            assert find_text(manifest, split, "en", trees=True) == place
    for language, words in (("en", "changed"), ("de", "'de'")):
        with pytest.raises(UserError, match=words):
            find_text(manifest, split, language, trees=True)

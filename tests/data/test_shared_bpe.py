"""One segmentation for several pairs: marks of target languages, one vocabulary, a mixture."""

import json
from collections import Counter

import numpy as np
import pytest
from script_runner import run_script

from headcount.base.folders import CODES, VOCABULARIES
from headcount.data.lines import clean_lines
from headcount.data.shared_bpe import line_repeats
from headcount.data.trees import AlignedTree, Arc, Tree, align_trees
from headcount.data.vocabulary import SPECIALS, UNK
from headcount.deployment.pieces import used_ids
from headcount.heads.roles import sentences_of
from headcount.store.pair_folder import PairFolder

PAIRS = {"small.en-de": ["a b", "", "b a b"], "large.de-en": [f"b a {n}" for n in range(12)]}


@pytest.fixture
def folders(tmp_path) -> dict[str, PairFolder]:
    """The folders of two pairs and of their mixture at T = 2: of 3 lines 6, beside 12."""
    for pair, lines in PAIRS.items():
        folder = tmp_path / "text" / pair
        folder.mkdir(parents=True)
        for name in ("train.src", "train.tgt", "dev.src", "dev.tgt"):
            text = "".join(f"{line}\n" for line in (lines if "train" in name else lines[:2]))
            (folder / name).write_text(text if "src" in name else text.replace("a", "c"))
    names = [*PAIRS, "shared"]
    flags = ("--merges", 0, "--temperature", 2, "--pretokenised", "small")
    texts = [tmp_path / "text" / pair for pair in PAIRS]
    outs = [tmp_path / name for name in names]
    code = run_script(
        "shared_bpe", ["--pairs", *PAIRS, "--texts", *texts, "--out-folders", *outs, *flags]
    )
    assert code == 0
    return {name: PairFolder(tmp_path / name) for name in names}


def test_shares_by_hand():
    """Of 100, 25 and 4 lines, at T = 2: 100, 100 · √0.25 = 50 and 100 · √0.04 = 20."""
    repeats = line_repeats([100, 25, 4], 2.0)
    assert [int(times.sum()) for times in repeats] == [100, 50, 20]
    assert {*repeats[1].tolist()} == {2} and {*repeats[2].tolist()} == {5}
    assert [int(times.sum()) for times in line_repeats([100, 25, 4], 1.0)] == [100, 25, 4]
    # At T = 4 of 30 lines 100 · 0.3^(1/4) = 74.008: all twice, and 14 of them once more.
    ones, drawn = line_repeats([100, 30], 4.0)
    assert {*ones.tolist()} == {1} and sorted(drawn) == [2] * 16 + [3] * 14
    assert np.array_equal(drawn, line_repeats([100, 30], 4.0)[1]) and drawn[:14].sum() < 42
    assert [times.sum() for times in line_repeats([7, 0], 5.0)] == [7, 0]


def test_sources_begin_with_the_mark_of_their_target(folders):
    small, large = (folders[name] for name in PAIRS)
    for split in ("train", "dev"):
        src, tgt = (list(clean_lines(path)) for path in small.texts(split))
        assert src[:2] == ["<2de> a b", ""] and tgt[:2] == ["c b", ""]
    assert next(clean_lines(large.texts("train")[0])).startswith("<2en> b a ")
    source, target = small.segmenters()
    assert source.pieces("b a") == ["<2de>", "b", "a"] and source.pieces("") == []
    assert UNK not in source.encode("b a") and target.pieces("b a") == ["b", "a"]
    assert source.decode(source.encode("b a")) == "b a"
    assert source.word_count(source.pieces("b a")) == 2
    # A model that writes a mark shows no text for it.
    assert target.decode([*target.vocabulary.ids(["<2en>", "b"])]) == "b"


def test_a_cut_vocabulary_keeps_all_marks(folders, tmp_path):
    (tmp_path / "few").write_text("b\n")
    for side in folders["small.en-de"].segmenters():
        kept = side.vocabulary.pieces(sorted(used_ids(side, [tmp_path / "few"])))
        assert kept == [*SPECIALS, "<2de>", "<2en>", "b"]


def test_pairs_share_codes_vocabulary_and_numbers(folders):
    for name in (*CODES, *VOCABULARIES):
        assert len({(folder.path / name).read_bytes() for folder in folders.values()}) == 1
    assert folders["shared"].vocabulary("src").counts[:2] == [("<2de>", 6), ("<2en>", 12)]


def test_the_mixture_repeats_the_smaller_pair(folders):
    src, tgt = (Counter(clean_lines(path)) for path in folders["shared"].texts("train"))
    assert src["<2de> a b"] == tgt["c b"] == 2 and src[""] == 2
    assert src["<2en> b a 5"] == 1 and src.total() == 6 + 12
    mixed = list(clean_lines(folders["shared"].texts("dev")[0]))
    assert mixed == ["<2de> a b", "", "<2en> b a 0", "<2en> b a 1"]
    assert len(folders["shared"].read("train")) == 18
    # Words are counted in the mixture: `b` of the source stands thrice in two lines, six times.
    counts = dict(folders["shared"].vocabulary("src").counts)
    assert counts["b"] == 2 * 2 * 3 + 2 * 12 and counts["a"] == 2 * 2 + 12


def test_trees_and_records_of_a_marked_source(folders):
    """A tree keeps its words; the model reads the mark before them."""
    segmenter = folders["small.en-de"].segmenters()[0]
    tree = Tree("1", ["a", "b"], [Arc(0, 1, "det")], None)
    aligned, counts = align_trees([tree], segmenter)
    assert aligned == [AlignedTree("1", [["a"], ["b"]], tree.arcs)] and counts["tokens"] == 2
    text = sentences_of(aligned, segmenter.vocabulary, segmenter.marks)
    assert segmenter.vocabulary.pieces(text.src[0]) == ["<2de>", "a", "b"]
    about = json.loads((folders["large.de-en"].path / "segmentation.json").read_text())
    assert (about["src_lang"], about["tgt_lang"], about["pretokenised"]) == ("de", "en", False)
    assert about["marks"]["src"]["before"] == ["<2en>"]

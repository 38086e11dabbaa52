"""Byte-pair encoding: nothing is lost, nothing collides, the same input gives the same files."""

import json
import sys
from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from script_runner import run_script

from headcount.base.errors import EnvironmentFault, UserError
from headcount.base.settings.data import BpeSettings
from headcount.data.bpe import (
    UNKNOWN,
    PieceCutter,
    Segmenter,
    join_pieces,
    learn_codes,
    load_segmenters,
)
from headcount.data.vocabulary import UNK, Vocabulary
from headcount.data.words import Tokeniser, protect, restore
from headcount.library.model import Model
from headcount.scoring.bleu import bleu_metric

NASTY = ["@@", "a@@", "@@@", "@", "<unk>", "x</s>", "<s>", "<pad>", "|||", "\\", "\\5c;", "</w>"]
NASTY += ["a</w>b", "a\tb", " ", "\u2028", "\u00a0", "\u3000", "a\nb", "#version:", "&amp;", "\0"]

# Learnt where it hurts: the marks of the encoding itself are frequent here.
CODES = learn_codes(Counter(dict.fromkeys(NASTY, 3) | {"lower": 5, "low": 5}), 100)
CUTTER = PieceCutter(CODES)

words = st.lists(st.sampled_from(NASTY) | st.text(min_size=1, max_size=12), max_size=8)


@pytest.mark.slow
@given(words)
def test_f23_cutting_and_joining_is_the_identity(words):
    pieces = CUTTER.cut(words)
    assert join_pieces(pieces) == words
    # Stored with spaces between, the pieces are the same when read again.
    assert " ".join(pieces).split() == pieces
    assert not {"<pad>", "<s>", "</s>", "<unk>"} & set(pieces)


@given(st.text(min_size=1))
def test_f23_protection_is_undone(word):
    safe = protect(word)
    assert restore(safe) == word
    assert not any(character.isspace() for character in safe)
    assert not safe.endswith(("@@", "<pad>", "<s>", "</s>", "<unk>"))


def test_protection_by_hand():
    assert protect("plain&amp;|") == "plain&amp;|"
    assert protect("a\\b") == "a\\5c;b"
    assert protect("a\tb@@") == "a\\9;b@\\40;"
    assert protect("<unk>") == "<unk\\3e;"
    assert restore("\\d800; \\110000; \\; \\5c") == "\\d800; \\110000; \\; \\5c"


def test_merges_by_hand():
    # Symbols: l o w</w> (2), l o w e r</w> (1). Pairs: lo 3, ow</w> 2, ow 1, we 1, er</w> 1.
    codes = learn_codes(Counter({"low": 2, "lower": 1}), 10)
    assert codes == "#version: 0.2\nl o\nlo w</w>\n"  # all other pairs occur once
    cutter = PieceCutter(codes)
    assert cutter.cut(["low", "lower"]) == ["low", "lo@@", "w@@", "e@@", "r"]
    assert join_pieces(["lo@@", "w", "e@@"]) == ["low", "e"]


@pytest.mark.parametrize(("words", "merges"), [({"low": 9}, 0), ({"a": 5, "b": 5}, 10), ({}, 10)])
def test_nothing_to_merge(words, merges):
    codes = learn_codes(Counter(words), merges)
    assert codes == "#version: 0.2\n"
    assert PieceCutter(codes).cut(["low"]) == ["l@@", "o@@", "w"]


def test_merges_do_not_depend_on_the_order_of_words():
    counts = {"abab": 2, "baba": 2, "ccab": 3, "bacc": 3}
    backwards = dict(reversed(counts.items()))
    assert learn_codes(Counter(counts), 20) == learn_codes(Counter(backwards), 20)


def test_f22_endless_word_is_cut_in_time():
    word = "".join(chr(97 + i * i % 26) for i in range(200_000))
    assert join_pieces(CUTTER.cut([word, "low"])) == [word, "low"]


LINE = "Tom & Ann's dog isn't <b>here</b>, &amp; it costs $5."
CZECH = "V roce 2014 a v roce 2016."
CHINESE, CHARACTERS = "我们用 Python 写了3本书。", [*"我们用", "Python", *"写了3本书。"]
TOKENISED = [  # language, pretokenised, line, words (None: at spaces), joined (None: the line)
    ("en", False, "Ann's [dog] & |it|.", "Ann 's [ dog ] & | it | .", "Ann's [dog] & | it |."),
    ("en", False, "Tom & Ann", None, None),
    ("en", True, LINE, None, None),
    ("xq", False, "Qala, wen!", "Qala , wen !", None),  # a language without rules
    ("cs", False, CZECH, CZECH.replace(".", " ."), None),
    # Scripts decide, whatever the language.
    ("th", False, CHINESE, " ".join(CHARACTERS), "我们用 Python 写了 3 本书。"),
    ("th", True, "我们 用", None, None),
    # ที่ is a consonant, a vowel above it and a tone above the vowel.
    ("th", False, "ที่นี่", "ที่ นี่", None),
]


@pytest.mark.parametrize(("language", "pretokenised", "line", "words", "joined"), TOKENISED)
def test_f27_words_of_a_line_and_back(language, pretokenised, line, words, joined):
    tokeniser = Tokeniser(language, pretokenised, "characters")
    words = (words or line).split(" ")
    assert tokeniser.split(line) == words
    assert tokeniser.join(words) == (joined or line)


@pytest.mark.slow
def test_chinese_is_cut_by_characters():
    """Moses's rules of Chinese take half a second to load."""
    assert Tokeniser("zh", False, "characters").split(CHINESE) == CHARACTERS


def test_jieba_finds_words_of_chinese_alone():
    pytest.importorskip("jieba", reason="the extra zh")
    assert Tokeniser("zh", False, "jieba").split("我们喜欢翻译") == ["我们", "喜欢", "翻译"]
    assert Tokeniser("ja", False, "jieba").split("翻訳") == ["翻", "訳"]


def test_without_jieba_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "jieba", None)
    with pytest.raises(EnvironmentFault, match=r"jieba .*'\.\[zh\]'"):
        Tokeniser("zh", False, "jieba")
    assert Tokeniser("zh", True, "jieba").split("我们 用") == ["我们", "用"]  # words are there


def test_whole_words_are_units_and_rare_ones_unknown(segment):
    """Of the words that stand once the first by code point are known."""
    code, folder = segment("whole", "--unit", "words", "--largest", 3, "--joint", "false")
    assert code == 0
    assert (folder / "src.vocab").read_text() == "the 2\nlow 1\nlower 1\n"
    source, _ = load_segmenters(folder)
    assert source.decode(source.encode("the low cow")) == f"the low {UNKNOWN}"
    assert (folder / "train.src").read_text().splitlines()[0] == "the low tower"


@pytest.mark.parametrize("language", ["de", "vi", "zh"])
def test_an_unknown_word_is_one_word_to_every_metric(language):
    """As any other wrong word is: of `<unk>` sacreBLEU's tokenisers would make three."""
    for metric in (bleu_metric(language), bleu_metric("en")):
        cut = metric._preprocess_segment(f"a {UNKNOWN} b").split()
        assert cut == metric._preprocess_segment("a").split() + [UNKNOWN, "b"]


def test_what_a_model_reads_later_is_written_as_its_text_was(segment):
    """Capitals of a model of text in lower case, and é in two characters, are no unknown pieces."""
    code, folder = segment("lower", "--lowercase", "true")
    assert code == 0
    assert json.loads((folder / "segmentation.json").read_text())["spelling"] == {"lowercase": True}
    source, _ = load_segmenters(folder)
    assert source.encode("The LOW") == source.encode("the low")
    assert UNK not in source.encode("THE")
    reader = SimpleNamespace(_sides=load_segmenters(folder))
    assert Model._spelt(reader, ["Der Turm\tEin TURM"]) == ["der turm\tein turm"]  # references
    (folder / "segmentation.json").write_text(
        (folder / "segmentation.json").read_text().replace('{\n    "lowercase": true\n  }', "null")
    )
    with pytest.raises(UserError, match="spelling: expected settings by name, found None"):
        load_segmenters(folder)
    code, folder = segment("plain")
    assert code == 0 and "spelling" not in json.loads((folder / "segmentation.json").read_text())
    source, _ = load_segmenters(folder)
    assert source.encode("The") != source.encode("the")
    assert source.pieces("e\u0301") == source.pieces("\u00e9")


def test_words_and_unknown_pieces():
    vocabulary = Vocabulary([("lo@@", 2), ("w", 1)])
    cutter = PieceCutter("#version: 0.2\nl o\n")
    segmenter = Segmenter(Tokeniser("en", True, "none"), cutter, vocabulary)
    assert segmenter.pieces("low x") == ["lo@@", "w", "x"]
    assert (segmenter.encode("low x"), segmenter.encode("")) == ([4, 5, UNK], [])
    assert [segmenter.decode(ids) for ids in ([4, 5, UNK], [4, UNK], [5, 4])] == [
        *("low ⁇", "lo⁇", "w lo")
    ]
    # A model's own translation may end in a piece that waits for more.
    assert segmenter.begins(["a@@", "b", "c", "d@@"]) == [True, False, True, True]
    assert segmenter.begins([]) == []
    assert (segmenter.word(["a@@", "b"]), segmenter.word(["d@@"])) == ("ab", "d")


TRAIN = ("the low tower\nthe lower town\n\n", "der tiefe Turm\ndie tiefe Stadt\n\n")


@pytest.fixture
def segment(tmp_path):
    """Runs the BPE step; returns the exit code and the folder written."""
    for side, text in zip(("src", "tgt"), TRAIN, strict=True):
        (tmp_path / f"t.{side}").write_text(text, encoding="utf-8")
        (tmp_path / f"d.{side}").write_text("the cow\n\n", encoding="utf-8")

    def run(name, *flags):
        files = {
            f"--{s}-{side}": tmp_path / f"{s[0]}.{side}"
            for s in ("train", "dev")
            for side in ("src", "tgt")
        }
        arguments = [each for pair in files.items() for each in pair]
        arguments += ["--src-lang", "en", "--tgt-lang", "de", "--out-folder", tmp_path / name]
        return run_script("bpe", [*arguments, *flags]), tmp_path / name

    return run


def test_files_of_the_step(segment, capsys):
    code, folder = segment("joint", "--merges", "5", "--pretokenised")
    assert code == 0
    assert "merges learnt: 5 (src), 5 (tgt)" in capsys.readouterr().out
    about = json.loads((folder / "segmentation.json").read_text())
    assert about == BpeSettings(merges=5).model_dump() | {
        **{"src_lang": "en", "tgt_lang": "de", "pretokenised": True},
        "merges_learnt": {"src": 5, "tgt": 5},
    }
    for kind in ("codes", "vocab"):
        assert (folder / f"src.{kind}").read_bytes() == (folder / f"tgt.{kind}").read_bytes()
    pieces = [(folder / f"train.{side}").read_text().split("\n") for side in ("src", "tgt")]
    assert [len(side) for side in pieces] == [4, 4] and pieces[0][2] == ""
    assert [" ".join(join_pieces(line.split())) for line in pieces[0]] == TRAIN[0].split("\n")
    counts = Counter(" ".join(pieces[0] + pieces[1]).split())
    expected = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    assert Vocabulary.load(folder / "src.vocab").counts == expected

    src, tgt = load_segmenters(folder)
    assert src.vocabulary is tgt.vocabulary
    # A piece learnt on the target side serves the source too.
    assert UNK not in src.encode("der tiefe Turm")
    assert src.decode(src.encode("the lower tower")) == "the lower tower"


def test_separate_sides(segment):
    code, folder = segment("separate", "--merges", "4", "--joint", "false", "--pretokenised")
    assert code == 0
    src, tgt = load_segmenters(folder)
    assert (folder / "src.codes").read_text() != (folder / "tgt.codes").read_text()
    assert UNK in src.encode("Stadt") and UNK not in tgt.encode("Stadt")


def test_a_folder_that_is_none(tmp_path, segment):
    with pytest.raises(UserError, match="segmentation.json"):
        load_segmenters(tmp_path)
    folder = segment("joint", "--merges", "5")[1]
    (folder / "src.vocab").write_text("piece without count\n")
    with pytest.raises(UserError, match="src.vocab:1: expected 'piece count'"):
        load_segmenters(folder)
    assert segment("bad", "--merges", "-1")[0] == 2

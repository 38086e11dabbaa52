"""Text of every family: ids are those of the library's tokenizer, translations those of its search.

Weights are random and tokenizers toys, so every piece is as likely as another.
"""

from dataclasses import dataclass

import pytest
from script_runner import run_script
from small_tokenizers import LAYOUTS, LINES, RAW, Small, pieces_of, write_small, write_text

from headcount.ablation.masked_bleu import MaskedModel
from headcount.base.head_values import read_head_values
from headcount.base.settings.decode import DecodeSettings
from headcount.data.trees import Tree, align_trees, cut_tokens
from headcount.data.vocabulary import EOS, PAD, UNK
from headcount.data.words import protect
from headcount.heads.roles import sentences_of
from headcount.model.transformer import Transformer
from headcount.search.beam_search import translate
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount_hf.pretrained.families import Config
from headcount_hf.pretrained.imports import write_imported
from headcount_hf.pretrained.segment import place_marks, segment_pretrained

pytestmark = pytest.mark.slow  # of the library's own classes, a dozen of them


@dataclass(frozen=True)
class Case:
    """Theirs, and ours made from their folder."""

    small: Small
    pair: PairFolder
    model: Transformer
    rows: tuple[list[int], list[int]]  # theirs for each id of ours


@pytest.fixture(scope="module", params=LAYOUTS)
def case(request, tmp_path_factory) -> Case:
    root = tmp_path_factory.mktemp(request.param)
    text = write_text(root / "train.txt")
    small = write_small(request.param, root / "theirs", text)
    segment_pretrained(
        small.folder, ("en", "de"), (text, text), (text, text), root / "bpe", small.codes
    )
    pair = PairFolder(root / "bpe")
    write_imported(small.folder, pair, root / "model", {})
    config = Config.read(small.folder)
    pieces = pieces_of(config.folder)
    _, numbering = place_marks(config, pieces, pair.segmentation()["language_codes"])
    return Case(small, pair, ModelFolder(root / "model").load(), numbering.rows)


def their_source(case: Case, line: str, **how: object) -> list[int]:
    """OPUS-MT's users write the code of the target before the line."""
    code = ">>deu<< " if case.small.family == "marian" else ""
    return case.small.tokenizer(code + line, **how)["input_ids"]


def test_ids_are_those_of_their_tokenizer(case):
    src, tgt = case.pair.segmenters()
    after = int(case.small.family == "mbart")
    for line in [*LINES[:20], "the zebra, 77 § of köln"]:
        ids = src.encode(line)
        assert [case.rows[0][i] for i in [*ids, EOS]] == their_source(case, line)
        labels = case.small.tokenizer(text_target=line)["input_ids"]
        target = [case.rows[1][i] for i in [*tgt.encode(line), EOS]]
        assert target == labels[: len(labels) - after]
        if UNK not in ids:
            assert src.decode(ids) == line
            assert tgt.decode(tgt.encode(line)) == line
    assert src.encode("") == tgt.encode("") == []
    for line in LINES[:5]:  # their longest counts the end, ours does not; marks stay
        ids = src.encode(line)
        assert src.cut_off(ids, len(ids)) == ids
        cut = [case.rows[0][i] for i in [*src.cut_off(ids, 5), EOS]]
        assert cut == their_source(case, line, truncation=True, max_length=6)
        assert len(cut) == 6 < len(ids)


def test_every_language_has_their_id(case):
    pieces = pieces_of(case.small.folder)
    expected = {"marian": 2, "m2m100": 100, "nllb": 202, "mbart": 25, "mbart50": 52}
    assert len(pieces.languages) == expected.get(case.small.family, 0)
    for piece in pieces.languages.values():
        their_id = case.small.tokenizer.convert_tokens_to_ids(piece)
        assert pieces.sides[0].ids[piece] == their_id != pieces.unknown


def test_names_of_special_pieces_in_text_stay_text(case):
    """Their tokenizer makes an end, a padding or a language of them."""
    marks = case.pair.segmentation()["marks"]
    for side, segmenter in zip(("src", "tgt"), case.pair.segmenters(), strict=True):
        before, after = (list(map(protect, marks[side][each])) for each in ("before", "after"))
        for line in RAW:
            pieces = segmenter.pieces(line)
            assert pieces[: len(before)] == before and pieces[len(pieces) - len(after) :] == after
            inner = pieces[len(before) : len(pieces) - len(after)]
            assert not set(inner) & set(map(protect, marks[side]["special"]))
            ids = segmenter.encode(line)
            assert not {PAD, EOS, UNK} & set(ids)
            assert segmenter.decode(ids) == line


def test_pieces_know_where_they_begin(case):
    """What of the line lies before a piece is what the pieces before it say."""
    line = "réma köldo  Ærsun on"
    for segmenter in case.pair.segmenters():
        placed = segmenter.placed(line)
        text, (before, after) = [piece for piece, _ in placed], segmenter.marks
        assert [*before, *text, *after] == segmenter.pieces(line)
        for number, (_, at) in enumerate(placed):
            ids = segmenter.vocabulary.ids(text[:number])
            assert "".join(segmenter.decode(ids).split()) == "".join(line[:at].split())
        assert [at for _, at in placed] == sorted(at for _, at in placed)
        assert placed[-1][1] <= len(line)


def test_marks_before_a_sentence(case):
    """Translations begin with the target's marks. A tree has its words alone."""
    src, tgt = case.pair.segmenters()
    assert bool(tgt.prefix) == (case.small.family not in ("marian", "pegasus", "mbart"))
    (before, after), words = src.marks, cut_tokens(["the", "ma"], src)
    assert [*before, *(piece for word in words for piece in word), *after] == src.pieces("the ma")
    (tree,), _ = align_trees([Tree("s", ["the", "ma"], [], "the ma")], src)
    read = sentences_of([tree], src.vocabulary, src.marks)
    assert tree.pieces == words and read.src == [src.encode("the ma")]


SEARCH = DecodeSettings(beam=2, length_penalty=0.6, max_length_factor=0.5, max_length_extra=6)
FLAGS = ["--beam", 2, "--max-length-factor", 0.5, "--max-length-extra", 6]


def test_commands_begin_translations_with_the_code(tmp_path):
    """BLEU reads `de`, the model `deu_Latn`. Text of both sides begins with its code."""
    text, dev, bpe = write_text(tmp_path / "train.txt"), tmp_path / "dev.txt", tmp_path / "bpe"
    theirs = write_small("nllb_json", tmp_path / "theirs", text).folder
    dev.write_text("\n".join(LINES[:12]) + "\n", encoding="utf-8")
    flags = ["--pretrained", theirs, "--src-lang", "en", "--src-code", "eng_Latn"]
    flags += ["--tgt-lang", "de", "--tgt-code", "deu_Latn", "--out-folder", bpe]
    flags += ["--train-src", text, "--train-tgt", text, "--dev-src", dev, "--dev-tgt", dev]
    assert run_script("segment", flags) == 0
    given = ["--bpe", bpe, "--out", tmp_path / "model"]
    assert run_script("import_model", ["--pretrained", theirs, *given]) == 0
    pair, model = PairFolder(bpe), ModelFolder(tmp_path / "model").load()
    src, tgt = pair.segmenters()
    sources, code = [src.encode(line) for line in LINES[:12]], tgt.vocabulary.ids(["deu_Latn"])
    assert tgt.language == "de" and tgt.prefix == code
    for path, first in zip(pair.texts("dev"), ("eng_Latn", "deu_Latn"), strict=True):
        assert all(line.split()[0] == first for line in path.read_text().splitlines())
    translations = translate(model, sources, SEARCH, prefix=code)
    assert all(translation.ids[:1] == code for translation in translations)
    free = translate(model, sources, SEARCH)
    assert [translation.ids for translation in free] != [t.ids for t in translations]
    expected = [tgt.decode(translation.ids) for translation in translations]
    assert not any("deu" in line for line in expected) and len(set(expected)) > 1
    flags = ["--model", tmp_path / "model", "--bpe", bpe]
    where = ["--source", dev, "--out", tmp_path / "out", "--facts", tmp_path / "facts"]
    assert run_script("translate", [*flags, *FLAGS, *where]) == 0
    assert (tmp_path / "out").read_text().splitlines() == expected
    masked = MaskedModel(model, src, tgt, SEARCH)
    under = masked.translations(LINES[:12], [(), (0, 5)], lambda count: None)
    assert under[()] == expected and under[0, 5] != expected
    out = tmp_path / "importance.csv"
    assert run_script("importance", [*flags, "--out", out]) == 0
    assert (read_head_values(out, "importance", model.grid) > 0).all()

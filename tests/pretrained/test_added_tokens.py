"""Words that users added to a tokenizer: cut whole with the library's ids, or refused by file."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_hooked import save_t5
from small_tokenizers import LINES, Small, add_words, pieces_of, write_small, write_text
from torch.nn import functional

from headcount.base.errors import UserError
from headcount.base.files import read_json, write_json
from headcount.data.batches import ParallelText, collate
from headcount.data.sentencepieces import TOKENIZER_UNIT, Marks, make_pieces
from headcount.data.vocabulary import UNK, Vocabulary
from headcount.model.loss import token_losses
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount_hf.hooks.hooked_folder import HookedFolder
from headcount_hf.pretrained import segment as segmenting
from headcount_hf.pretrained.imports import write_imported
from headcount_hf.pretrained.library import LOCAL
from headcount_hf.pretrained.segment import segment_pretrained

HALF, BRAIN, FULL = torch.float16, torch.bfloat16, torch.float32
READ = [
    *(("marian", FULL), ("marian", HALF), ("m2m100", BRAIN), ("nllb_json", HALF)),
    *(("mbart_json", FULL), ("mbart50_json", BRAIN), ("pegasus_json", FULL), ("bart_json", HALF)),
]
TEXT = [
    "the <ent> sun", "<ent>", "do  qqq  ma[sp]ti", "aqqqb <ent><entity> ti", "thema köl qqq", "on",
]  # fmt: skip


def added() -> list:
    from tokenizers import AddedToken

    flags = {"lstrip": True, "rstrip": True}
    names = {"<ent>": {}, "<entity>": {"lstrip": True}, "qqq": flags, "[sp]": {"special": True}}
    return [AddedToken(name, normalized=False, **given) for name, given in names.items()]


def segment(small: Small, root: Path, codes: tuple) -> PairFolder:
    """The pieces of a text with the added words on both sides."""
    text = root / "dev.txt"
    text.write_text("\n".join([*LINES[:4], *TEXT]) + "\n", encoding="utf-8")
    languages = ("en", "de")
    segment_pretrained(small.folder, languages, (text, text), (text, text), root / "bpe", codes)
    return PairFolder(root / "bpe")


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    return write_text(tmp_path_factory.mktemp("added") / "text")


@pytest.fixture(scope="module")
def made(text):
    """Makes each folder once, without words."""
    known: dict[str, Small] = {}

    def make(layout: str) -> Small:
        if layout not in known:
            known[layout] = write_small(layout, text.parent / layout, text)
        return known[layout]

    return make


@pytest.fixture
def copy(made, tmp_path):
    """A folder of a layout, to be changed."""

    def copied(layout: str) -> Path:
        return shutil.copytree(made(layout).folder, tmp_path / "theirs")

    return copied


def change(path: Path, **values: object) -> None:
    write_json(path, (read_json(path) if path.exists() else {}) | values)


@pytest.mark.slow
@pytest.mark.parametrize(("layout", "dtype"), READ)
def test_losses_from_text_are_the_librarys(layout, dtype, text, tmp_path):
    """All from files: the library's tokenizer and model, and ours."""
    import transformers

    small, words = write_small(layout, tmp_path / "theirs", text), added()
    codes = small.codes
    if layout == "nllb_json":  # behind the mask
        codes = ("eng_Latn", "tyv_Cyrl")
        words += [type(words[0])("tyv_Cyrl", special=True)]
    add_words(small, words, dtype)
    pair = segment(small, tmp_path, codes)
    write_imported(small.folder, pair, tmp_path / "model", {})
    assert " lines, by " in read_json(tmp_path / "model/model.json")["check"]["text"]
    named = dict(zip(("src_lang", "tgt_lang"), codes, strict=True)) if codes[0] else {}
    tokenizer = transformers.AutoTokenizer.from_pretrained(small.folder, **LOCAL, **named)
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(
        small.folder, **LOCAL, dtype=FULL
    ).eval()
    ours, (src, tgt) = ModelFolder(tmp_path / "model").load(), pair.segmenters()
    for source, target in zip(TEXT, TEXT[::-1], strict=True):
        given = ">>deu<< " * (layout == "marian") + source
        inputs = tokenizer(given, return_tensors="pt").input_ids
        labels = tokenizer(text_target=target, return_tensors="pt").input_ids
        with torch.no_grad():
            logits = theirs(input_ids=inputs, labels=labels).logits[0]
            nats = functional.cross_entropy(logits, labels[0], reduction="none")
            nats = nats[: len(nats) - (layout == "mbart_json")]  # the language behind the end
            found = token_losses(
                ours, collate(ParallelText([src.encode(source)], [tgt.encode(target)]), [0])
            )
        torch.testing.assert_close(found.flatten(), nats, atol=1e-4, rtol=0)
        said = tokenizer.decode(labels[0, len(tgt.prefix) :], skip_special_tokens=True)
        assert tgt.decode(tgt.encode(target)) == " ".join(said.split())


def entry(name: str, **flags: bool) -> dict:
    return {"content": name, "special": False, "normalized": True} | flags


TABLE, ADDED, SETTINGS = "added_tokens_decoder", "added_tokens.json", "tokenizer_config.json"


@pytest.mark.parametrize(
    ("layout", "name", "values", "message"),
    [
        ("marian", ADDED, {"<ent>": 5}, "found 5 of more than one"),
        ("marian", ADDED, {"<ent>": 9999}, "'<ent>': .* found 9999"),
        ("marian", ADDED, {"<unk>": 7}, "added token '<unk>': expected the id 7, found 1"),
        ("m2m100", ADDED, {"__de__": 95}, "token '__de__': expected the id 95, found 107"),
        ("mbart_spm", ADDED, {"de_DE": 92}, "token 'de_DE': expected the id 92, found 93"),
        ("nllb_spm", ADDED, {"<ent>": 296}, "token '<ent>': expected the id 296, found None"),
        ("marian", SETTINGS, {TABLE: [3]}, "expected a whole encoder-decoder and its tokeniser"),
        ("marian", SETTINGS, {TABLE: {"92": entry("qqq", single_word=True)}}, "'qqq'.* single_wo"),
        ("bart_json", SETTINGS, {TABLE: {"330": entry("<ent>")}}, "'<ent>': .* found 330"),
        ("bart_json", SETTINGS, {"eos_token": "<mask>"}, "eos_token: .* id 2, found '<mask>'"),
        ("m2m100", SETTINGS, {"tokenizer_class": "SMALL100Tokenizer"}, "SMALL100T"),
        ("m2m100", "config.json", {"tokenizer_class": "SMALL100Tokenizer"}, "SMALL100T"),
        ("bart_json", SETTINGS, {"auto_map": {"AutoTokenizer": ["a.B", None]}}, "auto_map: .*B"),
        ("marian", SETTINGS, {"sp_model_kwargs": {"alpha": 0.1}}, "alpha"),
        ("m2m100", SETTINGS, {"language_codes": "m3"}, "expected a whole .*'m3'"),
    ],
)
def test_files_that_contradict_or_are_not_read(copy, layout, name, values, message):
    folder = copy(layout)
    change(folder / name, **values)
    with pytest.raises(UserError, match=message):
        pieces_of(folder)


def test_a_language_behind_the_mask_has_the_id_of_its_file(copy):
    """Of a SentencePiece model alone: 94 pieces, 202 languages, <mask>, and one language more."""
    folder = copy("nllb_spm")
    path = folder / "tokenizer_config.json"
    table = read_json(path)[TABLE]
    last = max(map(int, table))
    change(path, **{TABLE: table | {str(last + 1): entry("tyv_Cyrl", special=True)}})
    found = pieces_of(folder)
    assert len(found.languages) == 203 and found.sides[0].ids["tyv_Cyrl"] == last + 1
    assert found.sides[0].ids["<mask>"] == last


def test_an_unknown_piece_with_the_text_of_an_added_word_is_unknown():
    """In the library a part of a longer word is not the word; Unigram gives its text as a piece."""
    import tokenizers

    made = tokenizers.Tokenizer(tokenizers.models.Unigram([("<unk>", 0.0), ("a", -1.0)], 0))
    made.add_tokens([tokenizers.AddedToken("qq", single_word=True)])
    marks = Marks(words={"qq": "qq"})
    model = made.to_str().encode()
    found = make_pieces(TOKENIZER_UNIT, "en", model, Vocabulary([("a", 1), ("qq", 1)]), marks)
    assert found.encode("qq aqq") == [5, UNK, 4, UNK]


def test_text_that_the_library_cuts_otherwise_is_refused(copy, made, tmp_path, monkeypatch):
    """A Marian gets a word in an unused row, which our cutter forgets."""
    folder = copy("marian")
    write_json(folder / ADDED, {"<ent>": 92})
    small = Small("marian", folder, made("marian").model, None)
    plain = segmenting.make_pieces

    def forgetful(*given):
        return plain(*given[:-1], replace(given[-1], words={}))

    monkeypatch.setattr(segmenting, "make_pieces", forgetful)
    message = r"src line '.*': expected \['<ent>'\] as token"
    with pytest.raises(UserError, match=message):
        segment(small, tmp_path, small.codes)
    assert not (tmp_path / "bpe/segmentation.json").exists()


@pytest.mark.slow
def test_a_model_under_hooks_reads_added_words(tmp_path):
    import transformers

    save_t5(tmp_path, ["a", "b"])
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    tokenizer.add_tokens(["<ent>"])
    tokenizer.save_pretrained(tmp_path)
    assert HookedFolder(tmp_path).sources(["a <ent> b"]) == [[3, 5, 4, 1]]

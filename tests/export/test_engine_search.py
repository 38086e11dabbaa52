"""Search of other programs by our settings alone, with the longest output of every sentence."""

import json

import pytest
from small_tokenizers import LINES, write_small, write_text

import headcount
from headcount.base.files import read_json
from headcount.base.settings.decode import DecodeSettings
from headcount.store.pair_folder import PairFolder
from headcount_hf.export.ctranslate2_model import export_shape
from headcount_hf.export.ctranslate2_search import CTranslate2Search
from headcount_hf.export.huggingface_search import HuggingFaceSearch
from headcount_hf.pretrained.imports import their_words

pytestmark = pytest.mark.slow

SEARCH = DecodeSettings(beam=2, length_penalty=0.0, max_length_factor=1.0, max_length_extra=10)
GENERATION = "generation_config.json"
MAKERS = {"min_length": 30, "no_repeat_ngram_size": 2, "repetition_penalty": 1.5}
MAKERS |= {"encoder_no_repeat_ngram_size": 2, "bad_words_ids": [[9]], "begin_suppress_tokens": [7]}


def imported(layout, folder):
    """A small model as its makers have it, and as it is here."""
    small = write_small(layout, folder / "theirs", write_text(folder / "train.txt"))
    ours = headcount.import_pretrained(small.folder, "en", "de", folder / "ours", small.codes)
    return small, ours


def in_their_library(small, ours, folder):
    """Export a model and open it."""
    ours.export(folder / "back", "huggingface", small.folder)
    return opened(small, folder)


def opened(small, folder):
    pair = PairFolder(folder / "ours")
    rows = their_words(small.folder, pair)
    return HuggingFaceSearch(folder / "back", pair.segmenters(), SEARCH, 64, rows)


def sources_of(folder, lines):
    return list(map(PairFolder(folder / "ours").segmenters()[0].encode, lines))


@pytest.mark.parametrize("layout", ["marian", "bart_json", "mbart_json"])
def test_what_makers_say_of_their_search_changes_nothing(layout, tmp_path):
    small, ours = imported(layout, tmp_path)
    plain = in_their_library(small, ours, tmp_path)
    sources = sources_of(tmp_path, LINES[:3])
    expected = plain.translate(sources)
    prefix = list(PairFolder(tmp_path / "ours").segmenters()[1].prefix)
    assert all(best.ids[: len(prefix)] == prefix for best in expected)
    path = tmp_path / "back" / GENERATION
    begins = {"decoder_start_token_id": 5} if prefix else {}  # as of another language
    path.write_text(json.dumps((read_json(path) if path.exists() else {}) | MAKERS | begins))
    assert opened(small, tmp_path).translate(sources) == expected


@pytest.mark.parametrize("program", ["ctranslate2", "huggingface"])
def test_the_longest_output_is_of_each_sentence(program, tmp_path):
    """Beside a long sentence a short one ends where it does alone; none has over 64 positions."""
    small, ours = imported("bart_json", tmp_path)
    if program == "huggingface":
        engine = in_their_library(small, ours, tmp_path)
    else:
        pytest.importorskip("ctranslate2")
        ours.export(tmp_path / "back", program)
        pair = PairFolder(tmp_path / "ours")
        engine = CTranslate2Search(tmp_path / "back", pair.segmenters(), SEARCH, 64)
    assert export_shape(ours.module)[2] == 64
    assert read_json(tmp_path / "back/export.json")["positions"] == 64
    (short,) = sources_of(tmp_path, LINES[:1])
    long = (short * 60)[:60]
    alone, beside = engine.translate([short]), engine.translate([long, short])
    assert beside[1] == alone[0]
    assert len(beside[0].ids) < 64 and len(beside[1].ids) < len(short) + 10

"""Models that stay in Hugging Face's library behind `headcount.hook`, with lists of lines."""

import numpy as np
import pandas as pd
import pytest
from small_hooked import save_t5, save_whisper

import headcount
from headcount import ImportanceSettings, UserError, measure_importance
from headcount.ablation.masking import ABLATION_COLUMNS
from headcount.base.head_values import COLUMNS
from headcount.base.settings.decode import GenerateSettings
from headcount.library.linking import alignment_frame
from headcount_hf.hooks.hooked_links import read_linked

SOURCES = ["the dog sleeps", "a cat", "the cat sleeps"]
TARGETS = ["a dog", "the cat sleeps", "a cat sleeps"]
SHORT = GenerateSettings(max_new_tokens=8, beam=2)


@pytest.fixture(scope="module")
def t5(tmp_path_factory):
    folder = tmp_path_factory.mktemp("t5")
    save_t5(folder, ("say:", "the", "dog", "sleeps", "a", "cat"))
    return headcount.hook(folder, "en", "de", prefix="say: ", device="cpu")


@pytest.fixture(scope="module")
def whisper(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whisper")
    save_whisper(folder)
    return headcount.hook(folder, "en", "en", device="cpu")


def test_importance_is_that_of_the_ids(t5):
    ids = [t5.folder.tokeniser(f"say: {line}").input_ids for line in SOURCES]
    text = t5.module.text(ids, t5.folder.tokeniser(text_target=TARGETS).input_ids)
    found = t5.importance(SOURCES, TARGETS)
    assert list(found) == list(COLUMNS) and set(found["statistic"]) == {"importance"}
    expected = measure_importance(t5.module, text, ImportanceSettings())
    np.testing.assert_allclose(found["value"], expected)
    assert [f"{r.kind}.{r.layer}.{r.head}" for r in found.itertuples()] == t5.heads


def test_a_model_without_heads_is_the_masked_one(t5, tmp_path):
    heads = t5.importance(SOURCES, TARGETS).nlargest(3, "value")
    less = t5.without(heads)
    masked = t5.loss(SOURCES, TARGETS, mask=heads)
    assert masked != pytest.approx(t5.loss(SOURCES, TARGETS))
    assert less.loss(SOURCES, TARGETS) == pytest.approx(masked)
    assert less.translate(SOURCES, decode=SHORT) == t5.translate(SOURCES, heads, SHORT)
    assert "a t5" in less.export(tmp_path / "out")
    again = headcount.hook(tmp_path / "out", "en", "de", prefix="say: ", device="cpu")
    assert again.loss(SOURCES, TARGETS) == pytest.approx(masked)
    with pytest.raises(UserError, match="to: expected huggingface"):
        less.export(tmp_path / "other", to="ctranslate2")


def test_ablation_compares_bleu_with_no_mask(t5):
    masks = {"two": ["enc_self.0.0", "dec_enc.1.3"], "frame": pd.DataFrame([["dec_self", 0, 1]],
             columns=["kind", "layer", "head"])}  # fmt: skip
    found = t5.ablate(SOURCES, TARGETS, masks, SHORT)
    assert list(found) == list(ABLATION_COLUMNS)
    assert list(found["order"]) == ["none", "two", "frame"]
    assert list(found["heads_masked"]) == [0, 2, 1]
    whole, two = (t5.bleu(SOURCES, TARGETS, mask, SHORT).score for mask in ((), masks["two"]))
    assert list(found["bleu"][:2]) == pytest.approx([whole, two])
    assert found["delta"][1] == pytest.approx(two - whole)
    single = t5.ablate(SOURCES[:1], TARGETS[:1], decode=SHORT)
    assert list(single["heads"][1:]) == t5.heads and set(single["order"][1:]) == {"single"}


def test_alignment_leaves_the_prefix_out(t5):
    links = ["0-0 1-1", "1p1", "2-2"]
    words = [["say:", *line.split()] for line in SOURCES]
    cut = [
        t5.folder.tokeniser(words, is_split_into_words=True),
        t5.folder.tokeniser(text_target=[t.split() for t in TARGETS], is_split_into_words=True),
    ]
    text = t5.module.text(cut[0].input_ids, cut[1].input_ids)
    expected = alignment_frame(t5.module, read_linked(text, cut, links, 1), 4096)
    pd.testing.assert_frame_equal(t5.alignment(SOURCES, TARGETS, links), expected)


def test_whisper_has_the_same_door(whisper, tmp_path):
    sounds = list(np.random.default_rng(1).standard_normal((2, 16000)).astype("float32"))
    said = ["the dog", "a cat"]
    found = whisper.importance(sounds, said)
    assert len(found) == len(whisper.heads) and (found["value"] > 0).any()
    weakest = found.nsmallest(5, "value")
    less = whisper.without(weakest)
    assert less.loss(sounds, said) == pytest.approx(whisper.loss(sounds, said, mask=weakest))
    assert len(whisper.translate(sounds, decode=SHORT)) == 2
    assert list(whisper.ablate(sounds, said, {"weakest": weakest}, SHORT)["heads_masked"]) == [0, 5]
    assert "a Whisper" in whisper.export(tmp_path / "out", alignment=["dec_enc.1.0"])
    with pytest.raises(UserError, match="found one of sound"):
        whisper.alignment(sounds, said, ["0-0", "0-0"])


def test_other_folders_are_refused(t5, tmp_path):
    with pytest.raises(UserError, match="expected a list of lines"):
        t5.translate("a line")
    with pytest.raises(UserError, match="nowhere: expected a folder"):
        headcount.hook("nowhere", "en", "de")

"""The benchmark of pretrained models: its gaps are those of rounding, and its two ways agree."""

import json

import pytest
import torch
from small_hooked import HOOKED
from small_pretrained import KINDS

from benchmarks import pretrained
from benchmarks.pretrained_gaps import gaps_of_hooks, gaps_of_import

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", KINDS)
def test_import_and_hooks_are_apart_by_rounding(kind):
    logits, loss, importance = gaps_of_import(kind)
    assert logits < 2e-5 and loss < 1e-5 and importance < 1e-5


@pytest.mark.parametrize("kind", HOOKED)
def test_a_mask_is_zero_columns_and_importance_a_slope(kind):
    """Norms of T5's relatives round to fp32 in every format, which differences magnify."""
    logits, loss, importance = gaps_of_hooks(kind)
    assert logits < 1e-4 and loss < 1e-5
    assert importance < (1e-5 if kind == "whisper" else 2e-3)


def test_both_ways_of_a_large_model_find_the_same(tmp_path, monkeypatch):
    """Small here: each way gives importance and translations, in the same order."""
    small = dict.fromkeys(("d_model", "encoder_ffn_dim", "decoder_ffn_dim"), 32)
    layers = {f"{side}_layers": 2 for side in ("encoder", "decoder")}
    words = {"vocab_size": 90, "pad_token_id": 89, "decoder_start_token_id": 89}
    sizes = pretrained.SIZES | small | layers | words
    monkeypatch.setattr(pretrained, "SIZES", sizes)
    monkeypatch.setattr(pretrained, "SEARCHED", 3)
    with torch.random.fork_rng():
        pretrained.write_large(tmp_path, 9)
    found = {way: dict(pretrained.measure(way, tmp_path, 200)) for way in pretrained.WAYS}
    ours, theirs = (found[way] for way in pretrained.WAYS)
    assert ours["importance"] == pytest.approx(theirs["importance"], abs=1e-5)
    assert ours["translations"] == theirs["translations"]
    assert len(ours["translations"]) == 60 and len(ours["importance"]) == 48
    assert json.loads(json.dumps(theirs))["single heads, s"] > 0

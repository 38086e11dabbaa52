"""The benchmark of pretrained models: its gaps are those of rounding, and its two ways agree."""

import json

import pytest
import torch

from benchmarks import pretrained

pytestmark = pytest.mark.slow


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

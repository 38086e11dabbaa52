"""One imported model, two pairs: its importance is the library's own gradients for each pair."""

from itertools import chain

import numpy as np
import pytest
import torch
from script_runner import run_script
from small_tokenizers import LINES, write_small, write_text
from torch import nn
from torch.nn import functional

from headcount.base.head_values import read_head_values
from headcount.store.model_folder import ModelFolder

pytestmark = pytest.mark.slow  # of the library's own classes

CODES = {"en": "eng_Latn", "de": "deu_Latn"}
DEV = {"en": LINES[:9], "de": LINES[40:49]}


def their_importance(model: nn.Module, tokenizer, src: str, tgt: str) -> np.ndarray:
    """Return the mean |∂L/∂ξ| over dev pairs, ξ multiplying outputs of heads before `out_proj`."""
    tokenizer.src_lang, tokenizer.tgt_lang = CODES[src], CODES[tgt]
    encoder, decoder = model.model.encoder.layers, model.model.decoder.layers
    layers = [layer.self_attn for layer in chain(encoder, decoder)]
    layers += [layer.encoder_attn for layer in decoder]
    multipliers = [torch.ones(layer.num_heads, requires_grad=True) for layer in layers]
    for layer, ones in zip(layers, multipliers, strict=True):

        def scale(module, given, ones=ones):
            heads = given[0].unflatten(-1, (len(ones), -1))
            return ((heads * ones[:, None]).flatten(-2),)

        layer.out_proj.register_forward_pre_hook(scale)
    total = 0
    for source, target in zip(DEV[src], DEV[tgt], strict=True):
        both = tokenizer(source, text_target=target, return_tensors="pt")
        logits = model(input_ids=both.input_ids, labels=both.labels).logits[0]
        loss = functional.cross_entropy(logits, both.labels[0], reduction="sum")
        total = total + torch.cat(torch.autograd.grad(loss, multipliers)).abs()
    for layer in layers:
        layer.out_proj._forward_pre_hooks.clear()
    return (total / len(DEV[src])).numpy()


def test_importance_of_each_pair_is_that_of_the_librarys_gradients(tmp_path):
    train = write_text(tmp_path / "train.txt")
    small = write_small("nllb_json", tmp_path / "theirs", train)
    dev = {name: tmp_path / f"dev.{name}" for name in DEV}
    for name, path in dev.items():
        path.write_text("\n".join(DEV[name]) + "\n", encoding="utf-8")
    found = []
    for src, tgt in (("en", "de"), ("de", "en")):
        folder = tmp_path / f"{src}-{tgt}"
        flags = ["--src-lang", src, "--src-code", CODES[src], "--tgt-lang", tgt]
        flags += ["--tgt-code", CODES[tgt], "--train-src", train, "--train-tgt", train]
        flags += ["--dev-src", dev[src], "--dev-tgt", dev[tgt], "--out-folder", folder / "bpe"]
        assert run_script("segment", ["--pretrained", small.folder, *flags]) == 0
        given = ["--bpe", folder / "bpe", "--out", folder / "model"]
        assert run_script("import_model", ["--pretrained", small.folder, *given]) == 0
        given = ["--model", folder / "model", "--bpe", folder / "bpe", "--data", "dev"]
        assert run_script("importance", [*given, "--out", folder / "importance.csv"]) == 0
        grid = ModelFolder(folder / "model").load().grid
        values = read_head_values(folder / "importance.csv", "importance", grid)
        expected = their_importance(small.model, small.tokenizer, src, tgt)
        np.testing.assert_allclose(values, expected, rtol=1e-3)
        found.append(expected)
    weights = [tmp_path / f"{pair}/model/weights.safetensors" for pair in ("en-de", "de-en")]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    assert not np.allclose(*found, rtol=0.05)

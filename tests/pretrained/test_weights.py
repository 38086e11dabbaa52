"""Imported models compute what Hugging Face's library computes with the same weights."""

import json

import pytest
import safetensors.torch
import torch
from small_pretrained import (
    KINDS,
    LONG,
    WORDS,
    import_small,
    saved_pretrained,
    small_pretrained,
    their_logits,
)

from headcount.base.errors import UserError
from headcount.data.batches import collate
from headcount.data.vocabulary import BOS, PAD
from headcount.model.loss import summed_loss, token_losses
from headcount_hf.pretrained.families import Config
from headcount_hf.pretrained.imports import compare_with_library


@pytest.fixture(params=KINDS)
def pair(request, tmp_path):
    """A model of theirs, and ours from its folder."""
    theirs = saved_pretrained(request.param, tmp_path)
    return theirs, import_small(tmp_path)


@torch.no_grad()
def test_logits_and_losses_are_theirs(pair):
    theirs, ours = pair
    batch = collate(LONG, range(3))
    real = batch.tgt_out != PAD
    words = [i for i in range(len(ours.tgt_rows)) if i != BOS]
    assert sorted(ours.tgt_rows[i] for i in words) == list(range(WORDS))  # each word once
    expected = their_logits(theirs, ours, batch)[..., [ours.tgt_rows[i] for i in words]][real]
    model = ours.model
    logits = model.logits(model.decode(batch.tgt_in, model.encode(batch.src)))[real]
    torch.testing.assert_close(
        logits[:, words], expected, atol=1e-5 * expected.abs().max().item(), rtol=0
    )
    places = torch.tensor([words.index(word) for word in batch.tgt_out[real].tolist()])
    nats = torch.nn.functional.cross_entropy(expected, places, reduction="none")
    torch.testing.assert_close(token_losses(model, batch), nats, atol=2e-5, rtol=0)


def test_the_fast_loss_and_its_gradient_know_the_bias(pair):
    """Two routes: the fused loss, and autograd through all scores."""
    model = pair[1].model.double()
    batch = collate(LONG, range(3))
    losses, gradients = [], []
    for loss in (summed_loss(model, batch), token_losses(model, batch).sum()):
        model.zero_grad()
        loss.backward()
        losses.append(loss.item())
        gradients.append(
            {n: w.grad.clone() for n, w in model.named_parameters() if w.grad is not None}
        )
    assert losses[0] == pytest.approx(losses[1], rel=1e-12)
    assert gradients[0].keys() == gradients[1].keys() and "output_bias" not in gradients[0]
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][name], atol=1e-10, rtol=0, msg=name)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"decoder_layers": 3}, r"weights lack model\.decoder\.layers\.2\.encoder_attn\.k_proj"),
        ({"d_model": 64}, r"expected the shape \[66, 64\], .*json says, found \[66, 32\]"),
        ({"encoder_ffn_dim": 9, "decoder_ffn_dim": 9}, r"fc1.bias: expected the shape \[9\]"),
        ({"max_position_embeddings": 9}, r"embed_positions.weight: expected the shape \[11, 32\]"),
        # A layer has four maps of attention, two of feed-forward and two norms, all with a bias.
        ({"encoder_layers": 2}, r"16 more, the first of them model\.encoder\.layers\.2\.fc1\.bias"),
        # Else the probability of a word would count twice.
        ({"pad_token_id": 2}, "expected three ids, found 2 as pad_token_id, 2 "),
    ],
)
def test_weights_and_ids_that_contradict_the_config_are_named(tmp_path, values, message):
    saved_pretrained("bart", tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    with pytest.raises(UserError, match=message):
        import_small(tmp_path)


@pytest.mark.parametrize("more", [-1, 1])
def test_a_bias_of_other_words_is_named(tmp_path, more):
    saved_pretrained("marian", tmp_path)
    path = tmp_path / "model.safetensors"
    weights = safetensors.torch.load_file(path)
    words = weights["final_logits_bias"].shape[1]
    weights["final_logits_bias"] = torch.zeros(1, words + more)
    safetensors.torch.save_file(weights, path, {"format": "pt"})
    told = rf"final_logits_bias: expected the shape \[1, {words}\], .*found \[1, {words + more}\]"
    with pytest.raises(UserError, match=told):
        import_small(tmp_path)


def with_weights(folder, **more):
    """Add weights to a file, or change them; dots of a name are __ here."""
    path = folder / "model.safetensors"
    weights = safetensors.torch.load_file(path)
    weights |= {name.replace("__", "."): weight for name, weight in more.items()}
    safetensors.torch.save_file(weights, path)


@pytest.mark.parametrize("kind", KINDS)
def test_copies_and_constants_in_the_file_are_no_weights_of_their_own(kind, tmp_path):
    """A tied embedding under all of its names; sinusoids, under the name of older versions too."""
    theirs = saved_pretrained(kind, tmp_path)
    tied = {"lm_head__weight": theirs.lm_head.weight.detach().clone()}
    if kind != "marian_apart":
        tied["model__shared__weight"] = tied["lm_head__weight"].clone()
        tied["model__encoder__embed_tokens__weight"] = tied["lm_head__weight"].clone()
    tied["model__decoder__embed_tokens__weight"] = tied["lm_head__weight"].clone()
    positions = theirs.model.encoder.embed_positions
    if kind == "m2m_100":
        tied["model__encoder__embed_positions__weights"] = positions.weights.clone()
    elif kind in ("marian", "marian_apart", "pegasus"):
        tied["model__encoder__embed_positions__weight"] = positions.weight.detach().clone()
    before = dict(import_small(tmp_path).model.named_parameters())
    with_weights(tmp_path, **tied)
    for name, weight in import_small(tmp_path).model.named_parameters():
        assert torch.equal(weight, before[name]), name
    changed = tied["lm_head__weight"].clone()
    changed[5, 3] += 1  # a copy that is none: the library does not tie it, and its scores differ
    with_weights(tmp_path, lm_head__weight=changed)
    with pytest.raises(UserError, match="expected the scores of transformers"):
        compare_with_library(import_small(tmp_path), LONG)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", ["marian", "m2m_100", "pegasus"])
def test_tables_of_sinusoids_are_ours_as_their_format_rounds_them(kind, dtype, tmp_path):
    """The values are those that the library computes."""
    positions = saved_pretrained(kind, tmp_path).model.decoder.embed_positions
    end = "weights" if kind == "m2m_100" else "weight"
    table, name = getattr(positions, end).detach(), f"model__decoder__embed_positions__{end}"
    with_weights(tmp_path, **{name: table.to(dtype)})
    import_small(tmp_path)
    if kind == "m2m_100":  # whose table the library computes, whatever a file has
        return
    with_weights(tmp_path, **{name: (table * 0.3).to(dtype)})
    with pytest.raises(UserError, match="expected positions as sinusoids"):
        import_small(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_the_base_class_is_read_as_the_library_reads_it(kind, tmp_path):
    """Its names have no `model.` in front, and it has no bias."""
    theirs = small_pretrained(kind)
    if hasattr(theirs, "final_logits_bias"):
        theirs.final_logits_bias.zero_()
    theirs.save_pretrained(tmp_path / "whole")
    theirs.model.save_pretrained(tmp_path / "base")
    whole, base = (import_small(tmp_path / name).model for name in ("whole", "base"))
    for name, weight in whole.named_parameters():
        assert torch.equal(weight, base.get_parameter(name)), name


@pytest.mark.parametrize("number", [float("nan"), float("-inf")])
def test_numbers_that_are_not_finite_are_refused(tmp_path, number):
    saved_pretrained("marian", tmp_path)
    with_weights(tmp_path, model__encoder__layers__1__fc2__bias=torch.tensor([number] * 32))
    with pytest.raises(UserError, match=r"model\.encoder\.layers\.1\.fc2\.bias: .*finite"):
        import_small(tmp_path)


GONE = object()


def change(path, **values: object) -> None:
    config = json.loads(path.read_text()) | values
    path.write_text(json.dumps({key: config[key] for key in config if config[key] is not GONE}))


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_config_leaves_out_is_what_the_library_takes(kind, tmp_path):
    """Of M2M100, alone, embeddings are scaled then, and attention has dropout."""
    import transformers

    saved_pretrained(kind, tmp_path)
    optional = ("scale_embedding", "tie_word_embeddings", "dropout", "attention_dropout")
    shared = ("share_encoder_decoder_embeddings", "decoder_vocab_size")
    lacking = (*optional, *shared) if kind != "marian_apart" else (*optional, "decoder_vocab_size")
    change(tmp_path / "config.json", **dict.fromkeys(lacking, GONE))
    code = {"src_end": 251} if kind == "mbart" else {}  # of a language, behind the end
    check = compare_with_library(import_small(tmp_path, **code), LONG)
    assert check["largest_gap"] <= 1e-5 * check["largest_score"]
    theirs = transformers.AutoConfig.from_pretrained(tmp_path)
    ours = Config.read(tmp_path).settings()
    for key in ("scale_embedding", "dropout", "attention_dropout"):
        assert getattr(ours, key) == getattr(theirs, key), key
    assert ours.scale_embedding == (kind == "m2m_100")


@pytest.mark.parametrize(("kind", "width"), [("marian", 33), ("pegasus", 33), ("m2m_100", 2)])
def test_sinusoids_need_an_even_width(tmp_path, kind, width):
    saved_pretrained(kind, tmp_path)
    one = {"encoder_attention_heads": 1, "decoder_attention_heads": 1}
    change(tmp_path / "config.json", d_model=width, **one)
    with pytest.raises(UserError, match="config.json: d_model: "):
        Config.read(tmp_path)


def test_only_mbart_is_told_elsewhere_what_translations_begin_with(tmp_path):
    saved_pretrained("mbart", tmp_path)
    for nothing in (None, GONE):
        change(tmp_path / "config.json", decoder_start_token_id=nothing)
        assert import_small(tmp_path, start=250).tgt_rows[1] == 250
        with pytest.raises(UserError, match=r"decoder_start_token_id: expected an id, found none"):
            import_small(tmp_path)

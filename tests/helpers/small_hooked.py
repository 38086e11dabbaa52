"""Small encoder-decoders of Hugging Face's library that stay as they are, and pairs for them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from small_pretrained import KINDS, small_pretrained
from torch import nn

from headcount_hf.hooks.hooked_seq2seq import HookedSeq2Seq, TokenisedText

_T5 = {
    "vocab_size": 300,
    "d_model": 40,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 3,
    "num_decoder_layers": 2,
    "num_heads": 4,
    "dropout_rate": 0.0,
    "decoder_start_token_id": 0,
    "pad_token_id": 0,
    "eos_token_id": 1,
}
_GEMMA = {
    "vocab_size": 300,
    "hidden_size": 40,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "sliding_window": 32,
}
_WHISPER = {
    "vocab_size": 300,
    "d_model": 40,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 5,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_source_positions": 15,
    "max_target_positions": 64,
    "num_mel_bins": 6,
    "dropout": 0.0,
    "pad_token_id": 1,
    "bos_token_id": 2,
    "eos_token_id": 2,
    "decoder_start_token_id": 3,
    "suppress_tokens": None,
    "begin_suppress_tokens": None,
}
HOOKED = ("t5", "mt5", "umt5", "t5gemma", "whisper")
"""Kinds that our Transformer cannot express."""
IMPORTABLE = tuple(KINDS)
EAGER_ONLY = ("t5gemma",)


def small_hooked(kind: str, attention: str = "sdpa") -> HookedSeq2Seq:
    """A model of a kind with random weights, in evaluation mode; its heads matter."""
    if kind in KINDS:
        model = small_pretrained(kind)
        model.set_attn_implementation(attention)
        return HookedSeq2Seq(model)
    torch.manual_seed(3)
    model = _unlike_ours(kind, attention)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim == 1:
                weight.add_(0.1 * torch.randn_like(weight))
            elif "embed" in name or "shared" in name:
                weight.copy_(torch.randn_like(weight) * 0.25)
            elif weight.ndim == 2:
                nn.init.xavier_uniform_(weight, gain=1.2)
    return HookedSeq2Seq(model.eval())


def _unlike_ours(kind: str, attention: str) -> nn.Module:
    import transformers

    if kind == "t5gemma":
        side = transformers.T5GemmaModuleConfig(**_GEMMA)
        config = transformers.T5GemmaConfig(
            encoder=side, decoder=side, vocab_size=300, pad_token_id=0, eos_token_id=1,
            bos_token_id=2, decoder_start_token_id=2,
        )  # fmt: skip
        built = transformers.T5GemmaForConditionalGeneration
    else:
        prefix = {"t5": "T5", "mt5": "MT5", "umt5": "UMT5", "whisper": "Whisper"}[kind]
        values = _WHISPER if kind == "whisper" else _T5
        if kind == "t5":
            values = values | {"feed_forward_proj": "gated-gelu"}
        config = getattr(transformers, f"{prefix}Config")(**values)
        built = getattr(transformers, f"{prefix}ForConditionalGeneration")
    return built._from_config(config, attn_implementation=attention)


def small_text(model: HookedSeq2Seq) -> TokenisedText:
    """Four pairs of unlike lengths, so that there is padding on both sides."""
    draw = np.random.default_rng(5)
    targets = [draw.integers(5, 240, length).tolist() for length in (4, 8, 1, 6)]
    sources = [draw.integers(5, 240, length).tolist() for length in (7, 2, 6, 9)]
    if model.model.main_input_name == "input_features":
        features = draw.standard_normal((4, 6, 30))
        sources = list(torch.from_numpy(features).float())
    end = model.model.config.eos_token_id
    return model.text(sources, [[*ids, end] for ids in targets])


def save_t5(folder: Path, words: Sequence[str]) -> nn.Module:
    """A T5 for these words, written with its tokeniser, which adds an end."""
    import tokenizers
    import transformers

    ids = {word: n for n, word in enumerate(["<pad>", "</s>", "<unk>", *words])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(ids, unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    specials = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=made, **specials)
    fast.save_pretrained(folder)
    model = small_hooked("t5").model
    assert len(ids) <= model.config.vocab_size
    model.save_pretrained(folder)
    return model


def save_whisper(folder: Path) -> None:
    """A Whisper of one second, of letters and two languages, written with what reads its sound."""
    import transformers

    marks = ["endoftext", "startoftranscript", "en", "zh", "translate", "transcribe"]
    marks = [f"<|{mark}|>" for mark in (*marks, "notimestamps")]
    pieces = ["!", '"', *marks, "Ġ", *"abcdefghijklmnopqrstuvwxyz"]
    tokenizer = transformers.WhisperTokenizer(
        vocab={piece: n for n, piece in enumerate(pieces)}, merges=[], extra_special_tokens=marks
    )
    frames = 2 * _WHISPER["max_source_positions"]
    sound = transformers.WhisperFeatureExtractor(
        feature_size=_WHISPER["num_mel_bins"], chunk_length=1, hop_length=16000 // frames
    )
    transformers.WhisperProcessor(sound, tokenizer).save_pretrained(folder)
    small_hooked("whisper").model.save_pretrained(folder)


def save_nllb(folder: Path) -> nn.Module:
    """An NLLB that knows letters and three languages, with its tokeniser."""
    import transformers

    pieces = ["<s>", "<pad>", "</s>", "<unk>", "▁", *"abcdefghijklmnopqrstuvwxyz"]
    transformers.NllbTokenizer(
        vocab={piece: n for n, piece in enumerate(pieces)},
        merges=[],
        extra_special_tokens=["eng_Latn", "deu_Latn", "fra_Latn"],
    ).save_pretrained(folder)
    model = small_pretrained("m2m_100")
    model.config.decoder_start_token_id = model.generation_config.decoder_start_token_id = 2
    model.save_pretrained(folder)
    return model


def save_mbart(folder: Path) -> nn.Module:
    """An mBART of the first version that knows ten letters, with its tokeniser."""
    import transformers

    pieces = [("<s>", 0), ("<pad>", 0), ("</s>", 0), ("<unk>", 0), ("▁", -1)]
    pieces += [(letter, -2) for letter in "abcdefghij"]
    transformers.MBartTokenizer(vocab=pieces, src_lang="en_XX").save_pretrained(folder)
    model = small_pretrained("mbart")
    model.save_pretrained(folder)
    return model

"""A folder like OPUS-MT's: a small Marian model with SentencePiece models of its own."""

import json
from collections.abc import Sequence
from pathlib import Path

import sentencepiece
import torch
from small_pretrained import random_weights
from torch import nn


def write_marian(folder: Path, texts: tuple[Path, Path], codes: Sequence[str] = ()) -> nn.Module:
    """Learn pieces from the texts, and write a model with random weights beside them.

    As in OPUS-MT, `</s>` is 0 and `<unk>` is 1, pieces of both sides share their ids, and the
    padding, with which translations begin, comes last; two rows more only fill the embedding up.
    `codes`: pieces of languages, as `>>deu<<`.
    """
    from transformers import MarianConfig, MarianMTModel

    folder.mkdir()
    pieces = ["</s>", "<unk>"]
    for name, text in zip(("source", "target"), texts, strict=True):
        sentencepiece.SentencePieceTrainer.train(
            input=str(text), model_prefix=str(folder / name), vocab_size=90, minloglevel=2
        )
        (folder / f"{name}.model").rename(folder / f"{name}.spm")
        (folder / f"{name}.vocab").unlink()
        model = sentencepiece.SentencePieceProcessor(str(folder / f"{name}.spm"))
        pieces += map(model.id_to_piece, range(3, len(model)))
    pieces = [*dict.fromkeys(pieces), *codes, "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({p: i for i, p in enumerate(pieces)}))
    config = MarianConfig(
        vocab_size=len(pieces) + 2,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        max_position_embeddings=64,
        dropout=0.0,
        activation_function="swish",
        scale_embedding=True,
        pad_token_id=len(pieces) - 1,
        decoder_start_token_id=len(pieces) - 1,
        eos_token_id=0,
        forced_eos_token_id=0,
        bos_token_id=None,
    )
    torch.manual_seed(1)
    theirs = random_weights(MarianMTModel(config))
    theirs.save_pretrained(folder)
    return theirs

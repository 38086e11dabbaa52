"""Small models of Hugging Face's library, every weight of them drawn anew."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from headcount.data.batches import ParallelText
from headcount.data.vocabulary import PAD
from headcount_hf.pretrained.families import Config
from headcount_hf.pretrained.weights import Imported, import_model, number_words

WORDS, UNKNOWN = 500, 3
# Ids of ours from 4 on are words. The lengths differ, so that there is padding.
LONG = ParallelText(
    [[7, 9, 4, 4, 31, 200, 8], [12, 5], [440, 80, 81, 82, 83, 84]],
    [[9, 8, 7], [10, 400, 11, 12, 13, 14, 15, 16], [21]],
)
_SIZES = {
    "vocab_size": WORDS,
    "d_model": 32,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 44,
    "max_position_embeddings": 64,
    "dropout": 0.0,
}
_MARIAN = {
    "pad_token_id": WORDS - 1,
    "decoder_start_token_id": WORDS - 1,
    "eos_token_id": 0,
    "forced_eos_token_id": 0,
    "bos_token_id": None,
    "scale_embedding": True,
}
_APART = {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": WORDS}

KINDS = {
    "marian": ("Marian", "MarianMTModel", {**_MARIAN, "activation_function": "swish"}),
    "marian_apart": (
        "Marian",
        "MarianMTModel",
        {**_MARIAN, **_APART, "activation_function": "relu"},
    ),
    "m2m_100": ("M2M100", "M2M100ForConditionalGeneration", {"decoder_start_token_id": 250}),
    "bart": ("Bart", "BartForConditionalGeneration", {"activation_function": "gelu"}),
    "mbart": (
        "MBart",
        "MBartForConditionalGeneration",
        {"activation_function": "relu", "scale_embedding": True, "decoder_start_token_id": 250},
    ),
    "pegasus": (
        "Pegasus",
        "PegasusForConditionalGeneration",
        {"activation_function": "relu", "scale_embedding": True},
    ),
}
"""Prefix of the config's class, class of the model, and what its config says beside the sizes."""


def small_pretrained(kind: str, **changes: object) -> nn.Module:
    """A model of a kind, in evaluation mode; norms, biases and scores' biases are random too.

    `changes`: of its config.
    """
    import transformers

    prefix, model, values = KINDS[kind]
    torch.manual_seed(1)
    config = getattr(transformers, f"{prefix}Config")(**_SIZES | values | changes)
    return random_weights(getattr(transformers, model)(config))


@torch.no_grad()
def random_weights(theirs: nn.Module) -> nn.Module:
    """The model in evaluation mode, with every trained weight drawn anew."""
    for name, weight in theirs.named_parameters():
        if not weight.requires_grad:  # sinusoids
            continue
        if weight.ndim == 1:
            weight.copy_(("norm" in name and "weight" in name) + 0.3 * torch.randn_like(weight))
        elif "embed" in name or "shared" in name:
            weight.copy_(torch.randn_like(weight) * 0.25)
        else:
            nn.init.xavier_uniform_(weight)
    if hasattr(theirs, "final_logits_bias"):
        theirs.final_logits_bias.copy_(torch.randn_like(theirs.final_logits_bias))
    if theirs.config.model_type == "marian":  # its padding, with which it begins, is zeros
        for side in (theirs.model.encoder, theirs.model.decoder):
            side.embed_tokens.weight[theirs.config.pad_token_id] = 0
    return theirs.eval()


def saved_pretrained(kind: str, folder: Path) -> nn.Module:
    """Such a model, written to a folder as its library writes it."""
    theirs = small_pretrained(kind)
    theirs.save_pretrained(folder)
    return theirs


@dataclass
class EndAtLongest:
    """For their search: at the longest output there is only the end, at its own price, as in ours.

    Their own way to force it gives it for nothing.
    """

    end: int
    longest: int

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        if ids.shape[1] < self.longest:
            return scores
        ended = torch.full_like(scores, -torch.inf)
        ended[:, self.end] = scores[:, self.end]
        return ended


def their_logits(theirs, ours, batch) -> torch.Tensor:
    """Return the library's scores for a batch in our ids."""
    return theirs(
        input_ids=torch.tensor(ours.src_rows)[batch.src],
        attention_mask=(batch.src != PAD).long(),
        decoder_input_ids=torch.tensor(ours.tgt_rows)[batch.tgt_in],
        use_cache=False,
    ).logits


def import_small(folder: Path, unknown: int = UNKNOWN, **given: int) -> Imported:
    """Return the model in a folder as one of ours. `given`: see `number_words`."""
    config = Config.read(folder)
    return import_model(config, number_words(config, unknown, **given))

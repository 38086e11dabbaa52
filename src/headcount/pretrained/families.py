"""Encoder-decoders of Hugging Face's library that our Transformer computes as they do."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from headcount.base.errors import UserError
from headcount.base.settings.model import ModelSettings

CONFIG = "config.json"
EPSILON = 1e-5
"""Of layer norm, in all families: PyTorch's own, which stands in no config."""

_ACTIVATIONS = {"relu": "relu", "swish": "silu", "silu": "silu", "gelu": "gelu"}


@dataclass(frozen=True)
class Family:
    """What all models of one `model_type` share."""

    norm: Literal["pre", "post"]
    positions: Literal["sinusoids", "shifted_sinusoids", "table"]
    """Marian's, which are ours in another order of the width; M2M100's; or learnt ones."""
    embedding_norm: bool = False
    output_bias: bool = True


FAMILIES = {
    "marian": Family("post", "sinusoids"),
    "pegasus": Family("pre", "sinusoids"),
    "m2m_100": Family("pre", "shifted_sinusoids", output_bias=False),
    "bart": Family("post", "table", embedding_norm=True),
    "mbart": Family("pre", "table", embedding_norm=True),
}


@dataclass(frozen=True)
class Config:
    """The config.json of a model that can be imported."""

    path: Path
    values: dict[str, Any]

    @classmethod
    def read(cls, folder: Path) -> "Config":
        """That of a folder. Raises UserError if it is not there, damaged, or of another kind."""
        path = folder / CONFIG
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            kind = values["model_type"]
        except FileNotFoundError as fault:
            raise UserError(f"{path}: expected the config of a model, found no file") from fault
        except (ValueError, TypeError, KeyError) as fault:
            raise UserError(f"{path}: damaged, or not the config of a model ({fault})") from fault
        if kind not in FAMILIES:
            raise UserError(
                f"{path}: model_type: expected one of {', '.join(FAMILIES)}, found {kind!r}; our "
                "Transformer cannot compute other architectures"
            )
        return cls(path, values)

    @property
    def family(self) -> Family:
        """That of its `model_type`."""
        return FAMILIES[self.values["model_type"]]

    def __getitem__(self, key: str) -> Any:
        """The value of a key. Raises UserError if it is not there."""
        if key not in self.values:
            raise UserError(f"{self.path}: {key}: expected a value, found none")
        return self.values[key]

    @property
    def joint(self) -> bool:
        """Whether both sides share one embedding, and the ids of their pieces."""
        return bool(self.values.get("share_encoder_decoder_embeddings", True))

    @property
    def vocabulary_sizes(self) -> tuple[int, int]:
        """Words of source and target, those that only fill the embedding up included."""
        return self["vocab_size"], self.values.get("decoder_vocab_size") or self["vocab_size"]

    def settings(self) -> ModelSettings:
        """Ours, which make the same function. Raises UserError naming what ours cannot express."""
        if not self.values.get("tie_word_embeddings", True):
            raise self._other("tie_word_embeddings", "true, as our output layer is the embedding")
        if self["activation_function"] not in _ACTIVATIONS:
            raise self._other("activation_function", f"one of {', '.join(_ACTIVATIONS)}")
        family = self.family
        return ModelSettings(
            encoder_layers=self["encoder_layers"],
            decoder_layers=self["decoder_layers"],
            d_model=self["d_model"],
            d_ff=self._alike("encoder_ffn_dim", "decoder_ffn_dim"),
            heads=self._alike("encoder_attention_heads", "decoder_attention_heads"),
            norm=family.norm,
            norm_epsilon=EPSILON,
            embedding_norm=family.embedding_norm,
            activation=_ACTIVATIONS[self["activation_function"]],
            scale_embedding=self.values.get("scale_embedding", False),
            position_table=0
            if family.positions == "sinusoids"
            else self["max_position_embeddings"],
            output_bias=True,  # it closes the row of BOS, which is none of their words
            dropout=self.values.get("dropout", 0.1),
            attention_dropout=self.values.get("attention_dropout", 0.0),
        )

    def _alike(self, encoder: str, decoder: str) -> int:
        if self[encoder] != self[decoder]:
            raise self._other(decoder, f"{self[encoder]} as {encoder}, both sides being alike here")
        return self[encoder]

    def _other(self, key: str, expected: str) -> UserError:
        return UserError(f"{self.path}: {key}: expected {expected}; found {self.values[key]!r}")

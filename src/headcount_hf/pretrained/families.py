"""Encoder-decoders of Hugging Face's library that our Transformer computes as they do.

Nothing here imports torch or the library, so that an experiment's plan can read a config.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from headcount.base.errors import UserError
from headcount.base.folders import SIDES
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.reading.faults import checked, keyed, shown
from headcount.base.settings.section import LARGEST
from headcount.base.settings.text.languages import contradict

CONFIG = "config.json"
TOKENIZER = "tokenizer.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
_OF_TOKENIZER = (TOKENIZER_CONFIG, "special_tokens_map.json", "added_tokens.json")
EPSILON = 1e-5
"""Of layer norm, in all families: PyTorch's own, which stands in no config."""

Codes = Sequence[str | None]
"""Of source and target: what the model calls their languages; None where it is not told."""

CHOSEN = {"preset", "dropout", "attention_dropout"}
"""Settings of the model that its weights do not decide."""

SAME = {"encoder_layers", "decoder_layers", "d_model", "scale_embedding", *CHOSEN} - {"preset"}
"""Settings of the model that have the same name in a config."""

_HEADS = "encoder_attention_heads"

Size = Annotated[int, Field(ge=1, le=LARGEST)]
Share = Annotated[float, Field(ge=0, lt=1)]
Id = Annotated[int, Field(ge=0)]


@dataclass(frozen=True)
class Family:
    """Facts that all models of one `model_type` share."""

    norm: Literal["pre", "post"]
    positions: Literal["sinusoids", "shifted_sinusoids", "table"]
    """Marian's, which are ours in another order of the width; M2M100's; or learnt ones."""
    embedding_norm: bool = False
    output_bias: bool = True
    scale_embedding: bool = False
    attention_dropout: float = 0.0
    """These two where the config leaves them out, as in the library's own class of configs."""


FAMILIES = {
    "marian": Family("post", "sinusoids"),
    "pegasus": Family("pre", "sinusoids"),
    "m2m_100": Family(
        *("pre", "shifted_sinusoids"),
        output_bias=False,
        scale_embedding=True,
        attention_dropout=0.1,
    ),
    "bart": Family("post", "table", embedding_norm=True),
    "mbart": Family("pre", "table", embedding_norm=True),
}


class Config(BaseModel):
    """The config.json of a model that can be imported."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, allow_inf_nan=False)

    folder: Path
    model_type: Literal["marian", "pegasus", "m2m_100", "bart", "mbart"]
    vocab_size: Size
    decoder_vocab_size: Size | None = None
    max_position_embeddings: Size
    d_model: Size
    encoder_layers: Size
    decoder_layers: Size
    encoder_ffn_dim: Size
    decoder_ffn_dim: Size
    encoder_attention_heads: Size
    decoder_attention_heads: Size
    activation_function: Literal["relu", "swish", "silu", "gelu"]
    dropout: Share = 0.1
    attention_dropout: Share
    scale_embedding: bool
    tie_word_embeddings: bool = True
    share_encoder_decoder_embeddings: bool = True
    pad_token_id: Id
    eos_token_id: Id
    decoder_start_token_id: Id | None = None

    @classmethod
    def read(cls, folder: Path) -> "Config":
        """Return the config in a folder.

        Raises UserError if it is not there, damaged, of another kind of model, or has a value that
        our Transformer cannot have.
        """
        path = folder / CONFIG
        try:
            values = json.loads(path.read_bytes())
            kind = values["model_type"]
        except FileNotFoundError as fault:
            raise UserError(f"{path}: expected the config of a model, found no file") from fault
        except (ValueError, TypeError, KeyError) as fault:
            raise UserError(f"{path}: damaged, or not the config of a model ({fault})") from fault
        if kind not in list(FAMILIES):  # a list in the file is no key
            raise UserError(
                f"{path}: model_type: expected one of {', '.join(FAMILIES)}, found {kind!r}; our "
                "Transformer cannot compute other architectures"
            )
        return checked(cls, values | {"folder": folder}, lambda key: f"{path}: {keyed(key)}")

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, given: Any) -> Any:
        family = FAMILIES[given["model_type"]]
        names = ("scale_embedding", "attention_dropout")
        return {name: getattr(family, name) for name in names} | given

    @model_validator(mode="after")
    def _check(self) -> "Config":
        """Raise ValueError for a value that does not fit the others, or ours."""
        last = min(self.vocabulary_sizes) - 1
        for key in ("pad_token_id", "eos_token_id", "decoder_start_token_id"):
            told_elsewhere = key.startswith("decoder") and self.model_type == "mbart"
            number = getattr(self, key)
            self._require(
                number <= last if number is not None else told_elsewhere,
                key,
                f"a whole number from 0 to {last}, the id of one word",
            )
        width, heads = self.d_model, self.encoder_attention_heads
        self._require(
            self.family.positions == "table" or (width % 2 == 0 and width > 2),
            *("d_model", "an even number from 4, half of it sines"),
        )
        self._require(width % heads == 0, _HEADS, f"a number that divides d_model, {width}")
        for key in ("encoder_ffn_dim", _HEADS):
            other, value = key.replace("encoder", "decoder"), getattr(self, key)
            alike = getattr(self, other) == value
            self._require(alike, other, f"{value} as {key}, both sides being alike here")
        self._require(
            *(self.tie_word_embeddings, "tie_word_embeddings"),
            "true, as our output layer is the embedding",
        )
        return self

    def _require(self, right: bool, key: str, expected: str) -> None:
        if not right:
            raise ValueError(f"{key}: expected {expected}; found {shown(getattr(self, key))}")

    @property
    def family(self) -> Family:
        """Return the family of this `model_type`."""
        return FAMILIES[self.model_type]

    @property
    def path(self) -> Path:
        """Return the file."""
        return self.folder / CONFIG

    @property
    def joint(self) -> bool:
        """Return whether both sides share one embedding, and the ids of their pieces."""
        return self.share_encoder_decoder_embeddings

    @property
    def vocabulary_sizes(self) -> tuple[int, int]:
        """Return the words of source and target, with rows that only fill the embedding up."""
        return self.vocab_size, self.decoder_vocab_size or self.vocab_size

    def settings(self) -> ModelSettings:
        """Return our settings that make the same function. Raises UserError for too large ones."""
        family, activation = self.family, self.activation_function
        found = self.model_dump(include=SAME) | {
            "d_ff": self.encoder_ffn_dim,
            "heads": self.encoder_attention_heads,
            "norm": family.norm,
            "norm_epsilon": EPSILON,
            "embedding_norm": family.embedding_norm,
            "activation": "silu" if activation == "swish" else activation,
            "position_table": self.max_position_embeddings * (family.positions != "sinusoids"),
            "output_bias": True,  # it closes the row of BOS, which is none of their words
        }
        return checked(ModelSettings, found, lambda key: f"{self.path}: {keyed(key)}")


def check_sizes(folder: Path, settings: ModelSettings) -> None:
    """Raise UserError naming each key in which settings are not those of the model in a folder."""
    if wrong := other_sizes(Config.read(folder), settings):
        raise UserError(
            f"model: expected the sizes of {folder / CONFIG}, which are {wrong}; correct them in "
            f"the experiment: python scripts/describe_model.py --pretrained {folder} prints them "
            "all"
        )


def other_sizes(config: Config, settings: ModelSettings, free: Collection[str] = ()) -> str:
    """Return each key in which settings differ from a config, with both values; `free` may."""
    ours, theirs = (
        each.model_dump(exclude={*CHOSEN, *free}) for each in (settings, config.settings())
    )
    wrong = (f"{key}: {theirs[key]}, found {ours[key]}" for key in ours if theirs[key] != ours[key])
    return "; ".join(wrong)


def settings_files(folder: Path) -> list[Path]:
    """Return the files that say how a tokenizer is used and which tokens were added to it."""
    return [folder / name for name in _OF_TOKENIZER if (folder / name).exists()]


def stated(path: Path, key: str) -> Any:
    """Return the value of a key in a JSON file, None without it; UserError if it is damaged."""
    try:
        return json.loads(path.read_bytes()).get(key) if path.exists() else None
    except (ValueError, AttributeError) as fault:
        raise UserError(f"{path}: damaged, expected an object of settings ({fault})") from fault


def check_languages(folder: Path, languages: Sequence[str], codes: Codes = (None, None)) -> None:
    """Raise UserError where a code, or the folder of a Marian, names another language than a pair.

    The tokenizers of other families state no pair: their src_lang is a default.
    """
    sides = zip(SIDES, ("source_lang", "target_lang"), languages, codes, strict=True)
    for side, key, language, code in sides:
        named = code or stated(folder / TOKENIZER_CONFIG, key)
        if named and contradict(str(named), language):
            where = f"--{side}-code" if code else f"{folder}: {key} of {TOKENIZER_CONFIG}"
            raise UserError(
                f"{where}: expected {language}, a language of the pair in its direction, found "
                f"{named!r}; name a model and a pair of the same direction"
            )

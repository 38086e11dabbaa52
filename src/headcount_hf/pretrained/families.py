"""Families of Hugging Face encoder-decoders that our Transformer can express, and their configs.

Nothing here imports torch or transformers, so that the plan of an experiment can read a config.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from headcount.base.errors import UserError, reading
from headcount.base.folders import SIDES
from headcount.base.settings.checking import checked, keyed
from headcount.base.settings.data import contradict
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.section import LARGEST, refuse

CONFIG = "config.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
TOKENIZER = (TOKENIZER_CONFIG, "special_tokens_map.json", "added_tokens.json", "tokenizer.json")
EPSILON = 1e-5
"""Epsilon of layer norm in all families: PyTorch's default, which no config states."""

Codes = Sequence[str | None]
"""Names of the source and target language in the model, None where it does not need one."""

CHOSEN = {"preset", "dropout", "attention_dropout"}
"""Settings of the model that its weights do not decide."""

SAME = {"encoder_layers", "decoder_layers", "d_model", "scale_embedding", *CHOSEN} - {"preset"}
"""Settings of the model that have the same name in a config."""

Size = Annotated[int, Field(ge=1, le=LARGEST)]
Share = Annotated[float, Field(ge=0, lt=1)]
Id = Annotated[int, Field(ge=0)]
_HEADS = "encoder_attention_heads"


@dataclass(frozen=True)
class Family:
    """Facts that all models of one `model_type` share."""

    norm: Literal["pre", "post"]
    positions: Literal["sinusoids", "shifted_sinusoids", "table"]
    """Marian's (ours with the columns in another order), M2M100's, or a learnt table."""
    embedding_norm: bool = False
    output_bias: bool = True
    scale_embedding: bool = False  # default of the config, as the next one
    attention_dropout: float = 0.0


FAMILIES = {
    "marian": Family("post", "sinusoids"),
    "pegasus": Family("pre", "sinusoids"),
    "m2m_100": Family("pre", "shifted_sinusoids", False, False, True, 0.1),
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
        """Return a folder's config. Raises UserError for one that ours cannot express."""
        path = folder / CONFIG
        with reading(path, "the Hugging Face library"):
            values = json.loads(path.read_bytes())
            kind = values["model_type"]
        if kind not in list(FAMILIES):  # a list in the file cannot be a key
            expected = ", ".join(FAMILIES)
            raise UserError(f"{path}: model_type: expected one of {expected}, found {kind!r}")
        values = vars(FAMILIES[kind]) | values | {"folder": folder}
        return checked(cls, values, lambda key: f"{path}: {keyed(key)}")

    @model_validator(mode="after")
    def _check(self) -> "Config":
        """Raise ValueError for a value that does not fit the others, or our Transformer."""
        last, width, heads = min(self.vocabulary_sizes) - 1, self.d_model, _HEADS
        for key in ("pad_token_id", "eos_token_id", "decoder_start_token_id"):
            number = getattr(self, key)
            wrong = number > last if number is not None else self.model_type != "mbart"
            refuse((f"{key}: expected an id from 0 to {last}, found {number}", wrong))
        has_sinusoids = self.family.positions != "table"
        refuse(
            ("d_model: expected an even number from 4", has_sinusoids and (width % 2 or width < 4)),
            (f"{heads}: expected a divisor of d_model, {width}", width % getattr(self, heads)),
            ("tie_word_embeddings: expected true, found false", not self.tie_word_embeddings),
        )
        other, value = heads.replace("encoder", "decoder"), getattr(self, heads)
        refuse((f"{other}: expected {value}, as {heads}", getattr(self, other) != value))
        return self

    @property
    def family(self) -> Family:
        """The family of this `model_type`."""
        return FAMILIES[self.model_type]

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / CONFIG

    @property
    def vocabulary_sizes(self) -> tuple[int, int]:
        """Rows of the embeddings of source and target, unused ones included."""
        return self.vocab_size, self.decoder_vocab_size or self.vocab_size

    @property
    def ffn_widths(self) -> dict[str, list[int]]:
        """Number of feed-forward units by side and layer."""
        return {
            "enc_ffn": [self.encoder_ffn_dim] * self.encoder_layers,
            "dec_ffn": [self.decoder_ffn_dim] * self.decoder_layers,
        }

    def settings(self) -> ModelSettings:
        """Return our settings of the same function."""
        family, activation = self.family, self.activation_function
        alike = self.encoder_ffn_dim == self.decoder_ffn_dim
        values = self.model_dump(include=SAME) | {
            "d_ff": self.encoder_ffn_dim if alike else self.ffn_widths,
            "heads": self.encoder_attention_heads,
            "norm": family.norm,
            "norm_epsilon": EPSILON,
            "embedding_norm": family.embedding_norm,
            "activation": "silu" if activation == "swish" else activation,
            "position_table": self.max_position_embeddings * (family.positions != "sinusoids"),
            "output_bias": True,  # it keeps BOS, which is not one of their words, out of outputs
        }
        return checked(ModelSettings, values, lambda key: f"{self.path}: {keyed(key)}")


def check_sizes(folder: Path, settings: ModelSettings) -> None:
    """Raise UserError naming each key in which settings differ from the model in a folder."""
    if wrong := other_sizes(Config.read(folder), settings):
        raise UserError(
            f"model: expected the sizes of {folder / CONFIG}, which are {wrong}; paste the sizes "
            f"that python scripts/describe_model.py --pretrained {folder} prints"
        )


def other_sizes(config: Config, settings: ModelSettings, free: Collection[str] = ()) -> str:
    """Return every key but `free` ones in which settings differ from a config, with both values."""
    ours, theirs = settings.model_dump(exclude={*CHOSEN, *free}), config.settings().model_dump()
    wrong = (f"{key}: {theirs[key]}, found {ours[key]}" for key in ours if theirs[key] != ours[key])
    return "; ".join(wrong)


def stated(path: Path, key: str) -> Any:
    """Return the value of a key in a JSON file, or None. Raises UserError if it is damaged."""
    with reading(path, "the Hugging Face library"):
        return json.loads(path.read_bytes()).get(key) if path.exists() else None


def check_languages(folder: Path, languages: Sequence[str], codes: Codes = (None, None)) -> None:
    """Raise UserError where a code, or the folder of a Marian, contradicts the pair."""
    sides = zip(SIDES, ("source_lang", "target_lang"), languages, codes, strict=True)
    for side, key, language, code in sides:
        named = code or stated(folder / TOKENIZER_CONFIG, key)
        if named and contradict(str(named), language):
            where = f"--{side}-code" if code else f"{folder}: {key} of {TOKENIZER_CONFIG}"
            raise UserError(
                f"{where}: expected {language}, as in the pair, found {named!r}; take a model of "
                "the pair's direction"
            )

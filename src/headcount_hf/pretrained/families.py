"""Encoder-decoders of Hugging Face's library that our Transformer computes as they do."""

import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import yaml

from headcount.base.errors import UserError
from headcount.base.settings.faults import checked, keyed, shown
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.section import LARGEST
from headcount_hf.pretrained.tokenizer_files import TOKENIZER, TOKENIZER_CONFIG, told

CONFIG = "config.json"
EPSILON = 1e-5
"""Of layer norm, in all families: PyTorch's own, which stands in no config."""

_ACTIVATIONS = {"relu": "relu", "swish": "silu", "silu": "silu", "gelu": "gelu"}

CHOSEN = {"preset", "dropout", "attention_dropout"}
"""Settings of the model that its weights do not decide."""

_HEADS = "encoder_attention_heads"
_START = "decoder_start_token_id"
_IDS = ("pad_token_id", "eos_token_id", _START)
_SIZES = (
    *("vocab_size", "decoder_vocab_size", "max_position_embeddings", "d_model"),
    *("encoder_layers", "decoder_layers", "encoder_ffn_dim", "decoder_ffn_dim"),
    *(_HEADS, "decoder_attention_heads"),
)
_SHARES = ("dropout", "attention_dropout")
_SWITCHES = ("scale_embedding", "tie_word_embeddings", "share_encoder_decoder_embeddings")


_CLASSES = {
    "marian": ("Marian",),
    "m2m_100": ("M2M100", "Nllb"),
    "bart": ("Bart", "Roberta"),
    "mbart": ("MBart", "MBart50"),
    "pegasus": ("Pegasus",),
}
"""Tokenisers of each family that our readers know."""
_GENERIC = ("PreTrainedTokenizerFast", "TokenizersBackend")
"""Tokenisers of any family, which are a tokenizer.json."""
_UNREAD = ("auto_map", "split_special_tokens", "sp_model_kwargs", "do_lower_case")
"""Settings with which the library cuts text in a way that our readers do not."""


@dataclass(frozen=True)
class Family:
    """What all models of one `model_type` share."""

    norm: Literal["pre", "post"]
    positions: Literal["sinusoids", "shifted_sinusoids", "table"]
    """Marian's, which are ours in another order of the width; M2M100's; or learnt ones."""
    embedding_norm: bool = False
    output_bias: bool = True
    start_told: bool = True
    """Whether its config tells what translations begin with; else it is always a language."""
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
    "mbart": Family("pre", "table", embedding_norm=True, start_told=False),
}


@dataclass(frozen=True)
class Config:
    """The config.json of a model that can be imported."""

    path: Path
    values: dict[str, Any]

    @classmethod
    def read(cls, folder: Path) -> "Config":
        """That of a folder.

        Raises UserError if it is not there, damaged, of another kind of model, or has a value of
        another type or range.
        """
        path = folder / CONFIG
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
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
        found = cls(path, values)
        found._check_values()
        found._check_ids()
        return found

    def _check_values(self) -> None:
        """Raise UserError for a size, share or switch that is none."""
        known = [key for key in (*_SIZES, *_SHARES, *_SWITCHES) if key in self.values]
        for key in known:
            value = self.values[key]
            if key == "decoder_vocab_size" and value is None:  # as without the key
                continue
            if key in _SIZES and not (type(value) is int and 1 <= value <= LARGEST):
                raise self._wrong(key, f"a whole number from 1 to {LARGEST}")
            if key in _SHARES and not (type(value) in (int, float) and 0 <= value < 1):
                raise self._wrong(key, "a number from 0 and less than 1")
            if key in _SWITCHES and type(value) is not bool:
                raise self._wrong(key, "true or false")
        width = self["d_model"]
        if self.family.positions != "table" and (width % 2 or width < 4):
            raise self._wrong("d_model", "an even number from 4, half of it sines")
        if width % self[_HEADS]:
            raise self._wrong(_HEADS, f"a number that divides d_model, {width}")

    def _check_ids(self) -> None:
        """Raise UserError for the id of a special word that is missing, or none of a word."""
        last = min(self.vocabulary_sizes) - 1
        for key in _IDS:
            if key == _START and not self.family.start_told and self.values.get(key) is None:
                continue
            if key not in self.values:
                raise self._lacks(key)
            if type(self.values[key]) is not int or not 0 <= self.values[key] <= last:
                raise self._wrong(key, f"a whole number from 0 to {last}, the id of one word")

    @property
    def family(self) -> Family:
        """That of its `model_type`."""
        return FAMILIES[self.values["model_type"]]

    def __getitem__(self, key: str) -> Any:
        """The value of a key. Raises UserError if it is not there, or null."""
        if self.values.get(key) is None:
            raise self._lacks(key)
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
        if self["activation_function"] not in list(_ACTIVATIONS):
            raise self._other("activation_function", f"one of {', '.join(_ACTIVATIONS)}")
        family = self.family
        found = {
            "encoder_layers": self["encoder_layers"],
            "decoder_layers": self["decoder_layers"],
            "d_model": self["d_model"],
            "d_ff": self._alike("encoder_ffn_dim", "decoder_ffn_dim"),
            "heads": self._alike(_HEADS, "decoder_attention_heads"),
            "norm": family.norm,
            "norm_epsilon": EPSILON,
            "embedding_norm": family.embedding_norm,
            "activation": _ACTIVATIONS[self["activation_function"]],
            "scale_embedding": self.values.get("scale_embedding", family.scale_embedding),
            "position_table": 0
            if family.positions == "sinusoids"
            else self["max_position_embeddings"],
            "output_bias": True,  # it closes the row of BOS, which is none of their words
            "dropout": self.values.get("dropout", 0.1),
            "attention_dropout": self.values.get("attention_dropout", family.attention_dropout),
        }
        return checked(ModelSettings, found, lambda key: f"{self.path}: {keyed(key)}")

    def _alike(self, encoder: str, decoder: str) -> int:
        if self[encoder] != self[decoder]:
            raise self._other(decoder, f"{self[encoder]} as {encoder}, both sides being alike here")
        return self[encoder]

    def _other(self, key: str, expected: str) -> UserError:
        return UserError(f"{self.path}: {key}: expected {expected}; found {self.values[key]!r}")

    def _wrong(self, key: str, expected: str) -> UserError:
        return UserError(
            f"{self.path}: {key}: expected {expected}, found {shown(self.values[key])}; correct it "
            "as its makers tell, or fetch the file again"
        )

    def _lacks(self, key: str) -> UserError:
        return UserError(
            f"{self.path}: {key}: expected a value, found none; add it as its makers tell, or "
            "fetch the file again"
        )


def check_sizes(folder: Path, settings: ModelSettings) -> None:
    """Raise UserError naming each key in which settings are not those of the model in a folder."""
    theirs = Config.read(folder).settings().model_dump(exclude=CHOSEN)
    ours = settings.model_dump(exclude=CHOSEN)
    wrong = [
        f"{key}: {theirs[key]}, found {ours[key]}" for key in theirs if theirs[key] != ours[key]
    ]
    if wrong:
        raise UserError(
            f"model: expected the sizes of {folder / CONFIG}, which are {'; '.join(wrong)}; "
            f"correct them in the experiment: python scripts/describe_model.py --pretrained "
            f"{folder} prints them all"
        )


def tokenizer_class(config: Config) -> str:
    """Return the class of an imported model's tokeniser, or nothing if no file names it.

    Raises UserError for a class or a setting with which text is cut in a way that is not known.
    """
    folder, kind, name = config.path.parent, config["model_type"], ""
    known = [f"{name}Tokenizer{end}" for name in _CLASSES[kind] for end in ("", "Fast")]
    known += _GENERIC if kind != "marian" and (folder / TOKENIZER).exists() else ()
    for path, say in (
        (config.path, config.values.get),
        (folder / TOKENIZER_CONFIG, lambda key: told(folder, key)),
    ):
        name = say("tokenizer_class") or name
        wrong = {key: "none" for key in _UNREAD if say(key)}
        if name not in ("", *known):
            wrong["tokenizer_class"] = f"one of {', '.join(known)}"
        for key, expected in wrong.items():
            raise UserError(
                f"{path}: {key}: expected {expected}, as text is cut here as by this family's own "
                f"tokenisers, found {shown(say(key))}; this model cannot be imported"
            )
    return name


def is_mbart50(config: Config) -> bool:
    """Whether the code of a language stands first, as in mBART50, or last, as in mBART."""
    if "MBart" in (name := tokenizer_class(config)):
        return "MBart50" in name
    return config.values.get("decoder_start_token_id") == config["eos_token_id"]


def known_codes(family: str, folder: Path) -> list[str]:
    """Return the languages that a class of tokenisers knows, in the order of their ids."""
    text = resources.files("headcount_hf.pretrained").joinpath("languages.yaml").read_text("utf-8")
    known = yaml.safe_load(text)
    if family not in list(known):
        raise UserError(
            f"{folder}: language_codes: expected one of {', '.join(known)}, found {family!r}"
        )
    return known[family]

"""Our model as a folder of Hugging Face's library: the same function, computed by theirs.

Their layers all have as many heads, d_model / width of them. Heads that ours lacks are silent
there: zero rows in W_Q, W_K and W_V, zero columns in W_O. So the folder is as large as the whole
model's, and no faster.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from headcount.base.addresses import Head
from headcount.base.errors import UserError
from headcount.base.files import read_json, write_json
from headcount.base.settings.decode import DecodeSettings
from headcount.data.fetching.models import RECORD
from headcount.data.vocabulary import BOS, EOS, PAD
from headcount.model.removal import restore_heads
from headcount.model.transformer import Transformer
from headcount.store.model_folder import save_weights
from headcount_hf.export.ctranslate2_export import POSITIONS
from headcount_hf.pretrained.families import CONFIG, EPSILON, Config
from headcount_hf.pretrained.pieces import read_pieces
from headcount_hf.pretrained.tokenizer_files import add_special
from headcount_hf.pretrained.weight_map import (
    FIRST_POSITION,
    embedding_names,
    their_weights,
)
from headcount_hf.pretrained.weights_file import (
    WEIGHTS,
    positions_name,
    read_weights,
    sinusoid_names,
    their_sinusoids,
)

_GENERATION = "generation_config.json"
_TEXT = (".json", ".spm", ".model", ".txt")
"""How files of their tokenizers end; neither code nor pickles."""

_CLASSES = {"marian": "MarianMTModel", "pegasus": "PegasusForConditionalGeneration"}
_SIDES = ("encoder", "decoder")

Rows = tuple[list[int], list[int]]  # of source and target: for each of our ids their word

_FREE = {"preset", "heads", "d_head", "dropout", "attention_dropout"}
"""Settings in which a model may differ from the one that it was imported as."""


@dataclass(frozen=True)
class HuggingFaceForm:
    """What is written, and which of their words stands behind each of our ids."""

    config: Config
    generation: dict[str, Any] | None  # None: the library takes what the config says
    weights: dict[str, Tensor]
    rows: Rows
    silent: int  # heads
    pretrained: Path | None  # where the tokenizer lies
    start: int | None = None  # the word that translations begin with, where it is a new one

    def save(self, folder: Path) -> None:
        """Write config, weights, and the tokenizer of an imported model."""
        for path in sorted(self.pretrained.iterdir()) if self.pretrained else ():
            of_others = path.name == RECORD or path.name.endswith(".index.json")
            if path.suffix in _TEXT and not of_others:
                shutil.copyfile(path, folder / path.name)
        if self.start is not None:
            add_special(folder, f"<decoder_start_{self.start}>", self.start)
        write_json(folder / CONFIG, self.config.values)
        if self.generation is not None:
            write_json(folder / _GENERATION, self.generation)
        save_weights(folder / WEIGHTS, self.weights)

    def told(self) -> str:
        """What a person should know of the folder."""
        size = sum(weight.nbytes for weight in self.weights.values()) / 1e6
        text = (
            "the tokenizer's files are those of the imported model"
            if self.pretrained
            else "ids are ours, and no tokenizer of theirs cuts text into them: "
            "headcount.load(MODEL) has encode and decode"
        )
        return (
            f"a {self.config['model_type']} of {size:.1f} MB; {self.silent} of its heads "
            "are silent, rows and columns of zeros, so that it is no smaller and no faster than "
            f"with all of them (--to ctranslate2 and --to headcount are); {text}"
        )


def form_of_ours(model: Transformer, heads: Sequence[Head]) -> HuggingFaceForm:
    """A model that was trained here: Marian with layer norm after each sum, Pegasus before.

    `heads`: the places of its heads among all. Their ε of layer norm is 1e-5, whatever ours is.
    Raises UserError for what neither can express.
    """
    config = Config(Path(CONFIG), _values_of_ours(model))
    _check_ours(model, config)
    whole, silent = _with_all_heads(model, heads, config["encoder_attention_heads"])
    rows = tuple(list(range(each.num_embeddings)) for each in _embeddings(model))
    weights = their_weights(whole, config, *rows)
    if config["model_type"] == "pegasus":  # which keeps its sinusoids in the file
        weights |= {positions_name(side): their_sinusoids(config, POSITIONS) for side in _SIDES}
    generation = {
        "decoder_start_token_id": BOS,
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "suppress_tokens": [PAD, BOS],
        "max_length": POSITIONS,
        "num_beams": DecodeSettings().beam,
    }
    return HuggingFaceForm(config, generation, weights, rows, silent, None)


def form_of_imported(
    model: Transformer, heads: Sequence[Head], folder: Path, rows: Rows
) -> HuggingFaceForm:
    """A model that was imported from a folder, or came of one, as another of the same family.

    What was not changed since goes back to the bit. `heads`: the places of its heads in the
    imported model; `rows`: those that importing gave. Raises UserError for a folder of another
    model.
    """
    config = Config.read(folder)
    _check_imported(model, config)
    ids, rows, start = _words(model, config, rows)
    values = {**config.values, "dtype": "float32"}  # what ours are, however theirs were stored
    values.pop("torch_dtype", None)
    path = folder / _GENERATION
    generation = read_json(path) if path.is_file() else None
    if start is not None:
        keys = ("vocab_size", "decoder_vocab_size") if config.joint else ("decoder_vocab_size",)
        values |= {key: len(ids[1]) for key in keys if key in values}
        begins = {"decoder_start_token_id": start}
        values |= begins
        generation = generation if generation is None else generation | begins
    config = Config(config.path, values)
    whole, silent = _with_all_heads(model, heads, config["encoder_attention_heads"])
    named = {name for side in _SIDES for name in embedding_names(config, side)}
    others = {n: w.float() for n, w in read_weights(folder).items() if n not in named}
    weights = others | their_weights(whole, config, *ids)
    if config.family.positions == "table":
        for name in map(positions_name, _SIDES):  # rows that no position reads stay what they are
            weights[name][:FIRST_POSITION] = others[name][:FIRST_POSITION]
    for name in sinusoid_names(config) & others.keys():  # they may be rounded to half precision
        weights[name] = their_sinusoids(config, len(others[name]))
    return HuggingFaceForm(config, generation, weights, rows, silent, folder, start)


def _words(
    model: Transformer, config: Config, rows: Rows
) -> tuple[tuple[list[int], list[int]], Rows, int | None]:
    """For each of their words our id, for each of our ids their word, of both sides; a new word.

    What translations begin with has an id of its own here. As long as its row is the copy that
    importing made, the word that it was copied from stands for it. Once it was trained, it becomes
    a word of its own there, which is returned; its bias keeps it out of translations. Its id is
    the first without a piece, so that the tokenizer can know it; rows that only fill the embedding
    up move behind it.
    """
    src, tgt = (_by_row(each) for each in rows)
    tables = [each.weight for each in _embeddings(model)]
    if config.joint and not torch.equal(tables[0][src], tables[1][tgt]):
        raise UserError(
            f"{config.path}: expected an embedding for each side, found one that both share; those "
            "of this model were trained apart, take --to ctranslate2"
        )
    if torch.equal(tables[1][BOS], tables[1][tgt[rows[1][BOS]]]):
        return (src, tgt), rows, None
    if not config.family.output_bias:
        raise UserError(
            f"{config.path}: model_type: expected one with a bias of words, found "
            f"{config['model_type']!r}: what this model begins translations with was trained and "
            "needs a word of its own there, which nothing would close; take --to ctranslate2"
        )
    start = first_free(config)
    tgt += [BOS] * (start - len(tgt))  # as closed as the start, where sources have more words
    moved = [[row + (row >= start) for row in each] for each in rows]
    moved[1][BOS] = start
    sides = (moved[0] if config.joint else rows[0]), moved[1]
    return (src, [*tgt[:start], BOS, *tgt[start:]]), sides, start


def first_free(config: Config) -> int:
    """Return the first id behind the pieces and special words of both sides."""
    special = (config["pad_token_id"], config["eos_token_id"])
    return 1 + max(*special, *(max(side.ids.values()) for side in read_pieces(config).sides))


def _by_row(rows: list[int]) -> list[int]:
    """For each of their words our id, which is not that of what translations begin with."""
    return sorted((place for place in range(len(rows)) if place != BOS), key=rows.__getitem__)


def _with_all_heads(
    model: Transformer, heads: Sequence[Head], count: int
) -> tuple[Transformer, int]:
    """The model with `count` heads in every layer, and how many of them are silent."""
    for head in heads:
        if head.head >= count:
            raise UserError(
                f"{head.label()}: expected heads below {count}, as many as Hugging Face's layers "
                "have at this width (d_model / d_head); take --to ctranslate2"
            )
    whole = restore_heads(model, heads, count)
    return whole, whole.grid.size - model.grid.size


def _embeddings(model: Transformer) -> tuple[nn.Embedding, nn.Embedding]:
    return model.src_embedding, model.tgt_embedding


def _values_of_ours(model: Transformer) -> dict[str, Any]:
    """What config.json says of a model that was trained here."""
    settings = model.settings
    kind = "pegasus" if settings.norm == "pre" else "marian"
    src, tgt = (each.num_embeddings for each in _embeddings(model))
    joint = model.own_src_embedding is None
    values = {
        "model_type": kind,
        "architectures": [_CLASSES[kind]],
        "vocab_size": src,
        "encoder_layers": settings.encoder_layers,
        "decoder_layers": settings.decoder_layers,
        "d_model": settings.d_model,
        "activation_function": settings.activation,
        "scale_embedding": settings.scale_embedding,
        "max_position_embeddings": POSITIONS,
        "dropout": settings.dropout,
        "activation_dropout": settings.dropout,
        "attention_dropout": settings.attention_dropout,
        "is_encoder_decoder": True,
        "tie_word_embeddings": True,
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "decoder_start_token_id": BOS,
        "forced_eos_token_id": None,
        "dtype": "float32",
    }
    for side in _SIDES:
        values[f"{side}_ffn_dim"] = settings.d_ff
        values[f"{side}_attention_heads"] = settings.d_model // settings.head_width
    if kind == "marian":
        values |= {"decoder_vocab_size": tgt, "share_encoder_decoder_embeddings": joint}
    return values


def _check_ours(model: Transformer, config: Config) -> None:
    """Raise UserError naming the first setting that neither a Marian nor a Pegasus has."""
    settings, width = model.settings, model.settings.head_width
    apart = config["model_type"] == "pegasus" and model.own_src_embedding is not None
    sizes = f"{settings.d_model} and d_head {width}"
    imported = "expected of an imported model alone, whose folder --pretrained names, found"
    wrong = {
        f"embedding_norm: {imported} true": settings.embedding_norm,
        f"position_table: {imported} {settings.position_table}": settings.position_table,
        f"norm_epsilon: expected at most {EPSILON:g}, found {settings.norm_epsilon:g}": (
            settings.norm_epsilon > EPSILON
        ),
        f"d_model: expected an even multiple of d_head, found {sizes}": (
            settings.d_model % 2 or settings.d_model % width
        ),
        "norm: expected post, or one vocabulary for both sides (bpe.joint), found pre": apart,
    }
    for words, is_wrong in wrong.items():
        if is_wrong:
            raise UserError(
                f"model.{words}; Hugging Face has no other such models, so take --to ctranslate2"
            )


def _check_imported(model: Transformer, config: Config) -> None:
    """Raise UserError unless a model has the shape that importing the folder gives."""
    expected, found = config.settings(), model.settings
    pairs = {
        name: (getattr(expected, name), getattr(found, name))
        for name in type(found).model_fields
        if name not in _FREE
    }
    pairs["d_head"] = expected.head_width, found.head_width
    if not config.joint:  # a shared one may be two here, whose ids differ
        pairs["joint"] = False, model.own_src_embedding is None
    sizes = tuple(each.num_embeddings - 1 for each in _embeddings(model))
    pairs["words of each side"] = config.vocabulary_sizes, sizes
    for name, (theirs, ours) in pairs.items():
        if theirs != ours:
            raise UserError(
                f"{config.path}: {name}: expected {ours}, as the model has, found {theirs}; name "
                "the folder that the model was imported from"
            )

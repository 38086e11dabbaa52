"""Our model as a folder of Hugging Face's library, the same function.

Every layer of theirs has d_model / width heads. Zero rows in W_Q, W_K and W_V and zero columns in
W_O replace heads that ours lacks. Feed-forward layers of a side have one width there, so zeros
replace units, too. A folder is as large and as slow as a model with them. Removed layers are gone.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from headcount.base.addresses import Head
from headcount.base.errors import UserError
from headcount.base.files import read_json, write_json
from headcount.base.settings.decode import DecodeSettings
from headcount.data.vocabulary import BOS, EOS, PAD
from headcount.model.removal import restore_heads, widen
from headcount.model.transformer import Transformer
from headcount_hf.export.ctranslate2_model import POSITIONS
from headcount_hf.pretrained.families import CONFIG, EPSILON, SAME, Config, other_sizes
from headcount_hf.pretrained.library import (
    SEQ2SEQ,
    input_files,
    of_hugging_face,
    open_tokeniser,
    open_whole,
)
from headcount_hf.pretrained.pieces import read_pieces
from headcount_hf.pretrained.segment import GENERATION
from headcount_hf.pretrained.weights import Rows, fill_theirs


@dataclass(frozen=True)
class HuggingFaceForm:
    """A model of the library, with the heads of ours."""

    theirs: nn.Module
    silent: int  # heads
    zero_units: int  # feed-forward units
    pretrained: Path | None = None  # folder with the tokeniser
    start: int | None = None  # new word that translations begin with

    def save(self, folder: Path) -> None:
        """Write config, weights, and the tokeniser of an imported model."""
        self.theirs.save_pretrained(folder, max_shard_size="100GB")
        if self.pretrained is None:
            return
        (folder / GENERATION).unlink(missing_ok=True)  # the makers' file is copied, if any
        for path in input_files(self.pretrained):
            if path.name != CONFIG and ".safetensors" not in path.name:
                shutil.copyfile(path, folder / path.name)
        if self.start is not None:
            self._add_start(folder)

    def _add_start(self, folder: Path) -> None:
        """Add the start of translations to the tokeniser in a folder, as a special word."""
        tokeniser = open_tokeniser(folder)
        name = f"<decoder_start_{self.start}>"
        tokeniser.add_tokens([name], special_tokens=True)
        if (number := tokeniser.convert_tokens_to_ids(name)) != self.start:
            raise UserError(
                f"{self.pretrained}: expected a tokeniser whose next id is {self.start}, found "
                f"{number}; take --to ctranslate2"
            )
        tokeniser.save_pretrained(folder)
        search = folder / GENERATION
        if search.exists():
            write_json(search, read_json(search) | {"decoder_start_token_id": self.start})

    def summary(self) -> str:
        """Return the family, the size and the limits of the folder in words."""
        kind = self.theirs.config.model_type
        size = sum(weight.nbytes for weight in self.theirs.parameters()) / 1e6
        ours = "ids are ours: headcount.load(MODEL) has encode and decode"
        text = "the tokenizer's files are those of the imported model" if self.pretrained else ours
        return (
            f"a {kind} of {size:.1f} MB; {self.silent} of its heads are zeros, and "
            f"{self.zero_units} of its feed-forward units, which save no time or memory there "
            f"(--to ctranslate2 leaves them out); {text}"
        )


def check_layers(model: Transformer) -> None:
    """Raise UserError unless both sides have a layer, which the library expects."""
    layers = len(model.encoder), len(model.decoder)
    if 0 in layers:
        sides = f"found {layers[0]} in the encoder and {layers[1]} in the decoder"
        raise UserError(f"model: expected a layer on both sides, {sides}; take --to headcount")


def form_of_ours(model: Transformer, heads: Sequence[Head]) -> HuggingFaceForm:
    """Return our model as a Marian (post-norm) or a Pegasus (pre-norm)."""
    kind = "pegasus" if model.settings.norm == "pre" else "marian"
    check_layers(model)
    _check_ours(model, kind)
    library, values = of_hugging_face("transformers", SEQ2SEQ), _values_of_ours(model, kind)
    config = Config.model_validate(values | {"folder": Path(), "model_type": kind})
    whole, *zeros = _with_all_units(model, heads, config)
    theirs = library.AutoModelForSeq2SeqLM.from_config(library.AutoConfig.for_model(kind, **values))
    rows = tuple(list(range(table.num_embeddings)) for table in _embeddings(model))
    fill_theirs(theirs, whole, config, rows)
    theirs.generation_config.update(
        suppress_tokens=[PAD, BOS], max_length=POSITIONS, num_beams=DecodeSettings().beam
    )
    return HuggingFaceForm(theirs, *zeros)


def form_of_imported(
    model: Transformer, heads: Sequence[Head], folder: Path, rows: Rows
) -> HuggingFaceForm:
    """Return an imported model, perhaps changed, in its own family. Equal weights stay equal."""
    config = Config.read(folder)
    check_layers(model)
    _check_imported(model, config)
    ids, start = _words(model, config, rows)
    theirs = open_whole(folder)
    if start is not None:
        theirs.config.decoder_start_token_id = start
        theirs.resize_token_embeddings(len(ids[1]), mean_resizing=False)
    theirs.generation_config = type(theirs.generation_config)()  # the makers' file is copied
    config = config.model_copy(update=_cut_layers(theirs, model))
    whole, *zeros = _with_all_units(model, heads, config)
    fill_theirs(theirs, whole, config, ids)
    return HuggingFaceForm(theirs, *zeros, folder, start)


def _cut_layers(theirs: nn.Module, model: Transformer) -> dict[str, int]:
    """Leave the library's model as many layers as ours has, and return their numbers."""
    left = {"encoder_layers": len(model.encoder), "decoder_layers": len(model.decoder)}
    del theirs.model.encoder.layers[left["encoder_layers"] :]
    del theirs.model.decoder.layers[left["decoder_layers"] :]
    theirs.config.update(left | {"num_hidden_layers": left["encoder_layers"]})
    return left


def _words(model: Transformer, config: Config, rows: Rows) -> tuple[Rows, int | None]:
    """Return our id of each of their words, and the new word if one is needed.

    Our start of translations is a copy of a word. Once it was trained, it needs a word of its own,
    which a bias keeps out of translations: the first without a piece, so that the tokenizer can
    have it. A row that only filled the embedding up is replaced.
    """
    # Our id of each of their words, which is never BOS.
    places = [[place for place in range(len(side)) if place != BOS] for side in rows]
    src, tgt = (sorted(p, key=side.__getitem__) for p, side in zip(places, rows, strict=True))
    tables = [table.weight for table in _embeddings(model)]
    shared = config.share_encoder_decoder_embeddings
    if shared and not torch.equal(tables[0][src], tables[1][tgt]):
        raise UserError(
            f"{config.path}: expected an embedding for every side, found one that both share, but "
            "this model's were trained apart; take --to ctranslate2"
        )
    if torch.equal(tables[1][BOS], tables[1][tgt[rows[1][BOS]]]):
        return (src, tgt), None
    if not (config.family.output_bias and shared):
        raise UserError(
            f"{config.path}: expected one embedding for both sides, and an output bias that keeps "
            "the trained start of translations out of them; take --to ctranslate2"
        )
    start = 1 + max(max(side.ids.values()) for side in read_pieces(config).sides)
    return (src, [*tgt[:start], BOS, *tgt[start + 1 :]]), start


def _with_all_units(
    model: Transformer, heads: Sequence[Head], config: Config
) -> tuple[Transformer, int, int]:
    """Return the model with the config's heads and feed-forward units, and how many are new."""
    count = config.encoder_attention_heads
    for head in heads:
        if head.head >= count:
            raise UserError(
                f"{head.label()}: expected heads below {count}, which is d_model / d_head; take "
                "--to ctranslate2"
            )
    places = [
        here._replace(head=head.head) for here, head in zip(model.grid.heads(), heads, strict=True)
    ]
    whole = widen(restore_heads(model, places, count), config.ffn_widths)
    units = [sum(map(sum, one.settings.ffn_widths.values())) for one in (whole, model)]
    return whole, whole.grid.size - model.grid.size, units[0] - units[1]


def _embeddings(model: Transformer) -> tuple[nn.Embedding, nn.Embedding]:
    return model.src_embedding, model.tgt_embedding


def _values_of_ours(model: Transformer, kind: str) -> dict[str, Any]:
    """Return config.json of a model that was trained here."""
    settings = model.settings
    src, tgt = (table.num_embeddings for table in _embeddings(model))
    values = settings.model_dump(include=SAME) | {
        "vocab_size": src,
        "activation_function": settings.activation,
        "max_position_embeddings": POSITIONS,
        "activation_dropout": settings.dropout,
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "decoder_start_token_id": BOS,
        "forced_eos_token_id": None,
    }
    for side in ("encoder", "decoder"):
        values[f"{side}_ffn_dim"] = max((1, *settings.ffn_widths[f"{side[:3]}_ffn"]))
        values[f"{side}_attention_heads"] = settings.d_model // settings.head_width
    if kind == "marian":
        joint = model.own_src_embedding is None
        values |= {"decoder_vocab_size": tgt, "share_encoder_decoder_embeddings": joint}
    return values


def _check_ours(model: Transformer, kind: str) -> None:
    """Raise UserError naming the first setting that neither a Marian nor a Pegasus has."""
    settings, width = model.settings, model.settings.head_width
    apart = kind == "pegasus" and model.own_src_embedding is not None
    for words, wrong in {
        "embedding_norm: expected false without --pretrained": settings.embedding_norm,
        "position_table: expected 0 without --pretrained": settings.position_table,
        f"norm_epsilon: expected at most {EPSILON:g}": settings.norm_epsilon > EPSILON,
        "d_model: expected an even number": settings.d_model % 2,
        "d_model: expected a multiple of d_head": settings.d_model % width,
        "norm: expected post, or one vocabulary for both sides (bpe.joint)": apart,
    }.items():
        if wrong:
            raise UserError(f"model.{words}, as in Hugging Face's models; take --to ctranslate2")


def _check_imported(model: Transformer, config: Config) -> None:
    """Raise UserError unless a model has the shape that importing the folder gives."""
    sizes = tuple(table.num_embeddings - 1 for table in _embeddings(model))
    apart = model.own_src_embedding is not None
    expected_apart = apart or not config.share_encoder_decoder_embeddings  # a shared one may be two
    pairs = (
        ("width of a head", config.settings().head_width, model.settings.head_width),
        ("embeddings apart", expected_apart, apart),
        ("words of both sides", config.vocabulary_sizes, sizes),
    )
    more = [f"{name}: {theirs}, found {ours}" for name, theirs, ours in pairs if theirs != ours]
    for side in ("encoder", "decoder"):
        widths = model.settings.ffn_widths[f"{side[:3]}_ffn"]
        for key, ours in (("layers", len(widths)), ("ffn_dim", max(widths, default=0))):
            if ours > (most := getattr(config, f"{side}_{key}")):
                more.append(f"{side}_{key}: at most {most}, found {ours}")
    free = ("heads", "d_head", "d_ff", "encoder_layers", "decoder_layers")
    if wrong := other_sizes(config, model.settings, free) or "; ".join(more):
        raise UserError(
            f"{config.path}: expected a model of its sizes, which are {wrong}; take the folder "
            "that the model was imported from"
        )

"""Folders of small pretrained models with toy tokenizers, one of each family and kind of files."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from small_marian import write_marian
from small_pretrained import random_weights, small_pretrained
from torch import nn

from headcount_hf.pretrained.families import Config
from headcount_hf.pretrained.pieces import Pieces, read_pieces

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
CODES = {
    "m2m100": ("en", "de"),
    "nllb": ("eng_Latn", "deu_Latn"),
    "mbart": ("en_XX", "de_DE"),
    "mbart50": ("en_XX", "de_DE"),
}
LAYOUTS = (
    "marian", "m2m100", "nllb_json", "nllb_spm", "mbart_json", "mbart_spm", "mbart50_json",
    "mbart50_spm", "pegasus_json", "pegasus_spm", "bart_json", "bart_merges",
)  # fmt: skip
"""Family, and after it which files tell its pieces, where there are several kinds."""

_SYLLABLES = ("the", "ma", "köl", "ré", "sun", "hou", "se", "bir", "Ær", "do", "n't", "ti", "on")
WORDS = [a + b for a in _SYLLABLES for b in ("", *_SYLLABLES[::3])]
LINES = [
    " ".join(WORDS[(7 * line + line // 5 * place + 3 * place) % len(WORDS)] for place in range(6))
    for line in range(150)
]
RAW = ["a </s> b", "<pad> the dog", "the <mask> <s>", "eng_Latn de_DE __de__ red <unk> house"]
ODD = " ".join(sorted({*"".join(RAW), *">>deu<<."} - {" "}))
"""All characters of special names stand in the text, so that no piece of them is unknown."""


@dataclass(frozen=True)
class Small:
    """A folder; the library's model and tokenizer, which are told both languages."""

    layout: str
    folder: Path
    model: nn.Module
    tokenizer: Any

    @property
    def family(self) -> str:
        """As mbart50."""
        return self.layout.partition("_")[0]

    @property
    def codes(self) -> tuple[str | None, str | None]:
        """Those that the model is told."""
        return (None, "deu") if self.family == "marian" else CODES.get(self.family, (None, None))


def write_text(path: Path) -> Path:
    """Write a text to learn pieces from."""
    path.write_text("\n".join([*LINES, *[ODD] * 3]) + "\n", encoding="utf-8")
    return path


def write_small(layout: str, folder: Path, text: Path) -> Small:
    """Learn pieces from a text, and write a model with random weights beside them."""
    family, _, files = layout.partition("_")
    if family == "marian":
        return _write_opus(folder, text)
    folder.mkdir()
    writer = {"bart": _byte_level, "pegasus": _pegasus, "m2m100": _m2m100}.get(family, _fairseq)
    tokenizer, values = writer(family, files, folder, text)
    kind = {"mbart50": "mbart", "m2m100": "m2m_100", "nllb": "m2m_100"}.get(family, family)
    model = small_pretrained(kind, **values)
    _seldom(model, tokenizer)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    return Small(layout, folder, model, tokenizer)


def add_words(small: Small, words: Sequence[Any], dtype: torch.dtype = torch.float32) -> Small:
    """The same with words added to its tokenizer, and rows of the model for them, written again."""
    from transformers import AutoTokenizer

    folder, languages = small.folder, {}
    if small.family in CODES:
        languages = dict(zip(("src_lang", "tgt_lang"), CODES[small.family], strict=True))
    if small.family == "m2m100":  # as on the hub; else the library gives the id of a language away
        codes = {"additional_special_tokens": [*small.tokenizer.lang_token_to_id]}
        (folder / "special_tokens_map.json").write_text(json.dumps(codes))
    tokenizer = AutoTokenizer.from_pretrained(folder, **languages)
    tokenizer.add_tokens(list(words))
    small.model.resize_token_embeddings(small.model.config.vocab_size + len(words))
    torch.manual_seed(1)
    _seldom(random_weights(small.model), tokenizer)
    small.model.to(dtype).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    small.model.float()
    return Small(small.layout, folder, small.model, tokenizer)


def pieces_of(folder: Path) -> Pieces:
    """Return the subwords of a folder."""
    return read_pieces(Config.read(folder))


def _write_opus(folder: Path, text: Path) -> Small:
    """A Marian that translates into two languages."""
    from transformers import MarianTokenizer

    model = write_marian(folder, (text, text), (">>deu<<", ">>nld<<"))
    tokenizer = MarianTokenizer.from_pretrained(folder)
    _seldom(model, tokenizer)
    model.save_pretrained(folder)
    return Small("marian", folder, model, tokenizer)


@torch.no_grad()
def _seldom(model: nn.Module, tokenizer: Any) -> None:
    """Make pieces unlikely that are no text, and the source count, so that translations vary."""
    special = set(tokenizer.all_special_tokens)
    text = {
        number
        for piece, number in tokenizer.get_vocab().items()
        if piece not in special and not piece.startswith((">>", "__"))
    }
    none = [row for row in range(model.config.vocab_size) if row not in text]
    model.get_input_embeddings().weight[none] *= 0.1
    if hasattr(model, "final_logits_bias"):
        model.final_logits_bias[:, none] = -1.0
    for layer in model.model.decoder.layers:
        for part in (layer.encoder_attn.out_proj, layer.encoder_attn.v_proj, layer.fc2):
            part.weight *= 4


def _learn(text: Path, into: Path, kind: str, size: int, **ids: object) -> list[tuple[str, float]]:
    """Learn a SentencePiece model; its pieces and their scores."""
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(into.with_suffix("")), vocab_size=size,
        model_type=kind, minloglevel=2, normalization_rule_name="identity", **ids,
    )  # fmt: skip
    into.with_suffix(".vocab").unlink()
    model = sentencepiece.SentencePieceProcessor(str(into))
    return [(model.id_to_piece(i), model.get_score(i)) for i in range(len(model))]


def _m2m100(family: str, files: str, folder: Path, text: Path) -> tuple[Any, dict[str, Any]]:
    from transformers import M2M100Tokenizer

    model, table = folder / "sentencepiece.bpe.model", folder / "vocab.json"
    pieces = [*SPECIAL, *(piece for piece, _ in _learn(text, model, "unigram", 90)[3:])]
    table.write_text(json.dumps({piece: number for number, piece in enumerate(pieces)}))
    tokenizer = M2M100Tokenizer(str(table), str(model), *CODES[family])
    return tokenizer, {"vocab_size": len(pieces) + 100 + 8, "decoder_start_token_id": 2}


def _fairseq(family: str, files: str, folder: Path, text: Path) -> tuple[Any, dict[str, Any]]:
    import transformers
    from transformers.convert_slow_tokenizer import generate_merges

    spm = folder / "sentencepiece.bpe.model"
    pieces = _learn(text, spm, "bpe" if family == "nllb" else "unigram", 90)[3:]
    names = [*SPECIAL, *(piece for piece, _ in pieces)]
    src, tgt = CODES[family]
    languages = {"src_lang": src, "tgt_lang": tgt}
    if family == "nllb":
        codes = transformers.models.nllb.tokenization_nllb.FAIRSEQ_LANGUAGE_CODES
        merges = generate_merges({name: number for number, name in enumerate(names)}, dict(pieces))
        ids = {name: number for number, name in enumerate([*names, *codes, "<mask>"])}
        tokenizer = transformers.NllbTokenizer(vocab=ids, merges=merges, **languages)
    else:
        kind = {"mbart": "MBartTokenizer", "mbart50": "MBart50Tokenizer"}[family]
        module = __import__(f"transformers.models.{family}.tokenization_{family}", fromlist=["x"])
        codes = module.FAIRSEQ_LANGUAGE_CODES
        head, tail = ([(name, 0.0) for name in part] for part in (SPECIAL, [*codes, "<mask>"]))
        tokenizer = getattr(transformers, kind)(vocab=[*head, *pieces, *tail], **languages)
    if files == "json":
        spm.unlink()
        tokenizer.save_pretrained(folder)
    else:
        told = {"tokenizer_class": type(tokenizer).__name__}
        if family == "nllb":
            decoder = tokenizer.added_tokens_decoder.items()
            told["added_tokens_decoder"] = {n: token.__getstate__() for n, token in decoder}
        (folder / "tokenizer_config.json").write_text(json.dumps(told))
    start = None if family == "mbart" else 2
    return tokenizer, {"vocab_size": len(tokenizer) + 2, "decoder_start_token_id": start}


def _pegasus(family: str, files: str, folder: Path, text: Path) -> tuple[Any, dict[str, Any]]:
    from transformers import PegasusTokenizer

    spm = folder / "spiece.model"
    own = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
    pieces = _learn(text, spm, "unigram", 90, **own)[3:]
    head = ["<pad>", "</s>", "<mask_1>", "<mask_2>"]
    vocab = [(name, 0.0) for name in head] + [(f"<unk_{i}>", -100.0) for i in range(2, 103)]
    tokenizer = PegasusTokenizer(vocab=[*vocab, ("<unk>", 0.0), *pieces])
    if files == "json":
        spm.unlink()
        tokenizer.save_pretrained(folder)
    values = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    return tokenizer, values | {"vocab_size": len(tokenizer), "bos_token_id": None}


def _byte_level(family: str, files: str, folder: Path, text: Path) -> tuple[Any, dict[str, Any]]:
    from tokenizers import ByteLevelBPETokenizer
    from transformers import BartTokenizer

    model = ByteLevelBPETokenizer()
    special = [*SPECIAL, "<mask>"]
    model.train([str(text)], vocab_size=330, special_tokens=special, show_progress=False)
    model.save_model(str(folder))
    tokenizer = BartTokenizer.from_pretrained(folder)
    if files == "json":
        for name in ("vocab.json", "merges.txt"):
            (folder / name).unlink()
        tokenizer.save_pretrained(folder)
    return tokenizer, {"vocab_size": len(tokenizer), "decoder_start_token_id": 2}

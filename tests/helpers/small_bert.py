"""A small BERT, and sentence pairs that it can learn to classify."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import torch
import transformers

from headcount.data.entailment import COLUMNS, Example

WORDS = [f"w{n}" for n in range(8)]


def pairs(count: int, seed: int, words=WORDS) -> list[Example]:
    """A sentence of three words entails each of its words, and contradicts every other."""
    draw = random.Random(seed)
    found = []
    for number in range(count):
        first = draw.sample(words, 3)
        inside = number % 2 == 0
        others = [word for word in words if word not in first]
        second = draw.choice(first if inside else others)
        label = "entailment" if inside else "contradiction"
        found.append(Example(" ".join(first), second, label))
    return found


def write_pairs(path: Path, found: Sequence[Example]) -> Path:
    """Write pairs as JSON lines, as MultiNLI does."""
    rows = (json.dumps(dict(zip(COLUMNS, pair, strict=True))) for pair in found)
    path.write_text("".join(f"{row}\n" for row in rows))
    return path


def save_bert(folder: Path, labels: Sequence[str] = ("contradiction", "entailment")) -> Path:
    """A BERT of 2 layers with 3 heads, drawn at random, saved as the library does it."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    transformers.BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(1)
    config = transformers.BertConfig(
        vocab_size=13, intermediate_size=48, max_position_embeddings=16, initializer_range=0.1,
        num_hidden_layers=2, num_attention_heads=3, hidden_size=24,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        id2label=dict(enumerate(labels)),
    )  # fmt: skip
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    return folder

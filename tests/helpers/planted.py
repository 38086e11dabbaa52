"""A model whose first encoder layer has heads set by hand, and sentences they are measured on.

The states have eight columns of position encodings (sines and cosines of four frequencies), then
one column each for: verb, subject, rarity. Scores are so large that softmax picks one key.
"""

import numpy as np
import torch

from headcount.base.settings.model import ModelSettings
from headcount.data.batches import ParallelText
from headcount.data.trees import AlignedTree, Arc
from headcount.data.vocabulary import EOS, Vocabulary
from headcount.model.attention import sinusoids
from headcount.model.transformer import Transformer

PLACES = 8
VERB, SUBJECT, RARITY = range(PLACES, PLACES + 3)
WIDTH = 12
STRONG = 1000.0

POSITIONAL, SYNTACTIC, RARE, UNIFORM, TO_VERB = range(HEADS := 5)

# Pieces and how often each is in the training text; `dog` is cut in two.
WORDS = Vocabulary([("the", 90), ("sees", 50), ("do@@", 30), ("g", 30), ("cat", 20), ("yak", 2)])
THE, SEES, DO, G, CAT, YAK = WORDS.ids(["the", "sees", "do@@", "g", "cat", "yak"])
COUNTS = torch.tensor([0, 0, 0, 0, 90, 50, 30, 30, 20, 2])
SUBJECTS = (DO, G, CAT)  # what the syntactic head takes for a subject; a yak it overlooks

TREES = [
    # the dog sees the yak; the cat sees; the yak sees the cat: subject before verb in all three,
    # two positions after it never. The head is right in the first two.
    AlignedTree(
        "a",
        [["the"], ["do@@", "g"], ["sees"], ["the"], ["yak"]],
        [Arc(0, 1, "det"), Arc(1, 2, "nsubj"), Arc(3, 4, "det"), Arc(4, 2, "obj")],
    ),
    AlignedTree("b", [["the"], ["cat"], ["sees"]], [Arc(0, 1, "det"), Arc(1, 2, "nsubj")]),
    AlignedTree(
        "c",
        [["the"], ["yak"], ["sees"], ["the"], ["cat"]],
        [Arc(0, 1, "det"), Arc(1, 2, "nsubj"), Arc(3, 4, "det"), Arc(4, 2, "obj")],
    ),
]
TEXT = ParallelText(
    [WORDS.ids(p for token in tree.pieces for p in token) for tree in TREES], [[4], [5, 6], [7]]
)


def planted_model() -> Transformer:
    """One encoder layer (norm after the sum, so that heads see the bare states), five heads."""
    torch.manual_seed(1)
    sizes = {"encoder_layers": 1, "decoder_layers": 1, "d_model": WIDTH, "d_ff": 6, "heads": HEADS}
    settings = ModelSettings(**sizes, d_head=WIDTH, norm="post", dropout=0.0)
    model = Transformer(settings, len(WORDS), 9, joint=False).eval()
    with torch.no_grad():
        model.sines = torch.zeros(64, WIDTH)
        model.sines[:, :PLACES] = sinusoids(64, PLACES)
        embedding = model.src_embedding.weight.zero_()
        embedding[SEES, VERB] = 1 / model.scale
        embedding[list(SUBJECTS), SUBJECT] = 1 / model.scale
        embedding[4:, RARITY] = (100 - COUNTS[4:]) / model.scale
        embedding[EOS, RARITY] = -1
        inputs = model.encoder[0].attention.inputs
        weight, bias = inputs.weight.zero_(), inputs.bias.zero_()
        queries, keys, _ = weight.view(3, HEADS, WIDTH, WIDTH)
        queries[POSITIONAL, :PLACES, :PLACES] = STRONG * turned_back()
        keys[POSITIONAL, :PLACES, :PLACES] = torch.eye(PLACES)
        queries[SYNTACTIC, 0, VERB] = STRONG
        keys[SYNTACTIC, 0, SUBJECT] = 1
        queries[TO_VERB, 0, SUBJECT] = STRONG
        keys[TO_VERB, 0, VERB] = 1
        bias.view(3, HEADS, WIDTH)[0, RARE, 0] = STRONG
        keys[RARE, 0, RARITY] = 1
    return model


def turned_back() -> torch.Tensor:
    """The matrix that turns the encoding of position i into that of i − 1."""
    rates = 10000.0 ** (-np.arange(0, PLACES, 2) / PLACES)
    blocks = [
        torch.tensor([[np.cos(rate), -np.sin(rate)], [np.sin(rate), np.cos(rate)]])
        for rate in rates
    ]
    return torch.block_diag(*blocks).float()

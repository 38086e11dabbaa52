"""Vocabularies cut to the pieces that some text uses, and the model with these pieces alone."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import torch

from headcount.base.errors import UserError
from headcount.base.folders import SEGMENTERS, SIDES
from headcount.data.text import read_clean
from headcount.data.vocabulary import SPECIALS, Vocabulary
from headcount.data.words import AnySegmenter
from headcount.model.transformer import Transformer, copy_weights
from headcount.store.pair_folder import PairFolder

_TABLES = {"tgt_embedding.weight": 1, "own_src_embedding.weight": 0, "output_bias": 1}
"""Parameters with a row for every piece, and the side of the pieces."""


def used_ids(side: AnySegmenter, texts: Sequence[Path]) -> set[int]:
    """Return the ids of a text's pieces, of special pieces and of marks."""
    special = {*range(len(SPECIALS)), *side.vocabulary.ids(side.special)}
    ids = special.union(*(side.encode(line) for path in texts for line in read_clean(path)))
    if ids == special:
        names = ", ".join(map(str, texts))
        raise UserError(f"{names}: expected text with pieces of this model, found none")
    return ids


def with_ids(model: Transformer, kept: Sequence[list[int]]) -> Transformer:
    """Return a copy of a model with these pieces of source and target alone, in this order."""
    joint = model.own_src_embedding is None
    smaller = Transformer(model.settings, *map(len, kept), joint)
    weights = {name: weight.detach() for name, weight in model.named_parameters()}
    for name, side in _TABLES.items():
        if name in weights:
            weights[name] = weights[name][torch.tensor(kept[side], device=weights[name].device)]
    copy_weights(smaller, weights)
    return smaller.to(model.tgt_embedding.weight.device).train(model.training)


def write_pieces(pair: PairFolder, kept: Sequence[list[int]], folder: Path) -> PairFolder:
    """Write the subwords of a pair with these pieces alone, and return their folder."""
    for path in pair.files(SEGMENTERS):
        shutil.copyfile(path, folder / path.name)
    for name, whole, ids in zip(SIDES, pair.vocabularies(), kept, strict=True):
        counts = [whole.counts[i - len(SPECIALS)] for i in ids if i >= len(SPECIALS)]
        Vocabulary(counts).save(folder / f"{name}.vocab")
    return PairFolder(folder)

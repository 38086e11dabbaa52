"""A model to use outside of its experiment, without the heads that a mask removes."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from headcount.base.addresses import Head
from headcount.model.removal import remove_heads
from headcount.model.transformer import Transformer, first_device, parameter_count
from headcount.store.kept_heads import read_mask
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

_SHAPE = ("format", "model", "src_size", "tgt_size", "joint", "sha256")
_HEADS = ("kept_heads", "closed_layers")


@dataclass(frozen=True)
class Deployed:
    """A model, its heads, and the folders of both."""

    model: Transformer
    heads: list[Head]  # of the model, in flat order, by their addresses in the first model
    source: ModelFolder
    pair: PairFolder  # its subwords

    @classmethod
    def open(
        cls,
        source: ModelFolder,
        pair: PairFolder,
        mask: Sequence[str | Path] = (),
        device: str = "cpu",
    ) -> "Deployed":
        """Return the model in a folder, without the heads of a `mask`, see `read_mask`.

        Raises UserError if the model was trained on other subwords than the pair's.
        """
        source.check(pair)
        model = source.load(device)
        whole = cls(model, source.original_heads(model.grid), source, pair)
        return whole.without(mask) if mask else whole

    def without(self, mask: Sequence[str | Path]) -> "Deployed":
        """Return the model without the heads of a `mask`.

        Addresses count anew from 0 in each layer. `heads` has the addresses in the first model.
        """
        kept = read_mask(mask, self.model.grid)
        smaller = remove_heads(self.model, torch.from_numpy(kept))
        heads = [head for head, gate in zip(self.heads, kept, strict=True) if gate]
        return Deployed(smaller, heads, self.source, self.pair)

    def on_cpu(self) -> "Deployed":
        """Return the same on the CPU, a copy if the model is elsewhere."""
        if first_device(self.model).type == "cpu":
            return self
        return replace(self, model=copy.deepcopy(self.model).cpu())

    def facts(self) -> dict[str, Any]:
        """Return facts for its model.json beside its shape: its heads, and facts of its source.

        `provenance` describes the training of the weights.
        """
        source = self.source.facts()
        facts = {key: value for key, value in source.items() if key not in (*_SHAPE, *_HEADS)}
        facts["parameters"] = parameter_count(self.model)
        grid = self.model.grid
        if "kept_heads" in source or grid.size < self.source.settings.grid.size:
            closed = [f"{kind}.{n}" for kind, n, at in grid.layers() if at.start == at.stop]
            facts |= {"kept_heads": [head.name() for head in self.heads], "closed_layers": closed}
        return facts

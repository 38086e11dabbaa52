"""A model that is to leave its experiment: without the heads that a mask silences."""

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
    """A model, which heads of the first model it has, and where both came from."""

    model: Transformer
    heads: list[Head]  # of the model, in flat order, by their addresses in the first one
    source: ModelFolder
    pair: PairFolder  # what cuts its text

    @classmethod
    def open(
        cls,
        source: ModelFolder,
        pair: PairFolder,
        mask: Sequence[str | Path] = (),
        device: str = "cpu",
    ) -> "Deployed":
        """The model in a folder, without the heads that `mask` silences, as `read_mask` reads it.

        Raises UserError if the model was trained on other subwords than the pair's.
        """
        source.check(pair)
        model = source.load(device)
        whole = cls(model, source.original_heads(model.grid), source, pair)
        return whole.without(mask) if mask else whole

    def without(self, mask: Sequence[str | Path]) -> "Deployed":
        """The model that is left once the heads that `mask` silences are taken out.

        Its addresses count anew from 0 in each layer; `heads` has those of the first model.
        """
        kept = read_mask(mask, self.model.grid)
        smaller = remove_heads(self.model, torch.from_numpy(kept))
        heads = [head for head, gate in zip(self.heads, kept, strict=True) if gate]
        return Deployed(smaller, heads, self.source, self.pair)

    def on_cpu(self) -> "Deployed":
        """The same with a model on the CPU, a copy if it is elsewhere."""
        if first_device(self.model).type == "cpu":
            return self
        return replace(self, model=copy.deepcopy(self.model).cpu())

    def facts(self) -> dict[str, Any]:
        """What its description says beside its shape: what that of its source says, and its heads.

        `provenance` stays that of the weights, with the settings that they were trained with.
        """
        told = self.source.facts()
        facts = {key: value for key, value in told.items() if key not in (*_SHAPE, *_HEADS)}
        facts["parameters"] = parameter_count(self.model)
        grid = self.model.grid
        if "kept_heads" in told or grid.size < self.source.settings.grid.size:
            closed = [f"{kind}.{n}" for kind, n, at in grid.layers() if at.start == at.stop]
            facts |= {"kept_heads": [head.name() for head in self.heads], "closed_layers": closed}
        return facts

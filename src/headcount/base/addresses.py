"""Head addresses (kind, layer, head) and the flat order in which multipliers list them.

Layers and heads count from 0 everywhere: in flags, files, messages, tables and figures.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from headcount.base.errors import UserError

if TYPE_CHECKING:
    import numpy as np

KINDS = ("enc_self", "dec_self", "dec_enc")

SCOPES = {"enc_self": ("enc_self",), "all": KINDS}
"""Kinds of attention whose heads pruning may remove."""

NAMES = {
    "enc_self": "encoder self-attention",
    "dec_self": "decoder self-attention",
    "dec_enc": "encoder–decoder attention",
}
"""Kinds of attention in words."""


class Head(NamedTuple):
    """One attention head."""

    kind: str
    layer: int
    head: int

    def label(self) -> str:
        """Return the address in words: 'encoder self-attention layer 0 head 3'."""
        return f"{NAMES[self.kind]} layer {self.layer} head {self.head}"

    def name(self) -> str:
        """Return the address as in files: 'enc_self.0.3'."""
        return f"{self.kind}.{self.layer}.{self.head}"


@dataclass(frozen=True)
class HeadGrid:
    """Number of heads by attention type and layer. Flat order: `KINDS`, then layers, then heads."""

    counts: Mapping[str, tuple[int, ...]]

    @property
    def size(self) -> int:
        """Number of heads in the model."""
        return sum(sum(layers) for layers in self.counts.values())

    def heads(self) -> list[Head]:
        """Return all heads in flat order."""
        return [
            Head(kind, layer, head)
            for kind, layer, _ in self.layers()
            for head in range(self.counts[kind][layer])
        ]

    def span(self, kind: str, layer: int) -> slice:
        """Return the flat positions of the heads of one layer."""
        return next(span for *place, span in self.layers() if place == [kind, layer])

    def layers(self) -> Iterator[tuple[str, int, slice]]:
        """Yield attention type, layer number and flat positions of the heads of every layer."""
        start = 0
        for kind in KINDS:
            for layer, count in enumerate(self.counts[kind]):
                yield kind, layer, slice(start, start := start + count)

    def index(self, head: Head) -> int:
        """Return the flat position of a head. Raises UserError if this model has no such head."""
        heads = self.heads()
        if head not in heads:
            known = f"numbers of heads by layer are {dict(self.counts)}"
            raise UserError(f"head {head.name()} does not exist; {known}")
        return heads.index(head)

    def closed_layers(self, mask: "np.ndarray") -> list[str]:
        """Return names such as 'enc_self.0' of the layers whose heads a mask removes completely."""
        return [
            f"{kind}.{layer}"
            for kind, layer, span in self.layers()
            if self.counts[kind][layer] and not mask[span].any()
        ]

    def mask(self, silent: Iterable[Head]) -> "np.ndarray":
        """Return the head mask ξ [size]: 0 for the silent heads, 1 for all others."""
        import numpy as np  # here, as a plan reads settings and masks nothing

        mask = np.ones(self.size, dtype=np.float32)
        mask[[self.index(head) for head in silent]] = 0
        return mask

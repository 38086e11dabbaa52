"""Addresses of units, most of them heads, and the flat order in which multipliers list them.

A unit is an attention head, a feed-forward unit or a whole layer. Layers and units count from 0
everywhere: in flags, files, messages, tables and figures.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from headcount.base.errors import UserError

if TYPE_CHECKING:
    import numpy as np

KINDS = ("enc_self", "dec_self", "dec_enc")
"""Kinds of attention, whose units are heads."""

FEED_FORWARD = ("enc_ffn", "dec_ffn")
LAYERS = ("enc_layer", "dec_layer")
LAYER_OF = dict(zip(KINDS, ("enc_layer", "dec_layer", "dec_layer"), strict=True))
UNITS = (*KINDS, *FEED_FORWARD, *LAYERS)
"""All kinds of units, in flat order."""

SCOPES = {
    "enc_self": ("enc_self",),
    "all": KINDS,
    "ffn": FEED_FORWARD,
    "layers": LAYERS,
    "heads_ffn": (*KINDS, *FEED_FORWARD),
    "units": UNITS,
}
"""Kinds of units that pruning may remove."""

NAMES = {
    "enc_self": "encoder self-attention",
    "dec_self": "decoder self-attention",
    "dec_enc": "encoder–decoder attention",
    "enc_ffn": "encoder feed-forward",
    "dec_ffn": "decoder feed-forward",
    "enc_layer": "encoder",
    "dec_layer": "decoder",
}
"""Kinds of units in words."""


class Head(NamedTuple):
    """One unit: an attention head, a feed-forward unit, or a layer, whose `head` is 0."""

    kind: str
    layer: int
    head: int

    def label(self) -> str:
        """Return the address in words: 'encoder self-attention layer 0 head 3'."""
        layer = f"{NAMES[self.kind]} layer {self.layer}"
        if self.kind in LAYERS:
            return layer
        return f"{layer} {'head' if self.kind in KINDS else 'unit'} {self.head}"

    def name(self) -> str:
        """Return the address as in files: 'enc_self.0.3', 'enc_ffn.0.3' or 'enc_layer.0'."""
        return f"{self.kind}.{self.layer}" + f".{self.head}" * (self.kind not in LAYERS)

    @classmethod
    def parse(cls, text: str) -> "Head":
        """Return the unit of an address. Raises ValueError for another text."""
        kind, layer, *head = text.split(".")
        unit = cls(kind, int(layer), int(head[0]) if head else 0)
        if unit.name() != text or kind not in UNITS:
            raise ValueError(f"expected an address such as enc_self.0.3, found {text!r}")
        return unit


@dataclass(frozen=True)
class HeadGrid:
    """Number of units by kind and layer. Flat order: kinds in order of `UNITS`, layers, units."""

    counts: Mapping[str, tuple[int, ...]]  # of each of `KINDS`, perhaps of other kinds

    @property
    def size(self) -> int:
        """Number of units in the model."""
        return sum(sum(layers) for layers in self.counts.values())

    def heads(self) -> list[Head]:
        """Return all units in flat order."""
        return [
            Head(kind, layer, head)
            for kind, layer, _ in self.layers()
            for head in range(self.counts[kind][layer])
        ]

    def span(self, kind: str, layer: int) -> slice:
        """Return the flat positions of the units of one layer."""
        return next(span for *place, span in self.layers() if place == [kind, layer])

    def layers(self) -> Iterator[tuple[str, int, slice]]:
        """Yield kind, layer number and flat positions of the units of every layer."""
        start = 0
        for kind in filter(self.counts.__contains__, UNITS):
            for layer, count in enumerate(self.counts[kind]):
                yield kind, layer, slice(start, start := start + count)

    def index(self, head: Head) -> int:
        """Return the flat position of a unit. Raises UserError if this model has no such unit."""
        layers = self.counts.get(head.kind, ())
        if head.layer in range(len(layers)) and head.head in range(layers[head.layer]):
            return self.span(head.kind, head.layer).start + head.head
        known = f"numbers by layer are {dict(self.counts)}"
        raise UserError(f"{head.name()} does not exist in this model; {known}")

    def closed_layers(self, mask: "np.ndarray") -> list[str]:
        """Return names such as 'enc_self.0' of the layers whose units a mask removes completely."""
        return [
            f"{kind}.{layer}"
            for kind, layer, span in self.layers()
            if self.counts[kind][layer] and not mask[span].any()
        ]

    def heads_left(self, kept: "np.ndarray") -> list[int]:
        """Return the flat positions of the heads that stay where `kept` [size] is not 0.

        A head goes with its layer, too.
        """
        gone = {unit[:2] for unit, gate in zip(self.heads(), kept, strict=True) if not gate}
        return [
            place
            for place, head in enumerate(self.heads())
            if head.kind in KINDS and kept[place] and (LAYER_OF[head.kind], head.layer) not in gone
        ]

    def mask(self, silent: Iterable[Head]) -> "np.ndarray":
        """Return the mask ξ [size]: 0 for the silent units, 1 for all others."""
        import numpy as np  # here, as a plan reads settings and masks nothing

        mask = np.ones(self.size, dtype=np.float32)
        mask[[self.index(head) for head in silent]] = 0
        return mask

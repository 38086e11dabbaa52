"""Settings of the Transformer: named sizes, and single sizes that override them."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from headcount.base.addresses import FEED_FORWARD, KINDS, LAYERS, HeadGrid
from headcount.base.settings.section import LARGEST, Faults, Section

Sizes = dict[str, int]

MOST_IN_A_ROW = 1000  # layers of a side, heads of a layer

_SIZES = ("encoder_layers", "decoder_layers", "d_model", "d_ff", "heads")

PRESETS: Mapping[str, Sizes] = {
    "tiny": dict(zip(_SIZES, (2, 2, 96, 256, 8), strict=True)),
    "small": dict(zip(_SIZES, (3, 3, 256, 1024, 4), strict=True)),
    "base": dict(zip(_SIZES, (6, 6, 512, 2048, 8), strict=True)),
    "big": dict(zip(_SIZES, (6, 6, 1024, 4096, 16), strict=True)),
    "iwslt": dict(zip(_SIZES, (6, 6, 512, 1024, 8), strict=True)),
}


Width = Annotated[int, Field(ge=1, le=LARGEST)]


class ModelSettings(Section):
    """Sizes of the Transformer. A size that is not named comes from the preset."""

    preset: Literal["tiny", "small", "base", "big", "iwslt"] = "base"
    """Named sizes: see the table of presets."""
    encoder_layers: int = Field(default=..., ge=0, le=MOST_IN_A_ROW)
    """Number of encoder layers."""
    decoder_layers: int = Field(default=..., ge=0, le=MOST_IN_A_ROW)
    """Number of decoder layers."""
    d_model: int = Field(default=..., ge=2, le=LARGEST)
    """Width of embeddings and layers."""
    d_ff: Width | dict[Literal["enc_ffn", "dec_ffn"], list[int]] = Field(default=...)
    """Width of the feed-forward layers, or, per side, a list of one width per layer, 0 allowed."""
    heads: int | dict[Literal["enc_self", "dec_self", "dec_enc"], list[int]] = Field(default=...)
    """Heads of every attention layer, or, per kind, a list of one count per layer, 0 allowed."""
    d_head: int | None = Field(None, ge=1, le=LARGEST)
    """Width of one head; without it d_model / heads, which must then be one whole number."""
    norm: Literal["pre", "post"] = "pre"
    """Layer norm before each sub-layer (and once at the end), or after each residual sum."""
    norm_epsilon: float = Field(1e-6, gt=0)
    """What layer norm adds to a variance."""
    embedding_norm: bool = False
    """Layer norm of the embeddings as well, as BART and mBART have it."""
    activation: Literal["relu", "silu", "gelu"] = "relu"
    """The function between the two maps of a feed-forward layer."""
    scale_embedding: bool = True
    """Whether embeddings are multiplied by √d_model before positions are added."""
    position_table: int = Field(0, ge=0, le=LARGEST)
    """0: sinusoids, of any length; else a table of so many positions a side, never trained."""
    output_bias: bool = False
    """A bias on the score of each target word, never trained."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout on embeddings, on feed-forward activations and on every sub-layer's output."""
    attention_dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout on the weights of attention, as tensor2tensor's Transformer base has it (0.1)."""

    @model_validator(mode="before")
    @classmethod
    def _fill_from_preset(cls, given: Any) -> Any:
        # A preset that does not exist is reported by its field, without missing sizes beside it.
        named = isinstance(given, dict) and str(given.get("preset", "base"))
        return {**PRESETS.get(named, PRESETS["base"]), **given} if named else given

    def _faults(self) -> Faults:
        uniform = isinstance(self.heads, int)
        wide = self.d_head or (uniform and self.heads and self.d_model % self.heads == 0)
        yield f"heads: expected a divisor of {self.d_model}, or d_head", not wide
        for key, kinds, most in (("heads", KINDS, MOST_IN_A_ROW), ("d_ff", FEED_FORWARD, LARGEST)):
            for kind in kinds:
                layers, counts = self._layers(kind), self._by_layer(getattr(self, key), kind)
                wrong = len(counts) != layers or not all(0 <= n <= most for n in counts)
                yield f"{key}.{kind}: expected {layers} counts, 0 to {most}", wrong

    @property
    def layer_weights(self) -> int:
        """Weights of all layers, without embeddings, biases and norms."""
        widths = sum(map(sum, self.ffn_widths.values()))
        return self.d_model * (4 * self.grid.size * self.head_width + 2 * widths)

    @property
    def grid(self) -> HeadGrid:
        """Number of heads by attention type and layer."""
        return HeadGrid({kind: self._by_layer(self.heads, kind) for kind in KINDS})

    @property
    def ffn_widths(self) -> dict[str, tuple[int, ...]]:
        """Number of feed-forward units by side and layer."""
        return {kind: self._by_layer(self.d_ff, kind) for kind in FEED_FORWARD}

    @property
    def unit_grid(self) -> HeadGrid:
        """Number of units of all kinds by layer."""
        layers = {kind: (1,) * self._layers(kind) for kind in LAYERS}
        return HeadGrid({**self.grid.counts, **self.ffn_widths, **layers})

    def _layers(self, kind: str) -> int:
        return self.encoder_layers if kind.startswith("enc_") else self.decoder_layers

    def _by_layer(self, sizes: int | Mapping[str, list[int]], kind: str) -> tuple[int, ...]:
        """Return the sizes of a kind, one per layer, from one size or lists."""
        if isinstance(sizes, int):
            return (sizes,) * self._layers(kind)
        return tuple(sizes.get(kind, ()))

    @property
    def head_width(self) -> int:
        """Width of one head, which sets the scale of the scores, 1 / sqrt(width)."""
        return self.d_head or self.d_model // self.heads

"""The sizes of a classifier's encoder, and what it computes."""

from dataclasses import dataclass
from pathlib import Path

from headcount.base.addresses import HeadGrid
from headcount.base.errors import UserError
from headcount.base.files import read_json

# What the Hugging Face library calls them: BERT, RoBERTa and ELECTRA; DistilBERT.
_KEYS = {
    "layers": ("num_hidden_layers", "n_layers"),
    "heads": ("num_attention_heads", "n_heads"),
    "width": ("hidden_size", "dim"),
    "inner": ("intermediate_size", "hidden_dim"),
}


@dataclass(frozen=True)
class Encoder:
    """How large an encoder is."""

    layers: int
    heads: int  # of a layer
    width: int
    inner: int  # width of its feed-forward layers

    @classmethod
    def read(cls, path: Path) -> "Encoder":
        """The one of a model's config.json. Raises UserError where that does not say it."""
        told = read_json(path)
        found = {
            size: next((told[k] for k in keys if k in told), 0) for size, keys in _KEYS.items()
        }
        for size, keys in _KEYS.items():
            if not found[size]:
                raise UserError(
                    f"{path}: expected {' or '.join(keys)}, found neither; is it an encoder such "
                    "as BERT?"
                )
        return cls(**found)

    @property
    def grid(self) -> HeadGrid:
        """Its heads."""
        counts = {"enc_self": (self.heads,) * self.layers, "dec_self": (), "dec_enc": ()}
        return HeadGrid(counts)

    def teraflops(self, subwords: float) -> float:
        """10^12 operations of the products of one layer in training, for so many subwords.

        Two for each weight to come forward, and twice as many for both gradients.
        """
        weights = 4 * self.width**2 + 2 * self.width * self.inner
        return 6e-12 * weights * subwords


BERT_BASE = Encoder(layers=12, heads=12, width=768, inner=3072)
"""Devlin et al. 2019."""

"""Our one head multiplier on a Hugging Face encoder-decoder, which stays as it is.

What measures our Transformer measures this one too: it has a grid, attentions, and losses of
batches. Letters in shapes: b sentences, q query and k key positions, h heads of the model.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from headcount.base.addresses import KINDS, HeadGrid
from headcount.base.errors import UserError
from headcount.data.batches import Batch, Ids
from headcount.model.loss import cross_entropies, summed_loss, token_losses
from headcount.model.transformer import check_multiplier, first_device
from headcount_hf.hooks.multiplied import find_outputs, multiplied_heads
from headcount_hf.hooks.tokenised_text import Source, TokenisedText, source_length, stacked

# Names of W_O by kind: BART's relatives, Whisper and T5Gemma; T5's relatives.
_OWN = r"(?:layers\.(\d+)\.self_attn\.(?:out|o)_proj|block\.(\d+)\.layer\.0\.SelfAttention\.o)$"
_CROSS = r"(?:layers\.(\d+)\.(?:encoder_attn|cross_attn|cross_attention)\.(?:out|o)_proj|"
_CROSS += r"block\.(\d+)\.layer\.1\.EncDecAttention\.o)$"
_PLACES = {
    "enc_self": rf"(?:^|\.)encoder\.{_OWN}",
    "dec_self": rf"(?:^|\.)decoder\.{_OWN}",
    "dec_enc": rf"(?:^|\.)decoder\.{_CROSS}",
}
_WIDTHS = ("head_dim", "key_value_proj_dim")  # what the width of a head is called
_WEIGHTS = {
    "enc_self": "encoder_attentions",
    "dec_self": "decoder_attentions",
    "dec_enc": "cross_attentions",
}


@dataclass(frozen=True)
class Joined:
    """The heads of one layer of theirs, as they enter its W_O."""

    output: nn.Module
    heads: int
    d_head: int


class HookedSeq2Seq(nn.Module):
    """An encoder-decoder of Hugging Face's library whose heads can be multiplied.

    `multiplier`, wherever it is an argument, is flat in the order of `grid`: [heads], or
    [b, heads] with one row per sentence; None leaves every head as it is.
    """

    def __init__(self, model: nn.Module):
        """Raises UserError for a model whose attention is not found."""
        super().__init__()
        self.model = model
        found = {kind: _joined(model, place) for kind, place in _PLACES.items()}
        self._joined = {kind: [layers[n] for n in sorted(layers)] for kind, layers in found.items()}
        if any(
            not layers or sorted(layers) != list(range(len(layers))) for layers in found.values()
        ):
            raise _unknown(model, found)
        counts = {kind: tuple(each.heads for each in self._joined[kind]) for kind in KINDS}
        self.grid = HeadGrid(counts)

    def attentions(self) -> Iterator[tuple[str, int, Joined]]:
        """Give kind, layer and W_O of every attention, in the flat order of the heads."""
        for kind in KINDS:
            for layer, joined in enumerate(self._joined[kind]):
                yield kind, layer, joined

    def multiplied(self, multiplier: Tensor | None, beams: int = 1) -> AbstractContextManager[None]:
        """Context in which each head's output is multiplied before W_O; see `multiplied_heads`."""
        spans = (
            (joined.output, self.grid.span(kind, layer))
            for kind, layer, joined in self.attentions()
        )
        return multiplied_heads(spans, multiplier, beams)

    def text(
        self, sources: Sequence[Source], targets: Sequence[Ids], start: int | None = None
    ) -> TokenisedText:
        """Return pairs in the ids of the model's own tokeniser, with all that it adds to them.

        The decoder reads each target moved by one place, as the library does it (mBART: with the
        language from the end in front); with `start` behind that id.
        """
        pad = self._id("pad_token_id")
        if start is None and not hasattr(self.model, "prepare_decoder_input_ids_from_labels"):
            start = self._id("decoder_start_token_id")
        moved = [self._moved(ids) if start is None else [start, *ids[:-1]] for ids in targets]
        return TokenisedText(list(sources), list(targets), moved, pad)

    def _id(self, name: str) -> int:
        found = getattr(self.model.config, name, None)
        if not isinstance(found, int):
            raise UserError(
                f"{type(self.model).__name__}: {name} of its config: expected an id, found {found}"
            )
        return found

    def _moved(self, ids: Ids) -> Ids:
        labels = torch.tensor([ids])
        return self.model.prepare_decoder_input_ids_from_labels(labels)[0].tolist()

    def read(self, batch: Batch, multiplier: Tensor | None, weights: bool = False) -> Any:
        """Return the library's output of a batch: `logits` [b, q, vocabulary], perhaps weights.

        It is not given the labels: it would make a mean loss of its own of them.
        """
        check_multiplier(self, multiplier, len(batch.indices))
        self._check_length(batch.tgt_in.shape[1])
        with self.multiplied(multiplier):
            return self.model(
                **self._source(batch.src, batch.src_lengths),
                decoder_input_ids=batch.tgt_in,
                use_cache=False,
                output_attentions=weights,
            )

    def attention_weights(
        self, batch: Batch, multiplier: Tensor | None = None
    ) -> Iterator[tuple[str, int, Tensor]]:
        """Give kind, layer and weights [b, h, q, k] of every attention; every row sums to 1.

        Raises UserError where the model computes attention in a way that hands none out, which the
        library passes over in silence.
        """
        found = self.read(batch, multiplier, weights=True)
        for kind, name in _WEIGHTS.items():
            layers = getattr(found, name, None) or ()
            if len(layers) != len(self.grid.counts[kind]) or any(each is None for each in layers):
                way = getattr(self.model.config, "_attn_implementation", "unknown")
                raise UserError(
                    f"{type(self.model).__name__}: expected attention written out, which has "
                    f"weights, found attention by {way!r}, which hands none out; call "
                    'set_attn_implementation("eager") on the model first'
                )
            for layer, weights in enumerate(layers):
                yield kind, layer, weights

    @torch.inference_mode()
    def generate(
        self,
        sources: Sequence[Source],
        options: Mapping[str, Any],
        multiplier: Tensor | None = None,
    ) -> Tensor:
        """Return the ids that the library's own search gives [b, length], the start included.

        `options`: arguments of its `generate`; what they do not say, the model's generation
        config does. Several masks are rows of one search: repeat the sources. Dropout is off.
        """
        self.eval()
        check_multiplier(self, multiplier, len(sources))
        beams = options.get("num_beams") or self.model.generation_config.num_beams or 1
        lengths = [source_length(each) for each in sources]
        src = stacked(sources, self._id("pad_token_id")).to(first_device(self))
        with self.multiplied(multiplier, beams):
            return self.model.generate(**self._source(src, lengths), **options)

    def check(self, text: TokenisedText) -> None:
        """Raise UserError unless the mask of a sentence changes this sentence, and no other.

        The first pair stands twice in a batch, once with every head silent. A library's module that
        has rows in another place would be masked in the wrong one without a word.
        """
        twice = text.part([0, 0]).resident(first_device(self)).batch([0, 1])
        rows = torch.ones(2, self.grid.size, device=twice.tgt_out.device)
        rows[1] = 0
        self.eval()
        with torch.no_grad():
            whole, silent = (token_losses(self, twice, row) for row in rows)
            try:
                found = token_losses(self, twice, rows)
            except ValueError:  # other rows than sentences
                found = torch.full_like(whole, torch.inf)
        length = twice.tgt_lengths[0]
        expected = torch.cat((whole[:length], silent[length:]))
        if (found - expected).abs().max() > 1e-2 * (silent - whole).abs().max() + 1e-4:
            raise UserError(
                f"{type(self.model).__name__}: expected that masks of two sentences act on each "
                "alone, found that they do not; its attention has rows in another order, and its "
                "heads cannot be masked here"
            )

    def _source(self, src: Tensor, lengths: Sequence[int]) -> dict[str, Tensor]:
        """Return the source by the library's names, and which of its ids are no padding."""
        name = self.model.main_input_name
        if name != "input_ids":
            return {name: src}  # features, all of one length
        self._check_length(src.shape[1])
        places = torch.arange(src.shape[1], device=src.device)
        real = places < torch.tensor(lengths, device=src.device)[:, None]
        return {name: src, "attention_mask": real.long()}

    def _check_length(self, length: int) -> None:
        limit = getattr(self.model.config, "max_position_embeddings", None) or length
        if length > limit:
            raise UserError(
                f"a sentence of {length} subwords with all that the tokeniser adds, expected at "
                f"most {limit}, as many positions as the model knows; leave longer ones out, as "
                "text.max_words does"
            )


@token_losses.register(HookedSeq2Seq)
def _token_losses(
    model: HookedSeq2Seq, batch: Batch, multiplier: Tensor | None = None, smoothing: float = 0.0
) -> Tensor:
    logits = batch.without_padding(model.read(batch, multiplier).logits)
    return cross_entropies(logits, batch.without_padding(batch.tgt_out), smoothing)


@summed_loss.register(HookedSeq2Seq)
def _summed_loss(
    model: HookedSeq2Seq, batch: Batch, multiplier: Tensor | None = None, smoothing: float = 0.0
) -> Tensor:
    return token_losses(model, batch, multiplier, smoothing).sum()


def _joined(model: nn.Module, place: str) -> dict[int, Joined]:
    """Return W_O of every layer of a kind, by layer."""
    found = {}
    for number, name in find_outputs(model, place).items():
        output, owner = map(model.get_submodule, (name, name.rpartition(".")[0]))
        # The number of heads does not stand in every module; their width does.
        width = next((getattr(owner, each) for each in _WIDTHS if hasattr(owner, each)), 0)
        if width and output.in_features % width == 0:
            found[number] = Joined(output, output.in_features // width, width)
    return found


def _unknown(model: nn.Module, found: Mapping[str, dict[int, Joined]]) -> UserError:
    layers = ", ".join(f"{len(found[kind])} of {kind}" for kind in KINDS)
    names = {
        f"{re.sub(r'[0-9]+', 'N', name)} ({type(module).__name__})": None
        for name, module in model.named_modules()
        if "attention" in type(module).__name__.lower()
    }
    return UserError(
        f"{type(model).__name__}: expected the attention of an encoder-decoder such as BART, T5, "
        f"T5Gemma or Whisper, found {layers}; this architecture is not known. Its attention "
        f"modules: {', '.join(names) or 'none'}"
    )

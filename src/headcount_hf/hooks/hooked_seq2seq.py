"""Head multiplier on a Hugging Face encoder-decoder, which stays as it is.

It has a grid, attentions and losses of batches, so that it can replace our Transformer in all
measures. Letters in shapes: b sentences, q query and k key positions, h heads of the model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from headcount.base.addresses import KINDS
from headcount.base.errors import UserError
from headcount.data.batches import CPU, Batch, Ids, ParallelText, in_order
from headcount.data.word_links.links import Pairs as Links
from headcount.heads.alignment import cross_weights
from headcount.library.linking import cross_heads
from headcount.model.loss import cross_entropies, summed_loss, token_losses
from headcount.model.transformer import check_multiplier, first_device
from headcount_hf.hooks.multiplied import Hooked, Joined, find_outputs

Source = Ids | Tensor
"""Input of an encoder: ids, or features [channels, frames] of sound."""

# Names of W_O by kind: BART's relatives, Whisper and T5Gemma; T5's relatives.
_OWN = r"(?:layers\.(\d+)\.self_attn\.(?:out|o)_proj|block\.(\d+)\.layer\.0\.SelfAttention\.o)$"
_CROSS = r"(?:layers\.(\d+)\.(?:encoder_attn|cross_attn|cross_attention)\.(?:out|o)_proj|"
_CROSS += r"block\.(\d+)\.layer\.1\.EncDecAttention\.o)$"
_PLACES = {
    "enc_self": rf"(?:^|\.)encoder\.{_OWN}",
    "dec_self": rf"(?:^|\.)decoder\.{_OWN}",
    "dec_enc": rf"(?:^|\.)decoder\.{_CROSS}",
}
_WIDTHS = ("head_dim", "key_value_proj_dim")  # names of the width of a head


@dataclass(frozen=True)
class TokenisedText(ParallelText):
    """Pairs with all ids that a tokeniser adds, such as ends and languages."""

    src: list[Source]
    tgt_in: list[Ids]  # input of the decoder, as long as `tgt`
    pad: int

    def part(self, numbers: Sequence[int]) -> "TokenisedText":
        """Return the pairs with these numbers."""
        src, tgt, tgt_in = (
            [side[i] for i in numbers] for side in (self.src, self.tgt, self.tgt_in)
        )
        return replace(self, src=src, tgt=tgt, tgt_in=tgt_in)

    @property
    def lengths(self) -> np.ndarray:
        """Lengths of source and target of every pair [2, pairs], with added ids."""
        return np.array([[*map(source_length, self.src)], [*map(len, self.tgt)]])

    def batch(self, indices: Sequence[int], device: torch.device = CPU) -> Batch:
        """Return one padded batch of the pairs with these numbers."""
        pairs = np.array(indices).tolist()
        part = self.part(pairs)
        src_lengths, tgt_lengths = part.lengths.tolist()
        real = torch.arange(max(tgt_lengths)) < torch.tensor(tgt_lengths)[:, None]
        tensors = [stacked(side, self.pad) for side in (part.src, part.tgt_in, part.tgt)]
        tensors.append(real.flatten().nonzero().squeeze(1))
        return Batch(pairs, src_lengths, tgt_lengths, *(t.to(device) for t in tensors))


def source_length(source: Source) -> int:
    """Return the number of ids or frames of a source."""
    return source.shape[-1] if isinstance(source, Tensor) else len(source)


def stacked(sources: Sequence[Source], pad: int) -> Tensor:
    """Return ids [b, k], padded at the end, or features [b, channels, frames] of one length."""
    if isinstance(sources[0], Tensor):
        return torch.stack(list(sources))
    return pad_sequence([torch.tensor(ids, dtype=torch.long) for ids in sources], True, pad)


class HookedSeq2Seq(Hooked):
    """An encoder-decoder of Hugging Face's library whose heads can be multiplied.

    `multiplier`, wherever it is an argument, is flat in the order of `grid`: [heads], or
    [b, heads] with one row per sentence. None leaves every head as it is.
    """

    def __init__(self, model: nn.Module):
        """Find W_O of every layer. Raises UserError for an unknown architecture."""
        joined = {kind: _joined(model, _PLACES[kind]) for kind in KINDS}
        if any(not layers or [*layers] != [*range(len(layers))] for layers in joined.values()):
            layers = ", ".join(f"{len(joined[kind])} of {kind}" for kind in KINDS)
            names = {type(module).__name__ for module in model.modules()}
            names = ", ".join(sorted(name for name in names if "Attention" in name)) or "none"
            raise UserError(
                f"{type(model).__name__}: expected the attention of an encoder-decoder such as "
                f"BART, T5, T5Gemma or Whisper, found {layers} (modules: {names})"
            )
        super().__init__(model, {kind: [*layers.values()] for kind, layers in joined.items()})

    def text(
        self, sources: Sequence[Source], targets: Sequence[Ids], start: int | None = None
    ) -> TokenisedText:
        """Return pairs in the ids of the model's own tokeniser, with all ids that it adds.

        The decoder reads every target moved by one place, behind `start` if it is given, else as
        the library moves it (mBART: the language at the end goes to the front).
        """
        pad = self._id("pad_token_id")
        if start is None and not hasattr(self.model, "prepare_decoder_input_ids_from_labels"):
            start = self._id("decoder_start_token_id")
        moved = [
            self.model.prepare_decoder_input_ids_from_labels(torch.tensor([ids]))[0].tolist()
            if start is None
            else [start, *ids[:-1]]
            for ids in targets
        ]
        return TokenisedText(list(sources), list(targets), moved, pad)

    def _id(self, name: str) -> int:
        number = getattr(self.model.config, name, None)
        if not isinstance(number, int):
            name = f"{type(self.model).__name__}: {name} of its config"
            raise UserError(f"{name}: expected an id, found {number}")
        return number

    def logits(self, batch: Batch, multiplier: Tensor | None) -> Tensor:
        """Return the library's scores of a batch [b, q, vocabulary]."""
        check_multiplier(self, multiplier, len(batch.indices))
        self._check_length(batch.tgt_in.shape[1])
        source = self._source(batch.src, batch.src_lengths)
        with self.multiplied(multiplier):
            return self.model(**source, decoder_input_ids=batch.tgt_in, use_cache=False).logits

    @torch.inference_mode()
    def generate(
        self,
        sources: Sequence[Source],
        options: Mapping[str, Any],
        multiplier: Tensor | None = None,
    ) -> Tensor:
        """Return the ids of the library's own search [b, length], the start included.

        `options`: arguments of its `generate`, instead of the model's generation config. Repeat
        the sources for several masks. Dropout is off.
        """
        self.eval()
        check_multiplier(self, multiplier, len(sources))
        beams = options.get("num_beams") or self.model.generation_config.num_beams or 1
        lengths = [*map(source_length, sources)]
        src = stacked(sources, self._id("pad_token_id")).to(first_device(self))
        with self.multiplied(multiplier, beams):
            return self.model.generate(**self._source(src, lengths), **options)

    @torch.inference_mode()
    def align(self, text: TokenisedText, heads: Sequence[str], budget: int = 4096) -> list[Links]:
        """Return links (source position, target position) of every pair, by the mean of heads.

        A target id is linked to the source id with the largest weight, and neither is the end. In
        Whisper a source position is 20 ms of sound. `budget`: tokens of a batch.
        """
        named = cross_heads(heads, self.grid)
        links: list[Links] = [[]] * len(text)
        for batch in in_order(text, budget, first_device(self)):
            layers = self._cross_attention(batch)
            mean = torch.stack([layers[head.layer][:, head.head] for head in named]).mean(0)
            for number, weights in zip(batch.indices, mean, strict=True):
                links[number] = self._largest(text.part([number]), weights)
        return links

    def _cross_attention(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return the weights [b, h, q, k] of every decoder layer, written out by the library."""
        source = self._source(batch.src, batch.src_lengths)
        asked = {"use_cache": False, "output_attentions": True}
        before = self.model.config._attn_implementation
        self.eval().model.set_attn_implementation("eager")  # fused kernels return no weights
        try:
            return self.model(**source, decoder_input_ids=batch.tgt_in, **asked).cross_attentions
        finally:
            self.model.set_attn_implementation(before)

    def _largest(self, pair: TokenisedText, weights: Tensor) -> Links:
        """Return links of a pair by weights [q, k]."""
        (source,), (target,), end = pair.src, pair.tgt, self.model.config.eos_token_id
        ends = end if isinstance(end, list) else [end]  # T5Gemma may have several
        if not isinstance(source, Tensor):
            weights = weights[:, : len(source)].clone()
            weights[:, [place for place, word in enumerate(source) if word in ends]] = -1
        where = weights.argmax(-1).tolist()
        return [(where[place], place) for place, word in enumerate(target) if word not in ends]

    def check(self, text: TokenisedText) -> None:
        """Raise UserError unless the mask of a sentence changes this sentence, and no other."""
        twice = text.batch([0, 0], first_device(self))
        rows = torch.ones(2, self.grid.size, device=twice.tgt_out.device)
        rows[1] = 0
        self.eval()
        with torch.no_grad():
            whole, silent = (token_losses(self, twice, row) for row in rows)
            try:
                losses = token_losses(self, twice, rows)
            except ValueError:  # other rows than sentences
                losses = torch.full_like(whole, torch.inf)
        length = twice.tgt_lengths[0]
        expected = torch.cat((whole[:length], silent[length:]))
        if (losses - expected).abs().max() > 1e-2 * (silent - whole).abs().max() + 1e-4:
            raise UserError(
                f"{type(self.model).__name__}: expected masks that act on one sentence alone, "
                "found rows in another order; its heads cannot be masked here"
            )

    def _source(self, src: Tensor, lengths: Sequence[int]) -> dict[str, Tensor]:
        """Return the source and its attention mask by the library's names."""
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
                f"a sentence of {length} subwords with added ones, expected at most {limit}, the "
                "positions of the model; leave longer ones out, as text.max_words does"
            )


@token_losses.register(HookedSeq2Seq)
def _token_losses(
    model: HookedSeq2Seq, batch: Batch, multiplier: Tensor | None = None, smoothing: float = 0.0
) -> Tensor:
    logits = batch.without_padding(model.logits(batch, multiplier))
    return cross_entropies(logits, batch.without_padding(batch.tgt_out), smoothing)


@summed_loss.register(HookedSeq2Seq)
def _summed_loss(
    model: HookedSeq2Seq, batch: Batch, multiplier: Tensor | None = None, smoothing: float = 0.0
) -> Tensor:
    return token_losses(model, batch, multiplier, smoothing).sum()


@cross_weights.register(HookedSeq2Seq)
def _cross_weights(model: HookedSeq2Seq, batch: Batch) -> Tensor:
    return torch.cat(model._cross_attention(batch), 1).float()


def _joined(model: nn.Module, place: str) -> dict[int, Joined]:
    """Return W_O of every layer of an attention type, by layer in order."""
    joined = {}
    for number, name in sorted(find_outputs(model, place).items()):
        output, owner = map(model.get_submodule, (name, name.rpartition(".")[0]))
        # Not every module states its number of heads, but their width.
        width = next((getattr(owner, key) for key in _WIDTHS if hasattr(owner, key)), 0)
        if width and output.in_features % width == 0:
            joined[number] = Joined(output, output.in_features // width, width)
    return joined

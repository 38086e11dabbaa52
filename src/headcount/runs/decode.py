"""Beam search with cached keys and values; finished sentences leave the batch.

Letters in shapes: n sentences in the batch, m beam, v vocabulary, t target positions so far.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from headcount.base.errors import UserError
from headcount.base.settings.decode import DecodeSettings
from headcount.data.batches import Ids, pad_sources
from headcount.data.vocabulary import BOS, EOS, PAD
from headcount.model.fused_loss import rows_at_once
from headcount.model.transformer import Transformer, check_multiplier, first_device


@dataclass(frozen=True)
class Translation:
    """The best hypothesis of one sentence."""

    ids: Ids  # without EOS
    log_probability: float  # nats, EOS included; what teacher forcing gives for the same ids
    capped: bool  # cut off at the longest output allowed


class Cache:
    """Keys and values of the targets so far, for one decoder layer: [n · m, h, t, e] each."""

    def __init__(self) -> None:
        self.keys: Tensor | None = None
        self.values: Tensor | None = None

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """All keys and values after adding those of a new position."""
        if self.keys is not None:
            keys = torch.cat((self.keys, keys), dim=2)
            values = torch.cat((self.values, values), dim=2)
        self.keys, self.values = keys, values
        return keys, values

    def select(self, rows: Tensor) -> None:
        """Keep these rows, in this order."""
        self.keys = self.keys.index_select(0, rows)
        self.values = self.values.index_select(0, rows)


@torch.inference_mode()
def translate(
    model: Transformer,
    sources: Sequence[Ids],
    settings: DecodeSettings,
    multiplier: Tensor | None = None,
    done: Callable[[int], object] = lambda sentences: None,
) -> list[Translation]:
    """The best translation of each source, in the order given; an empty source stays empty.

    `multiplier`: head multiplier, [heads] or [sources, heads]. `done` is told the number of
    sentences finished, batch by batch. Results do not depend on how sentences are batched, but
    for ties within float error.
    """
    model.eval()
    check_multiplier(model, multiplier, len(sources))
    translations = [Translation([], 0.0, False)] * len(sources)
    for numbers in _batches(sources, settings.batch_tokens):
        rows = (
            multiplier[numbers] if multiplier is not None and multiplier.ndim == 2 else multiplier
        )
        search = BeamSearch(model, [sources[i] for i in numbers], settings, rows)
        for number, translation in zip(numbers, search.run(), strict=True):
            translations[number] = translation
        done(len(numbers))
    return translations


def _batches(sources: Sequence[Ids], budget: int) -> list[list[int]]:
    """Numbers of the non-empty sources by length, longest first, cut by the token budget."""
    lengths = np.array([len(ids) for ids in sources])
    batches: list[list[int]] = []
    for number in np.argsort(-lengths, kind="stable").tolist():
        if not lengths[number]:
            continue
        longest = lengths[batches[-1][0]] + 1 if batches else 0
        if batches and (len(batches[-1]) + 1) * longest <= budget:
            batches[-1].append(number)
        else:
            batches.append([number])
    return batches


class BeamSearch:
    """Beam search over one batch of sources.

    A hypothesis that ends takes its score, log-probability / ((5 + length) / 6)^α with EOS in the
    length (Wu et al. 2016, eq. 14). A sentence is finished when as many hypotheses have ended as
    the beam is wide, or at its longest output, where every hypothesis left must end.
    """

    def __init__(
        self,
        model: Transformer,
        sources: Sequence[Ids],
        settings: DecodeSettings,
        multiplier: Tensor | None,
    ):
        device = first_device(model)
        self.model = model
        self.beam = settings.beam
        self.alpha = settings.length_penalty
        self.multiplier = None if multiplier is None else multiplier.to(device)
        self.memory = model.encode(pad_sources(sources).to(device), self.multiplier)
        self.caches = [Cache() for _ in model.decoder]
        count = len(sources)
        self.limits = torch.tensor(
            [
                int(settings.max_length_factor * len(ids)) + settings.max_length_extra
                for ids in sources
            ],
            device=device,
        )
        self.sentence = torch.arange(count, device=device)  # [n], which source each row is
        self.tokens = torch.full((count, self.beam, 1), BOS, device=device)  # [n, m, 1 + t]
        self.scores = torch.full((count, self.beam), -torch.inf, device=device)  # [n, m], nats
        self.scores[:, 0] = 0.0  # one live hypothesis at the start, or the beam fills with copies
        self.ended = torch.zeros(count, dtype=torch.long, device=device)
        self.best_value = torch.full((count,), -torch.inf, device=device)
        self.best_score = torch.zeros(count, device=device)
        self.best_tokens = torch.zeros(
            (count, int(self.limits.max()) + 1), dtype=torch.long, device=device
        )
        self.best_length = torch.zeros(count, dtype=torch.long, device=device)
        self.results: list[Translation | None] = [None] * count

    def run(self) -> list[Translation]:
        """The best translation of each source."""
        length = 0
        while len(self.sentence):
            length += 1
            at_limit = self.limits == length
            values, parents, words = self._candidates(self._states(length), at_limit)
            ends = words == EOS
            self._record_ends(values, parents, ends, length)
            rows = self._advance(values.masked_fill(ends, -torch.inf), parents, words)
            left = self._leave((self.ended >= self.beam) | at_limit, at_limit)
            for cache in self.caches:
                cache.select(rows[left].flatten())
        return self.results

    def _states(self, length: int) -> Tensor:
        """Decoder output [n, m, d] at the last word of every hypothesis."""
        states = self.model.embed_target(self.tokens[:, :, -1], length - 1)
        return self.model.run_decoder(states, self._cached, self.memory, self.multiplier)

    def _candidates(self, states: Tensor, at_limit: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The best 2m continuations of each sentence: log-probabilities, hypotheses, words.

        Each is [n, 2m]. A few sentences at a time, so that the scores over the vocabulary are
        used while they are in the processor's cache.
        """
        size = self.model.tgt_embedding.num_embeddings
        parts = max(1, rows_at_once(size, states.device) // self.beam)
        found = map(self._best_words, states.split(parts), at_limit.split(parts))
        values, words = (torch.cat(part) for part in zip(*found, strict=True))
        best, flat = (self.scores[..., None] + values).flatten(1).topk(2 * self.beam)
        return best, flat // values.shape[2], words.flatten(1).gather(1, flat)

    def _best_words(self, states: Tensor, at_limit: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities and words [n, m, 2m] that may be among a sentence's best 2m."""
        logs = self.model.logits(states).float().log_softmax(-1)
        logs[..., PAD] = logs[..., BOS] = -torch.inf
        for sentence in at_limit.nonzero().flatten():  # must end here
            end = logs[sentence, :, EOS].clone()
            logs[sentence] = -torch.inf
            logs[sentence, :, EOS] = end
        return logs.topk(min(2 * self.beam, logs.shape[-1]))

    def _cached(self, layer: int) -> Callable[[Tensor], Tensor]:
        """Self-attention of one layer for one new position; the beam's rows are apart here."""
        attention = self.model.decoder[layer].attention
        own = self.model.part(self.multiplier, "dec_self", layer)
        if own is not None and own.ndim == 2:
            own = own.repeat_interleave(self.beam, dim=0)

        def attend(states: Tensor) -> Tensor:  # [n, m, d]
            queries, keys, values = attention.project(states.flatten(0, 1)[:, None])
            output = attention(queries, *self.caches[layer].extend(keys, values), multiplier=own)
            return output.view_as(states)

        return attend

    def _record_ends(self, values: Tensor, parents: Tensor, ends: Tensor, length: int) -> None:
        """Count the hypotheses that end among the best m, and remember the best one so far."""
        ends, values, parents = (x[:, : self.beam] for x in (ends, values, parents))
        ends = ends & values.isfinite()
        self.ended += ends.sum(1)
        scaled = (values / ((5 + length) / 6) ** self.alpha).masked_fill(~ends, -torch.inf)
        value, which = scaled.max(1)
        rows = (value > self.best_value).nonzero().squeeze(1)
        which = which[rows]
        self.best_value[rows] = value[rows]
        self.best_score[rows] = values[rows, which]
        self.best_tokens[rows, :length] = self.tokens[rows, parents[rows, which]]
        self.best_length[rows] = length - 1

    def _advance(self, values: Tensor, parents: Tensor, words: Tensor) -> Tensor:
        """Go on with the best m hypotheses that have not ended; returns their old rows [n, m]."""
        self.scores, chosen = values.topk(self.beam)
        parents, words = parents.gather(1, chosen), words.gather(1, chosen)
        rows = parents + torch.arange(len(parents), device=parents.device)[:, None] * self.beam
        kept = self.tokens.flatten(0, 1).index_select(0, rows.flatten()).view(*words.shape, -1)
        self.tokens = torch.cat((kept, words[..., None]), dim=2)
        return rows

    def _leave(self, finished: Tensor, at_limit: Tensor) -> Tensor:
        """Write down the finished sentences, shrink the batch to the others; returns those."""
        left = (~finished).nonzero().squeeze(1)
        if len(left) == len(finished):
            return left
        for row in finished.nonzero().squeeze(1).tolist():
            if not self.best_value[row].isfinite():
                raise UserError(
                    "the model's scores are not finite numbers; its weights are damaged or come "
                    "from training that diverged"
                )
            length = int(self.best_length[row])
            ids = self.best_tokens[row, 1 : 1 + length].tolist()
            capped = bool(at_limit[row]) and length + 1 == int(self.limits[row])
            self.results[int(self.sentence[row])] = Translation(
                ids, float(self.best_score[row]), capped
            )
        names = ("sentence", "limits", "tokens", "scores", "ended", "best_value", "best_score")
        for name in (*names, "best_tokens", "best_length"):
            setattr(self, name, getattr(self, name).index_select(0, left))
        if self.multiplier is not None and self.multiplier.ndim == 2:
            self.multiplier = self.multiplier.index_select(0, left)
        self.memory = self.memory.select(left)
        return left

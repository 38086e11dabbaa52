"""Beam search with cached keys and values. Finished sentences leave the batch.

Letters in shapes: n sentences in the batch, m beam (1 before the first word), t target positions
so far, v vocabulary.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import compress, repeat

import torch
from torch import Tensor

from headcount.base.errors import UserError
from headcount.base.settings.decode import DecodeSettings
from headcount.data.batches import Ids
from headcount.data.vocabulary import BOS, EOS, PAD
from headcount.model.layers import Memory
from headcount.model.machine import batches_of
from headcount.model.transformer import Transformer, check_multiplier, first_device
from headcount.search.history import Compaction, History
from headcount.search.sources import encode_once, longest_outputs, search_batches

# Steps between checks for finished sentences. A check waits for a GPU. Four is a guess.
_LOOK_EVERY = {"cpu": 1, "cuda": 4}

NOT_FINITE = (
    "the model's scores are not finite numbers; its weights are damaged or come from training "
    "that diverged"
)


@dataclass(frozen=True)
class Translation:
    """The best hypothesis of one sentence."""

    ids: Ids  # without EOS
    log_probability: float  # nats, of all ids and EOS
    hit_max_length: bool  # cut off at the longest output allowed
    steps: int  # of the search, until the sentence was finished


def translate(
    model: Transformer,
    sources: Sequence[Ids],
    settings: DecodeSettings,
    multiplier: Tensor | None = None,
    done: Callable[[int], object] = lambda sentences: None,
    prefix: Sequence[int] = (),
) -> list[Translation]:
    """Return the best translation of each source, in order. An empty source stays empty.

    `multiplier`: [heads] or [sources, heads]. `done` is called with the number of sentences just
    finished. `prefix`: ids at the start of every translation. Batches change results only in ties
    within float error, and the number of threads changes nothing.
    """
    model.eval()
    check_multiplier(model, multiplier, len(sources))
    by_sentence = multiplier is not None and multiplier.ndim == 2
    if multiplier is not None:
        multiplier = multiplier.to(first_device(model))
    batches = search_batches(sources, settings.batch_tokens)
    texts = [[sources[number] for number in numbers] for numbers in batches]
    rows = [multiplier[numbers] if by_sentence else multiplier for numbers in batches]
    arguments = (repeat(model), texts, repeat(settings), rows, repeat(prefix))
    translations = [Translation([], 0.0, False, 0)] * len(sources)
    budget = batches_of("resources", settings.batch_tokens)
    with budget, _workers(settings.threads) as pool:
        for numbers, best in zip(batches, pool.map(translate_batch, *arguments), strict=True):
            for number, translation in zip(numbers, best, strict=True):
                translations[number] = translation
            done(len(numbers))
    return translations


@torch.inference_mode()
def translate_batch(
    model: Transformer,
    batch: Sequence[Ids],
    settings: DecodeSettings,
    multiplier: Tensor | None = None,
    prefix: Sequence[int] = (),
) -> list[Translation]:
    """Return the best translation of each source, all in one batch."""
    memory = encode_once(model, batch, multiplier)
    return BeamSearch(model, batch, memory, settings, multiplier, prefix).run()


@contextmanager
def _workers(threads: int) -> Iterator[ThreadPoolExecutor]:
    """Yield threads that compute with one CPU each and, when interrupted, begin no new batch."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    pool = ThreadPoolExecutor(threads)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(before)


class BeamSearch:
    """Beam search over one batch of sources.

    A hypothesis that ends has the score log-probability / ((5 + length) / 6)^α with EOS in the
    length (Wu et al. 2016, eq. 14). A prefix counts in the length, but not in the log-probability,
    as nothing was chosen there. A sentence is finished

    - when as many hypotheses have ended as the beam is wide, and no other would be better than the
      best of them if it ended here,
    - when no other can ever become better,
    - or at its longest output, where all must end.

    The result of a finished sentence does not change, so that it may leave some steps later.
    """

    def __init__(
        self,
        model: Transformer,
        sources: Sequence[Ids],
        memory: Memory,
        settings: DecodeSettings,
        multiplier: Tensor | None,
        prefix: Sequence[int] = (),
    ):
        """`memory`: of the sources; it is overwritten. `prefix`: see `translate`."""
        device, count = first_device(model), len(sources)
        self.model, self.memory, self.prefix = model, memory, prefix
        self.beam, self.alpha = settings.beam, settings.length_penalty
        self.multiplier = None if multiplier is None else multiplier.clone()  # it is overwritten
        # Faster on a CPU in fp32. A GPU does a whole mask at once.
        sparse = device.type == "cpu" and model.tgt_embedding.weight.dtype == torch.float32
        self.look_every = every = _LOOK_EVERY[device.type]
        self.history = History(len(model.decoder), count, self.beam, device, sparse, every)
        self.limit = longest_outputs(sources, settings, prefix, model.settings.position_table)
        self.limits = torch.tensor(self.limit, device=device)
        self.most = ((5 + self.limits) / 6) ** self.alpha  # [n], what the longest output divides by
        self.sentence = list(range(count))  # numbers of sources by row
        self.tokens = torch.full((count, 1, 1), BOS, device=device)  # [n, m, 1 + t]
        self.given = torch.zeros(count, device=device)  # [n], nats, log-probability of the prefix
        self.scores = torch.zeros(count, 1, device=device)  # [n, m], nats, of what was chosen
        self.ended = torch.zeros(count, dtype=torch.long, device=device)
        self.best_value = torch.full((count,), -torch.inf, device=device)
        self.best_score = torch.zeros(count, device=device)
        self.best_tokens = torch.full((count, max(self.limit) + 1), PAD, device=device)
        self.best_length = torch.zeros(count, dtype=torch.long, device=device)
        self.done = torch.zeros(count, dtype=torch.bool, device=device)
        self.steps = torch.full((count,), len(prefix), device=device)  # until it was finished
        self.results: list[Translation | None] = [None] * count

    def run(self) -> list[Translation]:
        """Return the best translation of each source."""
        length = 0
        while len(self.sentence):
            length += 1
            self.history.look(self.memory)
            last = self.tokens[:, :, -1]
            states = self.model.decode(last, self.memory, self.multiplier, self.history)
            if length <= len(self.prefix):
                self._give(self.prefix[length - 1], states)
                continue
            values, parents, words = self._candidates(states, length)
            ends = words == EOS
            self._record_ends(values, parents, ends, length)
            self._advance(values.masked_fill(ends, -torch.inf), parents, words)
            self.steps += ~self.done
            self.done |= self._finished(length) | (self.limits == length)
            if length % self.look_every == 0 or length == max(self.limit):
                self._leave()
        return self.results

    def _give(self, word: int, states: Tensor) -> None:
        """Append a word of the prefix to every hypothesis."""
        self.given += self.model.logits(states).float().log_softmax(-1)[:, 0, word]
        only = torch.zeros_like(self.tokens[:, :, 0])
        self.history.follow(only)
        self.tokens = torch.cat((self.tokens, (only + word)[..., None]), dim=2)

    def _finished(self, length: int) -> Tensor:
        """Return True [n] if the best hypothesis left is no better than the best that has ended."""
        left = self.scores[:, 0]
        ever = left / self.most <= self.best_value
        here = left / ((5 + length) / 6) ** self.alpha <= self.best_value
        return ever | (here & (self.ended >= self.beam))

    def _candidates(self, states: Tensor, length: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return log-probabilities, hypotheses and words [n, 2m] of the best 2m continuations."""
        logs = self.model.logits(states).float().log_softmax(-1)
        logs[..., PAD] = logs[..., BOS] = -torch.inf
        at_limit = [self.limit[sentence] == length for sentence in self.sentence]
        for row in compress(range(len(logs)), at_limit):  # must end here
            logs[row, :, :EOS] = logs[row, :, EOS + 1 :] = -torch.inf
        sums = (logs + self.scores[..., None]).flatten(1)
        values, places = sums.topk(min(2 * self.beam, sums.shape[1]))
        return values, places // logs.shape[2], places % logs.shape[2]

    def _record_ends(self, values: Tensor, parents: Tensor, ends: Tensor, length: int) -> None:
        """Count the hypotheses that end among the best m, and keep the best one so far."""
        ends, values, parents = (x[:, : self.beam] for x in (ends, values, parents))
        ends = ends & values.isfinite() & ~self.done[:, None]
        self.ended += ends.sum(1)
        scaled = (values / ((5 + length) / 6) ** self.alpha).masked_fill(~ends, -torch.inf)
        value, which = scaled.max(1, keepdim=True)
        better = value > self.best_value[:, None]
        rows = parents.gather(1, which)[..., None].expand(-1, -1, length)
        for best, new in (
            (self.best_value[:, None], value),
            (self.best_score[:, None], values.gather(1, which)),
            (self.best_tokens[:, :length], self.tokens.gather(1, rows).squeeze(1)),
        ):
            torch.where(better, new, best, out=best)
        self.best_length.masked_fill_(better.squeeze(1), length - 1)

    def _advance(self, values: Tensor, parents: Tensor, words: Tensor) -> None:
        """Continue the best m hypotheses that have not ended, best first."""
        self.scores, chosen = values.topk(min(self.beam, values.shape[1]))
        parents, words = parents.gather(1, chosen), words.gather(1, chosen)
        self.history.follow(parents)
        rows = parents[..., None].expand(-1, -1, self.tokens.shape[2])
        self.tokens = torch.cat((self.tokens.gather(1, rows), words[..., None]), dim=2)

    def _leave(self) -> None:
        """Store the results of finished sentences and shrink the batch to the others."""
        done = self.done.tolist()
        if not any(done):
            return
        staying = Compaction(done, self.done.device)
        self._store(staying.leaving)
        names = ["limits", "most", "tokens", "given", "scores", "ended", "done", "steps"]
        names += ["best_value", "best_score", "best_tokens", "best_length"]
        if self.multiplier is not None and self.multiplier.ndim == 2:
            names.append("multiplier")
        for name in names:
            setattr(self, name, staying.of(getattr(self, name)))
        self.sentence = staying.of_list(self.sentence)
        self.memory = self.memory.each(staying.of)
        self.history.keep(staying)

    def _store(self, leaving: list[int]) -> None:
        """Store the translations of these rows, with two reads from the device."""
        rows = torch.tensor(leaving, device=self.done.device)
        words = self.best_tokens[rows, 1 : self.tokens.shape[2]].tolist()
        scores = self.best_score + self.given, self.best_value
        columns = [column.double() for column in (self.best_length, self.steps, *scores)]
        facts = torch.stack(columns, dim=1)[rows].tolist()
        for row, ids, (length, steps, score, value) in zip(leaving, words, facts, strict=True):
            if not math.isfinite(value):
                raise UserError(NOT_FINITE)
            sentence = self.sentence[row]
            hit_max_length = length + 1 == self.limit[sentence]
            self.results[sentence] = Translation(
                ids[: int(length)], score, hit_max_length, int(steps)
            )

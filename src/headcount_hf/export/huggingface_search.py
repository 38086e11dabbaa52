"""Search by Hugging Face's library, with sources and targets in our ids."""

from pathlib import Path

import torch
from torch import Tensor

from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.pretrained import WEIGHTS
from headcount.data.batches import Ids, ParallelText, in_order, pad_sources
from headcount.data.vocabulary import BOS, EOS, PAD
from headcount_hf.export.exported import Best, Exported, Sides
from headcount_hf.pretrained.library import open_whole
from headcount_hf.pretrained.weights import Rows


class HuggingFaceSearch(Exported):
    """A model in Hugging Face's library, in fp32 on the CPU."""

    weights = WEIGHTS
    facts = {"engine": "huggingface"}

    def __init__(
        self, folder: Path, sides: Sides, settings: DecodeSettings, positions: int, rows: Rows
    ):
        """Load a folder for a model with a number of positions, and words `rows`."""
        self.model = open_whole(folder)
        super().__init__(sides, settings, positions)
        self.src, self.tgt = map(torch.tensor, rows)
        self.begin = self.tgt[[BOS, *sides[1].prefix]]
        self.ours = {row: place for place, row in enumerate(rows[1]) if place != BOS}
        # The start may occur in a translation only if it is also another word.
        self.never = [rows[1][PAD], *({rows[1][BOS]} - set(self.ours))]
        self.model.generation_config = type(self.model.generation_config)(
            decoder_start_token_id=rows[1][BOS],
            eos_token_id=rows[1][EOS],
            pad_token_id=rows[1][PAD],
            suppress_tokens=self.never,
            num_beams=settings.beam,
            length_penalty=0.0,
            early_stopping="never",
        )

    @torch.inference_mode()
    def _begin(self, sources: list[Ids], longest: int) -> list[list[int]]:
        """Return the translations of a batch in words of theirs."""
        read = pad_sources(sources)
        return self.model.generate(
            self.src[read],
            attention_mask=(read != PAD).long(),
            decoder_input_ids=self.begin.expand(len(read), -1),
            max_new_tokens=longest - len(self.sides[1].prefix),
        )[:, 1:].tolist()

    def _choose(self, result: list[int], limit: int) -> Best:
        """Return a translation up to its end or a limit, in our ids."""
        ids = [self.ours[word] for word in result[:limit]]
        length = ids.index(EOS) if EOS in ids else limit - 1
        return Best(ids[:length], length == limit - 1)

    @torch.inference_mode()
    def score(self, sources: list[Ids], targets: list[Ids]) -> list[float]:
        scores = [0.0] * len(sources)
        for batch in in_order(ParallelText(sources, targets), self.settings.batch_tokens):
            losses = self.losses(batch.src, batch.tgt_in, batch.tgt_out)
            for number, loss in zip(batch.indices, losses.double().sum(1).tolist(), strict=True):
                scores[number] = -loss
        return scores

    def logits(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Return scores [b, q, their words] of the next word, for our ids [b, k] and [b, q]."""
        return self.model(
            input_ids=self.src[src],
            attention_mask=(src != PAD).long(),
            decoder_input_ids=self.tgt[tgt_in],
            use_cache=False,
        ).logits

    def losses(self, src: Tensor, tgt_in: Tensor, tgt_out: Tensor) -> Tensor:
        """Return the loss of every target token [b, q], in nats, and 0 for padding."""
        words = self.tgt[tgt_out].masked_fill(tgt_out == PAD, -100)
        scores = self.logits(src, tgt_in).transpose(1, 2)
        return torch.nn.functional.cross_entropy(scores, words, reduction="none")

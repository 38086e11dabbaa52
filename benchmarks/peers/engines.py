"""The engines that decode with one model's weights: ours, CTranslate2, HF generate."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.peers.marian import copy_weights, marian_logits, marian_model
from headcount.base.settings.decode import FP32, DecodeSettings
from headcount.data.batches import Batch, Ids, ParallelText, in_order
from headcount.data.vocabulary import BOS, EOS, PAD, Vocabulary
from headcount.model.transformer import Transformer
from headcount.search.beam_search import translate
from headcount.training.score import score_targets
from headcount_hf.export.ctranslate2_model import export, load_for

PEERS = {"ctranslate2": "ctranslate2", "marian": "transformers"}


@dataclass(frozen=True)
class Task:
    """What every engine has to do."""

    model: Transformer
    words: Vocabulary
    text: ParallelText
    settings: DecodeSettings
    device: torch.device

    def longest_output(self, longest: int) -> int:
        """Longest output with its EOS that ours allows for a source of so many pieces."""
        return int(self.settings.max_length_factor * longest) + self.settings.max_length_extra


@dataclass(frozen=True)
class Engine:
    """One way to translate the sentences of a task, and to score their references."""

    name: str
    translate: Callable[[float], list[Ids]]  # given α, the best translations without EOS
    score: Callable[[], list[float]] | None  # nats of each reference; None for another arithmetic


def our_engine(task: Task) -> Engine:
    """This project's decoder."""

    def run(alpha: float) -> list[Ids]:
        settings = task.settings.model_copy(update={"length_penalty": alpha})
        return [found.ids for found in translate(task.model, task.text.src, settings)]

    return Engine("ours fp32", run, lambda: reference_scores(task, task.text))


def ctranslate2_engine(task: Task, folder: Path, compute_type: str, workers: int) -> Engine:
    """CTranslate2 on an exported model; `workers` batches side by side share the threads."""
    translator = load_for(compute_type, task.device.type).Translator(
        str(folder),
        device=task.device.type,
        compute_type=compute_type,
        inter_threads=workers,
        intra_threads=task.settings.threads // workers,
    )
    sources = [task.words.pieces(ids) for ids in task.text.src]
    banned = [[piece] for piece in task.words.pieces((PAD, BOS))]

    def run(alpha: float) -> list[Ids]:
        found = translator.translate_batch(
            sources,
            beam_size=task.settings.beam,
            length_penalty=alpha,
            max_batch_size=task.settings.batch_tokens,
            batch_type="tokens",
            max_decoding_length=task.longest_output(max(map(len, sources))),
            min_decoding_length=0,
            suppress_sequences=banned,
        )
        return [task.words.ids(result.hypotheses[0]) for result in found]

    def score() -> list[float]:
        targets = [task.words.pieces(ids) for ids in task.text.tgt]
        scored = translator.score_batch(
            sources, targets, max_batch_size=task.settings.batch_tokens, batch_type="tokens"
        )
        return [-sum(result.log_probs) for result in scored]

    side = f", {workers} batches side by side" if workers > 1 else ""
    exact = score if compute_type == FP32 else None
    return Engine(f"CTranslate2 {_short(compute_type)}{side}", run, exact)


def marian_engine(task: Task) -> Engine:
    """HF generate on a MarianMTModel with our weights, batch by batch as our plan cuts them."""
    marian = marian_model(task.model.settings, len(task.words)).to(task.device).eval()
    copy_weights(task.model, marian)
    batches = list(in_order(task.text, task.settings.batch_tokens, task.device))

    @torch.inference_mode()
    def run(alpha: float) -> list[Ids]:
        found: list[Ids] = [[]] * len(task.text)
        for batch in batches:
            rows = _generate(marian, batch, task, alpha).tolist()
            for number, row in zip(batch.indices, rows, strict=True):
                found[number] = row[1 : row.index(EOS)] if EOS in row else row[1:]
        return found

    return Engine("HF generate fp32", run, lambda: _marian_scores(marian, batches, len(task.text)))


def engines(
    task: Task, peers: Sequence[str], compute_types: Sequence[str], folder: Path
) -> list[Engine]:
    """Return ours, CTranslate2 in every number format, and HF generate."""
    found = [our_engine(task)]
    if "ctranslate2" in peers:
        export(copy.deepcopy(task.model).cpu(), task.words, task.words, folder)
        side_by_side = task.settings.threads if task.device.type == "cpu" else 1
        for kind in compute_types:
            for workers in sorted({1, side_by_side}):
                found.append(ctranslate2_engine(task, folder, kind, workers))
    if "marian" in peers:
        found.append(marian_engine(task))
    return found


def reference_scores(task: Task, text: ParallelText) -> list[float]:
    """Loss of each target of a text under our model, in nats."""
    return score_targets(task.model, text, task.settings.batch_tokens).tolist()


def _generate(marian: nn.Module, batch: Batch, task: Task, alpha: float) -> Tensor:
    return marian.generate(
        input_ids=batch.src,
        attention_mask=(batch.src != PAD).long(),
        num_beams=task.settings.beam,
        do_sample=False,
        early_stopping=True,  # the soonest there is: as many have ended as the beam is wide
        length_penalty=alpha,
        max_new_tokens=task.longest_output(batch.src.shape[1] - 1),
        suppress_tokens=[PAD, BOS],
    )


@torch.inference_mode()
def _marian_scores(marian: nn.Module, batches: Sequence[Batch], count: int) -> list[float]:
    losses = [0.0] * count
    for batch in batches:
        words = marian_logits(marian, batch).log_softmax(-1)
        chosen = words.gather(2, batch.tgt_out[..., None]).squeeze(2)
        sums = chosen.masked_fill(batch.tgt_out == PAD, 0.0).sum(1)
        for number, value in zip(batch.indices, sums.tolist(), strict=True):
            losses[number] = -value
    return losses


def _short(compute_type: str) -> str:
    return "fp32" if compute_type == FP32 else compute_type

"""Seconds that each unit of work takes on this machine, from a few seconds of each."""

import io
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from headcount.base.settings.classifiers import FineTuningSettings
from headcount.base.settings.experiment import Experiment
from headcount.base.settings.train import TrainSettings
from headcount.data.batches import ParallelText
from headcount.data.vocabulary import EOS
from headcount.estimate.encoders import BERT_BASE
from headcount.heads.importance import measure_importance
from headcount.heads.relevance import sentence_relevance
from headcount.model.machine import pick_device, pick_format
from headcount.model.transformer import Transformer, first_device, parameter_count
from headcount.scoring.bootstrap import resample_bleu
from headcount.search.beam_search import translate
from headcount.training.score import mean_loss
from headcount.training.states import StateStore
from headcount.training.train import Trainer

FIXED = {"lines": 2.5e-5, "segmented": 3.5e-4, "tables": 0.05}
"""Seconds that are not measured: of Multi30k and `quickstart` on one core of a Zen 4."""
TOKENS = 2048
"""Of a batch that is measured on a processor."""
LENGTH = 64
"""Subwords of a pair that a layer of a classifier is measured with."""
LONG = 1.0
"""Seconds from which on one round of a unit's work is enough; updates take twice as many."""
SECONDS = 0.3
"""That each other unit is measured, after a round that does not count: a run waits meanwhile."""
_WORDS = ["attention", "heads", "of", "translation", "models", "are", "more", "than", "one"]


@dataclass(frozen=True)
class Sentences:
    """Mean lengths of a text's two sides, and how many subwords there are."""

    src: int  # subwords of a sentence
    tgt: int
    vocabulary: int

    def drawn(self, pairs: int) -> ParallelText:
        """Sentence pairs of these lengths, of subwords at random."""
        draw = np.random.default_rng(1).integers
        sides = (draw(EOS + 2, self.vocabulary, (pairs, size)) for size in (self.src, self.tgt))
        return ParallelText(*(side.tolist() for side in sides))


@dataclass(frozen=True)
class Machine:
    """What was measured here with the model and the batches of one experiment."""

    rates: dict[str, float]  # seconds by unit of `UNITS`
    parameters: int  # of the translation model; 0 if there is none
    memory: int  # bytes of a training at the most; on a GPU, of that
    device: str


def measure_machine(
    settings: Experiment, sentences: Sentences | None, known: dict[str, float]
) -> Machine:
    """Seconds by unit, and memory.

    `known`: those of starts and figures. Without `sentences` no translation is measured, without
    classifiers no layer of one. Raises EnvironmentFault where a device is missing.
    """
    trained = settings.train if sentences else settings.fine_tuning
    device, parameters = pick_device(trained.device), 0
    torch.set_num_threads(trained.threads)
    rates = FIXED | known
    if sentences:
        parameters, found = _translation(settings, sentences, device)
        rates |= found
    memory = _peak(device)
    if settings.classifiers.models:
        rates["teraflops"] = _layer(settings.fine_tuning)
    return Machine(rates, parameters, memory, device.type)


def _translation(
    settings: Experiment, sentences: Sentences, device: torch.device
) -> tuple[int, dict[str, float]]:
    """Parameters of the translation model, and seconds by unit.

    It is untrained: its translations all end at the target's mean length, to which the search is
    cut.
    """
    sizes = (sentences.vocabulary, sentences.vocabulary)
    model = Transformer(settings.model, *sizes, settings.bpe.joint).to(device)
    text = sentences.drawn(128)
    if device.type != "cpu":
        text = sentences.drawn(max(128, -(-settings.train.batch_tokens // text.longest)))
    with redirect_stderr(io.StringIO()):  # no progress of a training that nobody asked for
        rates = {"updates": _update(model, text, _in_one_format(settings, device))}
    model.eval()
    for unit, (count, work) in _works(model, text, settings).items():
        rates[unit] = _seconds(work) / count
    return parameter_count(model), rates


def _in_one_format(settings: Experiment, device: torch.device) -> TrainSettings:
    """The settings of training, with fp32 or bf16 in the place of `auto`, as trainings here do."""
    taken = pick_format(settings.train.precision, device, settings.model.d_model)
    return settings.train.model_copy(update={"precision": taken})


def _works(
    model: Transformer, text: ParallelText, settings: Experiment
) -> dict[str, tuple[int, Callable[[], object]]]:
    """How many of each unit some work has, and the work."""
    src, tgt = text.src, text.tgt
    cut = {"max_length_factor": len(tgt[0]) / (len(src[0]) + 1), "max_length_extra": 1}
    decode = settings.decode.model_copy(update=cut)
    on_cpu = first_device(model).type == "cpu"
    budget, few = 4 * settings.train.batch_tokens, src[:64] if on_cpu else src
    return {
        "forwards": (len(text), lambda: mean_loss(model, text, budget)),
        "passes": (
            len(text),
            lambda: measure_importance(model, text, settings.importance, 0.0),
        ),
        "translations": (len(few), lambda: translate(model, few, decode)),
        "single": (2, lambda: [translate(model, [ids], decode) for ids in few[:2]]),
        "relevances": (1, lambda: sentence_relevance(model, src[0], tgt[0], settings.lrp).cpu()),
        "resamples": (400, _resampling(4, 100, len(tgt[0]))),
    }


def _peak(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _seconds(work: Callable[[], object]) -> float:
    """Seconds of one round of the work, the first one left out unless it is long."""
    begun = time.perf_counter()
    work()
    if (first := time.perf_counter() - begun) > LONG:
        return first
    rounds, begun = 0, time.perf_counter()
    while not rounds or time.perf_counter() - begun < SECONDS:
        work()
        rounds += 1
    return (time.perf_counter() - begun) / rounds


def _update(model: Transformer, text: ParallelText, settings: TrainSettings) -> float:
    """Seconds of one update, by the clock of training itself on a part of its batches.

    A processor has enough to do with `TOKENS`; a GPU gets a whole batch. Of several processes each
    takes as long as one of them here, which has its share of the batches.
    """
    whole = max(settings.batch_tokens, text.longest)
    budget = max(min(whole, TOKENS), text.longest) if first_device(model).type == "cpu" else whole
    first = _trained(model, text, settings, budget, 2)
    several = max(3, min(200, round(2 * LONG / first)))
    part = first if first > 2 * LONG else _trained(model, text, settings, budget, several)
    return part * (settings.accumulate // settings.processes) * whole / budget


def _trained(
    model: Transformer, text: ParallelText, settings: TrainSettings, budget: int, updates: int
) -> float:
    """Seconds of an update of one batch of this budget, the mean of so many."""
    changes = {"updates": updates, "dev_interval": updates, "warmup_updates": 1, "keep_updates": []}
    changes |= {"batch_tokens": budget, "accumulate": 1}
    dev = ParallelText(text.src[:1], text.tgt[:1])
    with tempfile.TemporaryDirectory() as folder:
        states = StateStore(Path(folder), {"estimate": True}, 1e9)
        trainer = Trainer(model, text, dev, settings.model_copy(update=changes), 1, states)
        trainer.fit()
    (row,) = trainer.progress.curve
    of_pair = len(text.src[0]) + len(text.tgt[0]) + 2
    return budget // text.longest * of_pair / row["tokens_per_s"]


def _layer(settings: FineTuningSettings) -> float:
    """Seconds of 10^12 operations in training a layer as large as one of BERT base.

    A processor has enough to do with a few pairs; a GPU gets a whole batch.
    """
    device, size = pick_device(settings.device), BERT_BASE
    torch.set_num_threads(settings.threads)
    layer = torch.nn.TransformerEncoderLayer(
        size.width, size.heads, size.inner, activation="gelu", batch_first=True, device=device
    )
    pairs = min(settings.batch, TOKENS // LENGTH) if device.type == "cpu" else settings.batch
    states = torch.rand(pairs, LENGTH, size.width, device=device, requires_grad=True)

    def train() -> float:
        with torch.autocast(device.type, torch.bfloat16, settings.precision == "bf16"):
            layer(states).mean().backward()
        return states.grad[0, 0, 0].item()  # a GPU has to be done first

    return _seconds(train) / size.teraflops(pairs * LENGTH)


def _resampling(systems: int, lines: int, words: int) -> Callable[[], object]:
    draw = np.random.default_rng(1)
    made = [[" ".join(draw.choice(_WORDS, words)) for _ in range(lines)] for _ in range(systems)]
    return lambda: resample_bleu(made, made[0], "en", 1000)

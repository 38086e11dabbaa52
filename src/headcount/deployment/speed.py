"""Size and speed of models, and the time to measure importance beside the time to train."""

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch

from headcount.ablation.pruning_orders import for_ranking, least_important
from headcount.base.errors import UserError
from headcount.base.files import write_result
from headcount.base.ranking import head_masks
from headcount.base.settings.decode import DecodeSettings, SpeedSettings
from headcount.base.settings.heads import AblationSettings, ImportanceSettings
from headcount.data.batches import Ids, ParallelText, in_order, pad_sources
from headcount.data.lines import clean_lines
from headcount.heads.drawn_text import read_drawn
from headcount.heads.importance import measure_importance, read_importance
from headcount.model.loss import summed_loss
from headcount.model.machine import batches_of
from headcount.model.removal import remove_units
from headcount.model.transformer import Transformer, first_device, parameter_count
from headcount.search.beam_search import translate_batch
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

COLUMNS = ("model", "heads_left", "parameters", "file_bytes", "phase", "batch_size", "repeat")
COLUMNS += ("sentences", "steps", "seconds")

Work = tuple[Any, Callable[[], Any]]  # its name, and what is timed
Contestant = TypeVar("Contestant")


class TimedModel(NamedTuple):
    """A trained model, its run's name and the size of its weights, in bytes."""

    name: str
    model: Transformer
    file_bytes: int


def trained_models(
    models: dict[str, ModelFolder], pair: PairFolder, device: str
) -> Iterator[TimedModel]:
    """Yield the models in these folders, by run."""
    for name, folder in models.items():
        folder.check(pair)
        yield TimedModel(name, folder.load(device), folder.weights.stat().st_size)


def without_shares(
    folder: ModelFolder, importance: Path, pair: PairFolder, ablation: AblationSettings, device: str
) -> Iterator[TimedModel]:
    """Yield a model with all heads, then without each share of `ablation.timed`, in percent."""
    folder.check(pair)
    whole = folder.load(device)
    values = read_importance(importance, folder, whole.grid)
    order = least_important(range(whole.grid.size), for_ranking(values, whole.grid, ablation))
    for percent in (0, *ablation.timed):
        silent = order[: -(-len(order) * percent // 100)]
        smaller = remove_units(whole, torch.from_numpy(head_masks([silent], len(order))[0]))
        size = sum(weight.nbytes for weight in smaller.parameters())
        yield TimedModel(str(percent), smaller, size)


def write_times(
    timed: Sequence[TimedModel],
    pair: PairFolder,
    settings: SpeedSettings,
    decode: DecodeSettings,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Time models, which take turns, and write one measurement a row as CSV.

    Phase `decode` is a whole translation by beam search and includes phase `encode`. `steps` are
    summed over sentences: steps of the search, and 1 a sentence for `encode`.
    """
    sources = read_sources(pair, settings.sentences, decode.max_source)
    if not 0 < max(settings.batch_sizes, default=0) <= len(sources):
        raise UserError(
            f"speed.batch_sizes: expected numbers up to {len(sources)}, the sentences of "
            f"{pair.texts('dev')[0]} that are timed, found {settings.batch_sizes}"
        )
    rows = measure(timed, sources, settings, decode, pair.segmenters()[1].prefix)
    device = first_device(timed[0].model).type
    facts = {"beam": decode.beam, "threads": settings.threads, "device": device}
    facts["sentences"] = len(sources)
    write_result(out, COLUMNS, rows, {**facts, "provenance": origin})


def read_sources(pair: PairFolder, sentences: int, longest: int) -> list[Ids]:
    """Return the first sentences of the dev set that are not empty, cut to the longest source."""
    vocabulary = pair.vocabulary("src")
    lines = (vocabulary.ids(line.split()) for line in clean_lines(pair.texts("dev")[0]))
    return [ids[:longest] for ids in lines if ids][:sentences]


def measure(
    models: Sequence[TimedModel],
    sources: list[Ids],
    settings: SpeedSettings,
    decode: DecodeSettings,
    prefix: Sequence[int] = (),
) -> list[list[Any]]:
    """Return one measurement a row, the cells of `COLUMNS`: rounds, then models, sizes, phases."""
    works = []
    for name, model, file_bytes in models:
        cells, of_model = (name, model.grid.size, parameter_count(model), file_bytes), []
        for size in settings.batch_sizes:
            batches = cut_batches(sources, size)
            encoding = partial(_encode, model, batches)
            search = partial(_search, model, batches, decode, prefix)
            of_model += [((*cells, "encode", size), encoding), ((*cells, "decode", size), search)]
        works.append(of_model)
    device = first_device(models[0].model).type
    return [
        [*cells, repeat, len(sources), steps, seconds]
        for cells, repeat, steps, seconds in time_in_turns(works, settings.repeats, device)
    ]


def time_in_turns(
    contestants: Sequence[Sequence[Work]], repeats: int, device: str = "cpu"
) -> Iterator[tuple[Any, int, Any, float]]:
    """Yield name, round, result and seconds of works of contestants, who take turns."""
    for repeat, works in take_turns(contestants, repeats, warm_up=1):
        for name, work in works:
            start = time.perf_counter()
            result = work()
            if device == "cuda":
                torch.cuda.synchronize()
            if repeat:
                yield name, repeat, result, time.perf_counter() - start


def take_turns(
    contestants: Sequence[Contestant], repeats: int, warm_up: int
) -> Iterator[tuple[int, Contestant]]:
    """Yield rounds, from 1 (up to 0 to warm up), and contestants, who begin in turns."""
    for number in range(-warm_up, repeats):
        turn = number % len(contestants)
        for contestant in [*contestants[turn:], *contestants[:turn]]:
            yield number + 1, contestant


def cut_batches(sources: list[Ids], size: int) -> list[list[Ids]]:
    """Return the sources by length, longest first, in batches of `size` or, at last, smaller."""
    ordered = sorted(sources, key=len, reverse=True)
    return [ordered[start : start + size] for start in range(0, len(ordered), size)]


@torch.inference_mode()
def _encode(model: Transformer, batches: list[list[Ids]]) -> int:
    """Encode with all of torch's threads, and return a step for every sentence."""
    for batch in batches:
        model.encode(pad_sources(batch).to(first_device(model)))
    return sum(map(len, batches))


@torch.inference_mode()
def _search(
    model: Transformer, batches: list[list[Ids]], decode: DecodeSettings, prefix: Sequence[int]
) -> int:
    """Translate with all of torch's threads, and return the steps of all sentences."""
    done = [translate_batch(model, batch, decode, prefix=prefix) for batch in batches]
    return sum(translation.steps for batch in done for translation in batch)


IMPORTANCE_COLUMNS = ("work", "repeat", "sentences", "seconds")


def write_importance_speed(
    folder: ModelFolder,
    pair: PairFolder,
    settings: ImportanceSettings,
    speed: SpeedSettings,
    out: Path,
    origin: dict[str, Any],
) -> None:
    """Time importance and training on the same batches, and write one measurement a row."""
    folder.check(pair)
    drawn = read_drawn(pair, settings)
    text = drawn.part(range(len(drawn))[: speed.sentences])
    model = folder.load(settings.device)
    device = first_device(model).type
    works = [
        [("importance", lambda: measure_importance(model, text, settings))],
        [("training", epoch_of(model, text, settings.batch_tokens))],
    ]
    rows = [
        [name, repeat, len(text), seconds]
        for name, repeat, _, seconds in time_in_turns(works, speed.repeats, device)
    ]
    facts = {"threads": speed.threads, "device": device, "provenance": origin}
    write_result(out, IMPORTANCE_COLUMNS, rows, facts)


def epoch_of(model: Transformer, text: ParallelText, batch_tokens: int) -> Callable[[], None]:
    """Return a pass of plain training over a text, by a copy of the model: one update a batch."""
    trained = copy.deepcopy(model).train().requires_grad_(True)
    optimiser = torch.optim.Adam(trained.parameters(), fused=True)

    def epoch() -> None:
        with batches_of("train", batch_tokens):
            for batch in in_order(text, batch_tokens, first_device(trained)):
                optimiser.zero_grad(set_to_none=True)
                loss = summed_loss(trained, batch, None, 0.1)  # any smoothing takes as long
                (loss / batch.target_tokens).backward()
                optimiser.step()

    return epoch

"""Savings of pruned models: weights, multiply-adds, memory and seconds, beside BLEU and chrF."""

import multiprocessing
import re
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from headcount.ablation.masked_bleu import write_by_metric
from headcount.base.errors import UserError
from headcount.base.multiply_adds import Lengths, multiply_adds
from headcount.base.settings.decode import FP32, DecodeSettings, SavingsSettings, TranslateSettings
from headcount.base.settings.metrics import MetricSettings
from headcount.data.batches import Ids
from headcount.data.lines import clean_lines
from headcount.data.text import read_clean
from headcount.deployment.speed import cut_batches, read_sources, time_in_turns
from headcount.model.machine import use_threads
from headcount.model.transformer import parameter_count
from headcount.scoring.bleu import score_corpus
from headcount.scoring.bootstrap import Difference, compare_systems
from headcount.scoring.segments import compare_by_metrics
from headcount.search.translation import Search, translate_lines
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount_hf.export.ctranslate2_model import export, load_for
from headcount_hf.export.ctranslate2_search import CTranslate2Search, open_search

COLUMNS = ("model", "program", "compute_type", "parameters", "multiply_adds", "weight_bytes")
COLUMNS += ("memory_bytes", "test_set", "bleu", "delta", "delta_low", "delta_high", "p")
COLUMNS += ("signature", "chrf", "batch_size", "repeat", "sentences", "seconds")


class Contestant(NamedTuple):
    """A model in one program and number format."""

    name: str
    folder: ModelFolder
    pair: PairFolder
    settings: TranslateSettings

    @property
    def program(self) -> tuple[str, str]:
        """Program and number format."""
        return self.settings.engine, self.settings.compute_type

    def open(self) -> Search:
        """Return the model, loaded into its program."""
        return open_search(self.folder, self.pair, (), self.settings)

    def size(self, lengths: Lengths) -> list[float]:
        """Return parameters, multiply-adds of a sentence of mean lengths, and bytes of weights."""
        model = self.folder.load()
        work = multiply_adds(model.settings, model.tgt_embedding.num_embeddings, lengths)
        stored = sum(weight.nbytes for weight in model.parameters())
        if self.settings.engine == "ctranslate2":
            with tempfile.TemporaryDirectory() as folder:
                words, kind = self.pair.vocabularies(), self.settings.compute_type
                export(model, *words, Path(folder), compute_type=kind)
                stored = (Path(folder) / CTranslate2Search.weights).stat().st_size
        return [parameter_count(model), work, stored]

    def memory(self, sources: list[Ids], settings: SavingsSettings) -> int | str:
        """Return bytes that a new process takes to load and to translate, empty if unknown."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__])
        batches = cut_batches(sources, max(settings.batch_sizes))
        with context.Pool(1) as pool:
            return pool.apply(_peak_memory, (self, batches))


def write_savings(
    models: dict[str, ModelFolder],
    pair: PairFolder,
    texts: tuple[Path, Path],
    settings: SavingsSettings,
    decode: DecodeSettings,
    out: Path,
    origin: dict[str, Any],
    metrics: Mapping[str, MetricSettings],
) -> None:
    """Measure models by run, the whole one first, and write one measurement of time a row as CSV.

    BLEU is compared with the whole model in the same program in float32. All programs search on the
    CPU, with the same beam, and without length penalty, whose formulas differ.
    """
    sizes, sources = settings.batch_sizes, _read(pair, settings, decode)
    contestants = enter(models, pair, sources, settings, decode)
    lengths = Lengths(*pair.read("train").lengths.mean(axis=1))
    searches = [own.open() for own in contestants]
    cells = [[*own.size(lengths), own.memory(sources, settings)] for own in contestants]
    scored = qualities(contestants, searches, texts, metrics)
    works = [
        [
            ((n, size), partial(_translate, search, cut_batches(sources, size), settings.seconds))
            for size in sizes
        ]
        for n, search in enumerate(searches)
    ]
    times = list(time_in_turns(works, settings.repeats))

    def rows(metric: str) -> list[list[Any]]:
        scores = [[texts[0].stem, *_cells(own.by(metric)), chrf] for own, chrf in scored]
        models = [(own.name, *own.program) for own in contestants]
        return [
            [*models[n], *cells[n], *scores[n], size, turn, passes * len(sources), seconds]
            for (n, size), turn, passes, seconds in times
        ]

    facts = {"beam": decode.beam, "length_penalty": 0.0, "device": "cpu"}
    facts |= {"threads": settings.threads, "sentences": len(sources), "test_set": texts[0].stem}
    write_by_metric(out, COLUMNS, ["bleu", *metrics], rows, {**facts, "provenance": origin})


def _cells(own: Difference) -> list[Any]:
    return [own.score, own.delta, own.low, own.high, own.p_value, own.signature]


def _read(pair: PairFolder, settings: SavingsSettings, decode: DecodeSettings) -> list[Ids]:
    """Return the sentences that are timed. Raises UserError for fewer than a batch."""
    sources = read_sources(pair, settings.sentences, decode.max_source)
    if len(sources) < max(settings.batch_sizes):
        raise UserError(
            f"savings.batch_sizes: expected numbers up to {len(sources)}, the sentences of "
            f"{pair.texts('dev')[0]} that are timed, found {settings.batch_sizes}"
        )
    return sources


def enter(
    models: dict[str, ModelFolder],
    pair: PairFolder,
    sources: list[Ids],
    settings: SavingsSettings,
    decode: DecodeSettings,
) -> list[Contestant]:
    """Return every model in every program and number format, with room for whole batches."""
    room = max(settings.batch_sizes) * (1 + max(map(len, sources)))
    plain = {**decode.model_dump(), "length_penalty": 0.0, "device": "cpu"}
    plain |= {"threads": settings.threads, "batch_tokens": max(decode.batch_tokens, room)}
    programs = [("headcount", FP32), *(("ctranslate2", kind) for kind in settings.compute_types)]
    return [
        Contestant(*model, pair, TranslateSettings(**plain, engine=engine, compute_type=kind))
        for model in models.items()
        for engine, kind in programs
    ]


def qualities(
    contestants: Sequence[Contestant],
    searches: Sequence[Search],
    texts: tuple[Path, Path],
    metrics: Mapping[str, MetricSettings],
) -> list[tuple[Difference, float]]:
    """Return the difference by BLEU and other metrics, and chrF, of every contestant."""
    lines, target = read_clean(texts[0]), searches[0].sides[1]
    targets = [target.normalise(line) for line in clean_lines(texts[1])]
    translations = [translate_lines(search, lines, place=str(texts[0]))[0] for search in searches]
    scored: dict[int, tuple[Difference, float]] = {}
    for engine in dict.fromkeys(own.settings.engine for own in contestants):
        places = [n for n, own in enumerate(contestants) if own.settings.engine == engine]
        whole = next(n for n in places if contestants[n].settings.compute_type == FP32)
        systems = [translations[n] for n in places]
        judged = compare_systems(translations[whole], systems, targets, target.language)
        both = [translations[whole], *systems]
        _, *others = compare_by_metrics(metrics, lines, both, targets, 1000)
        for place, own, other in zip(places, judged, others, strict=True):
            chrf = score_corpus(translations[place], targets, target.language)[1].score
            scored[place] = replace(own, others=other), chrf
    return [scored[place] for place in range(len(contestants))]


def _translate(search: Search, batches: list[list[Ids]], least: float = 0) -> int:
    """Translate all batches until `least` seconds are over. Return how many times."""
    start, times = time.perf_counter(), 0
    with ThreadPoolExecutor(search.settings.threads) as pool:
        while not times or time.perf_counter() - start < least:
            list(pool.map(partial(search.translate, done=lambda sentences: None), batches))
            times += 1
    return times


def _peak_memory(own: Contestant, batches: list[list[Ids]]) -> int | str:
    if own.settings.engine == "ctranslate2":
        load_for(own.settings.compute_type)  # the package itself does not count
    use_threads(own.settings.threads)
    before = _resident()
    _translate(own.open(), batches)
    after = _resident()
    code = after["RssFile"] - before["RssFile"]  # pages of libraries that were not used before
    return 1024 * (after["VmHWM"] - before["VmRSS"] - code) if before["VmRSS"] else ""


def _resident() -> Counter[str]:
    """Return sizes in KiB that Linux knows of this process, none on other systems."""
    status = Path("/proc/self/status")
    text = status.read_text() if status.is_file() else ""
    return Counter({name: int(size) for name, size in re.findall(r"(\w+):\s*(\d+) kB", text)})

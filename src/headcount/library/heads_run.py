"""Measures of the heads of one model on its own, which a second start goes on with.

Importance, alignment and roles are measured on sentences drawn from a text. The loss without the
least important heads is measured on other sentences, if the text has enough.
"""

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import nn
from tqdm import tqdm

from headcount.base.errors import UserError
from headcount.base.files import read_json, remove_folder, write_json, write_result
from headcount.base.head_values import COLUMNS, head_rows
from headcount.base.ranking import Heads, head_masks, least_heads
from headcount.base.settings.heads import ImportanceSettings
from headcount.data.batches import ParallelText
from headcount.heads.alignment_rates import COLUMNS as ALIGNMENT_COLUMNS
from headcount.heads.drawn_text import DRAW_SEED
from headcount.heads.importance import measure_importance
from headcount.library.report import MEASURES, write_pages
from headcount.scoring.bootstrap import interval, resamples
from headcount.training.score import score_targets

CHECKED, FEWEST = 200, 50
"""Sentences on which heads are removed: at most, and at least if none is used twice."""
PERCENTS = (5, 10, 20, 30, 40, 50)
"""Shares of the heads that are removed together, the least important first."""
REMOVAL_COLUMNS = ("percent", "heads_masked", "heads", "loss", "loss_rise", "low", "high")
_CHUNKS = 5  # of each half of the sentences
_PROBED = 48  # sentences that are timed


class Part(NamedTuple):
    """A piece of work whose result is stored."""

    name: str
    cost: float  # in target and source tokens that a model reads
    make: Callable[[], Any]  # returns JSON


class HeadsRun:
    """Measures of one model on one text, in parts."""

    def __init__(
        self,
        model: Any,
        pairs: tuple[Sequence[Any], Sequence[str]],
        out: Path,
        links: Sequence[str] | None = None,
        sentences: int = 500,
        kind: str = "given",
    ):
        """Draw sentences. `model`: a `Measured`. `links`: as of `alignment`. `kind`: of links."""
        self.model, self.grid, self.out = model, model.module.grid, out
        self._pairs, self._links, self._kind = pairs, links, kind
        counts = [*map(len, (*pairs, pairs[0] if links is None else links))]
        if len({*counts}) > 1 or min(*counts, sentences) < 4:
            expected = "as many sources, references and links, and at least 4"
            raise UserError(f"expected {expected}, found {', '.join(map(str, counts))}")
        order = np.random.default_rng(DRAW_SEED).permutation(counts[0]).tolist()
        self.drawn, others = order[:sentences], order[sentences:]
        self.apart = len(others) >= FEWEST
        checked = (others if self.apart else self.drawn)[:CHECKED]
        self.text, self.checked = map(self._read, (self.drawn, checked))
        self._store = out / "parts" / self._key()

    def _read(self, numbers: list[int]) -> ParallelText:
        return self.model._text(*([side[n] for n in numbers] for side in self._pairs))

    @cached_property
    def parts(self) -> list[Part]:
        """Return all parts in their order."""
        middle = len(self.text) // 2
        halves = np.arange(middle), np.arange(middle, len(self.text))
        parts = [part for n, half in enumerate(halves) for part in self._importance(n, half)]
        tokens = self.text.lengths.sum()
        if self._links is not None:
            parts.append(Part("alignment", tokens, self._alignment))
        parts += [
            Part(f"removal {percent}", self.checked.lengths.sum(), partial(self._losses, percent))
            for percent in (0, *PERCENTS)
        ]
        if self.model._has_roles:
            parts.append(Part("roles", tokens, self._roles))
        return parts

    def estimate(self) -> dict[str, float]:
        """Return the seconds that remain by kind of work, from a few timed sentences."""
        missing = [part for part in self.parts if not self._path(part).exists()]
        probe = self.text.part(range(min(_PROBED, len(self.text))))
        times = []
        for _ in range(2):  # the first is slower
            begun = time.perf_counter()
            score_targets(self.model.module, probe, 4096)
            times.append(time.perf_counter() - begun)
        seconds: dict[str, float] = {}
        for part in missing:
            kind = part.name.split()[0]
            cost = float(part.cost * min(times) / probe.lengths.sum())
            seconds[kind] = seconds.get(kind, 0) + cost
        return seconds

    def measure(self) -> None:
        """Measure the parts that are missing, and write the files of all measures.

        Measures of another model or text in the same folder are removed first.
        """
        self._clear()
        missing = [part for part in self.parts if not self._path(part).exists()]
        form = "{desc}{percentage:3.0f}%|{bar}| {elapsed}<{remaining}"
        with tqdm(total=sum(p.cost for p in missing), disable=None, bar_format=form) as bar:
            for part in missing:
                bar.set_description(part.name.split()[0])
                write_json(self._path(part), part.make())
                bar.update(part.cost)
        self._write()

    def write_pages(self, title: str = "") -> Path:
        """Write tables, figures, report and atlas, and return the report."""
        title = title or f"Heads of {self.model.path.name}"
        facts = self.model.languages, title, self.model._provenance()
        return write_pages(self.out, self.model.settings, *facts)

    @cached_property
    def importance(self) -> dict[str, np.ndarray]:
        """Return importance of heads on all drawn sentences and on each half."""
        read = [read_json(self._path(p)) for p in self.parts if p.name.startswith("importance")]
        sums = np.array(read).reshape(2, -1, self.grid.size).sum(1)
        sizes = len(self.text) // 2, len(self.text) - len(self.text) // 2
        names = ("importance", "importance_first_half", "importance_second_half")
        values = [sums.sum(0) / len(self.text), *(s / n for s, n in zip(sums, sizes, strict=True))]
        return dict(zip(names, values, strict=True))

    def removal(self) -> pd.DataFrame:
        """Return the loss without the least important heads, with its change."""
        losses = [read_json(self._path(p)) for p in self.parts if p.name.startswith("removal")]
        whole, tokens = np.array(losses[0]), self.checked.lengths[1]
        names, rows = self.model.heads, []
        for percent, of_step in zip((0, *PERCENTS), losses, strict=True):
            rises = np.array(of_step) - whole
            drawn = np.concatenate([t @ rises / (t @ tokens) for t in resamples(len(tokens), 1000)])
            masked = self._least(percent)
            cells = [percent, len(masked), " ".join(names[place] for place in masked)]
            means = [float(np.sum(v) / tokens.sum()) for v in (of_step, rises)]
            rows.append([*cells, *means, *interval(drawn)])
        return pd.DataFrame(rows, columns=list(REMOVAL_COLUMNS))

    def _importance(self, half: int, numbers: np.ndarray) -> Iterator[Part]:
        lengths = self.text.lengths.sum(0)
        ordered = numbers[np.argsort(lengths[numbers], kind="stable")]
        chunks = min(_CHUNKS, len(self.text) // 2)
        for chunk, places in enumerate(np.array_split(ordered, chunks)):
            make = partial(self._slopes, places.tolist())
            yield Part(f"importance {half}.{chunk}", 2.3 * lengths[places].sum(), make)

    def _slopes(self, places: list[int]) -> list[float]:
        settings, text = ImportanceSettings(sentences=len(self.text)), self.text.part(places)
        return (measure_importance(self.model.module, text, settings) * len(text)).tolist()

    def _alignment(self) -> list[list[Any]]:
        drawn = [[side[n] for n in self.drawn] for side in (*self._pairs, self._links)]
        frame = self.model.alignment(*drawn).assign(links=self._kind).astype(object)
        return frame.where(frame.notna(), None).to_numpy().tolist()

    def _roles(self) -> bool:
        sides = ([side[n] for n in self.drawn[:CHECKED]] for side in self._pairs)
        self.model._write_roles(*sides, self.out)
        return True

    def _least(self, percent: int) -> Heads:
        return least_heads(self.importance["importance"], percent)

    def _losses(self, percent: int) -> list[float]:
        mask = torch.from_numpy(head_masks([self._least(percent)], self.grid.size)[0])
        return score_targets(self.model.module, self.checked, 4096, mask).tolist()

    def _path(self, part: Part) -> Path:
        return self._store / f"{part.name.replace(' ', '.')}.json"

    def _key(self) -> str:
        """Return a digest of all that decides the results."""
        digest = hashlib.sha256(repr((self.drawn, self._kind, self._links)).encode())
        for text in (self.text, self.checked):
            for ids in (*text.src, *text.tgt):
                digest.update(np.asarray(ids).tobytes())
        digest.update(weights_digest(self.model.module).encode())
        return digest.hexdigest()[:16]

    def _clear(self) -> None:
        others = [folder for folder in self._store.parent.glob("*") if folder != self._store]
        if others:
            for name in MEASURES:
                (self.out / name).unlink(missing_ok=True)
            for folder in (*others, self.out / "tables", self.out / "figures"):
                remove_folder(folder)

    def _write(self) -> None:
        """Write importance.csv, removal.csv and perhaps alignment.csv, with JSON beside them."""
        origin = {"provenance": self.model._provenance()}
        facts = {"sentences": len(self.text), "weights": self.model._weights(), **origin}
        rows = head_rows(self.grid.heads(), self.importance)
        write_result(self.out / "importance.csv", COLUMNS, rows, {"data": "given", **facts})
        facts = {"sentences": len(self.checked), "other_sentences": self.apart, **origin}
        rows = self.removal().to_numpy().tolist()
        write_result(self.out / "removal.csv", REMOVAL_COLUMNS, rows, facts)
        for part in (part for part in self.parts if part.name == "alignment"):
            rows, path = read_json(self._path(part)), self.out / "alignment.csv"
            write_result(path, ALIGNMENT_COLUMNS, rows, {"sentences": len(self.text), **origin})


def weights_digest(module: nn.Module) -> str:
    """Return the SHA-256 of all weights."""
    digest = hashlib.sha256()
    for name, weight in module.state_dict().items():
        digest.update(name.encode())
        digest.update(weight.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()

"""Measures of a translation model on lists of lines, in whatever library the model is."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from headcount.ablation.masked_bleu import Point, Translator, point_rows
from headcount.ablation.masking import ABLATION_COLUMNS, resamples_for, single_heads
from headcount.base.addresses import Head
from headcount.base.command import Flags
from headcount.base.errors import UserError
from headcount.base.head_values import COLUMNS, head_rows
from headcount.base.ranking import Heads
from headcount.base.settings.heads import ImportanceSettings
from headcount.base.settings.model import ModelSettings
from headcount.data.batches import ParallelText
from headcount.data.lines import references
from headcount.data.text import clean
from headcount.deployment.export import Mask
from headcount.heads.importance import measure_importance
from headcount.heads.linked_text import LinkedText
from headcount.library.heads_run import HeadsRun, weights_digest
from headcount.library.linking import alignment_frame
from headcount.library.report import require_packages
from headcount.scoring.bleu import Score, score_corpus
from headcount.store.kept_heads import read_mask
from headcount.training.score import mean_loss

BUDGET = 4096
"""Tokens of a batch in measures that do not depend on it."""
GIVEN = "given"
"""Name of texts and links in frames."""
Masked = Mask | pd.DataFrame
"""A mask, or a frame with columns `kind`, `layer` and `head` of masked heads."""
_IMPORTANCE = ImportanceSettings()


class Measured(ABC):
    """A translation model. Text is a list of lines, one sentence in a line.

    A mask names masked heads by their addresses, `<kind>.<layer>.<head>` counted from 0, by rows of
    a frame, or by files with addresses.
    """

    path: Path  # folder of the model
    settings: ModelSettings  # sizes
    languages: str  # source and target, as in en-de
    _has_roles = False  # whether `_write_roles` measures what heads attend to

    @property
    @abstractmethod
    def module(self) -> Any:
        """The PyTorch module, whose heads have multipliers."""

    @abstractmethod
    def translate(self, sources: Sequence[Any], mask: Masked = (), decode: Any = None) -> list[str]:
        """Return translations by beam search."""

    @abstractmethod
    def _translator(self, decode: Any = None) -> Translator:
        """Return the model with its search, which masks heads."""

    @abstractmethod
    def _spelt(self, targets: Sequence[str]) -> list[str]:
        """Return references in the spelling of translations."""

    @abstractmethod
    def _text(self, sources: Sequence[Any], targets: Sequence[str]) -> ParallelText:
        """Return the pairs as ids, with the first of several references."""

    @abstractmethod
    def _linked(
        self, sources: Sequence[str], targets: Sequence[str], links: Sequence[str] | None
    ) -> LinkedText:
        """Return the pairs with links between words."""

    @abstractmethod
    def _files(self) -> list[Path]:
        """Return the files that the model was read from."""

    def _write_roles(self, sources: Sequence[str], targets: Sequence[str], out: Path) -> None:
        """Write what heads attend to, as scripts/roles.py does."""
        raise NotImplementedError

    def _weights(self) -> str:
        """Return the checksum that names the weights in files of measures."""
        return weights_digest(self.module)

    def _provenance(self) -> dict[str, Any]:
        """Return the provenance of files that this model writes."""
        return Flags(script=__file__, sections={}).origin(self._files())

    @property
    def heads(self) -> list[str]:
        """Addresses of the heads, in the order of every multiplier."""
        return [head.name() for head in self.module.grid.heads()]

    def mask(self, mask: Masked) -> np.ndarray:
        """Return the multipliers of heads, [heads], 0 for a masked head."""
        return read_mask(addresses(mask), self.module.grid)

    def loss(self, sources: Sequence[Any], targets: Sequence[str], mask: Masked = ()) -> float:
        """Return the loss per target token of given translations, in nats."""
        return mean_loss(self.module, self._text(sources, targets), BUDGET, self._multiplier(mask))

    def bleu(
        self, sources: Sequence[Any], targets: Sequence[str], mask: Masked = (), decode: Any = None
    ) -> Score:
        """Return BLEU, 0 to 100. Several references of a line have tabs between them."""
        spelt = self._spelt(targets)  # before the long search, to refuse a text
        translations = self.translate(sources, mask, decode)
        return score_corpus(translations, spelt, self._translator().language)[0]

    def importance(
        self,
        sources: Sequence[Any],
        targets: Sequence[str],
        settings: ImportanceSettings = _IMPORTANCE,
    ) -> pd.DataFrame:
        """Return importance of heads on all these pairs, with the columns of importance.csv."""
        values = measure_importance(self.module, self._text(sources, targets), settings)
        rows = head_rows(self.module.grid.heads(), {"importance": values})
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def ablate(
        self,
        sources: Sequence[Any],
        targets: Sequence[str],
        masks: Mapping[str, Masked] | None = None,
        decode: Any = None,
    ) -> pd.DataFrame:
        """Return BLEU under named masks, or without each head, with the columns of ablation.csv."""
        grid = self.module.grid
        named = enumerate((masks or {}).items(), start=1)
        points = [
            Point((name, n, None, None, None), self._silent(mask)) for n, (name, mask) in named
        ]
        points = single_heads(grid) if masks is None else points
        points = [Point(("none", 0, None, None, None), ()), *points]
        texts = listed(sources), self._spelt(targets)
        sets = [point.heads for point in points]
        scores = self._translator(decode).compare(texts, sets, resamples_for(grid))
        rows = point_rows(grid, GIVEN, points, scores, "bleu")
        frame = pd.DataFrame(rows, columns=list(ABLATION_COLUMNS))
        return frame.astype({"layer": "Int64", "head": "Int64"})

    def alignment(
        self, sources: Sequence[str], targets: Sequence[str], links: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Return alignment error rates of heads, with links such as `0-0 1p2` for every pair."""
        return alignment_frame(self.module, self._linked(sources, targets, links), BUDGET)

    def report(
        self,
        sources: Sequence[Any],
        references: Sequence[str],
        out: str | Path,
        links: Sequence[str] | None = None,
        sentences: int = 500,
        title: str = "",
    ) -> Path:
        """Measure heads on drawn sentences, write tables and pages, and return the report.

        `links`: as of `alignment`. The same call goes on after a stop.
        """
        require_packages()  # before the long measures
        run = HeadsRun(self, (sources, references), Path(out), links, sentences)
        run.measure()
        return run.write_pages(title)

    def _multiplier(self, mask: Masked) -> Tensor | None:
        named = addresses(mask)
        return torch.from_numpy(self.mask(named)) if named else None

    def _silent(self, mask: Masked) -> Heads:
        """Return places of masked heads. Raises UserError for gates between 0 and 1."""
        multiplier = self.mask(mask)
        if not np.isin(multiplier, (0, 1)).all():
            raise UserError("masks: expected masked heads, found gates between 0 and 1")
        return tuple(np.flatnonzero(multiplier == 0).tolist())


def addresses(mask: Masked) -> Mask:
    """Return a mask with addresses in place of the rows of a frame."""
    if not isinstance(mask, pd.DataFrame):
        return mask
    rows = mask[["kind", "layer", "head"]].itertuples(index=False)
    return [Head(*row).name() for row in rows]


def cleaned(lines: Sequence[str]) -> list[str]:
    """Return the lines as scripts clean them. Raises UserError for a text in place of a list."""
    return list(map(clean, listed(lines)))


def firsts(targets: Sequence[str]) -> list[str]:
    """Return the first of several references of every line."""
    return [references(line)[0] for line in listed(targets)]


def check_pairs(sources: Sequence[Any], targets: Sequence[str]) -> None:
    """Raise UserError unless both sides have as many lines, and at least one."""
    if len(sources) != len(targets) or not len(sources):
        counts = f"{len(sources)} and {len(targets)}"
        raise UserError(f"expected as many sources as targets and at least one, found {counts}")


def listed(lines: Sequence[Any]) -> list[Any]:
    """Return the lines. Raises UserError for a text, whose letters would be taken for lines."""
    if isinstance(lines, str):
        raise UserError("expected a list of lines, found one text; put it in [ ]")
    return list(lines)

"""Search by CTranslate2 in place of ours.

CTranslate2 gives as many hypotheses as the beam is wide, and our length penalty decides among them.
For other differences see docs/guides/export.md.
"""

import math
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from headcount.base.errors import UserError
from headcount.base.settings.decode import FP32, DecodeSettings, TranslateSettings
from headcount.data.batches import Ids
from headcount.data.vocabulary import BOS, EOS, PAD
from headcount.deployment.export import Deployed
from headcount.search.beam_search import NOT_FINITE
from headcount.search.translation import Mask, Search, open_own_search
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount_hf.export.ctranslate2_model import export, export_shape, load_for
from headcount_hf.export.exported import Best, Exported, Sides

_PATIENCE = 1.5
"""Hypotheses that must end before a sentence is finished, as a multiple of the beam. Our search
continues while another hypothesis may win, so that 1 would miss some."""


def open_search(
    folder: ModelFolder, pair: PairFolder, mask: Mask, settings: TranslateSettings
) -> Search:
    """Return the model in a folder, in the program of `settings.engine`."""
    if settings.engine == "headcount":
        return open_own_search(folder, pair, mask, settings)
    load_for(settings.compute_type)  # before any other work
    return search_with(Deployed.open(folder, pair, mask), settings)


def search_with(what: Deployed, settings: TranslateSettings) -> "CTranslate2Search":
    """Return a model on the CPU in CTranslate2. Raises UserError for NaN weights."""
    if not all(weight.isfinite().all() for weight in what.model.parameters()):
        raise UserError(NOT_FINITE)
    sides, (*_, positions) = what.pair.segmenters(), export_shape(what.model)
    with tempfile.TemporaryDirectory() as folder:  # the translator loads it completely
        export(what.model, *(side.vocabulary for side in sides), Path(folder))
        return CTranslate2Search(Path(folder), sides, settings, positions, settings.compute_type)


class CTranslate2Search(Exported):
    """A model in CTranslate2 on the CPU, where every thread takes whole batches."""

    weights = "model.bin"

    def __init__(
        self,
        folder: Path,
        sides: Sides,
        settings: DecodeSettings,
        positions: int,
        compute_type: str = FP32,
    ):
        """Load a folder for a model with a number of positions, 0 for any."""
        super().__init__(sides, settings, positions)
        package = load_for(compute_type)
        self.facts = {"engine": "ctranslate2", "compute_type": compute_type}
        self.facts["ctranslate2"] = metadata.version("ctranslate2")
        self.facts["patience"] = _PATIENCE if settings.length_penalty else 1
        self._src, self._tgt = (side.vocabulary for side in sides)
        self._end = self._tgt.pieces((EOS,))
        self._translator = package.Translator(
            str(folder), compute_type=compute_type, inter_threads=settings.threads, intra_threads=1
        )

    def _begin(self, sources: list[Ids], longest: int) -> Iterator[Any]:
        """Start to translate a batch in the background, and yield its results."""
        alpha, beam = self.settings.length_penalty, self.settings.beam
        tasks = self._translator.translate_batch(
            [self._src.pieces(ids) for ids in sources],
            target_prefix=[self._tgt.pieces(self.sides[1].prefix)] * len(sources),
            asynchronous=True,
            beam_size=beam,
            length_penalty=alpha,
            patience=self.facts["patience"],
            num_hypotheses=beam if alpha else 1,
            return_scores=True,
            return_end_token=True,
            max_input_length=0,  # no limit: it would cut sources without a warning
            max_decoding_length=longest,
            min_decoding_length=0,
            suppress_sequences=[[piece] for piece in self._tgt.pieces((PAD, BOS))],
        )
        return (task.result() for task in tasks)

    def _choose(self, result: Any, limit: int) -> Best:
        """Return the best by our length penalty that ended in time, else the first, cut off."""
        if not all(map(math.isfinite, result.scores)):
            raise UserError(NOT_FINITE)
        alpha, values = self.settings.length_penalty, {}
        for place, (pieces, score) in enumerate(zip(result.hypotheses, result.scores, strict=True)):
            length = len(pieces)
            if pieces[-1:] == self._end and length <= limit:
                nats = score * length**alpha  # CTranslate2 has divided by that
                values[place] = nats / ((5 + length) / 6) ** alpha
        if not values:
            return Best(self._tgt.ids(result.hypotheses[0])[: limit - 1], True)
        pieces = result.hypotheses[max(values, key=values.get)]
        return Best(self._tgt.ids(pieces[:-1]), len(pieces) == limit)

    def score(self, sources: list[Ids], targets: list[Ids]) -> list[float]:
        scored = self._translator.score_batch(
            [self._src.pieces(ids) for ids in sources],
            [self._tgt.pieces(ids) for ids in targets],
            max_batch_size=self.settings.batch_tokens,
            batch_type="tokens",
            max_input_length=0,
        )
        return [sum(result.log_probs) for result in scored]

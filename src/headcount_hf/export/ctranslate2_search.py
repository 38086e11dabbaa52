"""CTranslate2 in place of our own search, where a whole model translates.

It searches as wide a beam by the same log-probabilities and gives as many hypotheses as the beam is
wide; our length penalty decides among them. docs/guides/export.md says what still differs.
"""

import math
import tempfile
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from headcount.base.errors import UserError
from headcount.base.settings.decode import DecodeSettings, TranslateSettings
from headcount.data.batches import Ids
from headcount.data.bpe import AnySegmenter
from headcount.data.vocabulary import BOS, EOS, PAD
from headcount.deployment.deployed import Deployed
from headcount.model.machine import batches_of
from headcount.search.beam_search import NOT_FINITE
from headcount.search.sources import longest_outputs, search_batches
from headcount.search.translation import Mask, Search, open_own_search
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount_hf.export.ctranslate2_export import export, positions_of
from headcount_hf.export.ctranslate2_package import load_ctranslate2, refuse_overflow
from headcount_hf.export.exported import Best, Exported

COMPUTE_TYPES = {"ctranslate2": "float32", "ctranslate2-int8": "int8"}
"""CTranslate2's name of the arithmetic of each of its engines in the settings."""

PATIENCE = 1.5
"""Hypotheses that must end, by the width of the beam, before a sentence is finished. Ours goes on
after a beam of them while a better one is left; at 1 CTranslate2 would miss some of those."""

_NOTHING = Best([], False)  # of an empty source


def open_search(
    folder: ModelFolder, pair: PairFolder, mask: Mask, settings: TranslateSettings
) -> Search:
    """Return the model in a folder, in the program that `settings.engine` names.

    `mask`: silent heads, as `read_mask` reads them. Raises UserError if the model was trained on
    other subwords than the pair's, and EnvironmentFault where CTranslate2 is not installed.
    """
    if settings.engine == "headcount":
        return open_own_search(folder, pair, mask, settings)
    load_ctranslate2()  # first of all: without it there is nothing to do
    return search_with(Deployed.open(folder, pair, mask), settings)


def search_with(what: Deployed, settings: TranslateSettings) -> "CTranslate2Search":
    """Return a model on the CPU in CTranslate2.

    Raises UserError if a weight of it is not a finite number: CTranslate2 would translate by such
    weights without a word. Raises EnvironmentFault where its int8 is noise on this machine.
    """
    if not all(weight.isfinite().all() for weight in what.model.parameters()):
        raise UserError(NOT_FINITE)
    sides = what.pair.segmenters()
    with tempfile.TemporaryDirectory() as folder:  # read whole as it is loaded
        export(what.model, *(side.vocabulary for side in sides), Path(folder))
        return CTranslate2Search(
            Path(folder), sides, settings, positions_of(what.model), settings.engine
        )


class CTranslate2Search(Exported):
    """A model in CTranslate2 on the CPU; each thread takes whole batches."""

    own_sides = None

    def __init__(
        self,
        folder: Path,
        sides: tuple[AnySegmenter, AnySegmenter],
        settings: DecodeSettings,
        positions: int,
        engine: str = "ctranslate2",
    ):
        """`sides`: the segmenters of source and target; `positions`: those the model knows."""
        self.sides, self.settings, self.positions = sides, settings, positions
        package, kind = load_ctranslate2(), COMPUTE_TYPES[engine]
        if kind == "int8":
            refuse_overflow(package)
        self.facts = {"engine": engine, "compute_type": kind}
        self.facts["ctranslate2"] = metadata.version("ctranslate2")
        self.facts["patience"] = PATIENCE if settings.length_penalty else 1
        self._src, self._tgt = (side.vocabulary for side in sides)
        self._end = self._tgt.pieces((EOS,))
        self._translator = package.Translator(
            str(folder), compute_type=kind, inter_threads=settings.threads, intra_threads=1
        )

    def translate(
        self, sources: list[Ids], done: Callable[[int], object] = lambda sentences: None
    ) -> Sequence[Best]:
        """Return the best translation of each source in order; an empty source stays empty."""
        settings = self.settings
        limits = longest_outputs(sources, settings, self.sides[1].prefix, self.positions)
        batches = search_batches(sources, settings.batch_tokens)
        best = [_NOTHING] * len(sources)
        with batches_of("resources", settings.batch_tokens):
            begun = [
                self._begin([sources[n] for n in numbers], max(limits[n] for n in numbers))
                for numbers in batches
            ]
            for numbers, results in zip(batches, begun, strict=True):
                for number, result in zip(numbers, results, strict=True):
                    best[number] = self._choose(result.result(), limits[number])
                done(len(numbers))
        return best

    def _begin(self, sources: list[Ids], longest: int) -> list[Any]:
        """Have a batch translated in the background; return what waits for each sentence."""
        alpha, beam = self.settings.length_penalty, self.settings.beam
        return self._translator.translate_batch(
            [self._src.pieces(ids) for ids in sources],
            target_prefix=[self._tgt.pieces(self.sides[1].prefix)] * len(sources),
            asynchronous=True,
            beam_size=beam,
            length_penalty=alpha,
            patience=PATIENCE if alpha else 1,
            # Without a penalty the first to end as the best of the beam is the best of all.
            num_hypotheses=beam if alpha else 1,
            return_scores=True,
            return_end_token=True,
            max_input_length=0,  # else a longer source is cut without a word
            max_decoding_length=longest,
            min_decoding_length=0,
            suppress_sequences=[[piece] for piece in self._tgt.pieces((PAD, BOS))],
        )

    def _choose(self, result: Any, limit: int) -> Best:
        """Return the best by our length penalty that ended in time; else the first, cut off.

        Raises UserError where a score is not finite, as weights that are too large make it.
        """
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
        """Return the log-probability of each target with its end, in nats."""
        scored = self._translator.score_batch(
            [self._src.pieces(ids) for ids in sources],
            [self._tgt.pieces(ids) for ids in targets],
            max_batch_size=self.settings.batch_tokens,
            batch_type="tokens",
            max_input_length=0,
        )
        return [sum(result.log_probs) for result in scored]

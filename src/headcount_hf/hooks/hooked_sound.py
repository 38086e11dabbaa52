"""Folder of a Whisper: its sources are arrays of 16,000 samples a second."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from torch import Tensor

from headcount_hf.hooks.hooked_folder import HookedFolder
from headcount_hf.hooks.hooked_seq2seq import HookedSeq2Seq, Source, TokenisedText
from headcount_hf.pretrained.library import SPEECH, open_sound, open_tokeniser, open_whole

RATE = 16000
_SENTENCES = 8  # of a batch: all sources have the length of the longest sound


class SoundFolder(HookedFolder):
    """A Whisper, its tokeniser and what makes features of sound."""

    empty = np.zeros(RATE, dtype=np.float32)

    @property
    def _task(self) -> dict[str, str]:
        same = self.target in ("", self.source)
        return {"language": self.source, "task": "transcribe" if same else "translate"}

    @cached_property
    def _loaded(self) -> tuple[Any, HookedSeq2Seq]:
        tokeniser = open_tokeniser(self.path, SPEECH)
        tokeniser.set_prefix_tokens(**self._task)
        return tokeniser, HookedSeq2Seq(open_whole(self.path, SPEECH))

    @cached_property
    def _extractor(self) -> Any:
        return open_sound(self.path)

    def text(self, sources: Sequence[Any], targets: Sequence[str]) -> TokenisedText:
        """Return sounds with their words. The decoder begins with the first id."""
        words = [ids[1:] for ids in self._ids("text_target", targets)]
        return self._loaded[1].text(self.sources(sources), words)

    def sources(self, lines: Sequence[Any]) -> list[Tensor]:
        """Return features of sounds."""
        sounds = [np.asarray(sound, dtype=np.float32) for sound in lines]
        return list(self._extractor(sounds, RATE, return_tensors="pt").input_features)

    def batches(self, sources: Sequence[Source], budget: int) -> list[list[int]]:
        """Return numbers of the sources of every batch of a search."""
        numbers = list(range(len(sources)))
        return [numbers[n : n + _SENTENCES] for n in range(0, len(numbers), _SENTENCES)]

    def target_options(self) -> dict[str, Any]:
        """Return arguments of the search for the language and the task, if it has several."""
        config = self._loaded[1].model.generation_config
        return self._task if hasattr(config, "lang_to_id") else {}

"""Pieces of running text by a SentencePiece model that someone else has learnt."""

from collections.abc import Iterable

from headcount.base.errors import EnvironmentFault, UserError
from headcount.data.vocabulary import Vocabulary
from headcount.data.words import protect, restore

UNIT = "sentencepiece"
"""The `unit` that segmentation.json tells of text that was cut so."""


class SentencePieces:
    """One side of a pair, as `Segmenter` is: from a line of text to subword ids and back."""

    def __init__(self, language: str, model: bytes, words: Vocabulary):
        """`model`: the bytes of a .spm file; `words`: the pieces that the translation model knows.

        Raises UserError if the bytes are no such model, EnvironmentFault without the package.
        """
        try:
            from sentencepiece import SentencePieceProcessor  # an extra
        except ModuleNotFoundError as fault:
            raise EnvironmentFault(
                "pieces of a pretrained model need the package sentencepiece, which is not "
                "installed; run: pip install -e '.[pretrained]'"
            ) from fault
        self.language = language
        self.vocabulary = words
        try:
            self._model = SentencePieceProcessor(model_proto=model)
        except RuntimeError as fault:
            raise UserError(f"expected a SentencePiece model, found {len(model)} bytes") from fault

    def pieces(self, line: str) -> list[str]:
        """Pieces of a cleaned line, those outside the vocabulary included.

        Names of special pieces in the line are text like any other.
        """
        return [protect(piece) for piece in self._model.encode(line, out_type=str)]

    def encode(self, line: str) -> list[int]:
        """Ids of a cleaned line, without start or end; unknown pieces become UNK."""
        return self.vocabulary.ids(self.pieces(line))

    def decode(self, ids: Iterable[int]) -> str:
        """The line of ids without padding, start or end; UNK shows as `<unk>`."""
        pieces = map(restore, self.vocabulary.pieces(ids))
        return " ".join(self._model.decode(list(pieces)).split())

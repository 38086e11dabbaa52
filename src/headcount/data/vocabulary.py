"""Subword vocabulary: pieces and their ids, the same for the same counts."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from headcount.base.errors import UserError
from headcount.base.files import write_text
from headcount.data.lines import clean_lines

PAD, BOS, EOS, UNK = range(4)
SPECIALS = ("<pad>", "<s>", "</s>", "<unk>")
"""Names of the ids 0 to 3."""


class Vocabulary:
    """Pieces in the order of their ids. Ids 0–3 are padding, start, end and unknown."""

    def __init__(self, counts: Sequence[tuple[str, int]]):
        """`counts`: pieces with their training counts, in the order of their ids from 4 on."""
        self.counts = list(counts)
        self._pieces = [*SPECIALS, *(piece for piece, _ in self.counts)]
        self._ids = {piece: i for i, piece in enumerate(self._pieces[4:], start=4)}

    def __len__(self) -> int:
        return len(self._pieces)

    @classmethod
    def of(cls, counts: Mapping[str, int], largest: int | None = None) -> "Vocabulary":
        """Return the vocabulary of the `largest` most frequent pieces (None: all)."""
        return cls(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))[:largest])

    @classmethod
    def load(cls, path: Path) -> "Vocabulary":
        """Read a file of lines `piece count`. Raises UserError naming the first bad line."""
        counts = []
        for number, line in enumerate(clean_lines(path), start=1):
            piece, _, count = line.rpartition(" ")
            if not piece or not count.isdecimal():
                raise UserError(f"{path}:{number}: expected 'piece count', found {line[:40]!r}")
            counts.append((piece, int(count)))
        return cls(counts)

    def save(self, path: Path) -> None:
        """Write one line `piece count` for each piece, in the order of the ids."""
        write_text(path, "".join(f"{piece} {count}\n" for piece, count in self.counts))

    def ids(self, pieces: Iterable[str]) -> list[int]:
        """Return the ids of pieces. A piece outside the vocabulary becomes unknown."""
        return [self._ids.get(piece, UNK) for piece in pieces]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Return the pieces of ids."""
        return [self._pieces[i] for i in ids]

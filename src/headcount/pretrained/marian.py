"""The subwords of a Marian model (OPUS-MT): SentencePiece models, and the id of every piece."""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from headcount.base.errors import UserError
from headcount.base.files import write_bytes, write_json
from headcount.base.folders import CODES, SEGMENTATION, SIDES, VOCABULARIES
from headcount.data.lines import clean_lines, references, write_lines
from headcount.data.sentencepieces import UNIT, SentencePieces
from headcount.data.vocabulary import Vocabulary
from headcount.data.words import protect
from headcount.pretrained.families import Config
from headcount.pretrained.weight_map import their_rows

_MODELS = ("source.spm", "target.spm")
_UNKNOWN = "<unk>"


@dataclass(frozen=True)
class MarianPieces:
    """What the folder of a Marian model says of its subwords."""

    folder: Path

    @property
    def files(self) -> list[Path]:
        """All that is read of it: the SentencePiece models, and the ids of their pieces."""
        ids = [self.folder / self._ids_of(side) for side in range(len(SIDES))]
        return [self.folder / name for name in _MODELS] + sorted(set(ids))

    @property
    def unknown(self) -> int:
        """The id of words that it does not know."""
        return self._ids(1)[_UNKNOWN]

    def vocabulary(self, side: int, counts: Counter[str]) -> Vocabulary:
        """Its pieces in the order of our ids, with their counts in some text, or 0.

        Raises UserError if the ids are not those of the model's embedding.
        """
        config = Config.read(self.folder)
        names = {number: piece for piece, number in self._ids(side).items()}
        size = config.vocabulary_sizes[side]
        if max(names) >= size:
            raise UserError(
                f"{self.folder / self._ids_of(side)}: expected ids below {size}, as many as "
                f"{config.path} says that there are words, found {max(names)}"
            )
        rows = their_rows(config, size, self.unknown, config["decoder_start_token_id"])[4:]
        # Rows without a piece fill the embedding up; the name keeps the ids after them in place.
        pieces = (protect(names.get(row, f"<row {row}>")) for row in rows)
        return Vocabulary([(piece, counts[piece]) for piece in pieces])

    def _ids_of(self, side: int) -> str:
        """Name of the file with the ids of a side: one for both, unless the target has its own."""
        joint = Config.read(self.folder).joint
        return "target_vocab.json" if side == 1 and not joint else "vocab.json"

    def _ids(self, side: int) -> dict[str, int]:
        path = self.folder / self._ids_of(side)
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            found[_UNKNOWN] + 0  # a number, as all are
        except FileNotFoundError as fault:
            raise UserError(f"{path}: expected the ids of the pieces, found no file") from fault
        except (ValueError, TypeError, KeyError) as fault:
            raise UserError(f"{path}: damaged, or not the ids of pieces ({fault})") from fault
        return found


def segment_pretrained(
    folder: Path,
    languages: tuple[str, str],
    train: tuple[Path, Path],
    dev: tuple[Path, Path],
    out: Path,
) -> None:
    """Cut the text of a pair into the pieces of a Marian model, and write what BPE would write.

    `{src,tgt}.codes` are its SentencePiece models. Of several references of dev the first is cut.
    Raises UserError for a file that is missing, damaged or of another kind of model.
    """
    config, pieces = Config.read(folder), MarianPieces(folder)
    if config["model_type"] != "marian":
        raise UserError(
            f"{config.path}: model_type: expected marian, whose pieces can be read, found "
            f"{config['model_type']!r}"
        )
    for side, name in enumerate(SIDES):
        model = _bytes(folder / _MODELS[side])
        cutter = SentencePieces(languages[side], model, Vocabulary([]))
        counts: Counter[str] = Counter()
        for split, paths in (("train", train), ("dev", dev)):
            lines = [cutter.pieces(references(line)[0]) for line in clean_lines(paths[side])]
            write_lines(out / f"{split}.{name}", map(" ".join, lines))
            if split == "train":
                counts.update(piece for line in lines for piece in line)
        pieces.vocabulary(side, counts).save(out / VOCABULARIES[side])
        write_bytes(out / CODES[side], model)
    about = {"src_lang": languages[0], "tgt_lang": languages[1], "pretokenised": False}
    write_json(out / SEGMENTATION, about | {"unit": UNIT, "joint": config.joint})


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as fault:
        raise UserError(f"{path}: expected a SentencePiece model, found no file") from fault

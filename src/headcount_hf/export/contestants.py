"""Folders of models, each opened in the program that it is for: lines in, lines out."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from headcount.base.errors import UserError
from headcount.base.files import read_json, sha256
from headcount.base.folders import CODES, DESCRIPTION, SEGMENTATION, VOCABULARIES
from headcount.base.folders import WEIGHTS as OUR_WEIGHTS
from headcount.base.settings.decode import DecodeSettings
from headcount.data.bpe import AnySegmenter
from headcount.data.vocabulary import EOS
from headcount.deployment.export import MARK
from headcount.search.translation import OwnSearch, translate_lines
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount_hf.export.agreement import Engine
from headcount_hf.export.ctranslate2_export import POSITIONS, CTranslate2Engine
from headcount_hf.export.huggingface_engine import (
    HuggingFaceEngine,
    HuggingFaceText,
    text_of_one_language,
)
from headcount_hf.pretrained.weights_file import WEIGHTS

Lines = list[str]
Work = Callable[[Lines], Lines]
Sides = tuple[AnySegmenter, AnySegmenter]

_CTRANSLATE2 = "model.bin"


@dataclass(frozen=True)
class Contestant:
    """A model in a program."""

    folder: Path
    program: str
    heads: int | None  # that are not silent; None where nothing tells
    weights: Path
    translate: Work


def open_contestants(
    folders: list[Path], bpe: Path | None, decode: DecodeSettings
) -> tuple[list[Contestant], AnySegmenter]:
    """The folders, opened on the CPU, and the target's segmenter.

    `bpe`: the segmented pair; without it the first folder that has subwords of its own. Raises
    UserError if there is none, and for a folder of no known kind or of other subwords.
    """
    own = next((folder for folder in folders if (folder / VOCABULARIES[0]).is_file()), None)
    if bpe is None and own is None:
        raise UserError(
            f"{folders[0]}: expected {VOCABULARIES[0]} there or in another of the folders, found "
            "it nowhere; name the segmented pair with --bpe"
        )
    pair = PairFolder(bpe or own)
    sides = pair.segmenters()
    return [_open(folder, pair, sides, decode) for folder in folders], sides[1]


def _open(folder: Path, pair: PairFolder, sides: Sides, decode: DecodeSettings) -> Contestant:
    """A folder in its program, by the files that lie in it."""
    if (folder / DESCRIPTION).is_file():
        return _ours(ModelFolder(folder), pair, sides, decode)
    _check(folder, pair)
    mark = folder / MARK
    about = read_json(mark) if mark.is_file() else {}
    counts, positions = about.get("heads", {}), about.get("positions", POSITIONS)
    heads = sum(map(sum, counts.values())) if counts else None
    if (folder / _CTRANSLATE2).is_file():
        work = _by_engine(CTranslate2Engine(folder, sides, decode, positions), sides, decode)
        return Contestant(folder, "ctranslate2", heads, folder / _CTRANSLATE2, work)
    if not (folder / WEIGHTS).is_file():
        raise UserError(
            f"{folder}: expected a model, {DESCRIPTION}, {_CTRANSLATE2} or {WEIGHTS}, found none; "
            "name folders that training or scripts/export.py wrote"
        )
    if (folder / SEGMENTATION).is_file():  # subwords and ids are ours
        rows = tuple(list(range(len(side.vocabulary))) for side in sides)
        engine = HuggingFaceEngine(folder, rows, sides[1].prefix, decode, positions)
        work = _by_engine(engine, sides, decode)
    else:
        work = _spelt(text_of_one_language(folder, decode), sides)
    return Contestant(folder, "huggingface", heads, folder / WEIGHTS, work)


def _check(folder: Path, pair: PairFolder) -> None:
    """Raise UserError unless the subwords that lie beside an exported model are the pair's."""
    for name in (*CODES, *VOCABULARIES):
        own, given = folder / name, pair.path / name
        if own.is_file() and not (given.is_file() and sha256(own) == sha256(given)):
            raise UserError(
                f"{given}: expected the subwords of the model in {folder}, which are other ones; "
                "name the segmented pair that it was trained on with --bpe, and measure models of "
                "other subwords by themselves"
            )


def _ours(
    folder: ModelFolder, pair: PairFolder, sides: Sides, decode: DecodeSettings
) -> Contestant:
    folder.check(pair)
    model = folder.load()
    search = OwnSearch(model, sides, decode)

    def work(lines: Lines) -> Lines:
        return translate_lines(search, lines)[0]

    weights = folder.path / OUR_WEIGHTS
    return Contestant(folder.path, "headcount", model.grid.size, weights, work)


def _by_engine(engine: Engine, sides: Sides, decode: DecodeSettings) -> Work:
    """What an engine does with our subwords."""

    def work(lines: Lines) -> Lines:
        whole = map(sides[0].encode, lines)
        sources = [sides[0].cut_off(ids, decode.max_source) for ids in whole]
        found = engine.translate(sources)
        return [sides[1].decode(ids[:-1] if ids[-1:] == [EOS] else ids) for ids in found]

    return _on_words(work)


def _spelt(model: HuggingFaceText, sides: Sides) -> Work:
    """What a model with a tokenizer of its own does with lines, as the others read and write."""
    source, target = sides

    def work(lines: Lines) -> Lines:
        return list(map(target.spell, model.translate(list(map(source.spell, lines)))))

    return _on_words(work)


def _on_words(work: Work) -> Work:
    """Work that leaves empty lines empty."""

    def whole(lines: Lines) -> Lines:
        found = iter(work([line for line in lines if line]))
        return [next(found) if line else "" for line in lines]

    return whole

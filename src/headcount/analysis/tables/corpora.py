"""Corpora: sizes, subwords, duplicates, overlap with training text, and dropped pairs."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd

from headcount.analysis.captions import note
from headcount.base.errors import UserError
from headcount.base.files import read_json
from headcount.base.folders import SIDES
from headcount.base.settings.names import parse_pair
from headcount.data.bpe import AnySegmenter, load_segmenters
from headcount.data.lines import clean_lines, references
from headcount.data.vocabulary import UNK
from headcount.scoring.bleu import score_corpus

COLUMNS = ["pair", "split", "side", "statistic", "value"]

LEAST_HIGHEST = 99.5
"""Score of the references, cut and joined, below which a table warns."""

MOST_ODD = 0.1
"""Share of pairs with equal sides, or with spaces as in tokenised text, above which it warns."""

Statistics = dict[str, float]


def corpus(counts: list[Path], segmented: list[Path]) -> pd.DataFrame:
    """Return statistics of every split of every pair, one a row: columns of `COLUMNS`.

    Side `both`: sentences, equal sides before filters; of train the duplicates and the pairs that
    filters dropped; of other splits the overlap with training sources. Sides `src` and `tgt`:
    words, pieces and unknown pieces. Shares are 0 to 1. `highest_bleu`: see `_highest_score`.
    """
    folders = {path.parent.name: path.parent for path in segmented}
    rows = []
    for path in counts:
        pair = path.parent.name
        if pair not in folders:
            raise UserError(
                f"corpus: expected files of a segmented {pair}, found those of "
                f"{', '.join(folders) or 'no pair'}; run scripts/bpe.py"
            )
        for side, statistics in _of_split(path, folders[pair]).items():
            rows += [(pair, path.stem, side, name, value) for name, value in statistics.items()]
    return pd.DataFrame(rows, columns=COLUMNS).astype({"value": float})


def _of_split(counts: Path, bpe: Path) -> dict[str, Statistics]:
    """Return the statistics of one split by side."""
    text, split = counts.parent, counts.stem
    sides = {"both": _of_pairs(text, split, read_json(counts))}
    segmenters = load_segmenters(bpe)
    for side, segmenter in zip(SIDES, segmenters, strict=True):
        # The BPE step has cut training and dev text.
        cut = bpe if split in ("train", "dev") else None
        path = (cut or text) / f"{split}.{side}"
        sides[side] = _of_side(_pieces(path, None if cut else segmenter), segmenter)
    if split != "train":
        targets, language = list(clean_lines(text / f"{split}.tgt")), parse_pair(text.name).tgt
        sides["tgt"]["highest_bleu"] = _highest_score(targets, segmenters[1], language)
    return sides


def _of_pairs(text: Path, split: str, counts: dict) -> Statistics:
    """Return statistics of pairs of sentences."""
    both = {"sentences": counts["pairs_kept"], "equal": counts["equal"]}
    if split == "train":
        dropped = {f"dropped_{name}": count for name, count in counts["dropped"].items()}
        lost = sum(dropped.values())
        share = {"dropped_share": lost / (counts["pairs_kept"] + lost)}
        return both | {"duplicates": counts["found"]["duplicates"]} | dropped | share
    known = set(filter(None, clean_lines(text / "train.src")))
    overlap = [line in known for line in clean_lines(text / f"{split}.src")]
    return both | {"overlap": sum(overlap), "overlap_share": sum(overlap) / len(overlap)}


def _pieces(path: Path, segmenter: AnySegmenter | None) -> Iterator[list[str]]:
    """Yield the pieces of every line; of several references the first."""
    for line in clean_lines(path):
        yield segmenter.pieces(references(line)[0]) if segmenter else line.split()


def _of_side(lines: Iterable[list[str]], segmenter: AnySegmenter) -> Statistics:
    counts = pd.DataFrame(
        (
            (segmenter.word_count(line), len(line), segmenter.vocabulary.ids(line).count(UNK))
            for line in lines
        ),
        columns=["words", "pieces", "unknown"],
    )
    words, pieces, unknown = counts.sum()
    return {
        "words": words,
        "words_mean": words / len(counts),
        "words_max": counts["words"].max(),
        "pieces_per_word": pieces / words,
        "unknown_share": unknown / pieces,
    }


def _highest_score(targets: list[str], segmenter: AnySegmenter, language: str) -> float:
    """Return the score of the first references, cut and joined again, against all references.

    Errors of joining affect every translation with the same words, so no model can be known to
    score higher.
    """
    joined = [segmenter.decode(segmenter.encode(references(line)[0])) for line in targets]
    return score_corpus(joined, targets, language)[0].score


@note
def joining(frame: pd.DataFrame) -> list[str]:
    """Return a warning for every split whose references change when they are cut and joined."""
    low = frame[(frame["statistic"] == "highest_bleu") & (frame["value"] < LEAST_HIGHEST)]
    return [
        f"{row.pair}, {row.split}: the references, cut into pieces and joined again, have only "
        f"{row.value:.2f} BLEU. Every model loses about as much, so compare its BLEU with no other "
        "system. If the text is tokenised, set pretokenised: true in config/corpora.yaml."
        for row in low.itertuples()
    ]


@note
def odd_text(counts: list[Path], segmented: list[Path]) -> Iterator[str]:
    """Yield warnings for equal sides, several variants of a language, and tokenised text."""
    folders = {path.parent.name: path.parent for path in segmented}
    for path in counts:
        facts, name = read_json(path), f"{path.parent.name}, {path.stem}"
        read = facts["pairs_read"]
        if facts["equal"] > MOST_ODD * read:
            yield (
                f"{name}: {facts['equal']} of {read} pairs have the same source and target, so "
                "models learn to copy. Check the files in config/corpora.yaml."
            )
        tokenised = read_json(folders[path.parent.name] / "segmentation.json")["pretokenised"]
        for side in SIDES:
            yield from _odd_side(f"{name}.{side}", facts[side], 0 if tokenised else read)


def _odd_side(name: str, facts: dict, read: int) -> Iterator[str]:
    if len(facts["tags"]) > 1:
        tags = ", ".join(f"{tag} ({count})" for tag, count in facts["tags"].items())
        yield f"{name}: sentences of several variants: {tags}."
    if read and facts["spaced"] > MOST_ODD * read:
        yield (
            f"{name}: {facts['spaced']} lines of {read} pairs have a space before a comma or full "
            "stop. If the text is tokenised, set pretokenised: true in config/corpora.yaml."
        )

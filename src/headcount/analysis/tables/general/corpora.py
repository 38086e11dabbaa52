"""Corpora: sizes, subwords, duplicates, overlap with training text, and dropped pairs."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from headcount.analysis.captions import note
from headcount.base.errors import UserError
from headcount.base.files import read_json
from headcount.base.folders import SIDES
from headcount.base.settings.section import parse_pair
from headcount.data.bpe import AnySegmenter, load_segmenters
from headcount.data.lines import clean_lines, references
from headcount.data.vocabulary import UNK
from headcount.scoring.bleu import score_corpus

LEAST_HIGHEST = 99.5  # score of the references, cut and joined
MOST_ODD = 0.1  # share of pairs with equal sides, or with spaces as in tokenised text
_CHECK = "Check the files and `pretokenised` in config/corpora.yaml."


def corpus(counts: list[Path], segmented: list[Path]) -> pd.DataFrame:
    """Return statistics of every split of every pair, one a row: side, statistic, value."""
    folders = {path.parent.name: path.parent for path in segmented}
    rows = []
    for path in counts:
        pair, split = path.parent.name, path.stem
        if pair not in folders:
            raise UserError(f"{path}: expected a segmentation of {pair}, found none; make it first")
        sides = {"both": _of_pairs(path)}
        segmenters = load_segmenters(folders[pair])
        cut = split in ("train", "dev")  # by the BPE step
        for side, segmenter in zip(SIDES, segmenters, strict=True):
            file = (folders[pair] if cut else path.parent) / f"{split}.{side}"
            sides[side] = _of_side(file, segmenter, cut)
        if split != "train":
            targets = list(clean_lines(path.with_suffix(".tgt")))
            pieces = (segmenters[1].encode(references(line)[0]) for line in targets)
            joined = [segmenters[1].decode(line) for line in pieces]
            score = score_corpus(joined, targets, parse_pair(pair).tgt)[0].score
            sides["tgt"]["highest_bleu"] = score
        for side, values in sides.items():
            rows += [(pair, split, side, name, float(value)) for name, value in values.items()]
    return pd.DataFrame(rows, columns=["pair", "split", "side", "statistic", "value"])


def _of_pairs(counts: Path) -> dict[str, float]:
    """Return statistics of pairs of sentences of a split."""
    facts = read_json(counts)
    both = {"sentences": facts["pairs_kept"], "equal": facts["equal"]}
    if counts.stem == "train":
        dropped = {f"dropped_{name}": count for name, count in facts["dropped"].items()}
        lost = sum(dropped.values())
        share = {"dropped_share": lost / (facts["pairs_kept"] + lost)}
        return both | {"duplicates": facts["found"]["duplicates"]} | dropped | share
    lines = list(clean_lines(counts.with_suffix(".src")))
    known = set(filter(None, lines)).intersection(clean_lines(counts.parent / "train.src"))
    overlap = sum(line in known for line in lines)
    return both | {"overlap": overlap, "overlap_share": overlap / len(lines)}


def _of_side(path: Path, segmenter: AnySegmenter, cut: bool) -> dict[str, float]:
    """Return statistics of one side, of several references the first."""
    ids, lines = segmenter.vocabulary.ids, clean_lines(path)
    pieces = (line.split() if cut else segmenter.pieces(references(line)[0]) for line in lines)
    rows = ((segmenter.word_count(line), len(line), ids(line).count(UNK)) for line in pieces)
    counts = np.fromiter(rows, np.dtype((int, 3)))
    word_sum, piece_sum, unknown_sum = counts.sum(axis=0)
    return {
        "words": word_sum,
        "words_mean": word_sum / len(counts),
        "words_max": counts[:, 0].max(),
        "pieces_per_word": piece_sum / word_sum,
        "unknown_share": unknown_sum / piece_sum,
    }


@note
def joining(frame: pd.DataFrame) -> list[str]:
    """Return a warning for every split whose references change when they are cut and joined."""
    low = frame[(frame["statistic"] == "highest_bleu") & (frame["value"] < LEAST_HIGHEST)]
    text = "the references, cut into pieces and joined again, have only {value:.2f} BLEU. Every "
    text += "model loses about as much, so compare its BLEU with no other system."
    return [f"{{pair}}, {{split}}: {text} {_CHECK}".format(**row) for row in low.to_dict("records")]


@note
def odd_text(counts: list[Path], segmented: list[Path]) -> Iterator[str]:
    """Yield warnings for text with many equal sides, and for tokenised text."""
    folders = {path.parent.name: path.parent for path in segmented}
    for path in counts:
        facts, name = read_json(path), f"{path.parent.name}, {path.stem}"
        odd = {"the same source and target": facts["equal"]}
        if not read_json(folders[path.parent.name] / "segmentation.json")["pretokenised"]:
            text = "spaces before commas or full stops, as in tokenised text"
            odd |= {f"{text} ({side})": facts[side]["spaced"] for side in SIDES}
        for text, count in odd.items():
            if count > MOST_ODD * facts["pairs_read"]:
                yield f"{name}: {count} of {facts['pairs_read']} pairs have {text}. {_CHECK}"

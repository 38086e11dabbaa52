"""What a corpus is like: sizes, subwords, duplicates, overlap, and what the filters dropped."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from headcount.base.errors import UserError
from headcount.base.files import read_json
from headcount.base.folders import SIDES
from headcount.base.settings.names import parse_pair
from headcount.data.bpe import AnySegmenter, load_segmenters
from headcount.data.lines import clean_lines, references
from headcount.data.vocabulary import UNK
from headcount.findings import exhibits
from headcount.findings.results import Results
from headcount.findings.tables import Table
from headcount.scoring.bleu import score_corpus

COLUMNS = ["pair", "split", "side", "statistic", "value"]

LEAST_HIGHEST = 99.5
"""BLEU of references that are cut and joined again; below it the table warns. Differences between
models are tenths of a point."""

MOST_ODD = 0.1
"""Share of the pairs that may have equal sides, or look tokenised, before the table warns."""


class PairFolders(NamedTuple):
    """A pair, its splits, and where its text (`<split>.src`, `.tgt`, `.json`) and its BPE are."""

    pair: str
    splits: list[str]
    text: Path
    bpe: Path


_CAPTION = (
    "Sizes of the corpora, source / target. Lines of a test set that are in train too, and "
    "unknown pieces, should be few, and the highest BLEU near 100."
)
_NOTES = (
    "Words are counted after tokenising (those of an imported model's pieces begin with its sign "
    "of a space), pieces after byte-pair encoding. Dropped: pairs, by the "
    "filters for training, and their share of the pairs before. In train too: source lines that "
    "are also in the training source. Equal sides: pairs whose source and target are the same, "
    "before filters. Highest BLEU: that of the references themselves, cut into "
    "pieces and joined again.",
)


@exhibits.table("corpus", needs=("counts", "text", "segmented"))
def corpus(results: Results) -> Table:
    """Sizes of the corpora."""
    pairs = pair_folders(results.files("counts"), results.files("segmented"))
    table = corpus_table(pairs)
    warnings = (*warn_of_joining(table), *warn_of_text(pairs))
    return Table(table, summary(table), _CAPTION, _NOTES, warnings)


def pair_folders(counts: list[Path], segmented: list[Path]) -> list[PairFolders]:
    """The pairs of `<pair>/<split>.json`, in their order; `segmented` are files of `<pair>/`.

    Raises UserError for a pair without the latter.
    """
    segmentations = {path.parent.name: path.parent for path in segmented}
    splits: dict[Path, list[str]] = {}
    for path in counts:
        splits.setdefault(path.parent, []).append(path.stem)
    lacking = [text.name for text in splits if text.name not in segmentations]
    if lacking:
        raise UserError(
            f"corpus: expected files of a segmented {lacking[0]}, found those of "
            f"{', '.join(segmentations) or 'no pair'}; run scripts/bpe.py"
        )
    return [PairFolders(t.name, found, t, segmentations[t.name]) for t, found in splits.items()]


def corpus_table(pairs: list[PairFolders]) -> pd.DataFrame:
    """Statistics of every split of every pair, one a row: pair, split, side, statistic, value.

    Side is `src`, `tgt` or `both`. Statistics:

    - both: `sentences`; `equal` (pairs before filters whose sides are the same); for train
      `duplicates` and `dropped_<filter>` (pairs), and `dropped_share` (by all filters, of the pairs
      before them); elsewhere `overlap` (source lines that are in the training source too; lines
      without words do not count) and `overlap_share` (of all lines);
    - src and tgt: `words`, `words_mean` and `words_max` (a sentence), `pieces_per_word`,
      `unknown_share` (of the pieces);
    - tgt, but for train: `highest_bleu`, see `_highest_bleu`.

    Raises UserError if a folder lacks its files.
    """
    rows = []
    for folders in pairs:
        segmenters = load_segmenters(folders.bpe)
        train_sources = set(filter(None, clean_lines(folders.text / "train.src")))
        for split in folders.splits:
            found = {"both": _pair_statistics(folders.text, split, train_sources)}
            for side, segmenter in zip(SIDES, segmenters, strict=True):
                pieces = _pieces(folders, split, side, segmenter)
                found[side] = _side_statistics(pieces, segmenter)
            if split != "train":
                targets = list(clean_lines(folders.text / f"{split}.tgt"))
                language = parse_pair(folders.pair).tgt
                found["tgt"]["highest_bleu"] = _highest_bleu(targets, segmenters[1], language)
            for side, values in found.items():
                for name, value in values.items():
                    rows.append((folders.pair, split, side, name, float(value)))
    return pd.DataFrame(rows, columns=COLUMNS)


def warn_of_joining(table: pd.DataFrame) -> tuple[str, ...]:
    """A sentence for each split whose references, cut and joined, have too low a BLEU."""
    found = table[(table["statistic"] == "highest_bleu") & (table["value"] < LEAST_HIGHEST)]
    return tuple(
        f"{row.pair}, {row.split}: the references themselves, cut into pieces and joined again, "
        f"have {row.value:.2f} BLEU, for their spaces beside punctuation are not found again (text "
        "that is tokenised already needs pretokenised: true in config/corpora.yaml), "
        "pieces are unknown, or an imported model's pieces write letters otherwise. BLEU of every "
        "model is lower by about that share, so compare it with no other system's. Spaces alone "
        "count neither in chrF nor in BLEU of own words."
        for row in found.itertuples(index=False)
    )


def warn_of_text(pairs: list[PairFolders]) -> Iterator[str]:
    """Yield a sentence for what reading counted that texts seldom have by intention."""
    for pair, splits, text, bpe in pairs:
        tokenised = read_json(bpe / "segmentation.json")["pretokenised"]
        for split in splits:
            counts = read_json(text / f"{split}.json")
            read, equal = counts["pairs_read"], counts["equal"]
            if equal > MOST_ODD * read:
                yield (
                    f"{pair}, {split}: {equal} of {read} pairs have the same source and target, so "
                    "that models learn to copy; check the files in config/corpora.yaml"
                )
            for side in SIDES:
                tags = counts[side]["tags"]
                if len(tags) > 1:
                    listed = ", ".join(f"{tag} ({count})" for tag, count in tags.items())
                    yield f"{pair}, {split}.{side}: sentences of several variants: {listed}"
                spaced = counts[side]["spaced"]
                if not tokenised and spaced > MOST_ODD * read:
                    yield (
                        f"{pair}, {split}.{side}: {spaced} lines of {read} pairs have a space "
                        "before a comma or full stop, as tokenised text has; if it is tokenised, "
                        "set pretokenised: true for its corpus in config/corpora.yaml"
                    )


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row for each split; `a / b` is source / target."""
    keys = ["pair", "split"]
    wide = table.pivot(index=keys, columns=["statistic", "side"], values="value")
    wide = wide.loc[table[keys].drop_duplicates().itertuples(index=False)]
    share = wide.pop(("dropped_share", "both"))
    dropped = [name for name in wide.columns if name[0].startswith("dropped_")]
    columns = {
        "sentences": _cells(wide["sentences", "both"], "{:.0f}"),
        "dropped": _cells(wide[dropped].sum(axis=1, min_count=1), "{:.0f}"),
        "share dropped": _cells(share * 100, "{:.2f} %"),
        "duplicates": _cells(wide["duplicates", "both"], "{:.0f}"),
        "equal sides": _cells(wide["equal", "both"], "{:.0f}"),
        "in train too": _cells(wide["overlap", "both"], "{:.0f}"),
        "words": _sides(wide["words"], "{:.0f}"),
        "words a sentence": _sides(wide["words_mean"], "{:.1f}"),
        "longest": _sides(wide["words_max"], "{:.0f}"),
        "pieces a word": _sides(wide["pieces_per_word"], "{:.2f}"),
        "unknown pieces": _sides(wide["unknown_share"] * 100, "{:.2f} %"),
        "highest BLEU": _cells(wide["highest_bleu", "tgt"], "{:.2f}"),
    }
    return pd.DataFrame(columns).reset_index()


def _cells(values: pd.Series, form: str) -> pd.Series:
    """Values as text; a dash where a statistic does not apply."""
    return values.map(lambda value: "–" if pd.isna(value) else form.format(value))


def _sides(values: pd.DataFrame, form: str) -> pd.Series:
    return _cells(values["src"], form) + " / " + _cells(values["tgt"], form)


def _pair_statistics(text: Path, split: str, train_sources: set[str]) -> dict[str, float]:
    """What is told of both sides together."""
    counts = read_json(text / f"{split}.json")
    found = {"sentences": counts["pairs_kept"], "equal": counts["equal"]}
    if split == "train":
        dropped = {f"dropped_{name}": count for name, count in counts["dropped"].items()}
        lost = sum(dropped.values())
        dropped["dropped_share"] = lost / (counts["pairs_kept"] + lost)
        return found | {"duplicates": counts["found"]["duplicates"]} | dropped
    lines = list(clean_lines(text / f"{split}.src"))
    shared = sum(line in train_sources for line in lines)
    return found | {"overlap": shared, "overlap_share": shared / len(lines)}


def _pieces(
    folders: PairFolders, split: str, side: str, segmenter: AnySegmenter
) -> Iterable[list[str]]:
    """Pieces of every line, of several references of the first.

    Training and dev text were cut by the BPE step.
    """
    if split in ("train", "dev"):
        return (line.split() for line in clean_lines(folders.bpe / f"{split}.{side}"))
    lines = clean_lines(folders.text / f"{split}.{side}")
    return (segmenter.pieces(references(line)[0]) for line in lines)


def _side_statistics(lines: Iterable[list[str]], segmenter: AnySegmenter) -> dict[str, float]:
    words, pieces, unknown = [], 0, 0
    for line in lines:
        words.append(segmenter.word_count(line))
        pieces += len(line)
        unknown += segmenter.vocabulary.ids(line).count(UNK)
    return {
        "words": sum(words),
        "words_mean": sum(words) / len(words),
        "words_max": max(words),
        "pieces_per_word": pieces / sum(words),
        "unknown_share": unknown / pieces,
    }


def _highest_bleu(targets: list[str], segmenter: AnySegmenter, language: str) -> float:
    """BLEU, 0–100, of the first references, cut into pieces and joined again, against all.

    No translation can be known to have more: what joining gets wrong of the reference, it gets
    wrong of every translation that has the same words.
    """
    joined = [segmenter.decode(segmenter.encode(references(line)[0])) for line in targets]
    return score_corpus(joined, targets, language)[0].score

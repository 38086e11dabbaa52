"""How much text an experiment has: from what is made already, else from what is said of it."""

import json
from itertools import islice
from pathlib import Path

from plan import Plan

from headcount.base.errors import UserError
from headcount.base.folders import ENTAILMENT_PARTS
from headcount.base.settings.corpora import ENTAILMENT
from headcount.base.settings.names import parse_pair
from headcount.estimate.rates import Sentences

ASSUMED_LENGTH = 28
"""Subwords of a sentence, where nothing is known, as in news."""
_SAMPLE = 1000  # sentences


def pairs_of(plan: Plan) -> dict[str, dict[str, int]]:
    """Sentence pairs by pair and split. Raises UserError where nothing says how many there are."""
    return {
        pair: {split: _pairs(plan, pair, split) for split in plan.splits(pair)}
        for pair in plan.settings.pairs
    }


def labelled_of(plan: Plan) -> dict[str, int]:
    """Labelled pairs of the classifiers' corpus by part. Raises UserError as `pairs_of` does."""
    (corpus,), settings = plan.classifiers.corpora, plan.settings.classifiers
    counts = Path(plan.layout.text(corpus), "parts.json")
    if counts.exists():
        return json.loads(counts.read_text())
    every, *tests = (_said(plan, corpus, split, counts) for split in ENTAILMENT)
    left = every - settings.dev_pairs
    train = min(settings.train_pairs or left, left)
    return dict(zip(ENTAILMENT_PARTS, (train, settings.dev_pairs, *tests), strict=True))


def length_of(plan: Plan, corpus: str) -> tuple[int, str]:
    """Subwords of a sentence of a corpus, and in words where that is from."""
    known = plan.corpora[corpus].length
    if known:
        return known, "of config/corpora.yaml"
    return ASSUMED_LENGTH, "assumed: nothing is known of this text"


def sentences_of(plan: Plan) -> tuple[Sentences, str]:
    """Lengths of the first pair's sentences and its subwords, and in words where they are from."""
    pair = plan.settings.pairs[0]
    folder = Path(plan.layout.bpe(pair))
    if (folder / "segmentation.json").exists():
        src, tgt = (_mean_length(folder / f"dev.{side}") for side in ("src", "tgt"))
        return Sentences(src, tgt, len(_lines(folder / "tgt.vocab")) + 4), f"read in {folder}"
    length, source = length_of(plan, parse_pair(pair).corpus)
    return Sentences(length, length, plan.settings.assumed_pieces + 4), source


def _pairs(plan: Plan, pair: str, split: str) -> int:
    counts = Path(plan.layout.text(pair), f"{split}.json")
    if counts.exists():
        return json.loads(counts.read_text())["pairs_kept"]
    return _said(plan, parse_pair(pair).corpus, split, counts.with_suffix(".src"))


def _said(plan: Plan, name: str, split: str, made: Path) -> int:
    """What a corpus's entry says; `made`: a file to ask for, from which it will be known."""
    corpus = plan.corpora[name]
    known = dict(corpus.pairs)
    if corpus.settings:
        known |= {
            each: getattr(corpus.settings, f"{each}_pairs") for each in ("train", "dev", "test")
        }
    known |= {each: rule.pairs for each, rule in (corpus.draw or {}).items()}
    if split not in known:
        raise UserError(
            f"config/corpora.yaml: {name} does not say how many pairs {split} has; name it under "
            f"pairs, as in `pairs: {{{split}: 1000}}`, or make the text first: snakemake --cores "
            f"all --config experiment={plan.name} -- {made}"
        )
    return known[split]


def _mean_length(path: Path) -> int:
    lines = _lines(path, _SAMPLE)
    return max(1, round(sum(len(line.split()) for line in lines) / max(1, len(lines))))


def _lines(path: Path, most: int | None = None) -> list[str]:
    with path.open(encoding="utf-8") as file:
        return list(islice(file, most))

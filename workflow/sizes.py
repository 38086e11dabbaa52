"""How much text an experiment has: from what is made already, else from what is said of it."""

import json
from itertools import islice
from pathlib import Path

from plan import Plan

from headcount.base.errors import UserError
from headcount.base.settings.names import parse_pair
from headcount.estimate.rates import Sentences

ASSUMED_LENGTH = 28
"""Subwords of a sentence, where nothing is known: of news, by some 30,000 subwords."""
_SAMPLE = 1000  # sentences


def pairs_of(plan: Plan) -> dict[str, dict[str, int]]:
    """Sentence pairs by pair and split. Raises UserError where nothing says how many there are."""
    return {
        pair: {split: _pairs(plan, pair, split) for split in plan.splits(pair)}
        for pair in plan.settings.pairs
    }


def sentences_of(plan: Plan) -> tuple[Sentences, str]:
    """Lengths of the first pair's sentences and its subwords, and in words where they are from."""
    pair, bpe = plan.settings.pairs[0], plan.settings.bpe
    folder = Path(plan.layout.bpe(pair))
    if (folder / "segmentation.json").exists():
        src, tgt = (_mean_length(folder / f"dev.{side}") for side in ("src", "tgt"))
        return Sentences(src, tgt, len(_lines(folder / "tgt.vocab")) + 4), f"read in {folder}"
    known = plan.corpora[parse_pair(pair).corpus].length
    length = known or ASSUMED_LENGTH
    source = "of config/corpora.yaml" if known else "assumed: nothing is known of this text"
    return Sentences(length, length, bpe.merges + 300), source


def _pairs(plan: Plan, pair: str, split: str) -> int:
    counts = Path(plan.layout.text(pair), f"{split}.json")
    if counts.exists():
        return json.loads(counts.read_text())["pairs_kept"]
    name = parse_pair(pair).corpus
    corpus = plan.corpora[name]
    known = dict(corpus.pairs)
    if corpus.settings:
        known |= {
            each: getattr(corpus.settings, f"{each}_pairs") for each in ("train", "dev", "test")
        }
    if split not in known:
        raise UserError(
            f"config/corpora.yaml: {name} does not say how many pairs {split} has; name it under "
            f"pairs, as in `pairs: {{{split}: 1000}}`, or make the text first: snakemake --cores "
            f"all {counts.with_suffix('.src')}"
        )
    return known[split]


def _mean_length(path: Path) -> int:
    lines = _lines(path, _SAMPLE)
    return max(1, round(sum(len(line.split()) for line in lines) / max(1, len(lines))))


def _lines(path: Path, most: int | None = None) -> list[str]:
    with path.open(encoding="utf-8") as file:
        return list(islice(file, most))

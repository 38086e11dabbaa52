"""A small metric of translations, as an outside program: letter pairs of both texts, F1."""

import csv
import sys
from collections import Counter

COMMAND = f"{sys.executable} {__file__} {{translations}} {{references}} {{scores}}"


def overlap(one: str, other: str) -> float:
    pairs = [Counter(zip(text, text[1:], strict=False)) for text in (one, other)]
    both, either = (pairs[0] & pairs[1]).total(), pairs[0].total() + pairs[1].total()
    return 2 * both / either if either else 1.0


def main(translations: str, references: str, scores: str) -> None:
    with open(translations) as ours, open(references) as theirs, open(scores, "w") as out:
        writer = csv.writer(out)
        writer.writerow(["sentence", "score"])
        lines = zip(ours.read().splitlines(), theirs.read().splitlines(), strict=True)
        writer.writerows((n, overlap(*pair)) for n, pair in enumerate(lines))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Voita's Figure 5: what the candidate for the rare-word head looks at, in each pair's baseline."""

from itertools import chain, pairwise, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from headcount.base.addresses import Head
from headcount.base.files import read_json
from headcount.findings import exhibits
from headcount.findings.figures import Drawn, note
from headcount.findings.results import BASE, KEYS, Results, run_of
from headcount.findings.voita_roles.attention_maps import draw_attention
from headcount.findings.voita_roles.measured import describe_roles

COLUMNS = [*KEYS, "head", "sentence", "query", "place", "key", "weight"]
MOST = 3  # panels, as in the paper


class RareMap(NamedTuple):
    """One sentence as one model's candidate sees it."""

    run: tuple[str, str, int]
    head: Head
    sentence: int  # of that model, from 1
    found: dict[str, Any]


@exhibits.figure("voita_fig5", needs=("roles", "maps"), uses=("pruned_heads",))
def fig5(results: Results) -> Drawn:
    """Figure 5: attention to rare words."""
    chosen = choose_maps(results.files("maps"))
    caption = (
        "Attention of the candidate for the rare-word head, the head of the first encoder layer "
        "with the largest share at the two rarest subwords, on the first sentences of dev that are "
        "short; queries down, keys across. Whether it is a rare-word head stands in voita_roles. "
        "The paper's Figure 5 shows one sentence for each of three pairs. "
        f"{describe_roles(results)}"
    )
    return Drawn(draw_maps(chosen), map_weights(chosen), caption)


def choose_maps(files: list[Path]) -> list[RareMap]:
    """Up to three maps: the first sentence of each pair, then the second ones, and so on.

    `files` are maps.json; of each pair the first baseline counts, or the first model without one.
    """
    by_pair: dict[str, Path] = {}
    for path in sorted(files, key=lambda path: run_of(path)[1] != BASE):
        by_pair.setdefault(run_of(path)[0], path)
    return list(filter(None, chain(*zip_longest(*map(_read, by_pair.values())))))[:MOST]


def draw_maps(chosen: list[RareMap]) -> Figure:
    """The maps abreast, each under its pair and head where these are new."""
    if not chosen:
        return note("No sentence of dev is short enough.")
    titles = [f"{each.run[0]}\n{each.head.label()}" for each in chosen]
    new = [title if title != before else "" for before, title in pairwise(["", *titles])]
    return draw_attention([each.found for each in chosen], new)


def map_weights(chosen: list[RareMap]) -> pd.DataFrame:
    """A weight a row: columns of `COLUMNS`; sentence and place of the key count from 1."""
    rows = [
        (*each.run, each.head.name(), each.sentence, query, place, key, weight)
        for each in chosen
        for query, weights in zip(each.found["queries"], each.found["weights"], strict=True)
        for place, (key, weight) in enumerate(zip(each.found["keys"], weights, strict=True), 1)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def _read(path: Path) -> list[RareMap]:
    file = read_json(path)
    return [
        RareMap(run_of(path), Head(**file["head"]), number, found)
        for number, found in enumerate(file["maps"], start=1)
    ]

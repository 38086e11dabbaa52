"""Voita's Figure 5: what the candidate for the rare-word head looks at, in each pair's baseline."""

from itertools import chain, pairwise, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from headcount.base.addresses import Head
from headcount.findings import exhibits
from headcount.findings.figures import Drawn, note
from headcount.findings.results import BASE, HEAD, KEYS, Results, gather, run_of
from headcount.findings.voita_roles.attention_maps import draw_attention, read_maps
from headcount.findings.voita_roles.labels import VALUES
from headcount.findings.voita_roles.measured import describe_roles

COLUMNS = [*KEYS, "head", "sentence", "query", "place", "key", "weight"]
MOST = 3  # panels, as in the paper


class RareMap(NamedTuple):
    """One sentence as one model's candidate sees it."""

    run: tuple[str, str, int]
    head: Head
    sentence: int  # of that model, from 1
    found: dict[str, Any]


@exhibits.figure("voita_fig5", needs=("roles", "sentence_maps"), uses=("pruned_heads",))
def fig5(results: Results) -> Drawn:
    """Figure 5: attention to rare words."""
    chosen = choose_maps(results.files("sentence_maps"), results.files("attention"))
    return Drawn(
        draw_maps(chosen),
        map_weights(chosen),
        "Attention of the candidate for the rare-word head on the first sentences of dev that are "
        "short; queries down, keys across. Whether it is a rare-word head stands in voita_roles.",
        (
            "The candidate: the head of the first encoder layer with the largest share at the two "
            "rarest subwords.",
            "The paper's Figure 5 shows one sentence for each of three pairs.",
            *describe_roles(results),
        ),
    )


def choose_maps(files: list[Path], attention: list[Path]) -> list[RareMap]:
    """Up to three maps: the first sentence of each pair, then the second ones, and so on.

    `files` are sentences.jsonl, `attention` the attention.csv of the same models. Of each pair the
    first baseline counts, or the first model without one.
    """
    candidates = rare_candidates(attention)
    by_pair: dict[str, Path] = {}
    for path in sorted(files, key=lambda path: run_of(path)[1] != BASE):
        if run_of(path) in candidates:
            by_pair.setdefault(run_of(path)[0], path)
    found = [_read(path, candidates[run_of(path)]) for path in by_pair.values()]
    return list(filter(None, chain(*zip_longest(*found))))[:MOST]


def rare_candidates(attention: list[Path]) -> dict[tuple[str, str, int], Head]:
    """By pair, run and seed the head of the first encoder layer with the largest share.

    Of the two rarest subwords, that is. A model without any sentence to measure it on has none.
    """
    rows = gather(attention, VALUES)
    first = (rows["statistic"] == "rare_two_rarest") & (rows["layer"] == 0)
    largest = rows[first].sort_values("value", ascending=False, kind="stable")
    chosen = largest.drop_duplicates(KEYS)
    return {tuple(row[:3]): Head(*row[3:]) for row in chosen[[*KEYS, *HEAD]].to_numpy().tolist()}


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


def _read(path: Path, head: Head) -> list[RareMap]:
    numbered = enumerate(read_maps(path, head), start=1)
    return [RareMap(run_of(path), head, number, found) for number, found in numbered]

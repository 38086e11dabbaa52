"""Heads that silver links, which an aligner predicts, choose in place of gold links."""

from pathlib import Path

import pandas as pd

from headcount.analysis.frames import HEAD, RUN, grouped
from headcount.analysis.stats import correlate
from headcount.data.word_links.silver import error_rate


def silver_agreement(
    alignment: pd.DataFrame, silver_alignment: pd.DataFrame, both_links: list[Path]
) -> pd.DataFrame:
    """Return the heads that each kind of links chooses, and error rates, for every run."""
    paths = zip(both_links[::2], both_links[1::2], strict=True)
    rates = {gold.parts[-3]: error_rate(silver, gold) for gold, silver in paths}
    heads = alignment.merge(silver_alignment, on=[*RUN, *HEAD, "system", "step", "words"])
    heads = heads.query("system == 'head' and step == 'output' and words == 'content'")
    rows = []
    for run, own in grouped(heads, RUN):
        names = own.agg("dec_enc.{0[layer]:.0f}.{0[head]:.0f}".format, axis="columns")
        best = [own.nsmallest(4, rank).index for rank in ("rank_x", "rank_y")]
        cells = [value for side in best for value in (names[side[0]], own["aer_x"][side[0]])]
        cells += [len(best[0].intersection(best[1])), rates[run[0]]]
        rows.append((*run, *cells, *correlate(own["aer_x"], own["aer_y"], ranks=True)))
    columns = [*RUN, "gold_head", "aer", "silver_head", "silver_head_aer", "shared", "silver_aer"]
    return pd.DataFrame(rows, columns=[*columns, "spearman", "low", "high", "p"])

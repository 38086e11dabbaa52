"""Word alignment by cross-attention, and its relation to other measures of heads."""

import numpy as np
import pandas as pd

from headcount.analysis import measures as of_heads
from headcount.analysis.captions import note
from headcount.analysis.frames import HEAD, RUN, Data, FrameOf
from headcount.analysis.stats import correlate, paired_t

COLUMNS = [*RUN, "links", "step", "words", "system", "layer", "head", "sentences", "aer", "low"]
COLUMNS += ["high", "precision", "recall"]
BEST = 4  # heads that are compared with other heads of equal importance
FEWEST = 5  # heads of a correlation
NEAR = 0.1  # AER above that of the best head
_KINDS = {"gold": "given with the corpus", "silver": "found by the aligner eflomal"}
_KINDS |= {"given": "from a file"}


def alignment(alignment: pd.DataFrame, pruned_alignment: pd.DataFrame) -> pd.DataFrame:
    """Return error rates of heads, means of heads and the diagonal, for trained and pruned runs."""
    filled = [rows for rows in (alignment, pruned_alignment) if len(rows)]
    rows = pd.concat(filled, ignore_index=True)
    means = "mean of " + rows["k"].astype("Int64").astype("str")
    return rows.assign(system=rows["system"].where(rows["k"].isna(), means))[COLUMNS]


@note
def kinds_of_links(data: Data) -> str:
    """Return a sentence that says whether links are gold or silver."""
    rows = pd.concat([data.load("alignment"), data.load("pruned_alignment")])
    kinds = [f"{kind}, {_KINDS[kind]}" for kind in rows["links"].unique()]
    return f"Word links are {'; '.join(kinds)}."


def alignment_uses(
    measures: FrameOf[of_heads.all_measures], alignment: FrameOf[alignment]
) -> pd.DataFrame:
    """Return how alignment of the cross-attention heads goes with other measures, by run."""
    table = measures.pivot_table("value", [*RUN, *HEAD], "measure", sort=False)
    table = table.reindex(columns=table.columns.union(["alignment"])).astype(float)
    links = alignment.groupby(RUN)["links"].first()
    rows = []
    for run, heads in table.dropna(subset="alignment").groupby(RUN, sort=False):
        near = float((heads["alignment"] >= heads["alignment"].max() - NEAR).mean())
        rows.append((*run, links[run], "near the best", len(heads), near, *[np.nan] * 3))
        for name in filter(heads.__contains__, ("importance", "survival", "subset_survival")):
            both = heads[["alignment", name]].dropna()
            if len(both) >= FEWEST:
                correlation = correlate(*both.to_numpy().T, ranks=True)
                rows.append((*run, links[run], name, len(both), *correlation))
        rows += [(*run, links[run], *lost) for lost in _losses(table.loc[run], heads.loc[run])]
    columns = [*RUN, "links", "question", "heads", "value", "low", "high", "p"]
    return pd.DataFrame(rows, columns=columns)


def _losses(model: pd.DataFrame, heads: pd.DataFrame) -> list[tuple]:
    """Return the losses without the best aligners, less those without heads as important."""
    best = heads["alignment"].nlargest(BEST).index
    rows = []
    for name in filter(model.__contains__, ("bleu_lost", "loss_rise")):
        known = model[["importance", name]].dropna()
        ours, others = known[known.index.isin(best)], known[~known.index.isin(best)]
        apart = np.abs(ours["importance"].to_numpy()[:, None] - others["importance"].to_numpy())
        if apart.size:
            more = ours[name].to_numpy() - others[name].to_numpy()[apart.argmin(1)]
            rows.append((name, len(ours), float(more.mean()), *paired_t(more)))
    return rows

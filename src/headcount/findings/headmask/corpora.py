"""HeadMask's Table 1: the data sets as used, beside the paper's."""

from pathlib import Path

import pandas as pd

from headcount.base.files import read_json
from headcount.findings import exhibits
from headcount.findings.published import headmask
from headcount.findings.results import Results
from headcount.findings.tables import Table

COLUMNS = ["pair", "split", "role", "sentences", "source"]

CAPTION = (
    "The data sets as used: sentence pairs after cleaning, and for training after filtering. Rows "
    f"whose source is paper are those of {headmask.source()}: rounded, and without the sizes of "
    "dev and test sets."
)


@exhibits.table("headmask_table1", "Table 1: data sets", needs=("counts",))
def table1(results: Results) -> Table:
    """Sizes of our data sets and of the paper's."""
    sizes = corpora_table(results.files("counts"))
    return Table(sizes, corpora_summary(sizes), CAPTION)


def corpora_table(counts: list[Path]) -> pd.DataFrame:
    """One split a row, ours first: columns of `COLUMNS`; sentences are empty where unknown.

    `counts` are the `…/<pair>/<split>.json` that lie beside the cleaned text. Role is train, dev
    or test; source is ours or paper.
    """
    ours = [
        (path.parent.name, path.stem, _role(path.stem), read_json(path)["pairs_kept"], "ours")
        for path in counts
    ]
    theirs = []
    for row in headmask.table(1).itertuples():
        theirs.append((row.pair, row.split, "train", int(row.value), "paper"))
        theirs += [(row.pair, split, "dev", "", "paper") for split in row.dev.split()]
        theirs += [(row.pair, split, "test", "", "paper") for split in row.test.split()]
    return pd.DataFrame(ours + theirs, columns=COLUMNS)


def corpora_summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row for each pair."""
    rows = []
    for (pair, source), splits in table.groupby(["pair", "source"], sort=False):
        row = {"pair": pair}
        for role in ("train", "dev", "test"):
            of_role = splits[splits["role"] == role]
            named = role == "test" or source == "paper"
            cells = [_cell(split, named) for split in of_role.itertuples()]
            row[role] = ", ".join(cells)
        rows.append(row | {"source": source})
    return pd.DataFrame(rows)


def _role(split: str) -> str:
    return split if split in ("train", "dev") else "test"


def _cell(split, named: bool) -> str:
    """Size of a split, after its name where that says something."""
    size = f"{split.sentences:,}" if split.sentences != "" else ""
    return f"{split.split} {size}".strip() if named and split.split != "train" else size

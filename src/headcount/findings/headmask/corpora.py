"""HeadMask's Table 1: the data sets as used, beside the paper's."""

import pandas as pd

from headcount.base.files import read_json
from headcount.findings import exhibits
from headcount.findings.published import headmask
from headcount.findings.results import Results
from headcount.findings.tables import Table

COLUMNS = ["pair", "split", "role", "sentences", "source"]

CAPTION = "The data sets as used: sentence pairs after cleaning, and for training after filtering."
NOTES = (
    f"Rows whose source is paper are those of {headmask.SOURCE}: rounded, and without the sizes "
    "of dev and test sets.",
)


@exhibits.table("headmask_table1", needs=("counts",), question="training")
def table1(results: Results) -> Table:
    """Table 1: data sets.

    One split a row, ours first: columns of `COLUMNS`; sentences are empty where unknown.

    Role is train, dev or test; source is ours or paper.
    """
    rows = []
    for path in results.files("counts"):
        role = path.stem if path.stem in ("train", "dev") else "test"
        rows.append((path.parent.name, path.stem, role, read_json(path)["pairs_kept"], "ours"))
    for row in headmask.table(1).itertuples():
        rows.append((row.pair, row.split, "train", int(row.value), "paper"))
        rows += [(row.pair, split, "dev", "", "paper") for split in row.dev.split()]
        rows += [(row.pair, split, "test", "", "paper") for split in row.test.split()]
    sizes = pd.DataFrame(rows, columns=COLUMNS)
    return Table(sizes, _by_pair(sizes), CAPTION, NOTES)


def _by_pair(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row for each pair."""
    rows = []
    for (pair, source), splits in table.groupby(["pair", "source"], sort=False):
        cells = {role: [] for role in ("train", "dev", "test")}
        for split in splits.itertuples():
            size = f"{split.sentences:,}" if split.sentences != "" else ""
            # A name where it says something.
            named = split.role == "test" or (split.role == "dev" and source == "paper")
            cells[split.role].append(f"{split.split} {size}".strip() if named else size)
        shown = {role: ", ".join(found) for role, found in cells.items()}
        rows.append({"pair": pair, **shown, "source": source})
    return pd.DataFrame(rows)

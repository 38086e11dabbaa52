"""Point 1 on fresh seeds: whether the layers that were found before foretell locked heads."""

from typing import Any

import numpy as np
import pandas as pd

from headcount.findings.claims.verdicts import HOLDS, UNDECIDED
from headcount.findings.report.study.collapsed import collapsed_words
from headcount.findings.report.study.foretelling import foretelling
from headcount.findings.report.study.intervals import SMALL, listed
from headcount.findings.report.study.kept import Kept
from headcount.findings.report.study.locking import locked_rows
from headcount.findings.significance import holm

EXPERIMENT = "collapse_fresh"


def fresh(kept: Kept) -> dict[str, Any]:
    """What the page says of trainings whose seeds no explanation was found on.

    Nothing while no tables are kept.
    """
    if not kept.begun(EXPERIMENT):
        return {}
    table = kept.table(EXPERIMENT, "headmask_locked")
    over = table[table["seed"].isna() & (table["held"] == 0)]
    foretold = foretelling(kept, EXPERIMENT, over["run"].tolist())
    trained = table.dropna(subset="seed")
    return {
        "experiments": [EXPERIMENT],
        "trainings": len(trained),
        "seeds": ", ".join(map(str, sorted(trained["seed"].astype(int).unique()))),
        "rows": locked_rows(kept, EXPERIMENT),
        "foretold": foretold,
        "short": foretold.get("short", _place(over)),
        "answer": " ".join(
            filter(None, [_place(over), foretold.get("answer"), collapsed_words(kept, EXPERIMENT)])
        ),
    }


def _place(over: pd.DataFrame) -> str:
    """Whether some run locks in more heads of the first self-attention than chance gives.

    `over` has a run over its seeds a row. P is corrected for the number of runs.
    """
    known = over.dropna(subset="place_p")
    corrected = holm(known["place_p"].to_numpy()) if len(known) else np.ones(0)
    found = known[corrected < SMALL]["run"]
    verdict = f"{HOLDS} of {listed(found)}" if len(found) else UNDECIDED
    return (
        "That more heads of the decoder's first self-attention are locked in than chance gives "
        f"(p < {SMALL} after correction for {len(known)} runs): {verdict}."
    )

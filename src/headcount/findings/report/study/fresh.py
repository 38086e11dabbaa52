"""Point 1 on fresh seeds: whether the layers that were found before foretell locked heads."""

from typing import Any

from headcount.findings.report.study.collapsed import collapsed_words, failed_words
from headcount.findings.report.study.foretelling import foretelling
from headcount.findings.report.study.kept import Kept
from headcount.findings.report.study.locking import locked_rows, place_words

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
    told = [place_words(over), foretold.get("short")]
    answer = [told[0], *foretold.get("answer", [])]
    trained = table.dropna(subset="seed")
    return {
        "experiments": [EXPERIMENT],
        "trainings": len(trained),
        "seeds": ", ".join(map(str, sorted(trained["seed"].astype(int).unique()))),
        "rows": locked_rows(kept, EXPERIMENT),
        "foretold": foretold,
        "short": " ".join(filter(None, [*told, failed_words(kept, EXPERIMENT)])),
        "answer": list(filter(None, [*answer, collapsed_words(kept, EXPERIMENT)])),
    }

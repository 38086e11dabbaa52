"""Tables of word alignment, and what alignment goes with, from small frames."""

import pandas as pd
import pytest

from headcount.analysis.frames import HEAD, RUN, Data
from headcount.analysis.measures import aligned
from headcount.analysis.tables.general.alignment import (
    COLUMNS,
    alignment,
    alignment_uses,
    kinds_of_links,
)
from headcount.analysis.writer import text

BASE, PRUNED = ("p", "baseline", 1), ("p", "gates-all-l0.3", 1)
NONE = float("nan")


def measured(run=BASE, links: str = "gold", step="output", **aer: float) -> pd.DataFrame:
    """Return rows of alignment.csv: content words of cross-attention heads `h<number>`."""
    rows = [
        (*run, links, step, "content", "head", "dec_enc", 1, int(name[1:]), NONE, 9, rate, 1)
        for name, rate in aer.items()
    ]
    rows.append((*run, links, step, "content", "mean", "dec_enc", NONE, NONE, 2, 9, 0.4, NONE))
    names = ["links", "step", "words", "system", *HEAD, "k", "sentences", "aer", "rank"]
    frame = pd.DataFrame(rows, columns=[*RUN, *names])
    return frame.assign(low=0.1, high=0.6, precision=0.5, recall=0.5)


def test_the_table_names_means_by_their_number_and_has_pruned_runs() -> None:
    table = alignment(measured(h0=0.2), measured(PRUNED, h3=0.3))
    assert list(table) == COLUMNS
    assert table[["run", "system", "head", "aer"]].to_numpy().tolist()[::2] == [
        ["baseline", "head", 0, 0.2], ["gates-all-l0.3", "head", 3, 0.3],
    ]  # fmt: skip
    assert table["system"].tolist() == ["head", "mean of 2"] * 2


def test_captions_say_gold_or_silver() -> None:
    data = Data({}, {})
    data._results = {"alignment": measured(links="silver"), "pruned_alignment": measured()[:0]}
    assert kinds_of_links(data).startswith("Word links are silver, found by")
    data._results["pruned_alignment"] = measured(PRUNED)
    assert "silver" in kinds_of_links(data) and "gold" in kinds_of_links(data)


def test_the_measure_is_of_heads_at_the_output_step() -> None:
    rows = pd.concat([measured(h0=0.25, h1=NONE), measured(step="input", h0=0.9)])
    found = aligned(rows, measured(PRUNED, h0=0.5))
    assert found[["run", "head", "value"]].to_numpy().tolist() == [
        ["baseline", 0, 0.75], ["gates-all-l0.3", 0, 0.5],
    ]  # fmt: skip


def values(measure: str, kind: str, *numbers: float) -> pd.DataFrame:
    rows = [(*BASE, kind, 1, head, measure, number) for head, number in enumerate(numbers)]
    return pd.DataFrame(rows, columns=[*RUN, *HEAD, "measure", "value"])


def test_uses_compare_aligners_with_heads_as_important() -> None:
    parts = [
        values("alignment", "dec_enc", 0.8, 0.75, 0.5, 0.4, 0.3, 0.1),
        values("importance", "dec_enc", 6, 5, 4, 3, 1, 2),
        values("importance", "enc_self", 6.1, 4.4, 2.9),
        values("survival", "dec_enc", 1, 1, 1, 1, 0, 0),
        values("bleu_lost", "dec_enc", 9, 7, 5, 3, 0, 0),
        values("bleu_lost", "enc_self", 2, 1, 1),
    ]
    table = alignment_uses(pd.concat(parts), alignment(measured(h0=0.2), measured()[:0]))
    found = table.set_index("question")
    assert (table["links"] == "gold").all()
    assert found.loc["near the best", ["heads", "value"]].tolist() == [6, pytest.approx(2 / 6)]
    # Ranks differ by 1 in two heads of six: 1 - 6 * 2 / (6 * 35).
    assert found.loc["importance", "value"] == pytest.approx(1 - 12 / 210)
    assert found.loc["importance", "low"] < found.loc["importance", "value"] <= 1
    # Four aligners. The nearest heads have importance 6.1, 4.4 (twice) and 2.9.
    lost = found.loc["bleu_lost"]
    assert (lost["heads"], lost["value"]) == (4, pytest.approx((7 + 6 + 4 + 2) / 4))
    # Mean 4.75, deviations 2.25, 1.25, -0.75, -2.75: standard error 2.217 / 2, t of 3 is 3.182.
    assert lost["low"] == pytest.approx(4.75 - 3.1824 * 2.2174 / 2, abs=1e-3)
    assert set(found.index) == {"near the best", "importance", "survival", "bleu_lost"}


def test_runs_without_links_have_no_row() -> None:
    rows = values("importance", "dec_enc", 1, 2, 3)
    table = alignment_uses(rows, alignment(measured(PRUNED, h0=0.2), measured()[:0]))
    assert table.empty


def test_rates_of_layers_have_two_digits_each() -> None:
    assert text(pd.Series([0.9204, 0.22, NONE]), repeat=True, digits=2) == "0.92, 0.22"

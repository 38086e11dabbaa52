"""The result pages and the README print the numbers of summary.csv and no other intervals."""

import re
import sys

import pandas as pd
import pytest
from project_copy import ROOT

RESULTS = ROOT / "docs/results"
_INTERVAL = re.compile(r"[+−]?\d+(?:\.\d+)? \([+−]?[\d.]+ to [+−]?[\d.]+\)")


@pytest.fixture(scope="module")
def committed() -> pd.DataFrame:
    return pd.read_csv(RESULTS / "summary.csv")


def test_the_committed_summary_is_what_its_command_computes(committed, monkeypatch):
    monkeypatch.syspath_prepend(str(RESULTS))
    computed = sys.modules.get("summary") or __import__("summary")
    pd.testing.assert_frame_equal(committed, computed.summarise(), rtol=1e-9, check_dtype=False)


@pytest.mark.parametrize("page", ["headmask", "pruning", "gates", "savings", "many_pairs"])
def test_a_page_has_the_numbers_of_the_summary(committed, page):
    text = " ".join((RESULTS / f"{page}.md").read_text(encoding="utf-8").split())
    own = committed[committed["page"] == page]
    intervals = own.loc[own["unit"] != "heads", "text"]
    assert [number for number in intervals if number not in text] == []
    assert len(own) > 10 and set(_INTERVAL.findall(text)) <= set(own["text"])
    assert len(text.split()) <= 900


def test_the_readme_has_no_other_intervals(committed):
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert set(_INTERVAL.findall(text)) <= set(committed["text"])

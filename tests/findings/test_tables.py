"""Tables as files, and the provenance that goes with them."""

import json
import pwd
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from written import write_table

from headcount.base.command import provenance
from headcount.base.errors import UserError
from headcount.findings.tables import p_value


def test_four_files_and_their_numbers(tmp_path):
    frame = pd.DataFrame(
        {
            "run": ["baseline", "random-12.5%"],
            "count": [1234567, 0],
            "score": [1234567.0, 1 / 3],
            "share": [12.3456789, 0.000123456],
        }
    )
    write_table(frame, tmp_path / "sub" / "random-12.5%", "A caption, 5 % of a_b.", {"seed": 1})
    stem = tmp_path / "sub" / "random-12.5%"
    assert Path(f"{stem}.csv").read_text() == (
        "run,count,score,share\n"
        "baseline,1234567,1234567,12.3456789\n"
        "random-12.5%,0,0.3333333333,0.000123456\n"
    )
    rows = Path(f"{stem}.md").read_text().split("\n")
    assert rows[0] == "A caption, 5 % of a_b."
    assert [cell.strip() for cell in rows[4].split("|")[1:-1]] == [
        "baseline",
        "1234567",
        "1234567",
        "12.35",
    ]
    assert [cell.strip() for cell in rows[5].split("|")[1:-1]][2:] == ["0.333", "0.000123"]
    latex = Path(f"{stem}.tex").read_text()
    assert r"\caption{A caption, 5 \% of a\_b.}" in latex
    assert r"random-12.5\% & 0 & 0.333 & 0.000123 \\" in latex
    assert r"\begin{tabular}{lrrr}" in latex and r"\toprule" in latex
    page_part = json.loads(Path(f"{stem}.json").read_text())
    assert page_part["provenance"] == {"seed": 1}
    assert page_part["columns"] == ["run", "count", "score", "share"]
    assert page_part["rows"][1] == ["random-12.5%", "0", "0.333", "0.000123"]
    assert len(list(stem.parent.iterdir())) == 4


def test_shown_replaces_the_rendered_table_only(tmp_path):
    frame = pd.DataFrame({"a": [1, 2]})
    write_table(frame, tmp_path / "t", "c", {}, shown=pd.DataFrame({"total": [3]}))
    assert (tmp_path / "t.csv").read_text() == "a\n1\n2\n"
    assert "total" in (tmp_path / "t.md").read_text()
    assert "total" in (tmp_path / "t.tex").read_text()


def test_f54_cells_cannot_escape(tmp_path):
    frame = pd.DataFrame({"a|b_c": ["<script>x</script>", r"\input{x} & 50 % | $y$" + "\nz"]})
    write_table(frame, tmp_path / "t", "A <b> & {c}", {})
    markdown = (tmp_path / "t.md").read_text()
    assert "<" not in markdown
    assert len(markdown.split("\n")) == 7 and r"\| $y$ z" in markdown
    latex = (tmp_path / "t.tex").read_text()
    assert r"\input" not in latex and r"\& 50 \% | \$y\$" in latex and r"a|b\_c" in latex
    assert r"\caption{A <b> \& \{c\}}" in latex


@pytest.mark.parametrize("bad", [np.nan, np.inf, None])
def test_missing_numbers_are_refused(tmp_path, bad):
    frame = pd.DataFrame({"name": ["x", "y"], "bleu": [1.0, bad]})
    with pytest.raises(UserError, match="column 'bleu', row 2: expected a finite value"):
        write_table(frame, tmp_path / "t", "c", {})
    with pytest.raises(UserError, match="row 2"):
        write_table(frame.iloc[:1], tmp_path / "t", "c", {}, shown=frame)
    with pytest.raises(UserError, match="empty table"):
        write_table(frame.iloc[:0], tmp_path / "t", "c", {})
    assert list(tmp_path.iterdir()) == []


def test_f55_provenance_names_all_but_the_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (work / "in.txt").write_bytes(b"abc")
    home = tmp_path / "home" / "own.txt"
    other = f"/mnt{work}/in.txt"  # the same end, another folder
    command = ["scripts/text.py", f"--raw={work}/in.txt", str(home), other]
    monkeypatch.setattr(sys, "argv", command)
    found = provenance("scripts/text.py", {"merges": 3}, 7, [work / "in.txt"])
    assert found["command"] == ["scripts/text.py", "--raw=in.txt", "~/own.txt", other]
    assert (found["settings"], found["seed"]) == ({"merges": 3}, 7)
    # The SHA-256 of "abc" from FIPS 180-2, appendix B.1.
    abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert found["inputs"] == {"in.txt": abc}
    assert "src/headcount/data/text.py" in found["code"]["files"]
    assert len(found["code"]["digest"]) == 12
    assert {"python", "torch", "pandas", "subword-nmt"} <= set(found["versions"])
    assert str(tmp_path) not in json.dumps(found).replace(other, "")


def test_f52_a_user_without_a_home_or_a_name_is_no_fault(tmp_path, monkeypatch):
    """As in a container that runs under a number."""
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["scripts/text.py", f"{tmp_path}/in.txt", "/mnt/x"])
    found = provenance("scripts/text.py", {}, None, [])
    assert found["command"] == ["scripts/text.py", "in.txt", "/mnt/x"]


@pytest.mark.parametrize(
    ("p", "shown"),
    [
        (0.0497, "0.0497"),  # two digits would be 0.050, on the other side of the limit
        (0.04999, "0.04999"),
        (0.0503, "0.050"),
        (0.05, "0.050"),
        (0.0434, "0.043"),
        (0.0009, "< 0.001"),
        (1.0, "1.0"),
        ("", "–"),
    ],
)
def test_a_p_is_shown_on_its_side_of_the_limit(p, shown):
    assert p_value(p) == shown

"""Numbers by head as CSV: written and read back; files of another model are refused."""

import re

import numpy as np
import pytest

from headcount.base.addresses import HeadGrid
from headcount.base.errors import UserError
from headcount.base.head_values import read_head_values, write_head_values

GRID = HeadGrid({"enc_self": (2, 0), "dec_self": (1,), "dec_enc": (1,)})
HEADER = "kind,layer,head,statistic,value\n"
ROWS = "enc_self,0,0,importance,0.5\nenc_self,0,1,importance,2\n"
ROWS += "dec_self,0,0,importance,1\ndec_enc,0,0,importance,3\n"


def test_one_number_a_row(tmp_path):
    path = tmp_path / "deep" / "importance.csv"
    third = 1 / 3
    write_head_values(path, GRID, {"importance": [third, 2.0, 1e-9, 4.0], "gate": np.ones(4)})
    lines = path.read_text().splitlines()
    assert lines[0] + "\n" == HEADER and len(lines) == 9
    assert lines[1:5] == [
        f"enc_self,0,0,importance,{third!r}",
        "enc_self,0,1,importance,2.0",
        "dec_self,0,0,importance,1e-09",
        "dec_enc,0,0,importance,4.0",
    ]
    assert read_head_values(path, "importance", GRID).tolist() == [third, 2.0, 1e-9, 4.0]
    assert read_head_values(path, "gate", GRID).tolist() == [1.0] * 4


def test_a_head_without_a_value_has_no_row(tmp_path):
    path = tmp_path / "heads.csv"
    write_head_values(path, GRID, {"log_alpha": [0.5, np.nan, np.nan, -2.0]})
    assert path.read_text() == f"{HEADER}enc_self,0,0,log_alpha,0.5\ndec_enc,0,0,log_alpha,-2.0\n"


def test_the_order_of_rows_does_not_matter(tmp_path):
    path = tmp_path / "importance.csv"
    path.write_text(HEADER + "".join(reversed(ROWS.splitlines(keepends=True))))
    assert read_head_values(path, "importance", GRID).tolist() == [0.5, 2.0, 1.0, 3.0]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "x.csv:1: expected the columns kind"),
        ("kind,layer\n", "x.csv:1: expected the columns kind"),
        (HEADER + ROWS + "dec_self,2,0,importance,1\n", "x.csv:6: "),
        (HEADER + ROWS.replace("dec_enc,0,0", "enc_self,1,0"), "x.csv:5: "),
        (HEADER + ROWS.replace("dec_enc", "cross"), "x.csv:5: "),
        (
            HEADER + ROWS.replace("dec_self,0,0,importance", "dec_self,0,0,gate"),
            "x.csv: expected a value of dec_self",
        ),
        (HEADER + ROWS + "enc_self,0,1,importance,2\n", "x.csv:6: "),
        (HEADER + ROWS.replace("0.5", "nan"), "x.csv:2: "),
        (HEADER + ROWS.replace("0.5", ""), "x.csv:2: "),
        (HEADER + ROWS.replace("0,0,imp", "0,first,imp"), "x.csv:2: "),
        (HEADER + "enc_self,0\n", "x.csv: expected a value of enc_self, 0, 0"),
    ],
)
def test_files_of_another_model_and_damaged_ones_name_the_first_fault(tmp_path, text, place):
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(UserError, match=re.escape(place)):
        read_head_values(path, "importance", GRID)

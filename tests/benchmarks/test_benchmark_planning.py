"""What plans cost, as the benchmark of planning measures it."""

import re
import subprocess
import sys

import pytest
from project_copy import ROOT

from benchmarks import planning
from headcount.base.errors import UserError

pytestmark = pytest.mark.slow


def test_the_benchmark_prints_what_each_plan_costs():
    flags = ["--experiment", "tiny", "--sizes", "1", "3", "--repeats", "1"]
    # In a process of its own: what this one holds would count as memory of the plans.
    words = [sys.executable, "-m", "benchmarks.planning", *flags]
    printed = subprocess.run(words, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    row = r"\| (\d+) seeds? \| (\d+) \| (\d+\.\d) \| \d+\.\d \| (\d+) \|"
    (_, few, *one), (_, more, *three) = re.findall(row, printed)
    assert int(few) < int(more) < 3 * int(few)  # the text, tables and figures are made once
    for seconds, megabytes in (one, three):
        assert 0.5 < float(seconds) < 60 and 50 < float(megabytes) < 1000


def test_the_benchmark_tells_why_there_is_no_plan():
    with pytest.raises(UserError, match="--experiment nix: expected .*nix.yaml, found no such"):
        planning.cost("nix", seeds=[1])
    with pytest.raises(UserError, match=r"(?s)expected a plan of tiny, found:.*seeds.*0"):
        planning.cost("tiny", seeds=[])

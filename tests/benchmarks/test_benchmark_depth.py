"""From a command to a head's multiplier: how many calls, and which."""

import re
import sys

import pytest

from benchmarks import depth
from benchmarks.depth import shown

pytestmark = pytest.mark.slow  # a step from files to files, or models that are trained


def test_a_chain_is_printed_with_the_number_of_its_calls():
    # Two calls: `main` is called by nobody of the project.
    lines = shown("train", ("main, a.py", "fit, b.py", "merge, c.py")).splitlines()
    assert lines[0] == "scripts/train.py: 2 calls from main"
    assert lines[1:] == ["   0  main, a.py", "   1  fit, b.py", "   2  merge, c.py"]


def test_few_calls_lie_between_a_command_and_the_multiplier(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["depth"])
    depth.main()
    training, masking = capsys.readouterr().out.split("\n\n")
    for name, limit, printed in (("train", 8, training), ("masking", 10, masking)):
        first, *lines = printed.splitlines()
        calls = int(re.fullmatch(rf"scripts/{name}\.py: (\d+) calls from main", first)[1])
        assert calls == len(lines) - 1 <= limit
        functions = [re.fullmatch(r" +\d+  (\S+), \S+\.py", line)[1] for line in lines]
        assert functions[0] == "main" and functions[-1] == "MultiHeadAttention.merge"
        assert functions[-2] == "MultiHeadAttention.forward"
    assert "Trainer.fit" in training and "translate" in masking

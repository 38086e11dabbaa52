"""Every fault case has a test that bears its number and asserts something of what is said.

F01 to F56 are the cases that the design lists, X01 to X28 those that somebody met. The number of a
test stands in its name: `test_f31_f44_…` is of both cases.
"""

import re
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
CASES = {f"f{number:02}" for number in range(1, 57)} | {f"x{number:02}" for number in range(1, 29)}
_NUMBERS = re.compile(r"^def test_((?:[fx]\d\d_)+)", re.MULTILINE)


@cache
def numbered() -> set[str]:
    """Every case whose number a test bears."""
    found = set()
    for path in sorted(TESTS.rglob("test_*.py")):
        for numbers in _NUMBERS.findall(path.read_text(encoding="utf-8")):
            found.update(numbers.strip("_").split("_"))
    return found


def test_every_case_has_a_test_that_bears_its_number():
    assert sorted(CASES - numbered()) == []


def test_no_test_bears_the_number_of_a_case_that_is_not_listed():
    assert sorted(numbered() - CASES) == []

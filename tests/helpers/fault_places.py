"""Where the faults of settings are, read from a message."""

import re

import pytest


def places(fault: pytest.ExceptionInfo) -> list[tuple[int, str]]:
    """Line and key of every fault in a message, as `file:line: key: words`."""
    found = (
        re.match(r"\S+\.yaml:(\d+): (?:((?:[\w.\[\]<-]|'[^']+')+): )?", line)
        for line in str(fault.value).split("\n")
    )
    return [(int(each[1]), each[2] or "") for each in found if each]

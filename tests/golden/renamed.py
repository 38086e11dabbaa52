"""New names of columns and settings in files that older code wrote. Values do not change."""

import csv
import re
from functools import cache
from pathlib import Path

NAMES = Path("tests/golden/renamed.csv")


@cache
def names(root: Path) -> dict[str, str]:
    """Return the new name by the old name; none for code from before the mapping."""
    if not (root / NAMES).exists():
        return {}
    with (root / NAMES).open(newline="") as file:
        return {row["old"]: row["new"] for row in csv.DictReader(file)}


def rename(path: str, content: bytes, root: Path) -> bytes:
    """Return a frozen file with the columns of a CSV or the keys of a JSON that `root` reads."""
    new = names(root)
    if path.endswith(".csv"):
        header, line, rows = content.partition(b"\n")
        columns = header.decode().rstrip("\r").split(",")
        return ",".join(new.get(name, name) for name in columns).encode() + line + rows
    if path.endswith("segmentation.json"):
        new = {old: name for old, name in new.items() if old != "after"}  # marks have it, too
    if path.endswith(".json"):
        keys = re.sub(r'"(\w+)":', lambda key: f'"{new.get(key[1], key[1])}":', content.decode())
        return keys.encode()
    return content

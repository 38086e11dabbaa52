"""Heads listed in a text file: one address a line, counted from 0, such as enc_self.0.3."""

import re
from pathlib import Path

from headcount.base.addresses import Head, HeadGrid
from headcount.base.errors import UserError

_ADDRESS = re.compile(r"(\w+)\.(\d{1,6})\.(\d{1,6})")


def read_head_list(path: Path, grid: HeadGrid) -> list[Head]:
    """The heads that a file names, in its order; empty lines and what follows a # do not count.

    Raises UserError, with file, line and address, for a line that is no address, a head that the
    model does not have, and a head named twice.
    """
    heads: list[Head] = []
    for number, line in enumerate(_lines(path), start=1):
        text = line.split("#", 1)[0].strip()
        if not text:
            continue
        head = _read_head(text, grid, f"{path}:{number}: {text[:100]}")
        if head in heads:
            raise UserError(f"{path}:{number}: {text} stands in the list already; keep one")
        heads.append(head)
    return heads


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as fault:
        raise UserError(f"{path}: expected UTF-8 text; save the file as UTF-8") from fault


def _read_head(text: str, grid: HeadGrid, where: str) -> Head:
    found = _ADDRESS.fullmatch(text)
    if not found:
        raise UserError(
            f"{where}: expected the address of a head, <kind>.<layer>.<head> counted from 0, such "
            "as enc_self.0.3"
        )
    head = Head(found[1], int(found[2]), int(found[3]))
    try:
        grid.index(head)
    except UserError as fault:
        raise UserError(f"{where}: {fault}") from None
    return head

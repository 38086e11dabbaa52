"""The known name nearest to one that is not known, for messages."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """'nearest: peak_lr' where a known name is close (case aside), else 'known: all of them'."""
    known = list(known)
    close = closest(name, known)
    return f"nearest: {close}" if close else f"known: {', '.join(known) or 'none'}"


def closest(name: str, known: Iterable[str]) -> str:
    """The known name nearest to one, case aside; empty where none is close."""
    names = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name.lower(), names, n=1)
    return names[close[0]] if close else ""

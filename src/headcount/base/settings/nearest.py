"""The known name nearest to one that is not known, for messages."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """'nearest: peak_lr' where a known name is close (case aside), else 'known: all of them'."""
    known = list(known)
    names = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name.lower(), names, n=1)
    if close:
        return f"nearest: {names[close[0]]}"
    return f"known: {', '.join(known) or 'none'}"

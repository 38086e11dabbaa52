"""Names that may become part of a path, a flag or a figure: letters, digits and little else."""

import re

_CORPUS = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_LANGUAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]{0,31}")
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")


def check_corpus_name(name: str) -> str:
    """The name of a corpus or an experiment, unchanged. Raises ValueError."""
    return _checked(_CORPUS, name, "letters, digits, _ and -, the first a letter or digit")


def check_language(name: str) -> str:
    """The name of a language, unchanged. Raises ValueError.

    It has no hyphen, so that `<source>-<target>` reads one way only.
    """
    return _checked(_LANGUAGE, name, "letters, digits and _, the first a letter or digit")


def check_file_name(name: str) -> str:
    """The name of a file or a split, unchanged. Raises ValueError."""
    return _checked(_FILE, name, "letters, digits, . _ and -, the first neither . nor -")


def _checked(allowed: re.Pattern[str], name: str, words: str) -> str:
    if not allowed.fullmatch(name):
        longest = allowed.pattern.rsplit(",", 1)[1].rstrip("}")
        raise ValueError(
            f"expected a name of {words} (at most {int(longest) + 1}), found {name[:100]!r}"
        )
    return name

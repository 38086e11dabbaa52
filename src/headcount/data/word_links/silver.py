"""Silver links between words, which the outside command eflomal (extra `align`) predicts."""

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import regex

from headcount.base.errors import EnvironmentFault, install
from headcount.base.files import write_json
from headcount.data.lines import clean_lines, references, write_lines
from headcount.data.word_links.links import read_linked

COMMAND = "eflomal-align"
_REMEDY = f"{install('align')}, which needs a C compiler"
_EDGES = regex.compile(r"^[\p{P}\p{S}]+|[\p{P}\p{S}]+$")

Texts = Sequence[Path]  # source and target, cleaned


def predict_links(train: Texts, test: Texts, most: int, threads: int) -> tuple[list[str], int]:
    """Return links for every pair of `test`, and the number of training pairs that eflomal read.

    It is trained on both texts: on `test`, and on at most `most` pairs of `train`, evenly spaced.
    """
    tests, trained = _pairs(test), _pairs(train)
    trained = trained[:: -(-len(trained) // most) or 1]
    with TemporaryDirectory() as folder:
        names = ("source", "target", "forward", "backward")
        source, target, *ways = (Path(folder, name) for name in names)
        for path, lines in zip((source, target), zip(*trained, *tests, strict=True), strict=True):
            write_lines(path, map(_bare, lines))
        _run(["-s", source, "-t", target, "-f", ways[0], "-r", ways[1]], threads)
        lines = [list(clean_lines(path))[len(trained) :] for path in ways]
    return [merge(*both) for both in zip(*lines, strict=True)], len(trained)


def merge(forward: str, backward: str) -> str:
    """Return the links of two directions: `0-1` if both have it (sure), else `0p1` (possible)."""
    ways = [set(way.split()) for way in (forward, backward)]
    either = sorted(set.union(*ways), key=lambda link: [*map(int, link.split("-"))])
    sure = set.intersection(*ways)
    return " ".join(link if link in sure else link.replace("-", "p") for link in either)


def write_silver(path: Path, links: list[str], about: dict[str, Any]) -> None:
    """Write links, a sentence a line, and beside them a JSON with `about` and numbers of links."""
    text = " ".join(links)
    counts = {"sentences": len(links), "sure": text.count("-"), "possible": text.count("p")}
    write_lines(path, links)
    write_json(path.with_suffix(".json"), counts | about)


def error_rate(silver: Path, gold: Path) -> float:
    """Return the alignment error rate of sure silver links A, of files by `links.write_linked`.

    With gold links, sure (S) and possible (P), it is 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|).
    """
    links, sure, possible = (
        {(n, *link) for n, pair in enumerate(read_linked(path)) for link in getattr(pair, kind)}
        for path, kind in ((silver, "sure"), (gold, "sure"), (gold, "possible"))
    )
    return 1 - (len(links & sure) + len(links & possible)) / (len(links) + len(sure))


def _pairs(texts: Texts) -> list[tuple[str, str]]:
    """Return the sentence pairs of a text, with the first reference of several."""
    sides = ([references(line)[0] for line in clean_lines(path)] for path in texts)
    return list(zip(*sides, strict=True))


def _bare(line: str) -> str:
    """Return a line whose words have no punctuation at their ends, except where that is all."""
    return " ".join(_EDGES.sub("", word) or word for word in line.split())


def _run(flags: list[str | Path], threads: int) -> None:
    """Run eflomal."""
    command = shutil.which(COMMAND, path=sysconfig.get_path("scripts")) or shutil.which(COMMAND)
    if not command:
        lack = f"silver links: expected the command {COMMAND}, found none"
        raise EnvironmentFault(f"{lack}; {_REMEDY}")
    settings = os.environ | {"OMP_NUM_THREADS": str(threads)}
    done = subprocess.run([command, *flags], env=settings, capture_output=True, text=True)
    if done.returncode:
        said = " ".join(done.stderr.split())[-300:]
        raise EnvironmentFault(f"silver links: {command} failed with {done.returncode}: {said}")

"""Frozen measurement files: small ones beside this module, full ones in the history of Git."""

import csv
import io
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INPUTS = Path(__file__).parent / "inputs"
MANIFEST = ROOT / "docs/results/MANIFEST.csv"


def small() -> list[str]:
    """Return the experiments whose measurements stand beside this module."""
    return sorted(path.name.removesuffix(".tar.xz") for path in INPUTS.glob("*.tar.xz"))


def archived() -> dict[str, list[dict[str, str]]]:
    """Return the rows of the manifest by experiment."""
    rows: dict[str, list[dict[str, str]]] = {}
    with MANIFEST.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            rows.setdefault(row["experiment"], []).append(row)
    return rows


def has_history() -> bool:
    """Return whether this clone has the commits that hold the archives."""
    commits = {row["kept_in"] for rows in archived().values() for row in rows}
    asked = (["git", "cat-file", "-e", f"{commit}^{{commit}}"] for commit in commits)
    quiet = {"cwd": ROOT, "stderr": subprocess.DEVNULL}
    return all(subprocess.run(words, **quiet).returncode == 0 for words in asked)


def files(experiment: str) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of every frozen file of an experiment."""
    if experiment in small():
        yield from members((INPUTS / f"{experiment}.tar.xz").read_bytes())
        return
    for row in archived()[experiment]:
        name = f"{row['kept_in']}:{row['archive']}"
        shown = subprocess.run(["git", "show", name], cwd=ROOT, check=True, capture_output=True)
        yield from members(shown.stdout)


def members(packed: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of every result file in a compressed tar archive."""
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:xz") as tar:
        for member in tar:
            if member.isfile() and "/" in member.name:  # others describe the archive
                yield member.name, tar.extractfile(member).read()

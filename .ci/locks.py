"""Locks of everything that pip installs: written from pyproject.toml, checked, and how old it is.

    python .ci/locks.py write      # resolve anew; needs uv, keeps the versions locked so far
    python .ci/locks.py check      # without network: locks, by hash, fit pyproject.toml's ranges
    python .ci/locks.py age        # ask the index when each locked file was uploaded
    python .ci/locks.py lowest     # print the lowest versions that pyproject.toml allows

Exit codes: 0 all is well; 2 a lock and pyproject.toml disagree, or a release is too fresh or not as
locked; 3 the index or uv is not to be had. All but `write` need nothing but Python.
"""

import argparse
import json
import re
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

LOCKS = {
    "run": "What the extra `workflow` and the build need, but for torch and what only torch needs.",
    "test": "What the extra `test` needs beyond run.txt.",
    "extras": "What the other extras need beyond run.txt and test.txt.",
    "torch": "torch as the package index builds it, with NVIDIA's libraries; accelerate needs it.",
}
_VERSIONS = "versions.txt"  # of all locks, without hashes: constraints for torch and for extras
_RUN = ("run", "torch")
_INSTALLED = {"run": _RUN, "workflow": _RUN, "test": (*_RUN, "test")}
_OF_TORCH = re.compile(r"(torch|accelerate|triton|(nvidia|cuda)-[a-z0-9-]+)==")
_PIN = re.compile(r"^([a-z0-9][a-z0-9.-]*)==([^\s;\\]+)")
_BOUND = re.compile(r"(==|>=|<)([0-9][0-9a-z.]*)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})\b")
_AGAIN = "run: python .ci/locks.py write"


class Failure(Exception):
    """What is wrong, in words, and the exit code."""

    def __init__(self, code: int, words: str):
        """Takes the exit code and the words."""
        super().__init__(words)
        self.code = code


class Locked(NamedTuple):
    """One release in a lock."""

    lock: str
    name: str
    version: str
    hashes: frozenset[str]


def read_lock(path: Path) -> list[Locked]:
    """The releases in a lock. Fails for a line that is neither a pin, a hash nor a comment."""
    found = []
    for block in _blocks(path.read_text(encoding="utf-8")):
        pin, hashes = _PIN.match(block), _HASH.findall(block)
        if not pin or not hashes:
            line = block.splitlines()[0]
            raise Failure(2, f"{path}: expected NAME==VERSION with its hashes, found {line!r}")
        found.append(Locked(path.name, pin[1], pin[2], frozenset(hashes)))
    return found


def _blocks(text: str) -> Iterator[str]:
    """A release each, with its hashes and the comments below; comments at the top are passed over.

    A line that is not indented begins one.
    """
    block: list[str] = []
    for line in text.splitlines():
        if line and not line.startswith((" ", "#")):
            if block:
                yield "\n".join(block)
            block = []
        if block or (line and not line.startswith("#")):
            block.append(line)
    if block:
        yield "\n".join(block)


def check(root: Path) -> None:
    """Fails where two locks have one package, or pyproject.toml does not allow what is locked."""
    versions: dict[str, Locked] = {}
    for lock in LOCKS:
        for each in read_lock(root / "locks" / f"{lock}.txt"):
            if twice := versions.get(each.name):
                raise Failure(2, f"{each.name} is in {twice.lock} and {each.lock}; {_AGAIN}")
            versions[each.name] = each
    for asker, entries in _asked(root).items():
        allowed = [f"{name}.txt" for name in _INSTALLED.get(asker, LOCKS)]
        for entry in entries:
            have = versions.get(_package(entry))
            if have is None or have.lock not in allowed or not _fits(have.version, entry):
                told = f"{have.version} in locks/{have.lock}" if have else "no such package"
                raise Failure(2, f"pyproject.toml asks for {entry}, locked is {told}; {_AGAIN}")
    if (root / "locks" / _VERSIONS).read_text(encoding="utf-8") != _versions(root):
        raise Failure(2, f"locks/{_VERSIONS} has other versions than the locks; {_AGAIN}")


def _asked(root: Path) -> dict[str, list[str]]:
    """What pyproject.toml asks for, under `run` and by extra. Extras of extras are included."""
    text = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    project, extras = text["project"], text["project"]["optional-dependencies"]

    def flat(entries: list[str]) -> Iterator[str]:
        for entry in entries:
            if _package(entry) == project["name"]:
                for name in re.search(r"\[(.*)\]", entry)[1].split(","):
                    yield from flat(extras[name])
            else:
                yield entry

    lists = {"run": [*project["dependencies"], *text["build-system"]["requires"]], **extras}
    return {name: list(flat(entries)) for name, entries in lists.items()}


def _package(entry: str) -> str:
    return re.match(r"[\w.-]+", entry)[0].lower().replace("_", "-").replace(".", "-")


def _fits(version: str, entry: str) -> bool:
    """Whether a version lies within the bounds of NAME>=LOWEST,<MAJOR or NAME==VERSION."""
    have = _numbers(version)
    tests = {"==": have.__eq__, ">=": have.__ge__, "<": have.__lt__}
    return all(tests[sign](_numbers(bound)) for sign, bound in _BOUND.findall(entry))


def _numbers(version: str) -> tuple[int, ...]:
    """Numbers of a release, to compare; 2.0 is 2."""
    return tuple(map(int, re.findall(r"\d+", re.sub(r"(\.0)+$", "", version))))


def lowest(root: Path) -> None:
    """Print the lower bound of everything that pyproject.toml asks for, as pip's constraints."""
    entries = {entry for entries in _asked(root).values() for entry in entries}
    for entry in sorted(entries):
        print(f"{_package(entry)}=={_BOUND.search(entry)[2]}")


def _versions(root: Path) -> str:
    """NAME==VERSION of all locks, without hashes."""
    texts = [(root / "locks" / f"{lock}.txt").read_text(encoding="utf-8") for lock in LOCKS]
    pins = [block.splitlines()[0].rstrip(" \\") for text in texts for block in _blocks(text)]
    head = ["# All locked versions, without hashes.", "# Made by .ci/locks.py, not by hand."]
    return "\n".join([*head, *sorted(pins), ""])


def write(root: Path) -> None:
    """Resolve for every platform and Python that the project allows, and write the locks."""
    folder = root / "locks"
    kept = "\n".join(_releases(folder / f"{lock}.txt") for lock in LOCKS)
    every = _resolved(root, kept, "--all-extras")
    extras = {"run": "workflow", "test": "test"}
    asked = {lock: _resolved(root, every, "--extra", extra) for lock, extra in extras.items()}
    names = {lock: set(map(_name, _blocks(text))) for lock, text in asked.items()}
    parts: dict[str, list[str]] = {lock: [] for lock in LOCKS}
    for block in _blocks(every):
        needed = [lock for lock in names if _name(block) in names[lock]]
        parts["torch" if _OF_TORCH.match(block) else (needed or ["extras"])[0]].append(block)
    for lock, blocks in parts.items():
        head = [f"# {LOCKS[lock]}", "# Made by .ci/locks.py, not by hand."]
        (folder / f"{lock}.txt").write_text("\n".join([*head, *blocks, ""]), encoding="utf-8")
    (folder / _VERSIONS).write_text(_versions(root), encoding="utf-8")


def _releases(path: Path) -> str:
    return "\n".join(_blocks(path.read_text(encoding="utf-8")))


def _name(block: str) -> str:
    return _PIN.match(block)[1]


def _resolved(root: Path, kept: str, *extras: str) -> str:
    """What uv makes of pyproject.toml, with the versions in `kept` where they still fit."""
    build = tomllib.loads((root / "pyproject.toml").read_text())["build-system"]["requires"]
    command = ["uv", "pip", "compile", "--universal", "--generate-hashes", "--no-header"]
    command += ["--fork-strategy", "fewest"]  # one release for every Python
    with TemporaryDirectory() as folder:
        out, tools = Path(folder, "lock"), Path(folder, "build-system.txt")
        out.write_text(kept, encoding="utf-8")
        tools.write_text("\n".join(build), encoding="utf-8")
        command += ["--python-version", "3.11", "--no-annotate", *extras]
        command += ["--output-file", str(out), "pyproject.toml", str(tools)]
        try:
            done = subprocess.run(command, cwd=root, capture_output=True, text=True)
        except FileNotFoundError as error:
            raise Failure(
                3, "locks are resolved by uv, which is missing; pip install uv"
            ) from error
        if done.returncode:
            raise Failure(2, f"uv finds no versions that fit: {done.stderr.strip()}")
        return out.read_text(encoding="utf-8")


def age(root: Path, index: str, days: int) -> None:
    """Fails for a locked file younger than so many days, or that the index does not list."""
    newest = datetime.now(UTC) - timedelta(days=days)
    faults = []
    for lock in LOCKS:
        for each in read_lock(root / "locks" / f"{lock}.txt"):
            faults += _faults(each, _uploads(index, each), newest)
    if faults:
        raise Failure(2, "\n".join(faults))


def _faults(locked: Locked, uploads: dict[str, datetime], newest: datetime) -> Iterator[str]:
    where = f"locks/{locked.lock}: {locked.name}=={locked.version}"
    if missing := locked.hashes - uploads.keys():
        yield f"{where}: the index no longer lists {len(missing)} of its files ({min(missing)})"
    fresh = [when for key, when in uploads.items() if key in locked.hashes and when > newest]
    if fresh:
        yield f"{where}: a file of {max(fresh):%Y-%m-%d}, too fresh; lock an older version"


def _uploads(index: str, locked: Locked) -> dict[str, datetime]:
    """Time of upload by SHA-256, of all files of a package that the index lists."""
    address = f"{index}/pypi/{locked.name}/json"
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            releases = json.load(answer)["releases"]
        return {
            file["digests"]["sha256"]: datetime.fromisoformat(file["upload_time_iso_8601"])
            for files in releases.values()
            for file in files
        }
    except (OSError, ValueError, KeyError) as error:
        raise Failure(3, f"{address}: expected times of upload by SHA-256: {error}") from error


def main() -> int:
    """Do what is asked; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=["write", "check", "age", "lowest"])
    parser.add_argument("--days", type=int, default=7, help="age below which a file is too fresh")
    parser.add_argument("--index", default="https://pypi.org", help="the package index to ask")
    args = parser.parse_args()
    root = Path.cwd()
    try:
        if args.step == "age":
            age(root, args.index, args.days)
        else:
            {"write": write, "check": check, "lowest": lowest}[args.step](root)
    except Failure as fault:
        print(fault, file=sys.stderr)
        return fault.code
    return 0


if __name__ == "__main__":
    sys.exit(main())

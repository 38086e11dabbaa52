"""Fingerprints of the code that made a result: of a script and of all modules that it imports.

Comments, docstrings and layout do not count, since they change no result. Fingerprints are kept
beside Python's compiled files, because finding one takes ten milliseconds.
"""

import ast
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from headcount.base.errors import EnvironmentFault

_SOURCE = Path(__file__).resolve().parents[2]
_ROOT = _SOURCE.parent
_OWN_TEXT = Path(__file__).read_text(encoding="utf-8")
_PACKAGES = {"headcount", "headcount_hf"}  # an installed one has others beside it
_ENDS = (".py", ".yaml", ".html", ".css", ".js", ".md")  # of a module and of data beside it

Parsed = tuple[tuple[str, ...], str]  # imports, fingerprint


def require_own_package(root: Path) -> None:
    """Raise EnvironmentFault if Python imports the package of another checkout than `root`."""
    own, imported = (root / "src" / "headcount").resolve(), _SOURCE / "headcount"
    if own.is_dir() and own != imported:
        raise EnvironmentFault(
            f"expected the package headcount of {own}, but Python imports {imported}; "
            f"run pip install -e . in {root.resolve()}, or set PYTHONPATH={own.parent}"
        )


@cache
def code(script: str, *modules: str) -> dict[str, str]:
    """Return {file: fingerprint} of a script, these modules, and all of ours that they import."""
    waiting, parsed = [_ROOT / script, *chain.from_iterable(map(_files_of, modules))], {}
    while waiting:
        path = waiting.pop()
        if path not in parsed:
            parsed[path] = _parsed(path)
            waiting += chain.from_iterable(map(_files_of, parsed[path][0]))
    return {p.relative_to(_ROOT).as_posix(): parsed[p][1] for p in sorted(parsed)}


def digest(value: Any) -> str:
    """Return twelve hex digits of a JSON value. The order of its keys does not matter."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


@cache
def _files_of(module: str) -> tuple[Path, ...]:
    """Return the project's files of a module: itself, data of its name, and its packages."""
    if module.partition(".")[0] not in _PACKAGES:
        return ()
    package = module.rpartition(".")[0]
    above = _files_of(package) if package else ()
    path = _SOURCE.joinpath(*module.split("."))
    beside = (*map(path.with_suffix, _ENDS), path / "__init__.py")
    return (*above, *(file for file in beside if file.exists()))


@cache
def _parsed(path: Path) -> Parsed:
    """Return a file's imports and fingerprint, from the cache if its text is unchanged."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return (), hashlib.sha256(text.encode()).hexdigest()[:12]
    key = hashlib.sha256((_OWN_TEXT + text).encode()).hexdigest()
    cached = path.parent / "__pycache__" / f"{path.stem}.fingerprint.json"
    with suppress(OSError, ValueError, KeyError, TypeError):  # none, or another version's
        memo = json.loads(cached.read_text(encoding="utf-8"))
        if memo["key"] == key:
            return tuple(memo["imports"]), memo["fingerprint"]
    tree = ast.parse(text)
    fingerprint = hashlib.sha256(_canonical(tree).encode()).hexdigest()[:12]
    imports = tuple(_imports(tree, path))
    if not sys.dont_write_bytecode:
        _write(cached, {"key": key, "imports": imports, "fingerprint": fingerprint})
    return imports, fingerprint


def _write(target: Path, memo: dict[str, Any]) -> None:
    part = target.with_name(f".{target.name}.{os.getpid()}")  # several jobs may write at once
    with suppress(OSError):  # a folder that cannot be written costs time only
        target.parent.mkdir(exist_ok=True)
        part.write_text(json.dumps(memo))
        part.replace(target)


def _imports(tree: ast.Module, path: Path) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"{path}:{node.lineno}: fingerprints need absolute imports")
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _canonical(node: Any) -> str:
    """Return a syntax tree as text, without positions, docstrings and empty fields."""
    if isinstance(node, list):
        return f"[{','.join(filter(None, map(_canonical, node)))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str):
        return ""
    # Which empty fields exist depends on the version of Python.
    fields = ((name, value) for name, value in ast.iter_fields(node) if value not in (None, []))
    inside = ",".join(f"{name}={_canonical(value)}" for name, value in fields)
    return f"{type(node).__name__}({inside})"

"""What code a result came from: a script's fingerprint and those of the modules it imports.

Only what can change a result counts: comments, docstrings and layout do not. To tell them apart
takes ten milliseconds a module, so what was found is kept beside Python's own compiled files.
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


def require_own_package(root: Path) -> None:
    """Raise EnvironmentFault if the checkout in `root` has a package that Python did not import.

    Results would come from the code of another checkout, and record its fingerprints.
    """
    own, imported = (root / "src" / "headcount").resolve(), _SOURCE / "headcount"
    if own.is_dir() and own != imported:
        raise EnvironmentFault(
            f"expected the package headcount of {own}, found that Python imports {imported}; "
            f"run pip install -e . in {root.resolve()}, in a virtual environment of its own, or "
            f"set PYTHONPATH={own.parent}"
        )


@cache
def code(script: str, *modules: str) -> dict[str, str]:
    """{file: fingerprint} of a script and of every project module it imports, directly or not.

    Imports are found in the syntax tree, those inside functions included; `modules` are those that
    the script imports by their names, which no tree shows. Paths are relative to the project's
    root. Raises ValueError on a relative import, which could not be followed, and
    ModuleNotFoundError for a module that is not the project's.
    """
    waiting, found = [_ROOT / script, *chain.from_iterable(map(_files_named, modules))], {}
    while waiting:
        path = waiting.pop()
        if path not in found:
            imports, found[path] = _parsed(path)
            waiting += [file for module in imports for file in _files_of(module)]
    names = {path.relative_to(_ROOT).as_posix(): print_ for path, print_ in found.items()}
    return dict(sorted(names.items()))


def _files_named(module: str) -> tuple[Path, ...]:
    """Files of a module and of its packages. Raises ModuleNotFoundError where there is none."""
    path = _SOURCE.joinpath(*module.split(".")).with_suffix(".py")
    if not path.exists():
        raise ModuleNotFoundError(f"{module}: expected {path}, found no such file")
    return _files_of(module)


def digest(value: Any) -> str:
    """Twelve hex digits that name a JSON value; the order of its keys does not matter."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


@cache
def _files_of(module: str) -> tuple[Path, ...]:
    """Files of a module, and of the packages above it, that belong to the project."""
    package = module.rpartition(".")[0]
    above = _files_of(package) if package else ()
    if package and not above:  # someone else's
        return ()
    path = _SOURCE.joinpath(*module.split("."))
    # A file of a module's own name is data that the module reads: rules, a template of a page.
    beside = (
        path.with_suffix(suffix) for suffix in (".py", ".yaml", ".html", ".css", ".js", ".md")
    )
    return (*above, *(file for file in (*beside, path / "__init__.py") if file.exists()))


@cache
def _parsed(path: Path) -> tuple[tuple[str, ...], str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return (), hashlib.sha256(text.encode()).hexdigest()[:12]
    key = hashlib.sha256((_own_text() + text).encode()).hexdigest()
    found = _recall(path, key)
    if found is None:
        tree = ast.parse(text)
        fingerprint = hashlib.sha256(_canonical(tree).encode()).hexdigest()[:12]
        found = tuple(_imports(tree, path)), fingerprint
        _remember(path, key, found)
    return found


@cache
def _own_text() -> str:
    """This module's text: another one may find another fingerprint in the same source."""
    return Path(__file__).read_text(encoding="utf-8")


def _kept(path: Path) -> Path:
    return path.parent / "__pycache__" / f"{path.stem}.fingerprint.json"


def _recall(path: Path, key: str) -> tuple[tuple[str, ...], str] | None:
    """What was found in the very same text before, if it was kept."""
    try:
        kept = json.loads(_kept(path).read_text(encoding="utf-8"))
        if kept["key"] == key:
            return tuple(kept["imports"]), kept["fingerprint"]
    except (OSError, ValueError, KeyError, TypeError):
        pass  # none, or not one that this version wrote: look again
    return None


def _remember(path: Path, key: str, found: tuple[tuple[str, ...], str]) -> None:
    """Keep it for other processes, where Python may keep compiled files too."""
    if sys.dont_write_bytecode:
        return
    target = _kept(path)
    part = target.with_name(f".{target.name}.{os.getpid()}")  # several jobs may write at once
    with suppress(OSError):  # a folder that cannot be written: only time is lost
        target.parent.mkdir(exist_ok=True)
        part.write_text(json.dumps({"key": key, "imports": found[0], "fingerprint": found[1]}))
        part.replace(target)


def _imports(tree: ast.Module, path: Path) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(
                    f"{path}:{node.lineno}: use absolute imports; the fingerprint follows them"
                )
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _canonical(node: Any) -> str:
    """The syntax tree as text without positions, docstrings and empty fields.

    A docstring is any statement that is a bare string, so that those of attributes count as such.
    Empty fields differ between Python versions; leaving them out keeps fingerprints equal.
    """
    if isinstance(node, list):
        return f"[{','.join(filter(None, map(_canonical, node)))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str):
        return ""  # a docstring
    fields = ast.iter_fields(node)
    kept = (f"{name}={_canonical(value)}" for name, value in fields if value not in (None, []))
    return f"{type(node).__name__}({','.join(kept)})"

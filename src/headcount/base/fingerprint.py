"""What code a result came from: a script's fingerprint and those of the modules it imports.

Only what can change a result counts: comments, docstrings and layout do not.
"""

import ast
import hashlib
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

_SOURCE = Path(__file__).resolve().parents[2]
_ROOT = _SOURCE.parent


@cache
def code(script: str) -> dict[str, str]:
    """{file: fingerprint} of a script and of every project module it imports, directly or not.

    Imports are found in the syntax tree, those inside functions included. Paths are relative
    to the project's root. Raises ValueError on a relative import, which could not be followed.
    """
    waiting, found = [_ROOT / script], {}
    while waiting:
        path = waiting.pop()
        if path not in found:
            imports, found[path] = _parsed(path)
            waiting += [file for module in imports for file in _files_of(module)]
    names = {path.relative_to(_ROOT).as_posix(): print_ for path, print_ in found.items()}
    return dict(sorted(names.items()))


def digest(value: Any) -> str:
    """Twelve hex digits that name a JSON value; the order of its keys does not matter."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


@cache
def _files_of(module: str) -> tuple[Path, ...]:
    """Files of a module, and of the packages above it, that belong to the project."""
    parts = module.split(".")
    found: list[Path] = []
    for depth in range(1, len(parts) + 1):
        path = _SOURCE.joinpath(*parts[:depth])
        # A file of a module's own name is data that the module reads: rules, a template.
        beside = (path.with_suffix(suffix) for suffix in (".py", ".yaml", ".html"))
        found += [file for file in (*beside, path / "__init__.py") if file.exists()]
    return tuple(found)


@cache
def _parsed(path: Path) -> tuple[tuple[str, ...], str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return (), hashlib.sha256(text.encode()).hexdigest()[:12]
    tree = ast.parse(text)
    return tuple(_imports(tree, path)), hashlib.sha256(_canonical(tree).encode()).hexdigest()[:12]


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
        return f"[{','.join(_canonical(part) for part in node if not _is_docstring(part))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = ast.iter_fields(node)
    kept = (f"{name}={_canonical(value)}" for name, value in fields if value not in (None, []))
    return f"{type(node).__name__}({','.join(kept)})"


def _is_docstring(node: Any) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )

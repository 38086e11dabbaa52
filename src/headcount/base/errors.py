"""Faults that are not bugs. A message says what was expected, what was found, where, what to do."""

import importlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType


class HeadcountError(Exception):
    """Base of the faults a command reports in plain words, without a traceback."""

    exit_code = 1


class UserError(HeadcountError):
    """Settings, data or arguments are wrong: the person who called can mend them."""

    exit_code = 2


class EnvironmentFault(HeadcountError):
    """The machine is in the way: network, disk, memory, another run in the same folder."""

    exit_code = 3


def lacks_memory(fault: BaseException) -> bool:
    """Return whether a fault says that memory is used up, of torch's by their words."""
    words = ("can't allocate memory", "out of memory", "ALLOC_FAILED")
    full = isinstance(fault, RuntimeError) and any(part in str(fault) for part in words)
    return full or isinstance(fault, MemoryError)


_DAMAGES = (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError, RuntimeError)


@contextmanager
def reading(path: Path, maker: str) -> Iterator[None]:
    """Raise UserError, which names what makes the file, if a file is missing or damaged."""
    try:
        yield
    except _DAMAGES as fault:
        if lacks_memory(fault):
            raise
        reason = repr(fault).partition("\n")[0]
        raise UserError(f"{path}: damaged or missing ({reason}); make it by {maker}") from fault


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Raise UserError, begun by `what`, for any fault of a library, also a panic of Rust's."""
    try:
        yield
    except (HeadcountError, MemoryError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as fault:  # a panic is no Exception
        raise UserError(f"{what}: {' '.join(str(fault).split())[:200]}") from fault


class Interrupted(HeadcountError):
    """A signal asked the command to stop; what it had done is saved."""

    def __init__(self, number: int):
        """Take the signal's number. The exit code is the shell's, 128 + number."""
        super().__init__(f"stopped by signal {number}; the same command goes on from here")
        self.exit_code = 128 + number


def optional_package(name: str, wanted: str, remedy: str) -> ModuleType:
    """Return an imported package, or raise EnvironmentFault with `wanted` and the `remedy`."""
    try:
        return importlib.import_module(name)
    except ImportError as fault:
        message = f"{wanted}: expected the package {name} ({fault}); {remedy}"
        raise EnvironmentFault(message) from fault


def install(extra: str) -> str:
    """Return the advice to install an extra: of the clone, or of an installed wheel."""
    in_clone = (Path(__file__).resolve().parents[3] / "pyproject.toml").exists()
    project = "-e '.{}'" if in_clone else "'headcount{}'"
    return f"run: pip install {project.format(f'[{extra}]')}"


def require_extra(extra: str, packages: Iterable[str]) -> None:
    """Raise EnvironmentFault if one of these packages is missing. They are not imported."""
    for name in packages:
        if find_spec(name) is None:
            lack = f"expected the package {name}, found none"
            raise EnvironmentFault(f"{extra}: {lack}; {install(extra)}")

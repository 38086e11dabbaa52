"""Packages that an installation may lack, because extras of the project have them."""

import importlib
from types import ModuleType

from headcount.base.errors import EnvironmentFault


def optional_package(name: str, wanted: str, remedy: str) -> ModuleType:
    """Return an imported package. Raises EnvironmentFault if it cannot be imported.

    The message names `wanted`, such as "predicted trees", and the `remedy`.
    """
    try:
        return importlib.import_module(name)
    except ImportError as fault:
        lacks = isinstance(fault, ModuleNotFoundError) and fault.name == name
        reason = "it not installed" if lacks else f"that it cannot be imported ({fault})"
        message = f"{wanted}: expected the package {name}, found {reason}; {remedy}"
        raise EnvironmentFault(message) from fault

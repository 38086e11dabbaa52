"""Packages that an installation may lack, because extras of the project have them."""

import importlib
from types import ModuleType

from headcount.base.errors import EnvironmentFault


def optional_package(name: str, wanted: str, remedy: str) -> ModuleType:
    """The imported package. Raises EnvironmentFault where it cannot be imported.

    The fault names what is `wanted`, such as "predicted trees", and says the `remedy`.
    """
    try:
        return importlib.import_module(name)
    except ImportError as fault:
        lacks = isinstance(fault, ModuleNotFoundError) and fault.name == name
        found = "it not installed" if lacks else f"that it cannot be imported ({fault})"
        raise EnvironmentFault(
            f"{wanted}: expected the package {name}, found {found}; {remedy}"
        ) from fault

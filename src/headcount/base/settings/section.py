"""The base of every settings section: frozen, strict, no key unknown, no number infinite."""

import ast
import inspect
import sys
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, model_validator

# Upper ends with room to spare: beyond them a slip of the pen takes the machine down.
MOST_THREADS = 1024
LARGEST = 10**6  # widths, budgets and other sizes that memory grows with
MOST_DRAWS = 10**4


def each_once(entries: list) -> list:
    """The list unchanged. Raises ValueError for what it has twice."""
    for position, entry in enumerate(entries):
        if entry in entries[:position]:
            raise ValueError(f"{entry!r} is listed twice; name each entry once")
    return entries


class Section(BaseModel):
    """Settings that cannot change once read. `True` is no number, `'1'` is no number either."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    flag_prefix: ClassVar[str] = ""
    """Stands before the keys on command lines, where two sections have keys of one name."""

    @classmethod
    def meanings(cls) -> dict[str, str]:
        """What each key means, by its name: the text below it in the class that declares it."""
        # Not by pydantic's `use_attribute_docstrings`, which reads all sources at every start.
        ours = [each for each in reversed(cls.__mro__) if issubclass(each, Section)]
        texts = (_texts_below(each.__module__)[each.__name__] for each in ours)
        return {name: text for found in texts for name, text in found.items()}


@cache
def _texts_below(module: str) -> dict[str, dict[str, str]]:
    """Texts that stand below attributes, by class and attribute."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {
        each.name: {
            field.target.id: inspect.cleandoc(text.value.value)
            for field, text in pairwise(each.body)
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
        }
        for each in tree.body
        if isinstance(each, ast.ClassDef)
    }


class PresetSection(Section):
    """A section whose key `preset` names values; those that are named themselves override them."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]]

    @model_validator(mode="before")
    @classmethod
    def _fill_from_preset(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        default = cls.model_fields["preset"].default
        # A preset that does not exist is a fault by itself; values that lack with it are none.
        values = cls.presets.get(str(given.get("preset", default)), cls.presets[default])
        return {**values, **given}

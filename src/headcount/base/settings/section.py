"""The base of every settings section: frozen, strict, no key unknown, no number infinite."""

from collections.abc import Mapping
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

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    flag_prefix: ClassVar[str] = ""
    """Stands before the keys on command lines, where two sections have keys of one name."""


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

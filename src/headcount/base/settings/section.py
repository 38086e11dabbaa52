"""The base of every settings section: frozen, strict, no key unknown, no number infinite."""

import ast
import inspect
from functools import cache
from itertools import pairwise
from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Settings that cannot change once read. `True` is no number, `'1'` is no number either."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    flag_prefix: ClassVar[str] = ""
    """Stands before the keys on command lines, where two sections have keys of one name."""


@cache
def meanings(section: type[Section]) -> dict[str, str]:
    """{key: what it means}, from the text below each key of a section.

    Read only where it is shown: pydantic would read it whenever a section is imported.
    """
    (source,) = ast.parse(inspect.getsource(section)).body
    return {
        key.target.id: inspect.cleandoc(text.value.value)
        for key, text in pairwise(source.body)
        if isinstance(key, ast.AnnAssign) and isinstance(text, ast.Expr)
    }

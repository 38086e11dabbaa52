"""Tables and figures; each is declared once, above the function that makes it:

    @exhibits.table("headmask_table1", needs=("counts",))
    def table1(results: Results) -> Table:

The first line of that function's docstring is the title. The rules read both off the source and
import none of these functions, so that a plan need not wait for pandas and matplotlib.
"""

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Any, TypeVar

from headcount.findings.inputs import without_groups

FORMS = {
    "table": ("tables/", ("csv", "md", "tex", "json")),
    "figure": ("figures/", ("svg", "pdf", "png", "csv", "json")),
    "numbers": ("", ("json",)),
    "page": ("", ("html",)),
}
"""What functions return; the folder and the ends of files.

That is a `Table`, a `Drawn`, what is JSON, or what makes a page's HTML of its provenance.
"""

SHOWN = ("table", "figure")
"""Forms that the report shows."""

_PACKAGE = "headcount.findings"
_DECLARED = re.compile(
    rf'^@exhibits\.({"|".join(FORMS)})(\(.*?\))\ndef (\w+)\(.*?\n    """(.*?)\.?(?:""")?$',
    re.M | re.S,
)

Maker = TypeVar("Maker", bound=Callable[..., Any])


@dataclass(frozen=True)
class Exhibit:
    """One table, one figure, a file of numbers for `dvc metrics`, or a page of its own."""

    form: str
    """One of `FORMS`."""

    maker: str
    """`module:function`; the function takes `Results`."""

    title: str
    """What it is, in a few words; its caption says the rest."""

    name: str
    """Of its files; no two exhibits share one."""

    needs: tuple[str, ...]
    """Kinds of `INPUTS`; an experiment without any file of one of them has no such exhibit.

    A name of `GROUPS` stands for its kinds, here and in `uses`.
    """

    uses: tuple[str, ...] = ()
    """Kinds of which there may be no file."""

    question: str = ""
    """Of `questions.QUESTIONS`, under which the report has it; unless given, its chapter's."""

    beside: str = ""
    """Of a figure: the table after which the report has it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "needs", without_groups(self.needs))
        object.__setattr__(self, "uses", without_groups(self.uses))

    @property
    def files(self) -> list[str]:
        """Its files below the folder of an experiment's results; a `.json` is the last."""
        folder, ends = FORMS[self.form]
        return [f"{folder}{self.name}.{end}" for end in ends]

    @property
    def anchor(self) -> str:
        """Its name within a page: a table and a figure may share theirs."""
        return f"{self.form}-{self.name}"

    @property
    def module(self) -> str:
        """Where it is made."""
        return self.maker.partition(":")[0]

    def make(self, results: Any) -> Any:
        """What its function returns for these `Results`; its module is imported now."""
        return getattr(import_module(self.module), self.maker.partition(":")[2])(results)


def _declare(form: str, *words: Any, **more: Any) -> Callable[[Maker], Maker]:
    def mark(function: Maker) -> Maker:
        maker = f"{function.__module__}:{function.__name__}"
        title = function.__doc__.splitlines()[0].removesuffix(".")
        function.exhibit = Exhibit(form, maker, title, *words, **more)
        return function

    return mark


table = partial(_declare, "table")
figure = partial(_declare, "figure")
numbers = partial(_declare, "numbers")
page = partial(_declare, "page")


def declared(chapter: str) -> list[Exhibit]:
    """The exhibits that modules of a chapter declare: tables first, those of a paper before others.

    Raises ValueError for a declaration that is not made of words alone.
    """
    found = []
    for path in sorted(Path(__file__).parent.joinpath(chapter).glob("*.py")):
        declarations = _DECLARED.findall(path.read_text(encoding="utf-8"))
        for form, arguments, function, title in declarations:
            call = ast.parse(f"exhibit{arguments}", path.name, "eval").body
            words = [ast.literal_eval(each) for each in call.args]
            more = {each.arg: ast.literal_eval(each.value) for each in call.keywords}
            maker = f"{_PACKAGE}.{chapter}.{path.stem}:{function}"
            found.append(Exhibit(form, maker, title, *words, **more))
    return sorted(found, key=_place)


def _place(exhibit: Exhibit) -> tuple:
    """Where an exhibit stands in its chapter: by its number in the paper, then by its name."""
    number = re.search(r"_(?:table|fig)(\d+)$", exhibit.name)
    return list(FORMS).index(exhibit.form), int(number[1]) if number else inf, exhibit.name

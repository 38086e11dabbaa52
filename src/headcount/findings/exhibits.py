"""What an exhibit is, a table or a figure, and a chapter of them; every one is declared once.

A chapter is declared in `<chapter>/exhibits.py`, which names the functions that make its exhibits
and imports none of them: so the rules read the list in no time.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from headcount.base.settings.section import Section

CHAPTERS = ("general", "headmask", "voita_roles", "voita_pruning", "michel")
"""In the order of the report."""

_PACKAGE = "headcount.findings"


@dataclass(frozen=True)
class Exhibit:
    """One table or figure."""

    name: str
    """Of its files; no two tables share one, and no two figures."""

    title: str
    """What it is, in a few words; its caption says the rest."""

    maker: str
    """`module:function` in the chapter's package, from `Results` to a `Table` or `Drawn`."""

    needs: tuple[str, ...]
    """Kinds of `INPUTS`; an experiment without any file of one of them has no such exhibit."""

    uses: tuple[str, ...] = ()
    """Kinds of which there may be no file."""


@dataclass(frozen=True)
class Chapter:
    """The exhibits that one rule makes, tables first."""

    name: str
    """Of its package and its rule."""

    title: str
    """Heading in reports."""

    sections: dict[str, type[Section]]
    """Sections of the settings that its exhibits take; no two share a flag."""

    tables: tuple[Exhibit, ...]
    figures: tuple[Exhibit, ...]

    metrics: str | None = None
    """`module:function` of what `dvc metrics` shows: it takes `Results`, returns what is JSON."""

    @property
    def exhibits(self) -> tuple[Exhibit, ...]:
        """All tables, then all figures."""
        return (*self.tables, *self.figures)

    @property
    def kinds(self) -> list[str]:
        """The kinds of `INPUTS` from which its exhibits are made, each once; the runs always."""
        kinds = [kind for each in self.exhibits for kind in (*each.needs, *each.uses)]
        return list(dict.fromkeys(["trained_runs", *kinds]))

    @property
    def modules(self) -> list[str]:
        """Where it is declared and made; `fingerprint.code` follows what these import."""
        makers = [each.maker for each in self.exhibits]
        named = [self._module(maker) for maker in (*makers, *filter(None, [self.metrics]))]
        return list(dict.fromkeys([declaration(self.name), *named]))

    def made_from(self, kinds: Collection[str]) -> "Chapter":
        """This chapter with only the exhibits that can be made from these kinds of files."""
        tables, figures = (
            tuple(each for each in group if set(each.needs) <= set(kinds))
            for group in (self.tables, self.figures)
        )
        return replace(self, tables=tables, figures=figures)

    def function(self, maker: str) -> Callable[[Any], Any]:
        """The function that a `module:function` of this chapter names."""
        return getattr(import_module(self._module(maker)), maker.partition(":")[2])

    def _module(self, maker: str) -> str:
        return f"{_PACKAGE}.{self.name}.{maker.partition(':')[0]}"


def declaration(chapter: str) -> str:
    """The module that declares the chapter of this name."""
    return f"{_PACKAGE}.{chapter}.exhibits"


def load_chapter(name: str) -> Chapter:
    """The chapter of this name, one of `CHAPTERS`."""
    return import_module(declaration(name)).CHAPTER

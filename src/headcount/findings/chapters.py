"""Chapters of tables and figures: one for each paper, or half of one, and a general one."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cache

from headcount.base.settings.ablation import AblationSettings, RerankSettings
from headcount.base.settings.importance import ImportanceSettings, LrpSettings
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.roles import RolesSettings
from headcount.base.settings.section import Section
from headcount.base.settings.train import GatesSettings
from headcount.findings.exhibits import Exhibit, declared


@dataclass(frozen=True)
class Chapter:
    """The exhibits that one rule makes."""

    name: str
    """Of its rule, and of the package that declares its exhibits."""

    title: str
    """Heading in reports."""

    sections: dict[str, type[Section]] = field(default_factory=dict)
    """Sections of the settings that its exhibits take; no two share a flag."""

    uses: tuple[str, ...] = ("trained_runs",)
    """Kinds of `INPUTS` that are taken whatever the exhibit, of which there may be no file."""

    exhibits: tuple[Exhibit, ...] = ()
    """In the order of reports."""

    @property
    def kinds(self) -> list[str]:
        """The kinds of `INPUTS` from which its exhibits are made, each once."""
        kinds = [kind for each in self.exhibits for kind in (*each.needs, *each.uses)]
        return list(dict.fromkeys([*self.uses, *kinds]))

    @property
    def modules(self) -> list[str]:
        """Where its exhibits are declared and made; `fingerprint.code` follows their imports."""
        return list(dict.fromkeys(each.module for each in self.exhibits))

    def made_from(self, kinds: Collection[str]) -> "Chapter":
        """This chapter with only the exhibits that can be made from these kinds of files."""
        given = tuple(each for each in self.exhibits if set(each.needs) <= set(kinds))
        return replace(self, exhibits=given)


_CHAPTERS = (
    Chapter("general", "Corpora, scores and training", uses=()),
    Chapter(
        "headmask",
        "HeadMask: training with masked heads",
        {"model": ModelSettings, "importance": ImportanceSettings},
    ),
    Chapter(
        "voita_roles",
        "Voita et al.: what heads do",
        {"model": ModelSettings, "roles": RolesSettings, "lrp": LrpSettings},
    ),
    Chapter(
        "voita_pruning",
        "Voita et al.: pruning heads by gates",
        {"model": ModelSettings, "gates": GatesSettings},
        ("trained_runs", "control_translations"),
    ),
    Chapter(
        "michel",
        "Sixteen heads: heads removed from trained models",
        {"model": ModelSettings, "ablation": AblationSettings, "importance": RerankSettings},
    ),
    Chapter("michel_classifiers", "Sixteen heads: heads removed from classifiers", uses=()),
    Chapter("cost", "What it took", uses=()),
)


@cache
def chapters() -> tuple[Chapter, ...]:
    """All chapters with their exhibits, in the order of reports."""
    return tuple(replace(each, exhibits=tuple(declared(each.name))) for each in _CHAPTERS)

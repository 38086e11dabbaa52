"""Chapters of tables and figures: one for each paper, or half of one, and a general one."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import cache

from headcount.base.settings.ablation import AblationSettings, RerankSettings
from headcount.base.settings.importance import ImportanceSettings, LrpSettings
from headcount.base.settings.pretrained import ExperimentModel
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
    """Heading in the list of all exhibits."""

    question: str
    """Of `questions.QUESTIONS`, under which the report has exhibits that name no other."""

    sections: dict[str, type[Section]] = field(default_factory=dict)
    """Sections of the settings that its exhibits take; no two share a flag."""

    uses: tuple[str, ...] = ("trained_runs",)
    """Kinds of `INPUTS` that are taken whatever the exhibit, of which there may be no file."""

    runs: str = "runs"
    """Which of `OWNERS` its training runs are; `same_heads` where others are nothing to compare."""

    exhibits: tuple[Exhibit, ...] = ()
    """In the order of the list of all exhibits."""

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
    Chapter("general", "Corpora, scores and training", "training", uses=()),
    Chapter(
        "headmask",
        "HeadMask: training with masked heads",
        "headmask",
        {"model": ExperimentModel, "importance": ImportanceSettings},
        runs="same_heads",
    ),
    Chapter(
        "voita_roles",
        "Voita et al.: what heads do",
        "functions",
        {"model": ExperimentModel, "roles": RolesSettings, "lrp": LrpSettings},
    ),
    Chapter(
        "voita_pruning",
        "Voita et al.: pruning heads by gates",
        "gates",
        {"model": ExperimentModel, "gates": GatesSettings},
        ("trained_runs",),
    ),
    Chapter(
        "michel",
        "Sixteen heads: heads removed from trained models",
        "removal",
        {"model": ExperimentModel, "ablation": AblationSettings, "importance": RerankSettings},
    ),
    Chapter(
        "atlas",
        "Head atlas",
        "functions",
        {"model": ExperimentModel, "importance": ImportanceSettings, "roles": RolesSettings},
    ),
    Chapter(
        "michel_classifiers", "Sixteen heads: heads removed from classifiers", "removal", uses=()
    ),
    Chapter("claims", "What the papers claim", "claims", uses=()),
    Chapter("cost", "What it took", "speed", uses=()),
)


@cache
def chapters() -> tuple[Chapter, ...]:
    """All chapters with their exhibits."""
    return tuple(replace(each, exhibits=tuple(_exhibits(each))) for each in _CHAPTERS)


def _exhibits(chapter: Chapter) -> Iterator[Exhibit]:
    for each in declared(chapter.name):
        yield replace(each, question=each.question or chapter.question)

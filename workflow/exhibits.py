"""What the rules ask of exhibits: from which files each chapter is made, and what it makes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from plan import Plan
from snakemake.io import report

from headcount.base.settings.flags import as_flags
from headcount.findings.chapters import Chapter, chapters
from headcount.findings.exhibits import SHOWN, Exhibit
from headcount.findings.inputs import INPUTS, OF_TRAINING, Input


class Exhibits:
    """The tables and figures of one experiment: those whose needs it has files of."""

    def __init__(self, plan: Plan, measured: Sequence[str]):
        """`measured`: the first file of each rule that measures every trained model."""
        self._plan, self._measures = plan, [Path(path).stem for path in measured]
        self._runs = _runs_by_owner(plan)
        self._none = OF_TRAINING if plan.settings.model.as_it_is else ()
        kinds = [k for k, each in INPUTS.items() if k not in self._none and self._files(each)]
        made = (chapter.made_from(kinds) for chapter in chapters())
        self.chapters = [chapter for chapter in made if chapter.exhibits]
        known = {chapter.name: chapter for chapter in chapters()}
        self.claims, self.cost = known["claims"], known["cost"]
        self.modules = [module for chapter in chapters() for module in chapter.modules]

    def inputs(self, chapter: Chapter) -> dict[str, list[str]]:
        """Files of each kind that a chapter is made from."""
        found = {}
        for name in chapter.kinds:
            kind = INPUTS[name]
            narrowed = kind._replace(owner=chapter.runs) if kind.owner == "runs" else kind
            found[name] = [] if name in self._none else self._files(narrowed)
        return found

    def pages(self) -> dict[str, str]:
        """What the report shows: the JSON of each table and figure, and its title."""
        made = (*self.chapters, self.claims, self.cost)
        exhibits = (each for chapter in made for each in chapter.exhibits)
        return {each.files[-1]: each.title for each in exhibits if each.form in SHOWN}

    def listed(self, chapter: Chapter, exhibit: Exhibit) -> Any:
        """The first file of an exhibit, as Snakemake's report has it."""
        labels = {"form": exhibit.form, "name": exhibit.name, "title": exhibit.title}
        file = f"{self._plan.layout.results}/{exhibit.files[0]}"
        return report(file, category=chapter.title, labels=labels)

    def flags(self, chapter: Chapter) -> list[str]:
        """Sections of the settings that a chapter takes, as flags."""
        found = []
        for name, section in chapter.sections.items():
            found += as_flags(section(**getattr(self._plan.settings, name).model_dump()))
        return found

    def _files(self, kind: Input) -> list[str]:
        return [
            f"{folder}/{each}"
            for pair, folder in self._folders(kind)
            for name in kind.names
            for each in self._named(name, pair)
        ]

    def _folders(self, kind: Input) -> list[tuple[str, str]]:
        """(pair, folder) of each owner of such files: pairs, then runs, then seeds."""
        plan, layout = self._plan, self._plan.layout
        if kind.owner == "classifiers":
            return plan.classifiers.folders(kind.folder)
        if kind.owner == "pairs":
            folder = layout.text if kind.folder == "text" else layout.bpe
            return [(pair, folder(pair)) for pair in layout.pairs]
        return layout.folders(kind.folder, self._runs[kind.owner])

    def _named(self, name: str, pair: str) -> list[str]:
        """A name of `INPUTS`, once for each split, test set or treebank of the pair, or measure."""
        plan = self._plan
        for word, found in (
            ("<split>", plan.splits),
            ("<test>", plan.tests),
            ("<treebank>", plan.raw.treebanks),
            ("<measure>", lambda _: self._measures),
        ):
            if word in name:
                return [name.replace(word, each) for each in found(pair)]
        return [name]


def _runs_by_owner(plan: Plan) -> dict[str, list[str]]:
    """Names of the runs of each owner of files, in the words of `INPUTS`."""
    return {
        "jobs": [],  # rule cost finds their benchmarks
        "exhibits": [],  # rule claims has what the other chapters make
        "runs": plan.runs,
        "same_heads": plan.same_heads,
        "by_heads": plan.by_heads,
        "by_dropout": plan.by_dropout,
        "by_variant": plan.by_variant,
        "starts": plan.pruning.starts(),
        "compared": plan.pruning.compared(),
        "pruned": plan.pruned,
        "gates": plan.pruning.named("gates"),
        "penalised": plan.pruning.penalised(),
        "timed": plan.timed,
        "timed_pruned": ["speed"] if plan.pruning.timed() else [],
        "ablated": plan.ablated,
        "measured": plan.measured,
        "profiled": plan.profiled,
    }

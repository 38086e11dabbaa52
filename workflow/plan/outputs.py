"""Inputs and outputs of the rules that make tables and figures, a rule for each chapter."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from plan.plan import BASE, Plan
from snakemake.io import report

from headcount.analysis.inputs import BLEU, INPUTS, OF_TRAINING, Input
from headcount.analysis.outputs import ON_REQUEST, SHOWN, Chapter, chapters
from headcount.base.settings.flags import as_flags


class Outputs:
    """The tables and figures that an experiment has the files for."""

    def __init__(self, plan: Plan, rules: Iterable[Any]):
        """`rules`: Snakemake's rules, some of which measure heads."""
        self._plan = plan
        heads, files = plan.layout.run("heads"), [rule.output[0] for rule in rules if rule.output]
        measures = [Path(file).stem for file in files if file.startswith(heads)]
        self._measures = [name for name in measures if name != "units"]  # which few runs have
        self._runs = _runs_by_owner(plan)
        self._none = OF_TRAINING if plan.settings.model.frozen else ()
        able = [item for metric in (BLEU, *plan.metrics.names) for item in self._able(metric)]
        self.chapters = [chapter for chapter in able if chapter.name not in ON_REQUEST]
        self.requested = [chapter for chapter in able if chapter.name in ON_REQUEST]
        known = {chapter.name: chapter for chapter in chapters()}
        self.claims, self.cost = known["claims"], known["cost"]
        self.modules = [module for chapter in chapters() for module in chapter.modules]

    def _able(self, metric: str) -> list[Chapter]:
        """Return the chapters of a metric with the outputs that there are files for."""
        known = {k: self._of(kind, metric) for k, kind in INPUTS.items() if k not in self._none}
        kinds = [name for name, kind in known.items() if self._files(kind)]
        made = (chapter.made_from(kinds) for chapter in chapters(metric))
        return [chapter for chapter in made if chapter.outputs]

    def _of(self, kind: Input, metric: str) -> Input:
        """Return the files of a metric. One with files only scores translations that are kept."""
        kept = not kind.by_metric or kind.by_metric.startswith("metrics/")
        scored = kept or metric in (BLEU, *self._plan.metrics.of_masks)
        return kind.of(metric) if scored else kind._replace(names=())

    def inputs(self, chapter: Chapter) -> dict[str, list[str]]:
        """Return the files of every kind that a chapter reads."""
        files = {}
        for name in chapter.kinds:
            kind = self._of(INPUTS[name], chapter.metric)
            narrowed = kind._replace(owner=chapter.runs) if kind.owner == "runs" else kind
            files[name] = [] if name in self._none else self._files(narrowed)
        return files

    def pages(self) -> list[str]:
        """Return the JSON of every table and figure that the report shows."""
        made = (*self.chapters, self.claims, self.cost)
        outputs = (output for chapter in made for output in chapter.outputs)
        return [output.files[-1] for output in outputs if output.form in SHOWN]

    def files(self, chapter: Chapter) -> list[Any]:
        """Return all files of a chapter. The first of each output is in Snakemake's report."""
        files: list[Any] = []
        for output in chapter.outputs:
            first, *others = (f"{self._plan.layout.results}/{file}" for file in output.files)
            labels = {"form": output.form, "name": output.name, "title": output.title}
            files += [report(first, category=chapter.title, labels=labels), *others]
        return files

    def flags(self, chapter: Chapter) -> list[str]:
        """Return the sections of the settings that a chapter takes, as flags."""
        flags = [] if chapter.metric == BLEU else ["--metric", chapter.metric]
        for name, section in chapter.sections.items():
            flags += as_flags(section(**getattr(self._plan.settings, name).model_dump()))
        return flags

    def _files(self, kind: Input) -> list[str]:
        return [
            f"{folder}/{file}"
            for pair, folder in self._folders(kind)
            for name in kind.names
            for file in self._named(name, pair)
        ]

    def _folders(self, kind: Input) -> list[tuple[str, str]]:
        """Return pair and folder of every owner of such files, by pair, run and seed."""
        plan, layout = self._plan, self._plan.layout
        if kind.owner == "classifiers":
            return plan.classifiers.folders(kind.folder)
        if kind.owner == "pairs":
            folder = layout.text if kind.folder == "text" else layout.bpe
            return [(pair, folder(pair)) for pair in layout.pairs]
        return layout.folders(kind.folder, self._runs[kind.owner])

    def _named(self, name: str, pair: str) -> list[str]:
        """Return the names for all splits, test sets or treebanks of a pair, or all measures."""
        plan = self._plan
        for word, values in (
            ("<split>", plan.splits),
            ("<test>", plan.tests),
            ("<treebank>", plan.raw.treebanks),
            ("<measure>", lambda _: self._measures),
            ("<metric>", lambda _: plan.metrics.names),
            ("<gold>", plan.gold_tests),
            ("<drawn>", lambda w: ["dev"] * ("dev" in plan.linked_splits(w))),
            ("<alignment>", lambda w: ["alignment"] * len(plan.aligned_tests(w))),
        ):
            if word in name:
                named = [name.replace(word, value) for value in values({"pair": pair})]
                return [one for part in named for one in self._named(part, pair)]
        return [name]


def _runs_by_owner(plan: Plan) -> dict[str, list[str]]:
    """Return the names of the runs that own files, by the owners of `inputs.OWNERS`."""
    runs, same, pruning = plan.runs, plan.same_heads, plan.pruning
    methods = [run.method for run in plan.settings.runs if run.attention_heads is None]
    ways = {run.way for run in plan.settings.runs if run.method == "importance"}
    by_heads = [run for run in runs if run == BASE or run not in same]
    return {
        "jobs": [],  # rule cost looks for benchmarks itself
        "alone": [],  # no experiment has them
        "outputs": [],  # rule claims reads what the other chapters make
        "runs": runs,
        "same_heads": same,
        "by_heads": by_heads if len(same) < len(runs) else [],
        "by_dropout": same if BASE in same and methods.count("baseline") > 1 else [],
        "by_variant": same if BASE in same and len(ways) > 1 else [],
        "starts": pruning.starts(),
        "compared": pruning.compared(),
        "pruned": pruning.of_heads,
        "subsets": pruning.subsets_of(plan.ablated),
        "subset_starts": [run for run in plan.ablated if pruning.subsets_of([run])],
        "gates": [name for name in pruning.named("gates") if name in pruning.of_heads],
        "penalised": pruning.penalised(),
        "timed": plan.timed,
        "timed_pruned": ["speed"] if pruning.timed() else [],
        "saving": ["savings"] if pruning.saving() else [],
        "smaller": pruning.saving()[1:],
        "ablated": plan.ablated,
        "measured": plan.measured,
        "profiled": plan.profiled,
        "cut": plan.cut,
        "shared": plan.shared,
        "transferred": plan.transferred,
    }

"""Pruned runs of an experiment: their inputs, and which jobs start first."""

from plan.layout import Layout, Wildcards

from headcount.base.folders import MODEL_FILES
from headcount.base.settings.experiment import Experiment
from headcount.base.settings.runs import RANDOM_WEIGHTS
from headcount.base.settings.train import TrainSettings
from headcount.base.settings.training_runs import BASELINE

MODEL = tuple(f"model/{name}" for name in MODEL_FILES)
FIRST_PASS = 0.7  # of impt, in updates of a plain training; benchmarks.headmask_cost: 0.6 to 0.65


class Pruning:
    """The pruned runs of one experiment. Methods that take `w` are functions of wildcards."""

    def __init__(self, layout: Layout, settings: Experiment):
        """`layout`: the folders of the experiment."""
        self.layout = layout
        self.settings = settings
        self.trained = {run.label: run for run in settings.runs}
        self.runs = {run.label: run for run in settings.pruned}
        # Names are made once: many jobs ask for those of other runs.
        self._start = {name: run.start for name, run in self.runs.items()}
        self._gates = {name: run.gates_run.label for name, run in self.runs.items()}
        self.of_heads = [name for name, run in self.runs.items() if run.of_heads]

    def named(self, *methods: str) -> list[str]:
        """Return the runs made by these methods: gates, scratch, importance, random, subset."""
        return [name for name, run in self.runs.items() if run.method in methods]

    def gates_from(self, start: str) -> list[str]:
        """Return the gates runs that start from a training run, or from random weights."""
        return [name for name in self.named("gates") if self._start[name] == start]

    def masked_as(self, start: str) -> list[str]:
        """Return the gates runs of heads that start from a training run."""
        return [name for name in self.gates_from(start) if name in self.of_heads]

    def fine_tuned(self) -> list[str]:
        """Return the gates runs that start from a trained model."""
        return [name for name in self.named("gates") if not self.runs[name].from_none]

    def subsets_of(self, starts: list[str]) -> list[str]:
        """Return the runs that learn which heads of all stay, from one of these training runs."""
        subsets = self.named("subset")
        return [n for n in subsets if self.runs[n].scope == "all" and self._start[n] in starts]

    def penalised(self) -> list[str]:
        """Return the gates runs of heads with λ above 0, which may have lost heads."""
        return [n for n in self.of_heads if n in self.named("gates") and self.runs[n].lambda_ > 0]

    def starts(self) -> list[str]:
        """Return the training runs that pruned runs of heads start from, in order of `runs`."""
        return [name for name in self.trained if name in map(self._start.get, self.of_heads)]

    def compared(self) -> list[str]:
        """Return `starts`, and the baseline for random weights, which it began with."""
        fresh = RANDOM_WEIGHTS in map(self._start.get, self.of_heads)
        starts = {*self.starts(), *[BASELINE.label] * fresh}
        return [name for name in self.trained if name in starts]

    def timed(self) -> list[str]:
        """Return the runs that are timed, if any: one with all heads, then those that lost some."""
        return self._smaller(self.of_heads) if self.settings.speed.batch_sizes else []

    def saving(self) -> list[str]:
        """Return the runs whose savings are measured, if any: a whole one, then smaller ones.

        The first is the control of the gates runs, if there is one: it had as many updates.
        """
        first, *smaller = self._smaller([*self.runs]) or [""]
        controls = [name for name in self.named("gates") if not self.runs[name].lambda_]
        asked = first and self.settings.savings.compute_types
        return [(controls or [first])[0], *smaller] if asked else []

    def _smaller(self, names: list[str]) -> list[str]:
        """Return a run with all units, then the runs of `names` that lost some.

        The first is the baseline if it is a start, or else another start. Controls are left out,
        and runs with the very heads of another run. Models trained with masked heads are as large
        as the baseline.
        """
        starts = {BASELINE.label if s == RANDOM_WEIGHTS else s for s in map(self._start.get, names)}
        wholes = sorted(filter(starts.__contains__, self.trained), key=BASELINE.label.__ne__)
        lost = [n for n in names if self.runs[n].lambda_ > 0 or self.runs[n].heads]
        return [*wholes[:1], *(name for name in lost if self.runs[name].method != "scratch")]

    def start_model(self, w: Wildcards) -> list[str]:
        """Return description and weights of the model that a pruned run starts from."""
        return self.layout.beside("train", w, self._start[w["run"]], *MODEL)

    def gates_heads(self, w: Wildcards) -> list[str]:
        """Return the list of heads of the gates run that a pruned run is compared with."""
        return self.layout.beside("prune", w, self._gates[w["run"]], "heads.csv")

    def gates_heads_from(self, w: Wildcards) -> list[str]:
        """Return the lists of heads of all gates runs of heads that start from a training run."""
        runs = self.masked_as(w["run"])
        return [file for run in runs for file in self.layout.beside("prune", w, run, "heads.csv")]

    def importance(self, w: Wildcards) -> list[str]:
        """Return the ranking of a pruned run's start, if the run needs one."""
        whole = w["run"] not in self.of_heads
        name = "units.csv" if whole else "importance.csv"
        files = self.layout.beside("heads", w, self._start[w["run"]], name)
        return files if self.runs[w["run"]].method == "importance" else []

    def timed_models(self, w: Wildcards) -> list[str]:
        """Return description and weights of all timed models."""
        return self._models(w, self.timed())

    def saving_models(self, w: Wildcards) -> list[str]:
        """Return description and weights of all models whose savings are measured."""
        return self._models(w, self.saving())

    def _models(self, w: Wildcards, names: list[str]) -> list[str]:
        runs = [("prune" if run in self.runs else "train", run) for run in names]
        return [file for phase, run in runs for file in self.layout.beside(phase, w, run, *MODEL)]

    def from_scratch(self) -> TrainSettings:
        """Return settings of trainings from scratch: as many updates in total as a gates run."""
        return self.settings.gates.from_scratch(self.settings.train)

    def urgency(self, w: Wildcards) -> int:
        """Return the number of runs that wait for a run or for its ranking: most start first."""
        own = {name: {self._start[name], self._gates[name]} - {name} for name in self.runs}
        return sum(w["run"] in before for before in own.values())

    def ranked_units(self) -> list[str]:
        """Return the training runs whose units of all kinds must be ranked for pruned runs."""
        ranked = [name for name in self.named("importance") if name not in self.of_heads]
        return [name for name in self.trained if name in map(self._start.get, ranked)]

    def updates(self, name: str) -> float:
        """Return the updates of a run with its first passes (0 for an unchanged imported model)."""
        settings = self.settings
        if name in self.runs:
            run = self.runs[name]
            anew = run.from_none or run.method == "scratch"
            return self.from_scratch().updates if anew else settings.gates.updates
        if settings.model.frozen:
            return 0
        run = self.trained[name]
        measured = max(settings.train.updates - run.start_update, 0) * (run.method == "importance")
        return settings.train.updates + FIRST_PASS * run.probability * measured

"""What the rules ask of an experiment's pruned runs: which there are, and what each one needs."""

from layout import Layout, Wildcards

from headcount.base.folders import MODEL_FILES
from headcount.base.settings.experiment import Experiment
from headcount.base.settings.runs import BASELINE, PrunedSettings, label

MODEL = tuple(f"model/{name}" for name in MODEL_FILES)
FIRST_PASS = 0.7  # of impt, in updates of a plain training; docs/speed.md has the measurement


class Pruning:
    """The pruned runs of one experiment, and the order in which long jobs had best begin."""

    def __init__(self, layout: Layout, settings: Experiment):
        """`layout`: where the experiment's files lie."""
        self.layout = layout
        self.settings = settings
        self.trained = {label(run): run for run in settings.runs}
        self.runs = {label(run): run for run in settings.pruned}

    def named(self, *methods: str) -> list[str]:
        """Names of the runs made by these methods: gates, scratch, importance, random."""
        return [name for name, run in self.runs.items() if run.method in methods]

    def starts(self) -> list[str]:
        """Names of the training runs from whose models pruned runs start, in order of `runs`."""
        started = [run.init_from for run in self.runs.values()]
        return [name for name, run in self.trained.items() if run in started]

    def penalised(self) -> list[str]:
        """Names of the gates runs with λ above 0, which may have lost heads."""
        return [name for name in self.named("gates") if self.runs[name].lambda_ > 0]

    def start_model(self, w: Wildcards) -> list[str]:
        """Description and weights of the model that a pruned run starts from."""
        return self.layout.beside("train", w, self._start(w), *MODEL)

    def start_flags(self, w: Wildcards) -> list[str]:
        """The folder of the model that a pruned run starts from, as a flag."""
        return ["--init-from", *self.layout.beside("train", w, self._start(w), "model")]

    def gates_heads(self, w: Wildcards) -> list[str]:
        """Which heads the gates run of a pruned run kept."""
        return self.layout.beside("prune", w, label(self.runs[w["run"]].gates_run), "heads.csv")

    def importance(self, w: Wildcards) -> list[str]:
        """The ranking of the model that a pruned run starts from, if it goes by one."""
        found = self.layout.beside("heads", w, self._start(w), "importance.csv")
        return found if self.runs[w["run"]].method == "importance" else []

    def gates_from(self, start: str) -> list[str]:
        """Names of the gates runs that start from a training run."""
        return [name for name in self.named("gates") if label(self.runs[name].init_from) == start]

    def gates_heads_from(self, w: Wildcards) -> list[str]:
        """Which heads each gates run kept that starts from the run of `w`."""
        return self._of_each("prune", w, self.gates_from(w["run"]), "heads.csv")

    def timed(self) -> list[str]:
        """Names of the runs that are timed: what pruning starts from, then what has lost heads.

        Not the controls, nor what has the very heads of a run that is timed; and models trained
        with masked heads are as large as the baseline.
        """
        starts = self.starts()
        start = label(BASELINE) if label(BASELINE) in starts else "".join(starts[:1])
        smaller = [n for n, run in self.runs.items() if run.method != "scratch" and run.lambda_ > 0]
        return [start, *smaller] if starts else []

    def timed_models(self, w: Wildcards) -> list[str]:
        """Description and weights of each timed model of the pair and seed of `w`."""
        return self._of_timed(w, *MODEL)

    def timed_flags(self, w: Wildcards) -> list[str]:
        """Names of the timed runs and folders of their models, as flags."""
        return ["--runs", *self.timed(), "--models", *self._of_timed(w, "model")]

    def urgency(self, w: Wildcards) -> float:
        """Updates from the start of a training or fine-tuning to the end of all that wait for it.

        What is longest begins first, so that no long job is left to run alone at the end.
        """
        name = w["run"]
        if name in self.runs:
            run = self.runs[name]
            updates = self._updates(run)
            return updates + (self._longest(run) if run.method == "gates" else 0)
        run = self.trained[name]
        cost = 1 + FIRST_PASS * run.probability if run.method == "importance" else 1
        waiting = [self.urgency({"run": gates}) for gates in self.gates_from(name)]
        return self.settings.train.updates * cost + max(waiting, default=0)

    def ranking_urgency(self, w: Wildcards) -> float:
        """Updates of the longest run that waits for the importance of a model's heads."""
        waiting = (run for run in self.runs.values() if run.method == "importance")
        return max(
            (self._updates(run) for run in waiting if label(run.init_from) == w["run"]), default=0
        )

    def _longest(self, gates: PrunedSettings) -> int:
        """Updates of the longest run that waits for a gates run."""
        waiting = (run for run in self.runs.values() if run.gates_run == gates != run)
        return max(map(self._updates, waiting), default=0)

    def _updates(self, run: PrunedSettings) -> int:
        of = self.settings.train if run.method == "scratch" else self.settings.gates
        return of.updates

    def _start(self, w: Wildcards) -> str:
        return label(self.runs[w["run"]].init_from)

    def _of_timed(self, w: Wildcards, *names: str) -> list[str]:
        start, smaller = self.timed()[:1], self.timed()[1:]
        of_start = self._of_each("train", w, start, *names)
        return of_start + self._of_each("prune", w, smaller, *names)

    def _of_each(self, phase: str, w: Wildcards, runs: list[str], *names: str) -> list[str]:
        return [file for run in runs for file in self.layout.beside(phase, w, run, *names)]

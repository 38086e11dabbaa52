"""What the rules ask of an experiment's pruned runs: which there are, and what each one needs."""

from layout import Layout, Wildcards

from headcount.base.folders import MODEL_FILES
from headcount.base.settings.experiment import Experiment
from headcount.base.settings.runs import RANDOM_WEIGHTS, label
from headcount.base.settings.train import TrainSettings
from headcount.base.settings.training_runs import BASELINE

MODEL = tuple(f"model/{name}" for name in MODEL_FILES)
FIRST_PASS = 0.7  # of impt, in updates of a plain training; benchmarks.headmask_cost: 0.6 to 0.65


class Pruning:
    """The pruned runs of one experiment, and the order in which long jobs had best begin."""

    def __init__(self, layout: Layout, settings: Experiment):
        """`layout`: where the experiment's files lie."""
        self.layout = layout
        self.settings = settings
        self.trained = {label(run): run for run in settings.runs}
        self.runs = {label(run): run for run in settings.pruned}
        # Names are spelled once: many jobs ask for those of other runs, of which there may be many.
        self._start = {name: run.start for name, run in self.runs.items()}
        self._gates = {name: label(run.gates_run) for name, run in self.runs.items()}
        self._waiting = self._runs_waiting()

    def named(self, *methods: str) -> list[str]:
        """Names of the runs made by these methods: gates, scratch, importance, random, subset."""
        return [name for name, run in self.runs.items() if run.method in methods]

    def gates_from_none(self) -> list[str]:
        """Names of the gates runs that start from random weights."""
        return self.gates_from(RANDOM_WEIGHTS)

    def fine_tuned(self) -> list[str]:
        """Names of the gates runs that start from a trained model."""
        return [name for name in self.named("gates") if not self.runs[name].from_none]

    def starts(self) -> list[str]:
        """Names of the training runs from whose models pruned runs start, in order of `runs`."""
        found = {*self._start.values()}
        return [name for name in self.trained if name in found]

    def compared(self) -> list[str]:
        """Names of the training runs that pruned runs start from; the baseline for random weights.

        The baseline began with these weights.
        """
        found = {label(BASELINE) if s == RANDOM_WEIGHTS else s for s in self._start.values()}
        return [name for name in self.trained if name in found]

    def penalised(self) -> list[str]:
        """Names of the gates runs with λ above 0, which may have lost heads."""
        return [name for name in self.named("gates") if self.runs[name].lambda_ > 0]

    def start_model(self, w: Wildcards) -> list[str]:
        """Description and weights of the model that a pruned run starts from."""
        return self.layout.beside("train", w, self._start[w["run"]], *MODEL)

    def gates_heads(self, w: Wildcards) -> list[str]:
        """Which heads the gates run of a pruned run kept."""
        return self.layout.beside("prune", w, self._gates[w["run"]], "heads.csv")

    def importance(self, w: Wildcards) -> list[str]:
        """The ranking of the model that a pruned run starts from, if it goes by one."""
        found = self.layout.beside("heads", w, self._start[w["run"]], "importance.csv")
        return found if self.runs[w["run"]].method == "importance" else []

    def from_scratch(self) -> TrainSettings:
        """How a model from scratch is trained: with as many updates in total as a gates run."""
        return self.settings.gates.from_scratch(self.settings.train)

    def gates_from(self, start: str) -> list[str]:
        """Names of the gates runs that start from a training run."""
        return [name for name in self.named("gates") if self._start[name] == start]

    def gates_heads_from(self, w: Wildcards) -> list[str]:
        """Which heads each gates run kept that starts from the run of `w`."""
        runs = self.gates_from(w["run"])
        return [file for run in runs for file in self.layout.beside("prune", w, run, "heads.csv")]

    def timed(self) -> list[str]:
        """Names of the runs that are timed, if any: one with all heads, then what has lost some.

        The first is the baseline if it is a start, or else another start. Not the controls, nor
        what has the very heads of a run that is timed; and models trained with masked heads are as
        large as the baseline.
        """
        starts = self.compared()
        whole = label(BASELINE) if label(BASELINE) in starts else "".join(starts[:1])
        lost = {n: run for n, run in self.runs.items() if run.lambda_ > 0 or run.heads}
        smaller = [name for name, run in lost.items() if run.method != "scratch"]
        return [whole, *smaller] if starts and self.settings.speed.batch_sizes else []

    def timed_models(self, w: Wildcards) -> list[str]:
        """Description and weights of each timed model of the pair and seed of `w`."""
        runs = [("prune" if run in self.runs else "train", run) for run in self.timed()]
        return [file for phase, run in runs for file in self.layout.beside(phase, w, run, *MODEL)]

    def urgency(self, w: Wildcards) -> float:
        """Updates from the start of a training or fine-tuning to the end of all that wait for it.

        What is longest begins first, so that no long job is left to run alone at the end.
        """
        name = w["run"]
        after = max((self.urgency({"run": each}) for each in self._waiting[name]), default=0)
        return self.updates(name) + after

    def _runs_waiting(self) -> dict[str, list[str]]:
        """Names of the runs that begin when a run has ended, for each run."""
        found: dict[str, list[str]] = {name: [] for name in [*self.trained, *self.runs]}
        for name, gates in self._gates.items():
            before = self._start[name] if name == gates else gates
            if before in found:  # random weights are there from the first
                found[before].append(name)
        return found

    def ranking_urgency(self, w: Wildcards) -> float:
        """Updates of the longest run that waits for the importance of a model's heads."""
        waiting = (n for n in self.named("importance") if self._start[n] == w["run"])
        return max(map(self.updates, waiting), default=0)

    def all_updates(self) -> float:
        """Updates of all trainings and fine-tunings of the experiment."""
        each = sum(map(self.updates, [*self.trained, *self.runs]))
        return each * len(self.settings.pairs) * len(self.settings.seeds)

    def updates(self, name: str) -> float:
        """Updates of a training or fine-tuning; one with a first pass counts for more.

        None of an imported model that is taken as it is.
        """
        settings = self.settings
        if name in self.runs:
            run = self.runs[name]
            anew = run.from_none or run.method == "scratch"
            return self.from_scratch().updates if anew else settings.gates.updates
        if settings.model.as_it_is:
            return 0
        run = self.trained[name]
        measured = max(settings.train.updates - run.after, 0) if run.method == "importance" else 0
        return settings.train.updates + FIRST_PASS * run.probability * measured

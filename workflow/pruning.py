"""What the rules ask of an experiment's pruned runs: which there are, and what each one needs."""

from collections.abc import Mapping

from headcount.base.settings.experiment import Experiment
from headcount.base.settings.runs import BASELINE, PrunedSettings, label

Wildcards = Mapping[str, str]  # pair, run and seed

FIRST_PASS = 0.7  # of impt, in updates of a plain training; docs/speed.md has the measurement


class Pruning:
    """The pruned runs of one experiment, and the order in which long jobs had best begin."""

    def __init__(self, name: str, settings: Experiment):
        """`name`: the experiment's."""
        self.results = f"results/{name}"
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

    def of_pruned(self, name: str) -> list[str]:
        """The file of this name of every pruned run: pairs, then runs, then seeds."""
        return self._files(list(self.runs), "prune", name)

    def of_gates(self, name: str) -> list[str]:
        """The same of the gates runs alone."""
        return self._files(self.named("gates"), "prune", name)

    def priced(self) -> list[str]:
        """Names of the gates runs that have a price, so may have lost heads."""
        return [name for name in self.named("gates") if self.runs[name].lambda_ > 0]

    def of_priced(self, name: str) -> list[str]:
        """The file of this name of every one of them."""
        return self._files(self.priced(), "prune", name)

    def of_starts(self, phase: str, name: str) -> list[str]:
        """The file of this name of every run that pruned runs start from."""
        return self._files(self.starts(), phase, name)

    def of_pairs(self, name: str) -> list[str]:
        """The file of this name that stands for all pruned runs of a pair and seed."""
        return self._files(["speed"], "prune", name) if self.runs else []

    def start_folder(self, w: Wildcards) -> str:
        """Folder of the model that a pruned run starts from."""
        return f"{self._folder('train', w, label(self.runs[w['run']].init_from))}/model"

    def start_model(self, w: Wildcards) -> list[str]:
        """Description and weights of that model."""
        return _model(self.start_folder(w))

    def gates_heads(self, w: Wildcards) -> str:
        """Which heads the gates run of a pruned run kept."""
        gates = label(self.runs[w["run"]].gates_run)
        return f"{self._folder('prune', w, gates)}/heads.csv"

    def importance(self, w: Wildcards) -> list[str]:
        """The ranking of the model that a pruned run starts from, if it goes by one."""
        run = self.runs[w["run"]]
        if run.method != "importance":
            return []
        return [f"{self._folder('heads', w, label(run.init_from))}/importance.csv"]

    def gates_from(self, start: str) -> list[str]:
        """Names of the gates runs that start from a training run."""
        return [name for name in self.named("gates") if label(self.runs[name].init_from) == start]

    def gates_heads_from(self, w: Wildcards) -> list[str]:
        """Which heads each gates run kept that starts from the run of `w`."""
        return [
            f"{self._folder('prune', w, gates)}/heads.csv" for gates in self.gates_from(w["run"])
        ]

    def timed(self) -> list[str]:
        """Names of the runs that are timed: what pruning starts from, then what has lost heads.

        Not the controls, nor what has the very heads of a run that is timed; and models trained
        with masked heads are as large as the baseline.
        """
        starts = self.starts()
        start = label(BASELINE) if label(BASELINE) in starts else "".join(starts[:1])
        smaller = [n for n, run in self.runs.items() if run.method != "scratch" and run.lambda_ > 0]
        return [start, *smaller] if starts else []

    def timed_folders(self, w: Wildcards) -> list[str]:
        """Folders of the timed models of the pair and seed of `w`."""
        phases = {run: "prune" if run in self.runs else "train" for run in self.timed()}
        return [f"{self._folder(phase, w, run)}/model" for run, phase in phases.items()]

    def timed_models(self, w: Wildcards) -> list[str]:
        """Description and weights of each of them."""
        return [file for folder in self.timed_folders(w) for file in _model(folder)]

    def urgency(self, w: Wildcards) -> float:
        """Updates from the start of a training or fine-tuning to the end of all that wait for it.

        What is longest begins first, so that no long job is left to run alone at the end.
        """
        name = w["run"]
        if name in self.runs:
            run = self.runs[name]
            own = self._updates(run)
            return own + (self._longest(run) if run.method == "gates" else 0)
        run = self.trained[name]
        cost = 1 + FIRST_PASS * run.probability if run.method == "importance" else 1
        waiting = [self.urgency({"run": gates}) for gates in self.gates_from(name)]
        return self.settings.train.updates * cost + max(waiting, default=0)

    def ranking_urgency(self, w: Wildcards) -> float:
        """The same of measuring importance: the updates of the runs that wait for the ranking."""
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

    def _files(self, runs: list[str], phase: str, name: str) -> list[str]:
        return [
            f"{self._folder(phase, {'pair': pair, 'seed': str(seed)}, run)}/{name}"
            for pair in self.settings.pairs
            for run in runs
            for seed in self.settings.seeds
        ]

    def _folder(self, phase: str, w: Wildcards, run: str) -> str:
        return f"{self.results}/{phase}/{w['pair']}/{run}/seed{w['seed']}"


def _model(folder: str) -> list[str]:
    """Description and weights of the model in a folder."""
    return [f"{folder}/model.json", f"{folder}/weights.safetensors"]

"""What the rules ask of an experiment's ablation: of which models, on which test sets."""

from collections.abc import Mapping
from typing import Any

from headcount.base.settings.ablation import AblationSettings, RerankSettings
from headcount.base.settings.corpora import Corpus, ablation_tests
from headcount.base.settings.experiment import Experiment
from headcount.base.settings.flags import as_flags
from headcount.base.settings.runs import labels

Wildcards = Mapping[str, Any]  # pair, run and seed


class Ablation:
    """The models of one experiment whose heads are removed without further training."""

    def __init__(self, name: str, settings: Experiment, corpora: Mapping[str, Corpus]):
        """`name`: the experiment's. Raises UserError for a pair without the test sets named."""
        self.name = name
        self.settings = settings
        self.own: AblationSettings = settings.ablation
        self.runs = labels(self.own.runs)
        pairs = settings.pairs if self.own.runs else []
        self.tests = {pair: ablation_tests(self.own.test_sets, pair, corpora) for pair in pairs}

    def flags(self, pair: str, *names: str) -> list[str]:
        """These keys of the ablation section, and the pair's own test sets, as flags.

        A job is told no more than it reads, and so is not done again when another key changes.
        """
        own = self.own.model_copy(update={"test_sets": list(self.tests[pair])})
        return as_flags(own, *names, "test_sets")

    def rerank_flags(self) -> list[str]:
        """The importance section, as flags of scripts that measure importance anew."""
        return as_flags(RerankSettings(**self.settings.importance.model_dump()))

    def texts(self, pair: str, tests: list[str]) -> list[str]:
        """Both sides of some test sets."""
        folder = f"data/text/{self.name}/{pair}"
        return [f"{folder}/{test}.{end}" for test in tests for end in ("src", "tgt")]

    def all_texts(self, pair: str) -> list[str]:
        """Both sides of dev and of the two test sets."""
        return self.texts(pair, list(dict.fromkeys(["dev", *self.tests[pair]])))

    def first_text(self, pair: str) -> list[str]:
        """Both sides of the test set that scores pruning."""
        return self.texts(pair, [self.tests[pair][0]])

    def drawn_text(self, pair: str) -> list[str]:
        """The text on which importance is measured anew."""
        folder = f"data/bpe/{self.name}/{pair}"
        return [f"{folder}/{self.settings.importance.data}.{side}" for side in ("src", "tgt")]

    def checkpoints(self, w: Wildcards) -> list[str]:
        """Weights of a run at each of the updates at which it is pruned."""
        folder = f"results/{self.name}/train/{w['pair']}/{w['run']}/seed{w['seed']}/updates"
        return [f"{folder}/{update}.safetensors" for update in self.own.updates]

    def of_runs(self, phase: str, name: str) -> list[str]:
        """The file of this name of every model that is ablated: pairs, then runs, then seeds."""
        return [
            f"results/{self.name}/{phase}/{pair}/{run}/seed{seed}/{name}"
            for pair in self.settings.pairs
            for run in self.runs
            for seed in self.settings.seeds
        ]

    def of_checkpoints(self, name: str) -> list[str]:
        """The same of every model that is pruned during its training as well."""
        return self.of_runs("masking", name) if self.own.updates else []

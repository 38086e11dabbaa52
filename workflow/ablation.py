"""What the rules ask of an experiment's ablation: of which models, on which test sets."""

from collections.abc import Callable, Mapping

from layout import Layout, Wildcards

from headcount.base.folders import SIDES
from headcount.base.settings.ablation import AblationSettings, RerankSettings
from headcount.base.settings.corpora import Corpus, ablation_tests
from headcount.base.settings.experiment import Experiment
from headcount.base.settings.flags import as_flags
from headcount.base.settings.runs import labels


class Ablation:
    """The models of one experiment whose heads are removed without further training."""

    def __init__(self, layout: Layout, settings: Experiment, corpora: Mapping[str, Corpus]):
        """`layout`: of the experiment. Raises UserError for a pair without the test sets named."""
        self.layout = layout
        self.settings = settings
        self.section: AblationSettings = settings.ablation
        self.runs = labels(self.section.runs)
        pairs = settings.pairs if self.section.runs else []
        self.tests = {pair: ablation_tests(self.section.test_sets, pair, corpora) for pair in pairs}

    def flags(self, *names: str) -> Callable[[Wildcards], list[str]]:
        """A function for these keys of the ablation section, and a pair's own test sets, as flags.

        A job is told no more than it reads, and so is not done again when another key changes.
        """

        def of_pair(wildcards: Wildcards) -> list[str]:
            tests = list(self.tests[wildcards["pair"]])
            section = self.section.model_copy(update={"test_sets": tests})
            return as_flags(section, *names, "test_sets")

        return of_pair

    def rerank_flags(self) -> list[str]:
        """The importance section, as flags of scripts that measure importance anew."""
        return as_flags(RerankSettings(**self.settings.importance.model_dump()))

    def all_texts(self, w: Wildcards) -> list[str]:
        """Both sides of dev and of the two test sets of a pair."""
        tests = list(dict.fromkeys(["dev", *self.tests[w["pair"]]]))
        return self.layout.texts(w["pair"], tests, *SIDES)

    def first_text(self, w: Wildcards) -> list[str]:
        """Both sides of the test set that scores pruning."""
        return self.layout.texts(w["pair"], self.tests[w["pair"]][:1], *SIDES)

    def drawn_text(self) -> list[str]:
        """The text on which importance is measured anew, of any pair."""
        return [f"{self.layout.bpe()}/{self.settings.importance.data}.{side}" for side in SIDES]

    def checkpoints(self) -> list[str]:
        """Weights of any run at each of the updates at which it is pruned."""
        return [
            f"{self.layout.run('train')}/updates/{update}.safetensors"
            for update in self.section.updates
        ]

    def profiled(self) -> list[str]:
        """Names of the runs that are pruned during their training as well."""
        return self.runs if self.section.updates else []

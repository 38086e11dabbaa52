"""What the jobs of classifiers have to do, before anything is there."""

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from layout import Wildcards
from plan import Plan
from sizes import labelled_of, length_of

from headcount.ablation.ablation import all_but_one, single_heads
from headcount.base.ranking import Heads
from headcount.estimate.encoders import BERT_BASE, Encoder
from headcount.estimate.profiles import profile_sets
from headcount.estimate.work import Units

PADDED = 2
"""Times the mean length to which pairs are padded in training: the longest of a batch's."""
_FORWARD, _SLOPES = 1 / 3, 2 / 3  # of training's operations: no gradient; that of heads alone


class ClassifierWork:
    """The jobs of one experiment's classifiers in units of work."""

    def __init__(self, plan: Plan):
        """Raises UserError where nothing says how many labelled pairs there are."""
        self._classifiers, self._settings = plan.classifiers, plan.settings
        self.labelled = labelled_of(plan)
        length, self.lengths_from = length_of(plan, plan.settings.classifiers.corpus)
        self.length = 2 * length + 3  # of a pair, with a first piece and the ends of both sentences
        files = {name: self._folder(name) / "config.json" for name in plan.classifiers.models}
        self.unknown = [name for name, file in files.items() if not file.exists()]
        self.encoders = {
            name: BERT_BASE if name in self.unknown else Encoder.read(file)
            for name, file in files.items()
        }

    def units(self, rule: str, w: Wildcards) -> Units:
        """All but the start of a job."""
        match rule:
            case "entailment":
                return {"lines": sum(self.labelled.values())}
            case "fine_tune_classifier":
                return {"teraflops": self._fine_tuned(w["run"])}
        return {"teraflops": self._ablated(w["run"])}

    def chain(self) -> Units:
        """Work on the longest chain of jobs of which every one waits for the one before."""
        tuned = self._classifiers.fine_tuned
        each = (self._ablated(n) + self._fine_tuned(n) * (n in tuned) for n in self.encoders)
        return {"starts": 6, "teraflops": max(each)}

    def _fine_tuned(self, name: str) -> float:
        encoder = self.encoders[name]
        pairs = self.labelled["train"] * self._settings.fine_tuning.epochs
        return encoder.layers * encoder.teraflops(pairs * PADDED * self.length)

    def _ablated(self, name: str) -> float:
        """Pairs of like length come together, so that next to nothing is padded."""
        encoder, asked = self.encoders[name], self._settings.classifier_ablation
        pairs = {part: min(n, asked.pairs or n) for part, n in self.labelled.items()}
        single = [point.heads for point in single_heads(encoder.grid)]
        alone = [[point.heads for point in layer] for layer in all_but_one(encoder.grid)]
        pruned, rankings = profile_sets(encoder.grid, asked.pruning())
        on_test = _layers(encoder, [(), *single, *(layer[0] for layer in alone)])
        forward = pairs["dev"] * _layers(encoder, [(), *single, *chain(*alone)])
        forward += pairs["matched"] * (on_test + _layers(encoder, pruned))
        forward += pairs["mismatched"] * on_test
        slopes = pairs["dev"] * encoder.layers * rankings
        return encoder.teraflops(self.length) * (_FORWARD * forward + _SLOPES * slopes)

    def _folder(self, name: str) -> Path:
        own = self._classifiers.models[name].path
        return Path(own or Path(self._classifiers.source(name).manifest).parent)


def _layers(encoder: Encoder, sets: Iterable[Heads]) -> int:
    """Layers that a pair goes through: all once, then under each mask from the first masked one."""
    first = (heads[0] // encoder.heads if heads else encoder.layers - 1 for heads in sets)
    return encoder.layers + sum(encoder.layers - layer for layer in first)

"""What each job of an experiment has to do, before anything is there: from settings alone."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product

import numpy as np
from jobs import jobs
from plan import Plan

from headcount.ablation.pruning_orders import list_curves
from headcount.base.ranking import random_sets, ranked_sets
from headcount.base.settings.gates import GatesSettings
from headcount.base.settings.train import TrainSettings
from headcount.estimate.work import Units, Work

Values = Mapping[str, str]  # wildcards of one job
Sizes = Mapping[str, Mapping[str, int]]  # sentence pairs by pair and split

ALONE = ("speed", "share_speed")


class Workload:
    """The jobs of one experiment in units of work."""

    def __init__(self, plan: Plan, sizes: Sizes):
        self.plan, self.sizes, self.settings = plan, sizes, plan.settings
        self.grid = plan.settings.model.grid

    def works(self, rules: list[str]) -> Iterator[Work]:
        """Every job that has wildcards, those of several seeds as one; then the exhibits.

        `rules`: names of those that measure the heads of every trained model.
        """
        for rule, values in jobs(self.plan, rules):
            seeds = values.pop("seed", [None])
            for chosen in product(*values.values()):
                w = dict(zip(values, chosen, strict=True))
                units = {"starts": 1.0} | dict(self._units(rule, w))
                yield Work(rule, ".".join(map(str, chosen)), len(seeds), units, rule in ALONE)

    def chain(self) -> Units:
        """Work on the longest chain of jobs of which every one waits for the one before."""
        updates = max(self.plan.pruning.urgency({"run": run}) for run in self.plan.runs)
        lines = max(sides["train"] for sides in self.sizes.values())
        return {"starts": 6, "segmented": lines, "updates": updates}

    def _units(self, rule: str, w: Values) -> Units:
        """All but the start of a job; rules that are not here take no more than that."""
        train = partial(self._trained, of=self.settings.train)
        fine_tune = partial(self._trained, of=self.settings.gates)
        of_rule: dict[str, Callable[[Values], Units]] = {
            "text": self._text,
            "bpe": self._bpe,
            "train": train,
            "gates": fine_tune,
            "scratch": train,
            "fine_tune": fine_tune,
            "importance": lambda w: {"passes": self._drawn(w)},
            "relevance": lambda w: {
                "relevances": 2 * self._dev(w, self.settings.lrp.max_sentences)
            },
            "roles": self._roles,
            "pruned_roles": self._roles,
            "translate": lambda w: {"translations": self.sizes[w["pair"]][w["test"]]},
            "bleu": self._bleu,
            "masking": self._masking,
            "untuned_masking": self._untuned,
            "ablation": self._ablation,
            "pruning_profile": self._profile,
            "training_profile": self._training_profile,
            "speed": lambda w: self._timed(len(self.plan.pruning.timed())),
            "share_speed": lambda w: self._timed(1 + len(self.settings.ablation.timed)),
        }
        return of_rule[rule](w) if rule in of_rule else {}

    def _text(self, w: Values) -> Units:
        return {"lines": self.sizes[w["pair"]][w["split"]]}

    def _bpe(self, w: Values) -> Units:
        """Text that is tokenised already is cut a dozen times as fast."""
        cut = 0.1 if self.plan.pretokenised(w) else 1.0
        return {"segmented": cut * self.sizes[w["pair"]]["train"]}

    def _trained(self, w: Values, of: TrainSettings | GatesSettings) -> Units:
        """A training or fine-tuning, with its validations."""
        validated = -(-of.updates // of.dev_interval) * self._dev(w)
        return {"updates": self.plan.pruning.updates(w["run"]), "forwards": validated}

    def _relevance(self, w: Values) -> Units:
        """By both rules."""
        return {"relevances": 2 * self._dev(w, self.settings.lrp.max_sentences)}

    def _roles(self, w: Values) -> Units:
        """Weights of attention have to be made, which takes about as long again."""
        texts = 1 + len(self.plan.treebanks(w))
        runs = len(self.plan.pruning.penalised()) if "run" not in w else 1
        return {"forwards": 2 * runs * texts * self._dev(w, self.settings.roles.sentences)}

    def _bleu(self, w: Values) -> Units:
        tests = self.plan.tests(w["pair"])
        return {"resamples": sum(self.sizes[w["pair"]][test] for test in tests)}

    def _masking(self, w: Values) -> Units:
        settings, heads = self.settings.masking, self.grid.size
        own = w["run"] == "baseline" or "baseline" not in self.plan.runs
        # Two rankings that have no set in common but none and all, as is likely of real ones.
        rankings = [np.random.default_rng(seed).permutation(heads) for seed in range(2 - own)]
        points = [each for r in rankings for each in ranked_sets(list(r), settings.groups)]
        points += random_sets(heads, settings.groups, settings.draws, 1)
        masks = len({point.heads for point in points})
        tests = self.plan.masking_tests(w)
        return self._masked(masks * sum(self._first(w, t, settings.sentences) for t in tests))

    def _untuned(self, w: Values) -> Units:
        settings = self.settings.masking
        masks = 1 + len(self.plan.pruning.gates_from(w["run"])) * (2 + settings.draws)
        tests = self.plan.masking_tests(w)
        return self._masked(masks * sum(self._first(w, t, settings.sentences) for t in tests))

    def _ablation(self, w: Values) -> Units:
        heads, layers = self.grid.size, len(list(self.grid.layers()))
        tests = self.plan.ablation_tests(w["pair"])
        number = self.settings.ablation.sentences
        masks = {test: 1 + heads + (heads if test == "dev" else layers) for test in ("dev", *tests)}
        return self._masked(sum(m * self._first(w, test, number) for test, m in masks.items()))

    def _profile(self, w: Values) -> Units:
        asked = self.settings.ablation
        importance, effects = np.random.default_rng(0).random((2, self.grid.size))
        curves = list_curves(self.grid, lambda _: importance, effects, asked, 1)
        masks = len({heads for curve in curves for heads in curve.sets})
        test = self.plan.ablation_tests(w["pair"])[0]
        return self._masked(masks * self._first(w, test, asked.sentences))

    def _training_profile(self, w: Values) -> Units:
        asked = self.settings.ablation
        test = self.plan.ablation_tests(w["pair"])[0]
        points = len(asked.updates)
        masked = self._masked(points * (asked.steps + 1) * self._first(w, test, asked.sentences))
        return {**masked, "passes": points * self._drawn(w)}

    def _timed(self, models: int) -> Units:
        speed = self.settings.speed
        rounds = models * (speed.repeats + 1) * speed.sentences
        several = len([size for size in speed.batch_sizes if size > 1])
        single = len(speed.batch_sizes) - several
        return {"translations": rounds * several, "single": rounds * single}

    def _masked(self, sentences: float) -> Units:
        return {"translations": sentences, "resamples": sentences}

    def _drawn(self, w: Values) -> int:
        importance = self.settings.importance
        return min(importance.sentences, self.sizes[w["pair"]][importance.data])

    def _dev(self, w: Values, most: int | None = None) -> int:
        return self._first(w, "dev", most)

    def _first(self, w: Values, split: str, most: int | None) -> int:
        size = self.sizes[w["pair"]][split]
        return size if most is None else min(size, most)

"""What each job of an experiment has to do, before anything is there: from settings alone."""

from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np
from classifier_work import ClassifierWork
from jobs import jobs
from plan import Plan

from headcount.base.addresses import HeadGrid
from headcount.base.ranking import random_sets, ranked_sets
from headcount.base.settings.train import GatesSettings, TrainSettings
from headcount.estimate.profiles import ablation_sets, profile_sets
from headcount.estimate.work import Units, Work

Values = Mapping[str, str]  # wildcards of one job
Sizes = Mapping[str, Mapping[str, int]]  # sentence pairs by pair and split

ALONE = ("speed", "share_speed", "importance_speed")
_OF_CLASSIFIERS = ("entailment", "fine_tune_classifier", "classifier_ablation")


class Workload:
    """The jobs of one experiment in units of work."""

    def __init__(self, plan: Plan, sizes: Sizes):
        self.plan, self.sizes, self.settings = plan, sizes, plan.settings
        self.classifiers = ClassifierWork(plan) if plan.classifiers.models else None

    def works(self, rules: list[str]) -> Iterator[Work]:
        """Every job that has wildcards, those of several seeds as one.

        `rules`: names of those that measure the heads of every trained model.
        """
        for rule, values in jobs(self.plan, rules):
            seeds = values.pop("seed", [None])
            for chosen in product(*values.values()):
                w = dict(zip(values, chosen, strict=True))
                units = {"starts": 1.0} | dict(self.units(rule, w))
                yield Work(rule, ".".join(map(str, chosen)), len(seeds), units, rule in ALONE)

    def chains(self) -> Iterator[Units]:
        """Work on long chains of jobs, of which every one waits for the one before."""
        if self.sizes:
            updates = max(self.plan.pruning.urgency({"run": run}) for run in self.plan.runs)
            lines = max(sides["train"] for sides in self.sizes.values())
            yield {"starts": 6, "segmented": lines, "updates": updates}
        if self.classifiers:
            yield self.classifiers.chain()

    def units(self, rule: str, w: Values) -> Units:
        """All but the start of a job; rules that are not here take no more than that."""
        settings = self.settings
        if rule in _OF_CLASSIFIERS:
            return self.classifiers.units(rule, w)
        sizes = self.sizes[w["pair"]]
        match rule:
            case "text":
                return {"lines": sizes[w["split"]]}
            case "bpe":  # text that is tokenised already is cut a dozen times as fast
                cut = 0.1 if self.plan.pretokenised(w) else 1.0
                return {"segmented": cut * sizes["train"]}
            case "segment":  # as fast as text that is tokenised already
                return {"segmented": 0.1 * sizes["train"]}
            case "imported_run":
                return {"forwards": sizes["dev"]}
            case "train":
                return self._trained(w, settings.train)
            case "scratch" | "gates_from_none":
                return self._trained(w, self.plan.pruning.from_scratch())
            case "gates" | "fine_tune" | "subset":
                return self._trained(w, settings.gates)
            case "importance":
                return {"passes": self._drawn(w)}
            case "loss_change":
                return {"forwards": (1 + self._grid(w["run"]).size) * self._drawn(w)}
            case "more_measures":
                return self._measured(w)
            case "relevance":  # by both rules
                return {"relevances": 2 * self._first(w, "dev", settings.lrp.max_sentences)}
            case "roles" | "pruned_roles":
                return self._roles(w)
            case "translate":
                return {"translations": sizes[w["test"]]}
            case "speed":
                return self._timed(len(self.plan.pruning.timed()))
            case "importance_speed":  # training takes about as long as importance
                return {"passes": 2 * (settings.speed.repeats + 1) * settings.speed.sentences}
            case "share_speed":
                return self._timed(1 + len(settings.ablation.timed))
        return self._masked(rule, w)

    def _masked(self, rule: str, w: Values) -> Units:
        """A rule that translates under masks, each distinct set of heads once."""
        asked, masking = self.settings.ablation, self.settings.masking
        if rule in ("masking", "untuned_masking"):
            masks = self._sets(w) if rule == "masking" else self._cuts(w["run"])
            sentences = dict.fromkeys(self.plan.masking_tests(w), masks)
            return self._translated(w, sentences, masking.sentences)
        if rule == "ablation":
            on_test, on_dev = ablation_sets(self._grid(w["run"]))
            sentences = dict.fromkeys(self.plan.ablation_tests(w["pair"]), on_test)
            return self._translated(w, sentences | {"dev": on_dev}, asked.sentences)
        if rule == "pruning_profile":
            first = self.plan.ablation_tests(w["pair"])[0]
            sets, rankings = profile_sets(self._grid(w["run"]), asked)
            filled = asked.measures * (asked.steps + 1)  # means in place of zeros
            masked = self._translated(w, {first: len(sets) + filled}, asked.sentences)
            return {**masked, "passes": (rankings - 1) * self._drawn(w)}  # the first is there
        if rule == "training_profile":
            first, points = self.plan.ablation_tests(w["pair"])[0], len(asked.updates)
            masked = self._translated(w, {first: points * (asked.steps + 1)}, asked.sentences)
            rankings = asked.steps if asked.reestimate else 1  # at the most: equal sets share one
            return {**masked, "passes": points * rankings * self._drawn(w)}
        return {}

    def _measured(self, w: Values) -> Units:
        """Gradients at points of the way, then every head alone, then orders of them."""
        more, drawn, heads = self.settings.measures, self._drawn(w), self._grid(w["run"]).size
        ordered = more.orders * heads * min(more.order_sentences, drawn)
        return {"passes": (1 + more.points) * drawn, "forwards": (1 + heads) * drawn + ordered}

    def _translated(self, w: Values, masks: Mapping[str, int], most: int | None) -> Units:
        """So many masks of the first sentences of each test set."""
        sentences = sum(count * self._first(w, test, most) for test, count in masks.items())
        return {"translations": sentences, "resamples": sentences}

    def _sets(self, w: Values) -> int:
        """Sets of rule masking; two rankings have none in common but no head and all."""
        settings, heads = self.settings.masking, self.settings.model.grid.size
        own = w["run"] == "baseline" or "baseline" not in self.plan.runs
        rankings = [np.random.default_rng(seed).permutation(heads) for seed in range(2 - own)]
        points = [each for r in rankings for each in ranked_sets(list(r), settings.groups)]
        points += random_sets(heads, settings.groups, settings.draws, 1)
        return len({point.heads for point in points})

    def _cuts(self, run: str) -> int:
        """No head, and for each gates run its own heads, the least important and random ones."""
        return 1 + len(self.plan.pruning.gates_from(run)) * (2 + self.settings.masking.draws)

    def _grid(self, run: str) -> HeadGrid:
        """The heads of a training run's model."""
        return self.plan.pruning.trained[run].own_model(self.settings.model).grid

    def _trained(self, w: Values, of: TrainSettings | GatesSettings) -> Units:
        """A training or fine-tuning of all heads, with its validations."""
        validated = -(-of.updates // of.dev_interval) * self.sizes[w["pair"]]["dev"]
        return {"updates": self.plan.pruning.updates(w["run"]), "forwards": validated}

    def _roles(self, w: Values) -> Units:
        """Weights of attention have to be made, which takes about as long again."""
        texts = 1 + len(self.plan.raw.treebanks(w["pair"]))
        runs = 1 if "run" in w else len(self.plan.pruning.penalised())
        return {"forwards": 2 * runs * texts * self._first(w, "dev", self.settings.roles.sentences)}

    def _timed(self, models: int) -> Units:
        speed = self.settings.speed
        rounds = models * (speed.repeats + 1) * speed.sentences
        several = len([size for size in speed.batch_sizes if size > 1])
        single = len(speed.batch_sizes) - several
        return {"translations": rounds * several, "single": rounds * single}

    def _drawn(self, w: Values) -> int:
        importance = self.settings.importance
        return self._first(w, importance.data, importance.sentences)

    def _first(self, w: Values, split: str, most: int | None) -> int:
        size = self.sizes[w["pair"]][split]
        return size if most is None else min(size, most)

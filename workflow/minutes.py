"""How long jobs may take on a cluster, by the work that the estimate counts, on the slow side."""

from collections.abc import Mapping
from math import ceil

from needs import parameters
from plan import Plan
from sizes import length_of, pairs_of
from work import Workload

from headcount.base.settings.experiment import Experiment
from headcount.base.settings.names import parse_pair
from headcount.estimate.rates import FIXED
from headcount.estimate.work import Units

SECONDLY = {
    "updates": (2e10, 5e12),
    "passes": (2e10, 5e12),
    "forwards": (2e10, 5e12),
    "teraflops": (2e10, 5e12),
    "translations": (1e10, 1e12),
    "single": (1e9, 1e10),
    "relevances": (5e9, 5e11),
}
"""Operations that a core, and a GPU, is taken to do in a second, the slow side of what was measured
on one core for models of 0.5 to 48 million parameters. Those of a GPU are assumed, as none was at
hand."""

SLOWER = 5
"""Times that a job may take over what text took where it was measured, for slow shared folders."""

SCORED = 5e-4
"""Seconds for a translation that the bootstrap scores."""

START = 5
"""Minutes of every job beside its work: shared folders are slow to give Python its packages."""


def operations(settings: Experiment, length: int) -> Units:
    """Operations by unit of work, of sentences of so many subwords on each side.

    Two of each parameter and subword to come forward, four for the gradient; a search has a beam of
    each word; relevance is walked back from each word.
    """
    forward, train = 2 * parameters(settings), settings.train
    searched = forward * settings.decode.beam * length
    return {
        "updates": 3 * forward * train.batch_tokens * train.accumulate,
        "passes": 3 * forward * 2 * length,
        "forwards": forward * 2 * length,
        "teraflops": 1e12,
        "translations": searched,
        "single": searched,
        "relevances": 3 * forward * 2 * length * length,
    }


class MinutesOfJobs:
    """Minutes that jobs of one experiment may take, by rule."""

    def __init__(self, plan: Plan):
        """Raises UserError where nothing says how much text there is."""
        self._settings = plan.settings
        self._workload = Workload(plan, pairs_of(plan))
        lengths = [length_of(plan, parse_pair(pair).corpus)[0] for pair in plan.settings.pairs]
        self._operations = operations(plan.settings, max(lengths, default=0))

    def of(self, rule: str, wildcards: Mapping[str, str], section: str) -> int:
        """Those of one job, with device and threads of a section of the settings."""
        units = self._workload.units(rule, dict(wildcards.items()))
        seconds = sum(count * self._seconds(unit, section) for unit, count in units.items())
        return START + ceil(seconds / 60)

    def _seconds(self, unit: str, section: str) -> float:
        if unit in FIXED:
            return SLOWER * FIXED[unit]
        if unit == "resamples":
            return SCORED
        own, (core, gpu) = getattr(self._settings, section), SECONDLY[unit]
        rate = gpu if own.device == "cuda" else core * own.threads
        if unit == "updates":
            rate *= self._settings.train.processes
        return self._operations[unit] / rate

"""Ways to choose heads by the name of a run, for tests of training."""

from named_runs import RUNS

from headcount.base.addresses import HeadGrid
from headcount.base.settings.train import GatesSettings, SubsetSettings, TrainSettings
from headcount.training.headmask import HeadMask, make_head_mask
from headcount.training.learnt_mask import HeadGates, HeadSubset
from headcount.training.states import StateStore


def make_mask(
    name: str, grid: HeadGrid, train: TrainSettings, seed: int = 2, **changes
) -> HeadMask:
    """The mask of a training or pruned run. `changes`: of the settings of gates or subsets."""
    if name.startswith("gates"):
        run = RUNS[name]
        return HeadGates(run, grid, GatesSettings(**changes), train, seed)
    if name.startswith("subset"):
        run = RUNS[name]
        return HeadSubset(run, grid, SubsetSettings(**changes), train, seed)
    return make_head_mask(RUNS[name], grid, train, seed)


class Stopping(StateStore):
    """Saves after one update, where the run ends without a word."""

    stop = 0

    def due(self):
        return True

    def save(self, update, state):
        if update == self.stop:
            super().save(update, state)
            raise SystemExit

"""The tables of heads removed from trained models (Michel et al.), ours above the paper's rows."""

from pathlib import Path

import pandas as pd

from headcount.findings import exhibits
from headcount.findings.michel import all_but_one as kept
from headcount.findings.michel import pruning as steps
from headcount.findings.michel import setting, single
from headcount.findings.michel import speed as timing
from headcount.findings.michel import training as checkpoints
from headcount.findings.michel.metric import BLEU
from headcount.findings.published.numbers import with_printed
from headcount.findings.results import Results
from headcount.findings.run_tables import gather
from headcount.findings.tables import Table


def read_profiles(files: list[Path]) -> pd.DataFrame:
    """The points of pruning_profile.csv of runs; see `profile_points`."""
    return steps.profile_points(gather(files, steps.READ))


@exhibits.table("michel_ablation", "Table 1: BLEU without each head", needs=("ablated",))
def ablation(results: Results) -> Table:
    """BLEU without each head."""
    table = single.single_table(results.read(single.read_ablation, "ablation"))
    tidy = with_printed(table, single.printed_single())
    words = f"{single.caption(BLEU)} {single.PRINTED} {setting.scored(results)}"
    return Table(tidy, single.single_summary(tidy), words)


@exhibits.table(
    "michel_all_but_one", "Tables 2 and 5: one head left in a layer", needs=("ablated",)
)
def all_but_one(results: Results) -> Table:
    """BLEU with one head left in a layer."""
    table = kept.all_but_one_table(results.read(single.read_ablation, "ablation"))
    tidy = with_printed(table, kept.printed_all_but_one())
    words = f"{kept.caption(BLEU)} {kept.PRINTED} {setting.scored(results)}"
    return Table(tidy, kept.all_but_one_summary(tidy), words)


@exhibits.table(
    "michel_transfer", "Figure 2 as a table: effects of heads on two test sets", needs=("ablated",)
)
def transfer(results: Results) -> Table:
    """Whether heads matter alike on two test sets."""
    points = single.transfer_points(results.read(single.read_ablation, "ablation"))
    table = single.transfer_table(points)
    tidy = with_printed(table, single.printed_transfer())
    words = f"{single.transfer_caption(BLEU)} {single.PRINTED_TRANSFER} {setting.scored(results)}"
    return Table(tidy, single.transfer_summary(tidy), words)


@exhibits.table("michel_pruning", "How many heads can be pruned", needs=("profiles", "ablated"))
def pruning(results: Results) -> Table:
    """How many heads can be pruned, by order and by kind."""
    table = steps.pruning_table(results.read(read_profiles, "profiles"))
    tidy = with_printed(table, steps.printed_pruning())
    words = steps.caption(BLEU, steps.ORDERS, kinds=True)
    words = f"{words} {steps.PRINTED} {setting.ranked(results)}"
    return Table(tidy, steps.pruning_summary(tidy), words)


@exhibits.table("michel_areas", "Mean BLEU over shares of heads pruned", needs=("areas", "ablated"))
def areas(results: Results) -> Table:
    """Mean BLEU over shares of heads pruned."""
    table = steps.areas_table(gather(results.files("areas"), steps.AREAS))
    tidy = with_printed(table, steps.printed_areas())
    words = steps.areas_caption(BLEU, kinds=True)
    words = f"{words} {steps.PRINTED_AREAS} {setting.ranked(results)}"
    return Table(tidy, steps.areas_summary(tidy, BLEU), words)


@exhibits.table("michel_speed", "Table 4: speed without heads", needs=("share_speed", "ablation"))
def speed(results: Results) -> Table:
    """Sentences per second by share of heads removed."""
    tidy = results.read(timing.speed_table, "share_speed")
    words = f"{timing.CAPTION} {setting.timed(results)} {timing.PRINTED}"
    return Table(tidy, timing.speed_summary(tidy), words)


@exhibits.table(
    "michel_training",
    "Heads pruned at points of the training",
    needs=("training", "training_heads", "ablated"),
)
def training(results: Results) -> Table:
    """Statistics of the pruning profile at points of the training."""
    points = results.read(checkpoints.training_points, "training")
    normalise = results.settings["ablation"].normalise
    tidy = checkpoints.training_table(points, results.files("training_heads"), normalise)
    words = f"{checkpoints.CAPTION} {setting.ranked(results)}"
    return Table(tidy, checkpoints.training_summary(tidy), words)

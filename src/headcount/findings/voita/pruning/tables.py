"""All tables of head pruning: Voita's Table 2, and four that the paper lacks."""

from headcount.base.settings.gates import GatesSettings
from headcount.base.settings.model import ModelSettings
from headcount.findings.file_lists import NamedTable
from headcount.findings.masking import describe_tests
from headcount.findings.scores import Scores, describe_search
from headcount.findings.voita.pruning import comparison, falls, table2
from headcount.findings.voita.pruning import records as pruning
from headcount.findings.voita.pruning import removal_speed as speed
from headcount.findings.voita.pruning.files import PruningFiles
from headcount.findings.voita.pruning.heads import read_pruned
from headcount.findings.voita.pruning.setting import describe_pruning
from headcount.findings.voita.pruning.updates import Updates


def voita_tables(
    files: PruningFiles, model: ModelSettings, gates: GatesSettings
) -> list[NamedTable]:
    """The paper's table, then those it lacks."""
    models = read_pruned(files.kept, model.grid)
    scores = Scores(files.scores, files.translations, files.references)
    updates = Updates(files.curves)
    masked = comparison.read_untuned(files.untuned, model.grid.size)
    setting = describe_pruning(model, gates, models)
    measured = f"{describe_search(files.scores)} {setting}"
    untuned = f"Untuned: {describe_tests(files.facts)}" if files.facts else ""
    spent = updates.describe(models)
    records = pruning.pruning_table(models, scores)  # first: it looks for the controls
    chosen = table2.chosen_models(models)
    few = table2.table2(chosen, scores, updates)
    fallen = falls.falls_table(models, scores)
    compared = comparison.comparison_table(models, masked, scores)
    timed = speed.speed_table(files.speed, models)
    return [
        NamedTable(
            "voita_table2",
            few,
            table2.table2_summary(few),
            f"{table2.CAPTION} {updates.describe(chosen)} {measured}",
        ),
        NamedTable(
            "voita_pruning",
            records,
            pruning.pruning_summary(records),
            f"{pruning.CAPTION} {spent} {measured}",
        ),
        NamedTable(
            "voita_falls", fallen, falls.falls_summary(fallen), f"{falls.CAPTION} {measured}"
        ),
        NamedTable(
            "voita_comparison",
            compared,
            comparison.comparison_summary(compared),
            f"{comparison.CAPTION} {spent} {untuned} {measured}",
        ),
        NamedTable(
            "voita_speedup", timed, speed.speed_summary(timed), f"{speed.CAPTION} {setting}"
        ),
    ]

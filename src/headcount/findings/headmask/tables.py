"""All tables of HeadMask: 1 to 6, and two that the paper lacks, on stability and collapse."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from headcount.base.settings.importance import ImportanceSettings
from headcount.base.settings.model import ModelSettings
from headcount.findings.file_lists import some_files
from headcount.findings.headmask import collapse, corpora
from headcount.findings.headmask import importance as inequality
from headcount.findings.headmask import score_tables as scores
from headcount.findings.headmask.mask_frequency import read_masks, with_lengths
from headcount.findings.headmask.scores import compare_scores, describe_search
from headcount.findings.masking import describe_tests, read_masking
from headcount.findings.run_tables import gather
from headcount.findings.setting import describe_importance, describe_setting, importance_unit
from headcount.findings.tables import Table


@dataclass(frozen=True)
class TableFiles:
    """What the tables are made from; each file of a run lies below `<pair>/<run>/seed<k>/`."""

    counts: list[Path] = some_files("<pair>/<split>.json beside the cleaned text")
    references: list[Path] = some_files("<pair>/<test>.tgt")
    scores: list[Path] = some_files("bleu.json of runs")
    translations: list[Path] = some_files("translations/<test>.txt of runs")
    curves: list[Path] = some_files("curves.csv of runs")
    masks: list[Path] = some_files("masks.csv of runs")
    importance: list[Path] = some_files("importance.csv of runs")
    masking: list[Path] = some_files("headmask.csv of runs")
    facts: list[Path] = some_files("headmask.json, beside each of these")


def headmask_tables(
    files: TableFiles, model: ModelSettings, importance: ImportanceSettings
) -> list[Table]:
    """The tables, in the paper's order, then those it lacks."""
    heads = inequality.read_importance(files.importance)
    masking, masks = read_masking(files.masking), read_masks(files.masks)
    curves = with_lengths(gather(files.curves, collapse.CURVES))
    setting = describe_setting(model, heads)
    measured = f"{describe_importance(importance)} {setting}"
    unit = importance_unit(importance)
    sizes = corpora.corpora_table(files.counts)
    collapsed = collapse.collapse_table(heads, masks, curves, masking)
    stable = inequality.stability_table(heads)
    return [
        Table("headmask_table1", sizes, corpora.corpora_summary(sizes), corpora.CAPTION),
        *_score_tables(files, model),
        *(_inequality(number, heads, unit, measured) for number in (5, 6)),
        Table(
            "headmask_stability",
            stable,
            inequality.stability_summary(stable),
            f"{inequality.STABILITY_CAPTION} {measured}",
        ),
        Table(
            "headmask_collapse",
            collapsed,
            collapse.collapse_summary(collapsed),
            f"{collapse.CAPTION} {describe_tests(files.facts)} {measured}",
        ),
    ]


def _score_tables(files: TableFiles, model: ModelSettings) -> list[Table]:
    ours = compare_scores(files.scores, files.translations, files.references)
    tables = []
    for number in (2, 3, 4):
        tidy = scores.score_table(number, ours)
        caption = f"{scores.score_caption(number, tidy, model)} {describe_search(files.scores)}"
        tables.append(Table(f"headmask_table{number}", tidy, scores.score_summary(tidy), caption))
    return tables


def _inequality(number: int, heads: pd.DataFrame, unit: str, setting: str) -> Table:
    tidy = inequality.inequality_table(heads, number)
    shown = inequality.inequality_summary(tidy)
    caption = f"{inequality.inequality_caption(number, unit)} {setting}"
    return Table(f"headmask_table{number}", tidy, shown, caption)

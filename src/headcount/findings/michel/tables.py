"""All tables of heads removed from trained models (Michel et al.)."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from headcount.base.settings.ablation import AblationSettings
from headcount.base.settings.importance import ImportanceSettings
from headcount.base.settings.model import ModelSettings
from headcount.findings.file_lists import NamedTable, any_files, some_files
from headcount.findings.masking import describe_tests
from headcount.findings.michel import all_but_one, pruning, single, speed, training
from headcount.findings.michel.metric import BLEU
from headcount.findings.run_tables import gather
from headcount.findings.setting import describe_ranking, describe_setting

_Parts = tuple[str, pd.DataFrame, pd.DataFrame, str]  # name, tidy, shown, caption


@dataclass(frozen=True)
class TableFiles:
    """What the tables are made from; files of a run lie below `<pair>/<run>/seed<k>/`."""

    ablation: list[Path] = some_files("ablation.csv of runs")
    facts: list[Path] = some_files("ablation.json, beside each of these")
    profiles: list[Path] = some_files("pruning_profile.csv of runs")
    areas: list[Path] = some_files("pruning_profile_areas.csv, beside each of these")
    speed: list[Path] = some_files("share_speed.csv of runs")
    training: list[Path] = any_files(
        "training_profile.csv of runs; none where no run is pruned during its training"
    )
    importance: list[Path] = any_files("training_profile_heads.csv, beside each of these")


def michel_tables(
    files: TableFiles,
    model: ModelSettings,
    settings: AblationSettings,
    importance: ImportanceSettings,
) -> list[NamedTable]:
    """Single heads, all but one, transfer; then pruning by steps, its areas, speed, training."""
    ablation = single.read_ablation(files.ablation)
    setting = f"{describe_tests(files.facts)} {describe_setting(model, ablation)}"
    ranked = f"{setting} {describe_ranking(settings, importance)}"
    timed = speed.speed_table(files.speed)
    machine = f"{speed.describe_timing(files.speed)} {describe_setting(model, ablation)}"
    timed_words = f"{speed.CAPTION} {machine} {speed.PRINTED}"
    tables = [
        *_single_tables(ablation, setting),
        *_pruning_tables(files, ranked),
        ("speed", timed, speed.speed_summary(timed), timed_words),
    ]
    if files.training:
        points = training.training_points(files.training)
        when = training.training_table(points, files.importance, settings.normalise)
        shown = training.training_summary(when)
        tables.append(("training", when, shown, f"{training.CAPTION} {ranked}"))
    return [NamedTable(f"michel_{name}", *parts) for name, *parts in tables]


def _single_tables(ablation: pd.DataFrame, setting: str) -> list[_Parts]:
    alone = _both(single.single_table(ablation), single.printed_single())
    kept = _both(all_but_one.all_but_one_table(ablation), all_but_one.printed_all_but_one())
    points = single.transfer_points(ablation)
    moved = _both(single.transfer_table(points), single.printed_transfer())
    alone_words = f"{single.caption(BLEU)} {single.PRINTED} {setting}"
    kept_words = f"{all_but_one.caption(BLEU)} {all_but_one.PRINTED} {setting}"
    moved_words = f"{single.transfer_caption(BLEU)} {single.PRINTED_TRANSFER} {setting}"
    return [
        ("ablation", alone, single.single_summary(alone), alone_words),
        ("all_but_one", kept, all_but_one.all_but_one_summary(kept), kept_words),
        ("transfer", moved, single.transfer_summary(moved), moved_words),
    ]


def _pruning_tables(files: TableFiles, setting: str) -> list[_Parts]:
    points = pruning.profile_points(gather(files.profiles, pruning.READ))
    shares = _both(pruning.pruning_table(points), pruning.printed_pruning())
    areas = _both(pruning.areas_table(gather(files.areas, pruning.AREAS)), pruning.printed_areas())
    words = pruning.caption(BLEU, pruning.ORDERS, kinds=True)
    areas_words = pruning.areas_caption(BLEU, kinds=True)
    return [
        (
            "pruning",
            shares,
            pruning.pruning_summary(shares),
            f"{words} {pruning.PRINTED} {setting}",
        ),
        (
            "areas",
            areas,
            pruning.areas_summary(areas, BLEU),
            f"{areas_words} {pruning.PRINTED_AREAS} {setting}",
        ),
    ]


def _both(ours: pd.DataFrame, printed: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([ours, printed], ignore_index=True)

"""The files that the tables and figures of head pruning are made from."""

from dataclasses import dataclass
from pathlib import Path

from headcount.findings.file_lists import any_files, some_files


@dataclass(frozen=True)
class PruningFiles:
    """Files of a run lie below `<pair>/<run>/seed<k>/`."""

    kept: list[Path] = some_files("heads.csv of every pruned run")
    gates: list[Path] = some_files("gates.csv of every gates run")
    scores: list[Path] = some_files(
        "bleu.json of every pruned run and of every run that one starts from"
    )
    curves: list[Path] = some_files("curves.csv of the same runs")
    translations: list[Path] = some_files("translations/<test>.txt of every pruned run")
    references: list[Path] = some_files("<pair>/<test>.tgt")
    untuned: list[Path] = any_files(
        "untuned_masking.csv of start models; none where no gates run starts from the baseline"
    )
    facts: list[Path] = any_files("untuned_masking.json, beside each of these")
    speed: list[Path] = some_files("speed.csv, below <pair>/speed/seed<k>/")

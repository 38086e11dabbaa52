"""What tables and figures of roles are made from, and what they share."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from headcount.base.settings.lrp import LrpSettings
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.roles import RolesSettings
from headcount.findings.file_lists import any_files
from headcount.findings.run_tables import HEAD, KEYS, gather, run_of
from headcount.findings.setting import describe_setting
from headcount.findings.voita.roles.agreement import bleu_lost, gate_survival
from headcount.findings.voita.roles.head_table import roles_table, wide
from headcount.findings.voita.roles.labels import SYNTAX, VALUES, read_roles

RELEVANCE = ["relevance", "relevance_low", "relevance_high"]
RULES = ["relevance_ratio", "relevance_alpha_beta"]


@dataclass(frozen=True)
class RolesFiles:
    """Files of runs lie below `<pair>/<run>/seed<k>/`."""

    attention: list[Path] = any_files("attention.csv of training runs")
    positions: list[Path] = any_files("positions.csv of training runs")
    syntax: list[Path] = any_files("syntax.csv of training runs")
    relevance: list[Path] = any_files("relevance.csv of training runs")
    importance: list[Path] = any_files("importance.csv of training runs")
    importance_facts: list[Path] = any_files("importance.json, beside each of these")
    maps: list[Path] = any_files("maps.json of training runs")
    pruned_attention: list[Path] = any_files("attention.csv of gates runs")
    pruned_positions: list[Path] = any_files("positions.csv of gates runs")
    pruned_syntax: list[Path] = any_files("syntax.csv of gates runs")
    kept: list[Path] = any_files("heads.csv of pruned runs")
    ablation: list[Path] = any_files("ablation.csv of runs whose heads were masked one by one")
    ablation_facts: list[Path] = any_files("ablation.json, beside each of these")
    trees: list[Path] = any_files("<pair>/trees/<treebank>.csv")


class Measured:
    """Everything measured, read once."""

    def __init__(self, files: RolesFiles, model: ModelSettings, settings: RolesSettings):
        self.files, self.model, self.settings = files, model, settings
        trained = (files.attention, files.positions, files.syntax)
        self.heads = read_roles(*trained, settings)
        self.syntax = gather(files.syntax, SYNTAX)
        self.survival = gate_survival(files.kept, model.grid.size)
        importance = wide(gather(files.importance, VALUES), ["importance"])
        self._relevance = gather(files.relevance, VALUES)
        relevance = wide(self._relevance, RELEVANCE)
        self.roles = roles_table(self.heads, relevance, importance, self.survival)
        self._importance = importance

    def retained(self) -> pd.DataFrame:
        """The heads of trained models and of pruned ones, as `read_roles` has them."""
        files = self.files
        if not files.pruned_attention:
            return self.heads
        pruned = (files.pruned_attention, files.pruned_positions, files.pruned_syntax)
        return pd.concat([self.heads, read_roles(*pruned, self.settings)], ignore_index=True)

    def retained_runs(self) -> list[tuple[str, str, int]]:
        """Pair, run and seed of the models of `retained`, those without an encoder head too."""
        return [run_of(path) for path in (*self.files.attention, *self.files.pruned_attention)]

    def measures(self) -> pd.DataFrame:
        """A head of any kind a row, with a column for each measure; of relevance the size."""
        found = wide(self._relevance, ["relevance", *RULES]).dropna(axis=1, how="all")
        for name in found.columns.intersection(["relevance", *RULES]):
            # The ratio rule's sign says for or against the word, not how much.
            found[name] = found[name].abs()
        sure = wide(gather(self.files.attention, VALUES), ["confidence"])
        lost = bleu_lost(self.files.ablation)
        for other in (self._importance, sure, self.survival, lost):
            found = found.merge(other, "left", [*KEYS, *HEAD])
        return found

    def setting(self, lrp: LrpSettings) -> str:
        """How it was measured, and the models, in words for captions."""
        settings = self.settings
        margin = f"{100 * settings.margin:g} "
        margin += "points" if settings.margin_kind == "absolute" else "per cent of it"
        signed = ", signed, ranked and compared by its size" if lrp.rule == "ratio" else ""
        return (
            f"Measured on the first {settings.sentences} sentences of dev and of each treebank; "
            f"EOS: {settings.eos.replace('_', ' ')}. Positional: {settings.positional_share:.0%} "
            f"of largest weights at one relative position. Syntactic: {margin} above the "
            f"baseline. Rare: {settings.rare_share:.0%} at the two rarest subwords. Relevance: "
            f"{lrp.rule.replace('_', '-')} rule{signed}, up to {lrp.max_sentences} sentences. "
            f"{describe_setting(self.model, self.roles)}"
        )

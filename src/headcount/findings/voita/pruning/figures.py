"""All figures of head pruning: Voita's 6, 7, 9 and 10, and three that the paper lacks."""

import pandas as pd

from headcount.base.settings.gates import GatesSettings
from headcount.base.settings.model import ModelSettings
from headcount.findings.file_lists import NamedFigure
from headcount.findings.masking import describe_cover, describe_tests
from headcount.findings.published import voita
from headcount.findings.published.numbers import beside_ours
from headcount.findings.scores import Scores, describe_search
from headcount.findings.setting import OVER_SEEDS
from headcount.findings.voita.pruning import drawings, gate_figures
from headcount.findings.voita.pruning.comparison import read_untuned
from headcount.findings.voita.pruning.comparison import untuned as untuned_rows
from headcount.findings.voita.pruning.files import PruningFiles
from headcount.findings.voita.pruning.heads import PrunedModel, read_pruned
from headcount.findings.voita.pruning.method_points import method_points
from headcount.findings.voita.pruning.points import encoder_points, kind_points, layer_points
from headcount.findings.voita.pruning.records import pruning_table
from headcount.findings.voita.pruning.removal_speed import speed_table, speed_with_bleu
from headcount.findings.voita.pruning.setting import describe_pruning
from headcount.findings.voita.pruning.speed_figure import draw_speed
from headcount.findings.voita.pruning.updates import Updates

_POINTS = "The paper's points are read off its drawing; it prints neither λ nor spread."


def voita_figures(
    files: PruningFiles, model: ModelSettings, gates: GatesSettings
) -> list[NamedFigure]:
    """The paper's figures, then those it lacks."""
    models = read_pruned(files.kept, model.grid)
    scores = Scores(files.scores, files.translations, files.references)
    spent = Updates(files.curves).describe(models)
    masked = read_untuned(files.untuned, model.grid.size)
    records = pruning_table(models, scores)
    setting = describe_pruning(model, gates, models)
    scored = f"{describe_search(files.scores)} {setting}"
    untuned = f"Untuned: {describe_tests(files.facts)} " if files.facts else ""
    silenced = pd.DataFrame(untuned_rows(models, masked))
    return [
        _distributions(gates),
        _encoder(records, scored),
        *_heads(models, setting),
        _methods(method_points(records, silenced), f"{spent} {untuned}{scored}"),
        _trajectories(gate_figures.trajectories(files.gates, models), setting),
        _speed(speed_with_bleu(speed_table(files.speed, models), scores), scored),
    ]


def _distributions(gates: GatesSettings) -> NamedFigure:
    table = gate_figures.distributions(gates)
    return NamedFigure(
        "voita_fig6",
        gate_figures.draw_distributions(table),
        table,
        "Distribution of one gate, in closed form. Left: the Concrete distribution, and what it "
        "becomes when stretched beyond 0 and 1 and cut there. Right: Hard Concrete at three "
        "locations log α. Lines: density (left scale; that of Concrete grows without end at 0 and "
        "1, and is drawn up to 4). Bars: probability of exactly 0 and exactly 1 (right scale), "
        f"beside the ends so that they can be told apart. {voita.source()} prints the masses in "
        f"brackets; they belong to temperature {gate_figures.PAPER.temperature:g}, while its code "
        f"trains with 0.33. This experiment has {gates.temperature:g}.",
    )


def _encoder(records: pd.DataFrame, setting: str) -> NamedFigure:
    points = encoder_points(records)
    found = points.loc[points["source"] == "ours", "spread"].unique()
    ours = (
        f"Bars: {' or '.join(found)}, with one seed of the difference to the control, laid around "
        f"the control. {describe_cover(found)}"
        if len(found)
        else "This experiment has no gates run on encoder self-attention from the baseline."
    )
    return NamedFigure(
        "voita_fig7",
        drawings.draw_encoder(points),
        points,
        "BLEU by the number of encoder self-attention heads left, fine-tuned with gates on these "
        "alone while the decoder is frozen; each point is a λ. The control was fine-tuned for as "
        f"many updates with λ = 0. {ours} Right: {voita.source()}, Figure 7; every panel has a "
        f"scale of its own. {_POINTS} {beside_ours(voita.metric())} {setting}",
    )


def _heads(models: list[PrunedModel], setting: str) -> list[NamedFigure]:
    kinds, layers = kind_points(models), layer_points(models)
    none = "This experiment has no gates run on all kinds from the baseline. "
    seeds = "" if "ours" in set(kinds["source"]) else none
    seeds += f"Bars: standard deviation over seeds. {OVER_SEEDS} " if _several(kinds) else ""
    return [
        NamedFigure(
            "voita_fig9",
            drawings.draw_kinds(kinds),
            kinds,
            "Heads left of each kind of attention as more are pruned, with gates on all kinds; "
            "each point is a λ. enc: encoder self-attention, dec: decoder self-attention, dec-enc: "
            f"decoder-encoder attention. {seeds}Right: {voita.source()}, Figure 9. {_POINTS} "
            f"{setting}",
        ),
        NamedFigure(
            "voita_fig10",
            drawings.draw_layers(layers),
            layers,
            "Heads left in the decoder's layers as more heads of that kind are pruned, with gates "
            "on all kinds; each point is a λ. Two neighbouring layers are taken together where a "
            f"decoder has more than three, as in the paper. {seeds}Below: {voita.source()}, Figure "
            f"10. {_POINTS} {setting}",
        ),
    ]


def _several(points: pd.DataFrame) -> bool:
    """Whether ours have more than one seed."""
    return points.loc[points["source"] == "ours", "seed"].nunique() > 1


def _methods(points: pd.DataFrame, setting: str) -> NamedFigure:
    spreads = points["spread"].unique()
    shown = points[points["test_set"] == points.groupby("pair")["test_set"].transform("first")]
    others = "Other test sets are in the numbers. " if len(shown) < len(points) else ""
    return NamedFigure(
        "voita_methods",
        drawings.draw_methods(shown),
        points,
        "Change in BLEU (below 0: worse) by the number of heads left, for gates, the most "
        "important heads of the start "
        "model (ranked), random heads (drawn), and the heads that gates kept trained from scratch. "
        "Fine-tuned: all for as many updates, against the λ = 0 control; scratch: by the whole "
        "recipe. Not fine-tuned: the baseline's own weights with heads silenced, against that "
        "model with all heads. By start: gates on models trained with masked heads, each against "
        "its own control. Heads are those that the scope may lose; markers at one number of them "
        f"stand side by side. Scales differ. {others}Bars: "
        f"{' or '.join(spreads)}. {describe_cover(spreads)} {setting}",
    )


def _trajectories(table: pd.DataFrame, setting: str) -> NamedFigure:
    return NamedFigure(
        "voita_gates",
        gate_figures.draw_gates(table),
        table,
        "Gates over fine-tuning: probability that a gate is not 0, at every validation. A row is a "
        "head, kinds and their layers from the first (top) to the last, divided by lines. enc: "
        "encoder self-attention, dec: decoder self-attention, dec-enc: decoder-encoder attention. "
        f"Titles say how many gated heads are left at the end. {setting}",
    )


def _speed(table: pd.DataFrame, setting: str) -> NamedFigure:
    return NamedFigure(
        "voita_speed",
        draw_speed(table),
        table,
        "BLEU on the first test set by time per sentence and by size, of models whose heads were "
        "really removed. Time: median over repeats in which the models take turns; bars from the "
        "fastest repeat to the slowest. Encode: one pass of the encoder over a batch; decode: beam "
        f"search of whole sentences, encoder included. A point is a model of one seed. {setting}",
    )

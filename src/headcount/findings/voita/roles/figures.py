"""All figures of roles: Voita's 1 to 5 and 8."""

from pathlib import Path

from matplotlib.figure import Figure

from headcount.base.settings.lrp import LrpSettings
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.roles import RolesSettings
from headcount.findings.file_lists import NamedFigure
from headcount.findings.published import voita
from headcount.findings.run_tables import BASE
from headcount.findings.setting import describe_setting, of_one_training
from headcount.findings.voita.roles import dependency_figures, maps, rare_maps, retained
from headcount.findings.voita.roles.dependency_scores import NO_TREES, dependency_table
from headcount.findings.voita.roles.files import Measured, RolesFiles

_DOBJ = "Universal Dependencies call obj what the paper calls dobj."
_NO_TREES = f"Ours are {NO_TREES}."
_READ_OFF = "The paper's values are read off its drawing, within 0.005."


def roles_figures(
    files: RolesFiles, model: ModelSettings, settings: RolesSettings, lrp: LrpSettings
) -> list[NamedFigure]:
    """The paper's figures of its sections 4, 5 and 6.2.2."""
    measured = Measured(files, model, settings)
    setting = measured.setting(lrp)
    return [
        *_maps(measured, setting),
        _positions(measured),
        _scores(measured, setting),
        _rare(measured.files.maps, setting),
        _retained(measured, setting),
    ]


def _maps(measured: Measured, setting: str) -> list[NamedFigure]:
    """Figure 1: the baselines, with confidence; Figure 2: what was trained otherwise."""
    base = measured.roles["run"] == BASE
    first = maps.map_points(measured.roles[base], ["opensubtitles.en-ru"])
    second = maps.map_points(measured.roles[~base], ["wmt.en-de", "wmt.en-fr"])
    words = (
        "Rows of a map are encoder layers, the first at the bottom; in each, heads are sorted by "
        "relevance. Function: relative position, relation (v: verb, s: subject, o: object, n: "
        "noun, a: adjective, adv: adverb; v→o looks from the verb to its object), or rare words; "
        f"at most two are written. Several: of more than one of these kinds. {voita.source()}"
    )
    return [
        NamedFigure(
            "voita_fig1",
            maps.draw_maps(first, ["relevance", "confidence"]),
            first,
            "Relevance, confidence and function of the encoder's heads in models trained plainly. "
            f"{words}, Figure 1, below. {_READ_OFF} {setting}",
        ),
        NamedFigure(
            "voita_fig2",
            maps.draw_maps(second, ["relevance"]),
            second,
            "Relevance and function of the encoder's heads in models trained with masked heads. "
            f"{words}, Figure 2, below: plainly trained models of two more pairs, WMT. {_READ_OFF} "
            f"{setting}",
        ),
    ]


def _positions(measured: Measured) -> NamedFigure:
    relations = measured.settings.relations
    points = dependency_figures.dependent_positions(measured.files.trees, relations)
    trees = "over every sentence of each treebank that the models can read, however many of them "
    ours = f"Ours are counted {trees}heads are measured on." if measured.files.trees else _NO_TREES
    return NamedFigure(
        "voita_fig3",
        dependency_figures.draw_positions(points, relations),
        points,
        "Where dependents stand, in words before (−) or after (+) what they depend on; shares of "
        f"all arcs of a relation. {ours} {_DOBJ} Positions farther than seven are in the numbers, "
        f"not in the drawing. {voita.source()}, Figure 3: predicted trees of WMT, for nsubj, obj, "
        f"amod and advmod. {_READ_OFF} {describe_setting(measured.model, measured.roles)}",
    )


def _scores(measured: Measured, setting: str) -> NamedFigure:
    points = dependency_figures.score_points(dependency_table(measured.syntax, measured.settings))
    ours = "" if (points["source"] == "ours").any() else f"{_NO_TREES} "
    return NamedFigure(
        "voita_fig4",
        dependency_figures.draw_scores(points),
        points,
        "Accuracy of the best encoder head for each relation and direction, on the first treebank "
        "of each model; thin bars: 95 % Wilson interval; thick lines: positional baseline on the "
        f"same trials. {of_one_training('trials')} {ours}{_DOBJ} Below: "
        f"{voita.source()}, Figure 4, one baseline for both directions. {_READ_OFF} {setting}",
    )


def _rare(files: list[Path], setting: str) -> NamedFigure:
    chosen = rare_maps.choose_maps(files)
    return NamedFigure(
        "voita_fig5",
        rare_maps.draw_maps(chosen),
        rare_maps.map_weights(chosen),
        "Attention of the candidate for the rare-word head, the head of the first encoder layer "
        "with the largest share at the two rarest subwords, on the first sentences of dev that are "
        "short; queries down, keys across. Whether it is a rare-word head stands in voita_roles. "
        f"The paper's Figure 5 shows one sentence for each of three pairs. {setting}",
    )


def _retained(measured: Measured, setting: str) -> NamedFigure:
    total = measured.model.grid.size
    table = retained.retained_roles(measured.retained(), measured.retained_runs(), total)
    drawing: Figure = retained.draw_retained(table)
    none = "" if measured.files.pruned_attention else "This experiment prunes no model. "
    return NamedFigure(
        "voita_fig8",
        drawing,
        table,
        "What the encoder heads do that models have left, measured anew in each pruned model; "
        "the first bar is the model that was pruned, every other a λ. A model "
        "without any has no bar, and 0 below it. Every head counts once; hatched: heads with "
        "several functions, of two kinds or of one (two relations, or both directions of one). "
        "The paper prints in a head's cell how many functions it has; this is not read off. "
        f"{none}{voita.source()}, Figure 8: EN-RU, OpenSubtitles. {setting}",
    )

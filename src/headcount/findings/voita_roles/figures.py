"""All figures of roles: Voita's 1 to 5 and 8."""

from headcount.findings import exhibits
from headcount.findings.figures import Drawn
from headcount.findings.published import voita
from headcount.findings.results import Results
from headcount.findings.run_tables import BASE
from headcount.findings.setting import describe_setting, of_one_training
from headcount.findings.voita_roles import dependency_figures, maps, rare_maps, retained
from headcount.findings.voita_roles.dependency_scores import NO_TREES, best_heads
from headcount.findings.voita_roles.measured import all_roles, describe_roles

_DOBJ = "Universal Dependencies call obj what the paper calls dobj."
_NO_TREES = f"Ours are {NO_TREES}."
_READ_OFF = "The paper's values are read off its drawing, within 0.005."
_MAPS = (
    "Rows of a map are encoder layers, the first at the bottom; in each, heads are sorted by "
    "relevance. Function: relative position, relation (v: verb, s: subject, o: object, n: "
    "noun, a: adjective, adv: adverb; v→o looks from the verb to its object), or rare words; "
    f"at most two are written. Several: of more than one of these kinds. {voita.source()}"
)


@exhibits.figure(
    "voita_fig1", "Figure 1: heads of the baseline", needs=("roles",), uses=("pruned_runs", "kept")
)
def fig1(results: Results) -> Drawn:
    """Relevance, confidence and function of the baselines' heads."""
    roles = all_roles(results)
    points = maps.map_points(roles[roles["run"] == BASE], ["opensubtitles.en-ru"])
    return Drawn(
        maps.draw_maps(points, ["relevance", "confidence"]),
        points,
        "Relevance, confidence and function of the encoder's heads in models trained plainly. "
        f"{_MAPS}, Figure 1, below. {_READ_OFF} {describe_roles(results)}",
    )


@exhibits.figure(
    "voita_fig2",
    "Figure 2: heads of models trained otherwise",
    needs=("roles",),
    uses=("pruned_runs", "kept"),
)
def fig2(results: Results) -> Drawn:
    """Relevance and function of heads in models trained otherwise."""
    roles = all_roles(results)
    points = maps.map_points(roles[roles["run"] != BASE], ["wmt.en-de", "wmt.en-fr"])
    return Drawn(
        maps.draw_maps(points, ["relevance"]),
        points,
        "Relevance and function of the encoder's heads in models trained with masked heads. "
        f"{_MAPS}, Figure 2, below: plainly trained models of two more pairs, WMT. {_READ_OFF} "
        f"{describe_roles(results)}",
    )


@exhibits.figure(
    "voita_fig3",
    "Figure 3: where dependents stand",
    needs=("roles",),
    uses=("pruned_runs", "kept", "trees"),
)
def fig3(results: Results) -> Drawn:
    """Where dependents stand."""
    relations = results.settings["roles"].relations
    counted = results.files("trees")
    points = dependency_figures.dependent_positions(counted, relations)
    trees = "over every sentence of each treebank that the models can read, however many of them "
    ours = f"Ours are counted {trees}heads are measured on." if counted else _NO_TREES
    return Drawn(
        dependency_figures.draw_positions(points, relations),
        points,
        "Where dependents stand, in words before (−) or after (+) what they depend on; shares of "
        f"all arcs of a relation. {ours} {_DOBJ} Positions farther than seven are in the numbers, "
        f"not in the drawing. {voita.source()}, Figure 3: predicted trees of WMT, for nsubj, obj, "
        f"amod and advmod. {_READ_OFF} {describe_setting(results, all_roles(results))}",
    )


@exhibits.figure(
    "voita_fig4",
    "Figure 4: accuracy of the best heads",
    needs=("roles",),
    uses=("pruned_runs", "kept"),
)
def fig4(results: Results) -> Drawn:
    """Accuracy of the best head for each relation."""
    points = dependency_figures.score_points(best_heads(results))
    ours = "" if (points["source"] == "ours").any() else f"{_NO_TREES} "
    return Drawn(
        dependency_figures.draw_scores(points),
        points,
        "Accuracy of the best encoder head for each relation and direction, on the first treebank "
        "of each model; thin bars: 95 % Wilson interval; thick lines: positional baseline on the "
        f"same trials. {of_one_training('trials')} {ours}{_DOBJ} Below: "
        f"{voita.source()}, Figure 4, one baseline for both directions. {_READ_OFF} "
        f"{describe_roles(results)}",
    )


@exhibits.figure(
    "voita_fig5",
    "Figure 5: attention to rare words",
    needs=("roles", "maps"),
    uses=("pruned_runs", "kept"),
)
def fig5(results: Results) -> Drawn:
    """Attention to rare words."""
    chosen = rare_maps.choose_maps(results.files("maps"))
    return Drawn(
        rare_maps.draw_maps(chosen),
        rare_maps.map_weights(chosen),
        "Attention of the candidate for the rare-word head, the head of the first encoder layer "
        "with the largest share at the two rarest subwords, on the first sentences of dev that are "
        "short; queries down, keys across. Whether it is a rare-word head stands in voita_roles. "
        f"The paper's Figure 5 shows one sentence for each of three pairs. "
        f"{describe_roles(results)}",
    )


@exhibits.figure(
    "voita_fig8",
    "Figure 8: what the heads do that are left",
    needs=("roles",),
    uses=("pruned_runs", "kept", "pruned_attention", "pruned_positions", "pruned_syntax"),
)
def fig8(results: Results) -> Drawn:
    """What the heads do that are left."""
    table = retained.retained_of(results)
    none = "" if results.files("pruned_attention") else "This experiment prunes no model. "
    return Drawn(
        retained.draw_retained(table),
        table,
        "What the encoder heads do that models have left, measured anew in each pruned model; "
        "the first bar is the model that was pruned, every other a λ. A model "
        "without any has no bar, and 0 below it. Every head counts once; hatched: heads with "
        "several functions, of two kinds or of one (two relations, or both directions of one). "
        "The paper prints in a head's cell how many functions it has; this is not read off. "
        f"{none}{voita.source()}, Figure 8: EN-RU, OpenSubtitles. "
        f"{describe_roles(results)}",
    )

"""Voita's Figure 8: what the encoder heads do that pruned models have left."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from headcount.base.errors import UserError
from headcount.base.settings.runs import RANDOM_WEIGHTS, PrunedSettings
from headcount.findings import exhibits
from headcount.findings.figures import Drawn, draw_legend, panels
from headcount.findings.kinds import SCOPES
from headcount.findings.published import voita
from headcount.findings.published.numbers import with_printed
from headcount.findings.results import BASE, KEYS, Results, read_runs, run_of
from headcount.findings.voita_roles.labels import label_classes, label_count, read_roles
from headcount.findings.voita_roles.maps import CLASSES
from headcount.findings.voita_roles.measured import describe_roles, trained_heads

COLUMNS = [*KEYS, "scope", "start", "heads_left", "function", "heads", "several", "labels"]
COLUMNS += ["source"]
FUNCTIONS = {
    "positional": CLASSES["positional"],
    "positional and syntactic": CLASSES["several"],
    "syntactic": CLASSES["syntactic"],
    "rare": CLASSES["rare"],
    **dict.fromkeys(
        ("positional and rare", "rare and syntactic", "positional and rare and syntactic"),
        "#F5D78E",
    ),
    "rare or unknown": "#F5EBD0",
    "unknown": "#BBBBBB",
}
_EDGE = {"edgecolor": "#444444", "linewidth": 0.5}  # so that light colours are seen as well
_SEVERAL = {"facecolor": "none", "edgecolor": "black", "hatch": "////", "linewidth": 0}


@exhibits.figure("voita_fig8", needs=("roles",), uses=("pruned_heads", "pruned_roles"))
def fig8(results: Results) -> Drawn:
    """Figure 8: what the heads do that are left."""
    table = retained_of(results)
    none = "" if results.files("pruned_attention") else "This experiment prunes no model."
    drawn = (table["start"] == RANDOM_WEIGHTS).any()
    baseline = "; of gates from random weights the baseline" if drawn else ""
    caption = (
        "What the encoder heads do that models have left, measured anew in each pruned model; "
        f"the first bar of a seed is the model that was pruned{baseline}, every other a λ. "
        "Functions that the shortest bars still have are those that survive."
    )
    notes = (
        none,
        "A model without any head has no bar, and 0 below it. Every head counts once; hatched: "
        "heads with several functions, of two kinds or of one (two relations, or both directions "
        "of one). The paper prints in a head's cell how many functions it has; this is not read "
        "off.",
        f"{voita.SOURCE}, Figure 8: EN-RU, OpenSubtitles.",
        *describe_roles(results),
    )
    return Drawn(draw_retained(table), table, caption, notes)


def function_of(function: str) -> str:
    """Which of `FUNCTIONS` a head with these labels has; it may have several at once."""
    return " and ".join(sorted(label_classes(function))) or "unknown"


def retained_of(results: Results) -> pd.DataFrame:
    """Functions of the heads of trained models and of pruned ones; see `retained_roles`."""
    heads, models = trained_heads(results), list(map(run_of, results.files("attention")))
    pruned = [results.files(f"pruned_{kind}") for kind in ("attention", "positions", "syntax")]
    if pruned[0]:
        left = read_roles(*pruned, results.settings["roles"])
        heads = pd.concat([heads, left], ignore_index=True)
        models += map(run_of, pruned[0])
    return retained_roles(heads, models, read_runs(results.files("pruned_runs")))


def retained_roles(
    heads: pd.DataFrame, models: list[tuple], pruned: dict[str, PrunedSettings]
) -> pd.DataFrame:
    """How many encoder heads of each model have each function: columns of `COLUMNS`.

    `heads` comes from `read_roles`, of trained and pruned models; `models` are
    (pair, run, seed) of these, those too that have no encoder head left; `pruned` has the settings
    of pruned runs by name. `several` counts the heads with several functions, two relations for
    instance, `labels` all their functions; the paper tells neither. A function that no head of a
    model has stands with 0. Models of a sweep belong together by scope and start; the one that was
    pruned is in each of its sweeps.
    """
    by_model = heads.groupby(KEYS, sort=False)["function"].agg(list).to_dict()
    rows = []
    for pair, name, seed in models:
        own, run = by_model.get((pair, name, seed), []), pruned.get(name)
        model = {"pair": pair, "run": name, "seed": seed, "heads_left": len(own)}
        model |= {"scope": run.scope if run else "", "start": run.start if run else name}
        for function in FUNCTIONS:
            labels = [label_count(found) for found in own if function_of(found) == function]
            counts = {"several": sum(count > 1 for count in labels), "labels": sum(labels)}
            rows.append(model | {"function": function, "heads": len(labels)} | counts)
    paper = voita.table("figure8").rename(columns={"value": "heads"})
    paper = paper.assign(pair="opensubtitles.en-ru", scope="enc_self")
    return with_printed(pd.DataFrame(rows, columns=COLUMNS), paper)


def draw_retained(table: pd.DataFrame) -> Figure:
    """A panel for each sweep of each pair: stacked bars, from most heads left to fewest.

    Hatched is the part of a bar whose heads have several functions.
    """
    sweeps = list(_sweeps(table))
    figure, axes = panels(len(sweeps), width=4.4, height=3.0)
    for panel, (title, sweep) in zip(axes, sweeps, strict=True):
        left = _stack(panel, sweep.sort_values("heads_left", ascending=False, kind="stable"))
        panel.set_xticks(range(len(left)), left, fontsize="small")
        panel.set_xlabel("encoder heads left")
        panel.set_ylabel("encoder heads")
        panel.yaxis.set_major_locator(MaxNLocator(integer=True))
        panel.set_axisbelow(True)
        panel.set_title(title, loc="left", fontsize="small")
        panel.grid(axis="x", visible=False)
    used = [name for name in FUNCTIONS if table.loc[table["function"] == name, "heads"].sum()]
    patches = {name: Patch(facecolor=FUNCTIONS[name], **_EDGE) for name in used}
    if table["several"].replace("", 0).sum():
        patches["several functions"] = Patch(**_SEVERAL)
    draw_legend(figure, patches)
    return figure


def _stack(panel: Axes, sweep: pd.DataFrame) -> list[str]:
    """Draw the bars of a sweep, and tell how many heads each model has left."""
    keys = ["heads_left", "run", "seed"]
    counts = sweep.replace({"several": {"": 0}}).astype({"heads": int, "several": int})
    bars, several = (
        counts.pivot_table(name, keys, "function", "sum", fill_value=0, sort=False)
        for name in ("heads", "several")
    )
    below = pd.Series(0.0, index=bars.index)
    for function, colour in FUNCTIONS.items():
        if function in bars:
            panel.bar(range(len(bars)), bars[function], bottom=below, color=colour, **_EDGE)
            panel.bar(range(len(bars)), several[function], bottom=below, **_SEVERAL)
            below += bars[function]
    return [str(count) for count in bars.index.get_level_values("heads_left")]


def _sweeps(table: pd.DataFrame):
    """(title, rows) of every sweep, the model that was pruned in front, then the paper."""
    ours = table[table["source"] == "ours"]
    pruned = ours[ours["scope"] != ""]
    for (pair, start, scope), sweep in pruned.groupby(["pair", "start", "scope"], sort=False):
        trained = BASE if start == RANDOM_WEIGHTS else start
        whole = ours[(ours["pair"] == pair) & (ours["run"] == trained) & (ours["scope"] == "")]
        title = f"{pair}, from {start}\ngates on {SCOPES[scope]}"
        yield title, pd.concat([whole, sweep], ignore_index=True)
    if pruned.empty and ours.empty:
        raise UserError("roles: expected at least one model whose heads were measured, found none")
    printed = f"paper, EN-RU OpenSubtitles\ngates on {SCOPES['enc_self']}"
    yield printed, table[table["source"] == "paper"]

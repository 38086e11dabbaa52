"""BLEU by heads left: Voita's Figure 7, and every way to choose heads and model to start from."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headcount.findings import exhibits
from headcount.findings.figures import (
    COLOURS,
    GREY,
    PAGE,
    Drawn,
    legend_above,
    panels,
    run_styles,
)
from headcount.findings.kinds import SCOPES
from headcount.findings.masked_training import collapse_notes, collapse_words, collapsed_in_training
from headcount.findings.masking import DRAWS, SEEDS, TEST, describe_cover
from headcount.findings.published import voita
from headcount.findings.published.numbers import with_printed
from headcount.findings.results import BASE, KEYS, Results
from headcount.findings.setting import warn_of_unlike_seeds
from headcount.findings.voita_pruning.comparison import CONTENDERS, START, TUNED, UNTUNED, untuned
from headcount.findings.voita_pruning.heads_left import (
    READ_OFF,
    STYLES,
    count_axis,
    draw_line,
    title,
)
from headcount.findings.voita_pruning.measured import (
    describe_compared,
    describe_scored,
    pruned_models,
    warn_of_updates,
)
from headcount.findings.voita_pruning.records import records

ENCODER = ["pair", "test_set", "run", "lambda", "heads_left", "bleu", "low", "high", "spread"]
ENCODER += ["seeds", "start_bleu", "control_bleu"]
METHODS = ["pair", "test_set", "scope", "panel", "contender", "lambda", "heads", "heads_left"]
METHODS += ["delta", "low", "high", "spread", "seeds"]
_GROUP = METHODS[:6]
_SIZED = ["pair", "seed", "gates_run"]
_PANELS = {TUNED: "fine-tuned", UNTUNED: "not fine-tuned", START: "gates, by start"}
_WAYS = ("gates", "most important heads", "random heads", "from scratch", "exactly K heads")
_STYLES = [*STYLES, {"color": COLOURS[4], "marker": "v", "linestyle": "--"}]
_METHODS = {
    name: {"label": words, **style}
    for name, words, style in zip(CONTENDERS, _WAYS, _STYLES, strict=True)
}
_APART = 0.012  # of an axis, between markers that would hide one another


@exhibits.figure("voita_fig7", needs=("pruned_bleu",), beside="voita_falls")
def fig7(results: Results) -> Drawn:
    """Figure 7: BLEU by encoder heads left."""
    points = encoder_points(records(results))
    found = points.loc[points["source"] == "ours", "spread"].unique()
    ours = ("This experiment has no gates run on encoder self-attention from the baseline.",)
    if len(found):
        bars = f"Bars: {' or '.join(found)}, with one seed of the difference to the control, laid "
        ours = (f"{bars}around the control.", *describe_cover(found))
    return Drawn(
        _draw_encoder(points),
        points,
        "BLEU, as a share of the control's, by encoder self-attention heads left; fine-tuned with "
        "gates on these alone, the decoder frozen, each point a λ. The control was fine-tuned for "
        "as many updates with λ = 0.",
        (
            *ours,
            f"Right: {voita.SOURCE}, Figure 7, as shares of its BLEU with all encoder heads.",
            READ_OFF,
            voita.BESIDE_OURS,
            *describe_scored(results),
        ),
        warn_of_unlike_seeds(points),
    )


def encoder_points(records: pd.DataFrame) -> pd.DataFrame:
    """Figure 7: a gates run on encoder self-attention a row, then the paper's points.

    Columns of `ENCODER`, source; numbers are means over seeds. `low` and `high` bound what `spread`
    names: the standard deviation over seeds, or with one seed the bootstrap interval of the
    difference to the control, laid around the control. Empty in the paper's rows.
    """
    gates = (records["how"] == "gates") & (records["scope"] == "enc_self")
    chosen = records[gates & (records["start"] == BASE)]
    rows = []
    for key, found in chosen.groupby(ENCODER[:4], sort=False):
        names = ["heads_left", "bleu", "start_bleu", "control_bleu"]
        means = found.assign(heads_left=found["scope_left"])[names].mean()
        row = dict(zip(ENCODER[:4], key, strict=True)) | means.to_dict() | {"seeds": len(found)}
        rows.append(row | _spread(found, "bleu", found["control_bleu"].iloc[0]))
    rows.sort(key=lambda row: -row["heads_left"])
    printed = voita.table("figure7").rename(columns={"value": "bleu"})
    return with_printed(pd.DataFrame(rows, columns=ENCODER), printed)


def _draw_encoder(points: pd.DataFrame) -> Figure:
    """Figure 7: BLEU by encoder heads left, a panel per test set, then the paper's two.

    BLEU is in percent of the control's, the paper's of that with all heads, so that corpora can be
    compared.
    """
    tasks = list(points.groupby(["source", "pair", "test_set"], sort=False))
    figure, axes = panels(len(tasks), share=True)
    for panel, ((source, pair, test), found) in zip(axes, tasks, strict=True):
        rows, whole = _shares(found)
        heads, bleu = rows["heads_left"].astype(float), rows["bleu"]
        if source == "ours":
            style = {"color": COLOURS[0], "marker": "o", "label": "gates", "zorder": 3}
            draw_line(panel, heads, bleu, (), style)
            bars = {"fmt": "none", "ecolor": COLOURS[0], "capsize": 2}
            panel.errorbar(heads, bleu, _reach(rows, "bleu"), **bars)
            _levels(panel, whole, float(rows["start_bleu"].iloc[0]))
        else:
            style = {"color": COLOURS[1], "marker": "s", "label": "paper"}
            draw_line(panel, heads, bleu, (), style)
        name = ", ".join(filter(None, [pair, test]))
        title(panel, f"{name}\n100 %: BLEU {whole:.1f}", source)
        count_axis(panel, "encoder heads left", heads.max())
        panel.set_ylabel("percent of the control's BLEU")
    legend_above(figure, axes)
    return figure


def _shares(rows: pd.DataFrame) -> tuple[pd.DataFrame, float]:
    """Rows with BLEU in percent, and the BLEU that is 100: the control's, or with most heads."""
    most = rows["heads_left"].astype(float).idxmax()
    ours = rows["source"].iloc[0] == "ours"
    whole = float(rows["control_bleu"].iloc[0] if ours else rows.loc[most, "bleu"])
    names = ["bleu", "low", "high", "start_bleu"]
    shares = 100 * rows[names].apply(pd.to_numeric, errors="coerce") / whole
    return rows.assign(**shares), whole


def _levels(panel: Axes, whole: float, start: float) -> None:
    """The model that was pruned and the control, and 0.25 and 1 BLEU below the latter, percent."""
    for height, words, line, colour in (
        (start, "model that was pruned", "-.", "black"),
        (100, "control, λ = 0", "-", "black"),
        (100 - 25 / whole, "control − 0.25 BLEU", "--", GREY),
        (100 - 100 / whole, "control − 1 BLEU", ":", GREY),
    ):
        panel.axhline(height, color=colour, linestyle=line, linewidth=0.9, label=words)


@exhibits.figure(
    "voita_methods",
    needs=("pruned_bleu", "updates"),
    uses=("untuned_scores", "masks", "curves"),
    beside="voita_comparison",
)
def methods(results: Results) -> Drawn:
    """BLEU by heads left, for every way to choose them."""
    points = method_points(records(results), untuned(results))
    spreads = points["spread"].unique()
    shown = points[points["test_set"] == points.groupby("pair")["test_set"].transform("first")]
    others = " Other test sets are in the numbers." if len(shown) < len(points) else ""
    starts = pruned_models(results)[["pair", "start", "seed"]].set_axis(KEYS, axis=1)
    collapsed = collapse_words(collapsed_in_training(results), starts)
    return Drawn(
        _draw_methods(shown, collapsed),
        points,
        "Change in BLEU (below 0: worse) by the number of heads left, for every way to choose "
        "them. A way that stays near 0 longer chooses better.",
        (
            "Ways: gates, the most important heads of the start model (ranked in the numbers), "
            "random heads (drawn), and the heads that gates kept trained from scratch. "
            "Fine-tuned: all for as "
            "many updates, against the λ = 0 control; scratch: for as many in total. Not "
            "fine-tuned: the baseline's own weights with heads silenced, against that model with "
            "all heads. By start: gates on models trained with masked heads, each against its own "
            "control. Heads are those that the scope may lose; markers at one number of them "
            f"stand side by side.{others} Bars: {' or '.join(spreads)}.",
            *collapse_notes(collapsed),
            *describe_cover(spreads),
            *describe_compared(results),
        ),
        warn_of_updates(results, pruned_models(results)),
    )


def method_points(records: pd.DataFrame, untuned: pd.DataFrame) -> pd.DataFrame:
    """A contender at one λ a row: columns of `METHODS`.

    `records` and `untuned` come from the functions of these names. `panel`: tuned and untuned (from
    the baseline, by method), start (gates runs, by start). `heads` of the original model and
    `heads_left` are those of the scope. `delta`: BLEU − that of the λ = 0 control, or, untuned, of
    the start model with all heads; mean over seeds and draws, negative is worse. `low` and `high`
    bound what `spread` names.
    """
    base = records[records["start"] == BASE]
    elsewhere = records.loc[records["start"] != BASE, ["pair", "scope"]].drop_duplicates()
    starts = records[records["how"] == "gates"].merge(elsewhere, on=["pair", "scope"])
    sizes = base.rename(columns={"run": "gates_run"})[[*_SIZED, "scope_heads", "scope_left"]]
    parts = [
        base.assign(panel=TUNED, contender=base["how"]),
        starts.assign(panel=START, contender=starts["start"]),
        untuned.merge(sizes.drop_duplicates(), on=_SIZED).assign(panel=UNTUNED),
    ]
    points = pd.concat(parts, ignore_index=True)
    kept = points["scope_left"].where(points["how"] == "subset", -1)  # has no λ to tell it by
    grouped = points.groupby([*_GROUP, kept.rename("kept")], sort=False)
    rows = [_point(key[:-1], found) for key, found in grouped]
    table = pd.DataFrame(rows, columns=METHODS)
    # Panels of one test set and scope stand together.
    first = table.groupby(_GROUP[:3], sort=False).ngroup()
    order = first * len(_PANELS) + table["panel"].map(list(_PANELS).index)
    return table.iloc[order.argsort(kind="stable")].reset_index(drop=True)


def _point(key: tuple, found: pd.DataFrame) -> dict:
    by_seed = found["delta"].astype(float).groupby(found["seed"]).mean()
    row = dict(zip(_GROUP, key, strict=True)) | {"heads": int(found["scope_heads"].iloc[0])}
    row |= {"heads_left": found["scope_left"].mean(), "delta": by_seed.mean()}
    return row | {"seeds": len(by_seed)} | _spread(found, "delta")


def _draw_methods(table: pd.DataFrame, collapsed: Mapping[str, str]) -> Figure:
    """BLEU changes by heads left: a row per test set and scope, a panel per comparison.

    Panels of a row have one scale.
    """
    rows = list(table.groupby(["pair", "test_set", "scope"], sort=False))
    compared = [name for name in _PANELS if name in set(table["panel"])]
    width = min(4.2, PAGE / len(compared))
    size = (max(width * len(compared), 5.5), min(3.2, width) * len(rows) + 0.6)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(rows), len(compared), squeeze=False, sharey="row")
    starts = list(table.loc[table["panel"] == START, "contender"].unique())
    of_start = {
        run: style | {"label": f"from {style['label']}"}
        for run, style in run_styles(starts, collapsed).items()
    }
    for line, ((pair, test, scope), of_task) in zip(grid, rows, strict=True):
        for panel, comparison in zip(line, compared, strict=True):
            found = of_task[of_task["panel"] == comparison]
            if found.empty:
                panel.remove()
                continue
            if comparison == START:
                _panel(panel, found, of_start, 0)
            else:
                _panel(panel, found, _METHODS, _APART * found["heads"].max())
            words = f"{pair}, {test}\n{SCOPES[scope]}, {_PANELS[comparison]}"
            panel.set_title(words, loc="left", fontsize="small")
    legend_above(figure, figure.axes)
    return figure


def _panel(panel: Axes, rows: pd.DataFrame, styles: dict[str, dict], step: float) -> None:
    """One comparison: a line for each contender, each `step` heads right of the one before."""
    for place, (name, style) in enumerate(styles.items()):
        found = rows[rows["contender"] == name].sort_values("heads_left")
        if len(found):
            shifted = found["heads_left"] + step * place
            draw_line(panel, shifted, found["delta"], (_reach(found, "delta"),), style)
    panel.axhline(0, color="black", linewidth=0.8)
    count_axis(panel, "heads left", rows["heads"].max())
    of = "with all heads" if (rows["panel"] == UNTUNED).all() else "of the control"
    panel.set_ylabel(f"BLEU − that {of}")


def _spread(found: pd.DataFrame, name: str, around: float = 0.0) -> dict[str, float | str]:
    """`low`, `high` and `spread`, which says what they bound, of a column of rows of one point.

    The range of draws where a seed has several rows; the standard deviation over seeds; with one
    seed the bootstrap interval of the delta, laid around a value.
    """
    values = found[name].astype(float)
    if found["seed"].duplicated().any():
        return {"low": values.min(), "high": values.max(), "spread": DRAWS}
    if len(found) > 1:
        mean, sd = values.mean(), values.std()
        return {"low": mean - sd, "high": mean + sd, "spread": SEEDS}
    low, high = (around + float(found[side].iloc[0]) for side in ("delta_low", "delta_high"))
    return {"low": low, "high": high, "spread": TEST}


def _reach(rows: pd.DataFrame, name: str) -> list[pd.Series]:
    """How far `low` and `high` lie from a column, below it and above."""
    middle, low, high = (rows[each].astype(float) for each in (name, "low", "high"))
    return [(middle - low).clip(lower=0), (high - middle).clip(lower=0)]

"""What each head is worth: masked alone, or left alone in its layer."""

import numpy as np
import pandas as pd
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.colors import SymLogNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from headcount.base.addresses import KINDS
from headcount.findings import exhibits
from headcount.findings.figures import (
    PAGE,
    Drawn,
    colour_bar,
    is_first,
    number_heads,
    signed,
    title_words,
)
from headcount.findings.kinds import WORDS, kind_words
from headcount.findings.michel.measured import (
    BLEU,
    LEVEL,
    SCORES,
    Metric,
    describe_scored,
    masked_heads,
)
from headcount.findings.published import michel
from headcount.findings.published.numbers import with_printed
from headcount.findings.results import BASE, HEAD, KEYS, Results
from headcount.findings.setting import of_one_training
from headcount.findings.significance import holm
from headcount.findings.tables import NONE, Table, interval, mean_sd, p_value, run_cells

COLUMNS = [*KEYS, "test_set", *HEAD, *SCORES, "p_holm", "significant"]
_LONE = [*KEYS, "test_set", *HEAD, "heads", "dev_delta", "dev_p", "delta"]
_LONE += ["delta_low", "delta_high", "p", "significant"]
_LINEAR = 0.5  # points: the colour scale is linear up to here, then logarithmic
_TICKS = (-64, -16, -4, -1, 0, 1, 4, 16, 64)


@exhibits.table("michel_ablation", needs=("ablated",))
def ablation_table(results: Results) -> Table:
    """Table 1: BLEU without each head."""
    notes = (
        f"Rows whose source is paper: {michel.SOURCE}, Table 1 (encoder self-attention, "
        "newstest2013).",
        michel.BESIDE_OURS,
        *describe_scored(results),
    )
    return single_table(masked_heads(results), _printed_single(), BLEU, notes)


def single_table(
    ablation: pd.DataFrame, printed: pd.DataFrame, metric: Metric, notes: tuple[str, ...]
) -> Table:
    """Each head masked alone, then a paper's rows; `notes` come last.

    `printed` may have no row, else it has columns of `single_heads`.
    """
    tidy = with_printed(single_heads(ablation), printed)
    return Table(
        tidy,
        _summary(tidy),
        f"{metric.initial} change when one head is masked, nothing retrained, by kind of "
        "attention. Where few changes are significant, the test set shows few heads to be needed.",
        (
            f"Significant: p < {LEVEL} by paired bootstrap (a p that is nearly one-sided), and in "
            "brackets how many of these are gains; Holm: still so once p is corrected for all "
            "heads of the model.",
            of_one_training(f"test {metric.counted}"),
            *notes,
        ),
    )


def single_heads(ablation: pd.DataFrame) -> pd.DataFrame:
    """One head on one test set a row: columns of `COLUMNS`.

    `p_holm`: p corrected for all heads of that model on that test set. `significant`: 1 where
    p < `LEVEL`. Layers and heads count from 0.
    """
    ours = ablation[ablation["order"] == "single"].copy()
    ours["p_holm"] = ours.groupby([*KEYS, "test_set"], sort=False)["p"].transform(
        lambda values: holm(values.to_numpy())
    )
    ours["significant"] = (ours["p"] < LEVEL).astype(int)
    return ours[COLUMNS]


def _printed_single() -> pd.DataFrame:
    """The paper's rows of `single_table`."""
    printed = michel.single_heads().rename(columns={"value": "delta"})
    printed[["layer", "head"]] -= 1
    names = {"pair": michel.PAIR, "run": BASE, "test_set": "newstest2013", "kind": "enc_self"}
    return printed.assign(**names)


def _summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per model, test set and kind."""
    rows = []
    keys = [*KEYS, "test_set", "kind", "source"]
    for (*run, test, kind, source), found in table.groupby(keys, sort=False):
        deltas = found["delta"].astype(float)
        strong = found["significant"] == 1
        row = run_cells(*run) | {"test set": test, "kind": kind_words(kind)}
        row["heads"] = str(len(found))
        row |= {"mean change": f"{deltas.mean():+z.2f}"}
        row |= {"worst": f"{deltas.min():+z.2f}", "best": f"{deltas.max():+z.2f}"}
        row["significant"] = f"{strong.sum()} ({(strong & (deltas > 0)).sum()} gains)"
        corrected = pd.to_numeric(found["p_holm"]) < LEVEL
        row["Holm"] = str(corrected.sum()) if source == "ours" else NONE
        rows.append(row | {"source": source})
    return pd.DataFrame(rows)


@exhibits.figure("michel_ablation", needs=("ablated",), beside="michel_ablation")
def ablation_maps(results: Results) -> Drawn:
    """Maps of BLEU without each head."""
    return single_maps(masked_heads(results), BLEU, describe_scored(results))


def single_maps(ablation: pd.DataFrame, metric: Metric, notes: tuple[str, ...]) -> Drawn:
    """Maps of single heads on the test sets; `notes` come last."""
    alone = single_heads(ablation).assign(source="ours").astype(object)
    shown = alone[alone["test_set"] != "dev"].astype({"delta": float})
    return Drawn(
        _draw(shown, metric),
        shown,
        f"{metric.initial} change when one head is masked, nothing retrained, by kind, layer and "
        "head. Dots and rings are heads of which the change is significant.",
        (
            f"Colours are linear up to half a point, then logarithmic. Dots: p < {LEVEL} by "
            "paired bootstrap (nearly one-sided); rings: still so once corrected for all heads "
            "(Holm).",
            of_one_training(f"test {metric.counted}"),
            *notes,
        ),
    )


def _draw(table: pd.DataFrame, metric: Metric) -> Figure:
    """A row of maps per model and test set, a map per kind there is: layers down, heads across.

    Blue gains, red loses; a dot has p < `LEVEL`, a ring too once corrected for all heads.
    """
    tasks = list(table.groupby([*KEYS, "test_set"], sort=False))
    kinds = [kind for kind in KINDS if (table["kind"] == kind).any()]
    layers = max(table["layer"]) + 1
    width = min(2.7, (PAGE - 1.4) / len(kinds))
    size = (width * len(kinds) + 1.4, max(1.9, 1.2 + 0.26 * layers) * len(tasks) + 0.3)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(tasks), len(kinds), squeeze=False)
    limit = max(1.0, float(table["delta"].abs().max()))
    scale = SymLogNorm(_LINEAR, vmin=-limit, vmax=limit, base=2)
    for line, ((pair, run, seed, test), rows) in zip(grid, tasks, strict=True):
        for panel, kind in zip(line, kinds, strict=True):
            image = _map(panel, rows[rows["kind"] == kind], scale)
            words = title_words(pair, run, seed=seed) + f", {test}" if is_first(panel) else ""
            panel.set_title(f"{words}\n{WORDS[kind]}", loc="left", fontsize="small")
        line[0].set_ylabel("layer", fontsize="small")
    bar = colour_bar(figure, image, f"{metric.word} change")
    ticks = [tick for tick in _TICKS if abs(tick) <= limit]
    bar.set_ticks(ticks, labels=list(map(signed, ticks)))
    bar.minorticks_off()
    return figure


def _map(panel: Axes, rows: pd.DataFrame, scale: SymLogNorm) -> AxesImage:
    """One kind of one model; places where a layer has no head stay grey."""
    shape = (int(rows["layer"].max()) + 1, int(rows["head"].max()) + 1) if len(rows) else (1, 1)
    cells = np.full(shape, np.nan)
    cells[rows["layer"].astype(int), rows["head"].astype(int)] = rows["delta"].astype(float)
    panel.set_facecolor("#BBBBBB")
    image = panel.imshow(cells, cmap="RdBu", norm=scale, aspect="auto")
    strong = rows[rows["significant"] == 1]
    sure = rows[rows["p_holm"].astype(float) < LEVEL]
    rim = [patheffects.withStroke(linewidth=2, foreground="white")]  # to be seen on dark cells
    style = {"linestyle": "", "color": "black", "path_effects": rim}
    panel.plot(strong["head"], strong["layer"], marker=".", markersize=4, **style)
    panel.plot(sure["head"], sure["layer"], marker="o", markersize=9, fillstyle="none", **style)
    number_heads(panel, shape[1])
    panel.set_yticks(range(shape[0]))
    panel.tick_params(labelsize="small")
    panel.set_xlabel("head", fontsize="small")
    panel.grid(visible=False)
    return image


@exhibits.table("michel_all_but_one", needs=("ablated",))
def all_but_one(results: Results) -> Table:
    """Tables 2 and 5: one head left in a layer."""
    notes = (
        f"Rows whose source is paper: {michel.SOURCE}, Tables 2 (as our dev, newstest2013) and 5 "
        "(newstest2014).",
        michel.BESIDE_OURS,
        *describe_scored(results),
    )
    return all_but_one_table(masked_heads(results), _printed_all_but_one(), BLEU, notes)


def all_but_one_table(
    ablation: pd.DataFrame, printed: pd.DataFrame, metric: Metric, notes: tuple[str, ...]
) -> Table:
    """One head left in a layer, then a paper's rows of `lone_heads`; `notes` come last."""
    tidy = with_printed(lone_heads(ablation), printed)
    return Table(
        tidy,
        _layers_summary(tidy),
        f"{metric.initial} change when a layer keeps one head of a kind of attention, all other "
        "layers whole. Without a significant loss one head is enough, as far as test sets tell.",
        (
            "The head that stays is the one that is best on dev; it is scored on the test set, "
            f"with 95 % interval and p by paired bootstrap, nearly one-sided; p < {LEVEL} is "
            "called significant. The change on dev is that of the best of several, and so too "
            "good.",
            of_one_training(f"test {metric.counted}"),
            *notes,
        ),
    )


def lone_heads(ablation: pd.DataFrame) -> pd.DataFrame:
    """One layer of one kind on one test set a row: columns of `_LONE`.

    `head` is the one that stays, of `heads`. Layers and heads count from 0. `significant`: 1 where
    p < `LEVEL`, on the test set.
    """
    alone = ablation[ablation["order"] == "all_but_one"]
    dev = alone.loc[alone["test_set"] == "dev", [*KEYS, *HEAD, "delta", "p"]]
    dev = dev.rename(columns={"delta": "dev_delta", "p": "dev_p"})
    ours = alone[alone["test_set"] != "dev"].merge(dev, "left", [*KEYS, *HEAD])
    ours = ours.assign(
        heads=ours["heads_masked"] + 1,
        significant=(ours["p"] < LEVEL).astype(int),
        task=ours.groupby([*KEYS, "test_set"], sort=False).ngroup(),
        place=ours["kind"].map(KINDS.index),
    )
    return ours.sort_values(["task", "place", "layer"], kind="stable")[_LONE]


def _printed_all_but_one() -> pd.DataFrame:
    """The paper's rows of `lone_heads`: the head best on newstest2013, on newstest2014."""
    chosen, scored = (michel.all_but_one(number) for number in (2, 5))
    both = scored.merge(chosen, on=["kind", "layer"], suffixes=("", "_dev"), validate="one_to_one")
    both = both.rename(columns={"value": "delta", "value_dev": "dev_delta"})
    both["layer"] -= 1
    both = both.assign(pair=michel.PAIR, run=BASE, test_set="newstest2014", heads=16)
    return both.assign(place=both["kind"].map(KINDS.index)).sort_values(["place", "layer"])


def _layers_summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per layer, and one that counts them."""
    rows = []
    for (*run, test, source), found in table.groupby([*KEYS, "test_set", "source"], sort=False):
        head = run_cells(*run) | {"test set": test}
        rows += [head | _layer(row) | {"source": source} for row in found.to_dict("records")]
        harmless = ((found["significant"] == 0) | (found["delta"] >= 0)).sum()
        as_good = (found["delta"] >= 0).sum()
        counts = f"{harmless} without a significant loss, {as_good} without any"
        cells = {"kind": "all", "layer": f"{len(found)} layers", "on test": counts}
        rows.append(head | cells | {"source": source})
    return pd.DataFrame(rows).fillna(NONE)


def _layer(row: dict) -> dict[str, str]:
    """Cells of one layer."""
    ours = row["source"] == "ours"
    printed = f"{'<' if row['significant'] else '≥'} {LEVEL}"
    return {
        "kind": kind_words(row["kind"]),
        "layer": str(row["layer"]),
        "stays": f"head {row['head']} of {row['heads']}" if ours else NONE,
        "on dev": mean_sd([row["dev_delta"]], "+"),
        "on test": mean_sd([row["delta"]], "+"),
        "95 % interval": interval([row["delta_low"]], [row["delta_high"]]),
        "p": p_value(row["p"]) if ours else printed,
    }

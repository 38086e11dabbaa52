"""The atlas's drawings, as Vega-Lite: maps of heads, a scatter, attention, and histories.

A string that begins with @ stands for what the page puts there. Data are named: `heads`, `weights`
and `points`; see charts.js for their columns. `order` numbers the rows; panels stand by it.
"""

from typing import Any

import altair as alt

from headcount.base.addresses import KINDS
from headcount.findings.figures import COLOURS
from headcount.findings.voita_roles.maps import CLASSES

EMPTY = "#F1F1F1"
_CHOSEN = alt.param(name="chosen", value="@chosen")
_CHOSE = "indexof(chosen, datum.name) >= 0"
_NAMED = 7  # heads chosen from which on their names would hide each other
_IF_CHOSEN = alt.condition(_CHOSE, alt.value(1), alt.value(0))
# One of the two always has a contrast of 4.5 or more: their products with any colour are 21.
_DARK = "luminance(scale('color', datum.value)) < 0.179"
_AS_LISTED = alt.EncodingSortField("order", op="min")
_SCALES = {
    "sequential": alt.Scale(scheme="viridis", domain=["@low", "@high"]),
    "diverging": alt.Scale(scheme="blueorange", domain=["@low", "@high"], domainMid=0),
    "roles": alt.Scale(domain=list(CLASSES), range=list(CLASSES.values())),
}


def charts() -> dict[str, dict[str, Any]]:
    """Every specification by its name."""
    maps = {f"map_{name}": _map(name, scale) for name, scale in _SCALES.items()}
    others = {"scatter": _scatter(), "attention": _attention(), "history": _history()}
    return {name: _styled(chart).to_dict() for name, chart in (maps | others).items()}


def _map(name: str, scale: alt.Scale) -> alt.FacetChart:
    """Heads across, layers down, a panel for each kind and model; selected heads have a frame."""
    # Layers share all rows: of layers that filter them, panels could not have sizes of their own.
    # Vega-Lite warns in the console that they might not.
    base = alt.Chart().encode(
        x=alt.X("head:O", title="head", axis=alt.Axis(labelAngle=0, orient="bottom")),
        y=alt.Y("layer:O", title="layer"),
        tooltip=["label:N", alt.Tooltip("told:N", title="@title")],
    )
    shade = alt.condition(
        "isValid(datum.value)",
        alt.Color(
            "value:N" if name == "roles" else "value:Q",
            scale=scale,
            legend=alt.Legend(title=None, orient="top", gradientLength=200),
        ),
        alt.value(EMPTY),
    )
    letters = alt.condition(
        f"isValid(datum.value) && {_DARK}", alt.value("white"), alt.value("black")
    )
    layers = (
        base.mark_rect(stroke="white", cursor="pointer", invalid=None).encode(
            color=shade, description="described:N"
        ),
        base.mark_rect(fillOpacity=0, stroke="black", strokeWidth=5, aria=False, clip=True).encode(
            strokeOpacity=_IF_CHOSEN
        ),
        base.mark_rect(fillOpacity=0, stroke="white", strokeWidth=2, aria=False).encode(
            strokeOpacity=_IF_CHOSEN
        ),
        base.mark_text(fontSize=9, aria=False, cursor="pointer").encode(
            text="shown:N", color=letters
        ),
    )
    panel = alt.layer(*layers).properties(width=alt.Step(30), height=alt.Step(26))
    facet = alt.Facet("panel:N", title=None, sort=_AS_LISTED, header=alt.Header(labelFontSize=12))
    return (
        panel.facet(facet, columns=3, data=alt.NamedData("heads"), title="@title")
        .resolve_scale(x="independent", y="independent")
        .add_params(_CHOSEN)
    )


def _scatter() -> alt.LayerChart:
    """A point for each head; colour is the kind, shape the model; drawing a box selects."""
    base = alt.Chart(alt.NamedData("heads")).encode(
        x=alt.X("x:Q", title="@x", scale=alt.Scale(zero=False, padding=12)),
        y=alt.Y("y:Q", title="@y", scale=alt.Scale(zero=False, padding=12)),
        tooltip=[
            *("label:N", "model:N"),
            alt.Tooltip("x:Q", title="across"),
            alt.Tooltip("y:Q", title="up"),
        ],
    )
    points = base.mark_point(filled=True, size=70, opacity=0.85, cursor="pointer").encode(
        color=alt.Color(
            "kind:N",
            scale=alt.Scale(domain=list(KINDS), range=list(COLOURS[:3])),
            legend=alt.Legend(title=None, orient="top"),
        ),
        shape=alt.Shape(
            "model:N", sort=None, legend=alt.Legend(title=None, orient="bottom", labelLimit=300)
        ),
        description="described:N",
    )
    box = alt.selection_interval(name="box")
    rings = base.mark_point(size=190, stroke="black", strokeWidth=2, aria=False).encode(
        strokeOpacity=_IF_CHOSEN
    )
    words = alt.condition(f"{_CHOSE} && length(chosen) < {_NAMED}", "name:N", alt.value(""))
    names = base.mark_text(dy=-14, fontSize=10, aria=False).encode(text=words)
    return (
        alt.layer(points.add_params(box), rings, names)
        .properties(width=400, height=300)
        .add_params(_CHOSEN)
    )


def _attention() -> alt.FacetChart:
    """One head on one sentence: queries down, keys across; a panel for each model."""
    # Words come back in a sentence: cells have places, and axes name them.
    axis = {"labelLimit": 90, "title": None}
    cells = (
        alt.Chart()
        .mark_rect(stroke="white", strokeWidth=0.5)
        .encode(
            x=alt.X(
                "key:O",
                axis=alt.Axis(labelExpr="keys[datum.value]", orient="top", labelAngle=-90, **axis),
            ),
            y=alt.Y("query:O", axis=alt.Axis(labelExpr="queries[datum.value]", **axis)),
            color=alt.Color(
                "weight:Q",
                scale=alt.Scale(scheme="blues", domain=[0, 1]),
                legend=alt.Legend(title="weight", orient="bottom"),
            ),
            tooltip=["from:N", "to:N", "weight:Q"],
        )
        .properties(width=alt.Step(20), height=alt.Step(18))
    )
    facet = alt.Facet("model:N", title=None, sort=_AS_LISTED)
    words = [alt.param(name=name, value=f"@{name}") for name in ("queries", "keys")]
    data = alt.NamedData("weights")
    return cells.facet(facet, columns=2, data=data, title="@title").add_params(*words)


def _history() -> alt.FacetChart:
    """One head over updates: a panel for each measure, a line for each run."""
    lines = (
        alt.Chart()
        .mark_line(point=True)
        .encode(
            x=alt.X("step:Q", title="updates", axis=alt.Axis(labelOverlap=True, tickCount=6)),
            y=alt.Y("value:Q", title=None),
            color=alt.Color(
                "of:N",
                scale=alt.Scale(range=list(COLOURS)),
                legend=alt.Legend(title=None, columns=1, orient="bottom", labelLimit=300),
            ),
            tooltip=["of:N", "step:Q", "value:Q"],
        )
        .properties(width=300, height=130)
    )
    facet = alt.Facet("what:N", title=None, sort=_AS_LISTED, header=alt.Header(labelFontSize=12))
    return lines.facet(
        facet, columns=1, data=alt.NamedData("points"), title="@title"
    ).resolve_scale(y="independent", x="independent")


def _styled(chart: Any) -> Any:
    """Left-aligned titles, the page's letters."""
    return (
        chart.configure(font="system-ui, sans-serif", background="white")
        .configure_title(anchor="start", fontSize=13)
        .configure_header(labelAnchor="start", labelFontWeight="bold")
        .configure_view(stroke=None)
    )

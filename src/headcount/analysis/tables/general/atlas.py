"""The head atlas: the heads of all models with their measures, roles, attention and histories."""

from collections.abc import Callable, Iterator
from itertools import accumulate, chain, pairwise, product
from pathlib import Path
from typing import Any

import pandas as pd

from headcount.analysis import measures as of_head
from headcount.analysis.atlas.page import write_page
from headcount.analysis.captions import importance_unit
from headcount.analysis.figures.style import COLOURS
from headcount.analysis.frames import HEAD, RUN, FrameOf, Runs, Settings, run_of

_SHOWN = {"title", "unit", "more", "source", "group", "around_zero"}


def histories(
    masks: pd.DataFrame, gates: pd.DataFrame, training_heads: pd.DataFrame, pruned_runs: Runs
) -> pd.DataFrame:
    """Return measures of heads over updates: `what` of the runs `of`, with `step` and `value`."""
    gates = of_head.in_scope(gates, pruned_runs, "gates")
    gates = gates.assign(value=1 - gates["p_zero"].astype(float), of=gates["run"])
    importance = training_heads[training_heads["statistic"] == "importance"]
    parts = {
        "share of updates masked": masks.assign(value=masks["masked"], of="training"),
        "chance that the gate is open": pd.concat([gates, of_head.at_start(gates)]),
        "importance": importance.assign(step=importance["update"], of="training"),
    }
    columns = [*RUN, *HEAD, "step", "value", "of"]
    filled = [rows[columns].assign(what=what) for what, rows in parts.items() if len(rows)]
    return pd.concat(filled) if filled else pd.DataFrame(columns=[*columns, "what"])


def sentences(
    sentence_maps: list[Path], pruned_sentence_maps: list[Path], dev_links: list[Path]
) -> dict[tuple, Any]:
    """Return the sentences of every model that has any, with gold links if they are known."""
    maps = {
        run_of(path): of_head.read_sentences(path)
        for path in [*sentence_maps, *pruned_sentence_maps]
    }
    for sentence in chain(*maps.values()):
        for head, rows in sentence["weights"].items():
            sentence["weights"][head] = [[round(1000 * value) for value in row] for row in rows]
    links = dict(chain(*map(_gold_links, dev_links)))
    for (pair, *_), known in maps.items():
        for sentence in known:
            key = (pair, tuple(sentence["source"][:-1]), tuple(sentence["target"][1:]))
            sentence |= {"links": links[key]} if key in links else {}
    return maps


def _gold_links(path: Path) -> Iterator[tuple[tuple, list[tuple[int, int]]]]:
    """Yield pair and subwords of every sentence, and its links: queries and keys of subwords."""
    for pair in of_head.read_sentences(path):
        sides = [pair["source"], pair["target"]]
        ends = [[0, *accumulate(map(len, side))] for side in sides]
        sources, targets = ([range(*span) for span in pairwise(side)] for side in ends)
        cells = chain(*(product(targets[t], sources[s]) for s, t in pair["possible"]))
        yield (path.parent.parent.name, *(tuple(chain(*side)) for side in sides)), [*cells]


def content(
    measures: FrameOf[of_head.all_measures],
    roles: FrameOf[of_head.encoder_roles],
    histories: FrameOf[histories],
    sentences: FrameOf[sentences],
    settings: Settings,
    trained_runs: Runs,
) -> dict[str, Any]:
    """Return what the page shows as JSON. Lists of values have an entry for each of `heads`."""
    model = settings["model"]
    models = [model, *(run.own_model(model) for run in trained_runs.values())]
    heads = max((model.grid.heads() for model in models), key=len)
    of = measures["of"].map("/{}".format, na_action="ignore").astype(object).fillna("")
    measures = measures.assign(id=measures["measure"] + of)
    keys = [*dict.fromkeys(measures[RUN].itertuples(index=False, name=None))]
    keys.sort(key=lambda key: key[1] not in trained_runs)
    pairs, seeds = (len({key[part] for key in keys}) > 1 for part in (0, 2))
    names = [f"{f'{key[0]}, ' * pairs}{key[1]}{f', seed {key[2]}' * seeds}" for key in keys]
    parts = [dict(list(rows.groupby(RUN))) for rows in (measures, roles, histories)]
    content = [
        {"id": "/".join(map(str, key)), "name": name, "sentences": sentences.get(key, [])}
        | _model(pd.MultiIndex.from_tuples(heads, names=HEAD), *(part.get(key) for part in parts))
        for key, name in zip(keys, names, strict=True)
    ]
    return {
        "heads": [head._asdict() | {"name": head.name(), "label": head.label()} for head in heads],
        "measures": list(_described(measures, importance_unit(settings))),
        "models": content,
        "colours": COLOURS,
    }


def _model(heads: pd.MultiIndex, *tables: pd.DataFrame | None) -> dict[str, Any]:
    """Return values and notes by measure, roles, and histories of one model."""
    measures, roles, histories = tables
    parts: dict[str, Any] = {"values": {}, "notes": {}, "roles": None, "histories": []}
    for name, rows in measures.set_index(HEAD).groupby("id", sort=False):
        parts["values"][name] = _cells(rows["value"].reindex(heads))
        if rows["note"].notna().any():
            parts["notes"][name] = _cells(rows["note"].reindex(heads))
    if roles is not None:
        labels = roles.set_index(HEAD)["function"].fillna("").reindex(heads)
        kinds = labels.map(
            lambda text: of_head.classes(text) if text else ["none"], na_action="ignore"
        )
        kind = kinds.map(lambda of: of[0] if len(of) == 1 else "several", na_action="ignore")
        parts["roles"] = {"function": _cells(labels), "class": _cells(kind)}
    groups = [] if histories is None else histories.groupby(["what", "of"], sort=False)
    for (what, of), rows in groups:
        table = rows.pivot(index=HEAD, columns="step", values="value").reindex(heads)
        values = [_cells(row) for _, row in table.iterrows()]
        parts["histories"].append({"what": what, "of": of, "steps": [*table], "values": values})
    return parts


def _cells(values: pd.Series) -> list[Any]:
    """Return texts, numbers with four digits, and None for missing values."""
    known = values.astype(object).where(values.notna(), None)
    return [float(f"{value:.4g}") if isinstance(value, float) else value for value in known]


def _described(measures: pd.DataFrame, importance: str) -> Iterator[dict[str, Any]]:
    """Yield the description of every measure. One that a head has several times is a group."""
    rows = measures[["measure", "of", "id"]].drop_duplicates()
    ordered = rows.sort_values(
        "measure", key=lambda m: m.map([*of_head.MEASURES].index), kind="stable"
    )
    for name, of, id_ in ordered.itertuples(index=False):
        text = of_head.MEASURES[name].model_dump(include=_SHOWN) | {"id": id_}
        text |= {"unit": importance} if name == "importance" else {}
        text["short"] = text["title"] if pd.isna(of) else of
        if pd.notna(of):
            text["group"] = f"{text['title'].capitalize()}, {text['unit']}"
            text["title"] += f", {of}"
        yield text


def atlas(content: FrameOf[content]) -> Callable[[dict[str, Any]], str]:
    """Return a function from the provenance of the page to its HTML."""
    return lambda origin: write_page(content, origin)

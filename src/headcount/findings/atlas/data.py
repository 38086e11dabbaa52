"""What the atlas knows: every model's heads with their measures, roles, attention and histories."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from headcount.base.addresses import Head
from headcount.findings.measures import MEASURES, all_measures, of_all_models
from headcount.findings.results import HEAD, KEYS, Results, at_start, gather, read_runs_of, run_of
from headcount.findings.setting import importance_unit
from headcount.findings.voita_roles.attention_maps import read_sentences
from headcount.findings.voita_roles.labels import read_roles
from headcount.findings.voita_roles.maps import function_class

Model = tuple[str, str, int]  # pair, run, seed
_DIGITS = 4  # significant ones, of what is drawn and told
_MILLE = 1000  # weights of attention are whole thousandths: half as long


def atlas_data(results: Results) -> dict[str, Any]:
    """All that the page shows, as JSON; lists of values have an entry for each of `heads`.

    `heads`: every head that the experiment's models have or had, in flat order; `measures`: by
    their ids, those that some head has; `models`: see `_model`, training runs first. A value that
    was not measured is null.
    """
    others = (run.own_model(results.model) for run in results.runs.values())
    heads = max((each.grid.heads() for each in (results.model, *others)), key=len)
    rows, roles = all_measures(results), _roles(results)
    histories = pd.concat(_histories(results), ignore_index=True)
    sentences = dict(_sentences(results))
    keys = [*dict.fromkeys(rows[KEYS].itertuples(index=False, name=None))]
    keys.sort(key=lambda key: key[1] not in results.runs)
    tables = {"rows": rows, "roles": roles, "histories": histories}
    by_model = {part: dict(list(table.groupby(KEYS))) for part, table in tables.items()}
    models = []
    for key, name in zip(keys, _names(keys), strict=True):
        own = {part: found.get(key) for part, found in by_model.items()}
        known = {"id": "/".join(map(str, key)), "name": name, "sentences": sentences.get(key, [])}
        models.append(known | _model(heads, own))
    return {
        "heads": [head._asdict() | {"name": head.name(), "label": head.label()} for head in heads],
        "measures": _measures(rows, importance_unit(results.ranking)),
        "models": models,
    }


def _measures(rows: pd.DataFrame, importance: str) -> list[dict[str, Any]]:
    """What each id of a measure means, in the order of `MEASURES`, then of the rows.

    One that a head has several times is a group of its own, in which `short` tells them apart.
    """
    found = rows[["measure", "of"]].drop_duplicates()
    ordered = found.sort_values("measure", key=lambda m: m.map([*MEASURES].index), kind="stable")
    told = []
    for name, of in ordered.itertuples(index=False):
        measure = MEASURES[name]
        unit = importance if name == "importance" else measure.unit
        known = measure._asdict() | {"id": _id(name, of), "unit": unit, "short": measure.title}
        if of:
            group = f"{measure.title.capitalize()}, {unit}"
            known |= {"title": f"{measure.title}, {of}", "short": of, "group": group}
        told.append(known)
    return told


def _names(models: list[Model]) -> list[str]:
    """How models are called: by their runs, with pair and seed where there are several."""
    pairs, seeds = (len({model[part] for model in models}) > 1 for part in (0, 2))
    return [f"{f'{pair}, ' * pairs}{run}{f', seed {seed}' * seeds}" for pair, run, seed in models]


def _model(heads: list[Head], tables: dict[str, pd.DataFrame | None]) -> dict[str, Any]:
    """One model: `values` and `notes` by measure, `roles`, and `histories`."""
    place = {tuple(head): number for number, head in enumerate(heads)}

    def listed(rows: pd.DataFrame, column: str) -> list[Any]:
        cells: list[Any] = [None] * len(heads)
        for *head, value in rows[[*HEAD, column]].itertuples(index=False):
            cells[place[tuple(head)]] = _short(value)
        return cells

    values, notes, roles, histories = {}, {}, None, []
    for (name, of), rows in tables["rows"].groupby(["measure", "of"], sort=False):
        values[_id(name, of)] = listed(rows, "value")
        if (rows["note"] != "").any():
            notes[_id(name, of)] = listed(rows, "note")
    if tables["roles"] is not None:
        found = tables["roles"]
        roles = {name: listed(found, name) for name in ("function", "class")}
    if tables["histories"] is not None:
        for (what, of), rows in tables["histories"].groupby(["what", "of"], sort=False):
            steps = sorted(rows["step"].unique().tolist())
            columns = [listed(rows[rows["step"] == step], "value") for step in steps]
            points = list(zip(*columns, strict=True))
            histories.append({"what": what, "of": of, "steps": steps, "values": points})
    return {"values": values, "notes": notes, "roles": roles, "histories": histories}


def _roles(results: Results) -> pd.DataFrame:
    """What every encoder head does, as labels say it, with the class of that."""
    kinds = ("attention", "positions", "syntax")
    files = (of_all_models(results, kind) for kind in kinds)
    found = read_roles(*files, results.settings["roles"])
    return found.assign(**{"class": [*map(function_class, found["function"])]})


def _histories(results: Results) -> Iterator[pd.DataFrame]:
    """Measures of heads over updates: pair, run, seed, kind, layer, head, step, value, what, of."""
    columns = [*KEYS, *HEAD, "step", "value", "what", "of"]
    masks = gather(results.files("masks"), ["step", *HEAD, "masked"])
    masks = masks.rename(columns={"masked": "value"})
    masks = masks.assign(what="share of updates masked", of="training")
    yield masks.reindex(columns=columns)
    files = results.files("gates")
    gates = gather(files, ["step", *HEAD, "p_zero"])
    of_run = gates["run"].map(read_runs_of(files, results.files("pruned_runs")))
    inside = [kind in run.kinds for kind, run in zip(gates["kind"], of_run, strict=True)]
    gates = gates[pd.Series(inside, dtype=bool)]
    gates = gates.assign(what="chance that the gate is open", of=gates["run"])
    gates["value"] = 1 - gates["p_zero"].astype(float)
    for rows in (gates, at_start(gates, of_run)):
        yield rows.reindex(columns=columns)
    trained = gather(results.files("training_heads"), ["update", *HEAD, "statistic", "value"])
    trained = trained[trained["statistic"] == "importance"].rename(columns={"update": "step"})
    yield trained.assign(what="importance", of="training").reindex(columns=columns)


def _sentences(results: Results) -> Iterator[tuple[Model, list[dict[str, Any]]]]:
    """Sentences of each model that has any, weights as whole thousandths."""
    for path in of_all_models(results, "sentence_maps"):
        yield run_of(path), list(map(_in_thousandths, read_sentences(path)))


def _in_thousandths(sentence: dict[str, Any]) -> dict[str, Any]:
    weights = {
        head: [[round(_MILLE * weight) for weight in row] for row in rows]
        for head, rows in sentence["weights"].items()
    }
    return sentence | {"weights": weights}


def _id(measure: str, of: str) -> str:
    return f"{measure}/{of}" if of else measure


def _short(value: Any) -> Any:
    """A number with as many digits as are shown; text as it is."""
    return value if isinstance(value, str) else float(f"{value:.{_DIGITS}g}")

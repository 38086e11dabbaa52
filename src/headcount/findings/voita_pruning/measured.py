"""Pruned models and the heads they have left, their scores and updates, and words on them."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from headcount.base.addresses import KINDS, HeadGrid
from headcount.base.errors import UserError
from headcount.base.head_values import read_head_values
from headcount.base.settings.runs import RANDOM_WEIGHTS, PrunedSettings, label
from headcount.base.settings.train import GatesSettings
from headcount.findings.masking import describe_tests
from headcount.findings.results import BASE, HEAD, KEYS, Results, curve_table, read_runs_of, run_of
from headcount.findings.scores import Key, Scores, describe_search
from headcount.findings.setting import describe_setting

DECIDED = 0.9  # a gate with more than this chance of being 0, or of being 1, has polarised
LAYERS = [f"{kind}_layers" for kind in KINDS]
COLUMNS = [*KEYS, "how", "scope", "lambda", "start", "control", "gates_run", "heads", "heads_left"]
COLUMNS += ["scope_heads", "scope_left", *KINDS, *LAYERS, "polarised"]

_RULES = {
    "argmax01": "a head is kept at test time where P(1) > P(0)",
    "threshold": "a head is kept at test time where the noiseless gate is above 0.5",
    "louizos": "at test time a head has its noiseless gate, and is kept where that is above 0",
}
_RATE = {"constant": "{:g}", "weights": "at most {:g}, in proportion to that of the weights"}
_LAMBDA = {
    "sum": "price of one head in nats per target token",
    "mean_over_modules": "weight of the mean over gated layers of their expected open heads",
}
_UNEQUAL = (
    "Models from scratch had not as many updates as pruned ones had in total{}, so BLEU from "
    "scratch beside BLEU after pruning shows the work of updates as well as of heads, and speaks "
    "neither for nor against the paper."
)
_ANEW = (
    " Gates from random weights: the same gates, with schedule and rates of training, as many "
    "updates as a training and its fine-tuning have, and nothing frozen."
)
_EXACTLY = (
    " Subsets: exactly K heads of the scope stay (k8: eight), learnt in as many updates without a "
    "price on heads, by relaxed draws of K heads that become hard (Li et al. 2021)."
)


@cache
def pruned_models(results: Results) -> pd.DataFrame:
    """A pruned model a row, in the order of its files: columns of `COLUMNS`.

    `how`: gates, ranked, drawn, scratch or subset. `start`: the training run that was pruned, or
    random weights; `control`: the λ = 0 run of the same scope, start and seed; `gates_run`: the
    gates run that this one is compared with, or is. `heads` of the original model, `heads_left`,
    and `scope_…` of the kinds that could lose any; `<kind>` and `<kind>_layers` (a tuple): heads
    left. `polarised`: share of gates, 0 to 1; empty where nothing was gated. Raises UserError for a
    heads.csv that does not say of each head whether it is left, for a run without its run.json, for
    one that has not as many heads as its gates run, and for one without a control.
    """
    kept = results.files("kept")
    known = read_runs_of(kept, results.files("pruned_runs"))
    rows = [_model(path, known[run_of(path)[1]], results.model.grid) for path in kept]
    left = {key_of(row): row["heads_left"] for row in rows}
    for row in rows:
        words = f"{row['run']} ({row['pair']}, seed {row['seed']})"
        expected = left.get(key_of(row, "gates_run"), "no such run")
        if expected != row["heads_left"]:
            raise UserError(
                f"{words} has {row['heads_left']} heads: expected as many as {row['gates_run']}, "
                f"found {expected}; make prune/ again"
            )
        if key_of(row, "control") not in left:
            raise UserError(
                f"{words}: expected its control {row['control']!r}, trained for as many updates "
                "with λ = 0, found no such run; add it to `pruned`"
            )
    return pd.DataFrame(rows, columns=COLUMNS)


def with_all_heads(models: pd.DataFrame) -> pd.DataFrame:
    """Pruned models with a trained model for each start: for random weights, the baseline."""
    return models.assign(start=models["start"].replace(RANDOM_WEIGHTS, BASE))


def key_of(model: Mapping[str, Any], name: str = "run") -> Key:
    """Pair, run and seed of a model, or of its `start`, its `control` or its `gates_run`."""
    return model["pair"], model[name], model["seed"]


def _model(path: Path, run: PrunedSettings, grid: HeadGrid) -> dict[str, Any]:
    gates = read_head_values(path, "gate", grid) != 0
    layers: dict[str, list[int]] = {kind: [] for kind in KINDS}
    for kind, _, span in grid.layers():
        layers[kind].append(int(gates[span].sum()))
    left = {kind: sum(counts) for kind, counts in layers.items()}
    named = {"gates_run": run.gates_run, "control": run.control}
    return (
        dict(zip(KEYS, run_of(path), strict=True))
        | {"how": run.word, "scope": run.scope, "lambda": run.lambda_}
        | {"start": run.start, **{name: label(other) for name, other in named.items()}}
        | {"heads": grid.size, "heads_left": sum(left.values())}
        | {"scope_heads": sum(sum(grid.counts[kind]) for kind in run.kinds)}
        | {"scope_left": sum(left[kind] for kind in run.kinds), **left}
        | {f"{kind}_layers": tuple(counts) for kind, counts in layers.items()}
        | {"polarised": _polarised(path, run)}
    )


def _polarised(path: Path, run: PrunedSettings) -> float | str:
    """Share of the gates with P(0) or P(1) above `DECIDED`."""
    table = pd.read_csv(path)
    chances = table[table["statistic"].isin(["p_zero", "p_one"]) & table["kind"].isin(run.kinds)]
    if run.method != "gates" or chances.empty:
        return ""
    return float((chances.groupby(HEAD)["value"].max() > DECIDED).mean())


@cache
def all_scores(results: Results) -> Scores:
    """BLEU of pruned runs and of the training runs that they start from."""
    scores = [*results.files("start_scores"), *results.files("pruned_scores")]
    return Scores(scores, results.files("pruned_translations"), results.files("references"))


@cache
def _updates(results: Results) -> dict[Key, int]:
    """Updates of the same runs, by their curves."""
    curves = [*results.files("start_curves"), *results.files("pruned_curves")]
    return curve_table(curves).groupby(KEYS)["step"].max().to_dict()


def updates_of(results: Results, key: Key) -> int:
    """Updates of one training, without those of the model it began with.

    Raises UserError if its curve is missing.
    """
    if key not in _updates(results):
        raise UserError(
            f"curves: expected curves.csv of {key[1]} ({key[0]}, seed {key[2]}), found none; "
            "train it first"
        )
    return _updates(results)[key]


def describe_updates(results: Results, models: pd.DataFrame) -> list[str]:
    """Sentences: how long models were fine-tuned, after what, and how long from scratch.

    `models`: some of `pruned_models`.
    """

    def different(chosen: pd.DataFrame, name: str) -> str:
        keys = {key_of(model, name) for model in chosen.to_dict("records")}
        numbers = sorted({updates_of(results, key) for key in keys})
        return " or ".join(f"{number:,}" for number in numbers)

    anew = models["how"] == "scratch"
    random = ~anew & (models["start"] == RANDOM_WEIGHTS)
    before, tuned = (different(models[~anew & ~random], name) for name in ("start", "run"))
    scratch, gated = (different(models[rows], "run") for rows in (anew, random))
    known = f"{before} of the model that was pruned" if before != "0" else "none here of an import"
    parts = [f"{known}, then {tuned} of fine-tuning"] * bool(tuned)
    parts += [f"{scratch} from scratch"] * bool(scratch)
    words = [f"Updates, by the curves: {'; '.join(parts)}."] * bool(parts)
    words += [f"Gates from random weights had {gated} updates, by the curves."] * bool(gated)
    return words


def warn_of_updates(results: Results, models: pd.DataFrame) -> tuple[str, ...]:
    """Return a warning if one of these models was trained from scratch for longer or less long.

    Models that start from an imported one were trained before they came here.
    `models`: some of `pruned_models`.
    """
    imported = results.settings["model"].imported is not None
    scratch = models[models["how"] == "scratch"].to_dict("records")
    where = ", the training of the imported model included" if imported else ""
    unequal = any(imported or _unequal(results, model) for model in scratch)
    return (_UNEQUAL.format(where),) * unequal


def _unequal(results: Results, model: Mapping[str, Any]) -> bool:
    """Whether a model from scratch had more or fewer updates than the pruned one had in total."""
    gates = updates_of(results, key_of(model, "gates_run"))
    from_none = model["start"] == RANDOM_WEIGHTS
    before = 0 if from_none else updates_of(results, key_of(model, "start"))
    return updates_of(results, key_of(model)) != before + gates


def describe_pruning(results: Results) -> tuple[str, ...]:
    """What λ is, how models were fine-tuned, and `describe_setting` of the models at the start."""
    gates: GatesSettings = results.settings["gates"]
    begin = "drawn evenly around 0" if gates.init == "glorot" else f"{gates.init:g}"
    models = pruned_models(results)
    starts = with_all_heads(models)[["pair", "start", "seed"]].set_axis(KEYS, axis=1)
    anew = (models["start"] == RANDOM_WEIGHTS).any()
    exactly = (models["how"] == "subset").any()
    return (
        f"λ: {_LAMBDA[gates.lambda_reduction]}. Fine-tuning: {gates.updates} updates; gates with "
        f"temperature {gates.temperature:g}, stretch {gates.stretch_low:g} to "
        f"{gates.stretch_high:g}, log α at the start {begin}, rate "
        f"{_RATE[gates.lr_schedule].format(gates.lr)}; "
        f"{_RULES[gates.eval]}.{_ANEW if anew else ''}{_EXACTLY if exactly else ''}",
        *describe_setting(results, starts),
    )


def describe_scored(results: Results) -> tuple[str, ...]:
    """How translations were searched for, then `describe_pruning`."""
    scores = [*results.files("start_scores"), *results.files("pruned_scores")]
    return (describe_search(scores), *describe_pruning(results))


def describe_compared(results: Results) -> tuple[str, ...]:
    """How many updates models had, on what untuned ones were scored, then `describe_scored`."""
    spent = describe_updates(results, pruned_models(results))
    facts = results.files("untuned_facts")
    untuned = f"Untuned: {describe_tests(facts)}" if facts else ""
    return (*spent, untuned, *describe_scored(results))

"""The record of every pruned run, and at how many heads BLEU begins to fall."""

from functools import cache

import pandas as pd

from headcount.base.addresses import KINDS, HeadGrid
from headcount.base.settings.runs import RANDOM_WEIGHTS
from headcount.base.settings.short_names import decimal
from headcount.findings import exhibits
from headcount.findings.kinds import SCOPES, WORDS, kind_words
from headcount.findings.results import KEYS, Results
from headcount.findings.scores import compare, difference_cells
from headcount.findings.setting import MASKED_OR_GATED, OVER_SEEDS, of_one_training
from headcount.findings.tables import NONE, Table, interval, mean_count, mean_sd, p_value
from headcount.findings.voita_pruning import measured
from headcount.findings.voita_pruning.measured import DECIDED, LAYERS, key_of

COLUMNS = [*KEYS, "test_set", "how", "scope", "lambda", "start", "heads", "heads_left"]
COLUMNS += ["scope_heads", "scope_left", *KINDS, *LAYERS, "polarised", "bleu", "start_bleu"]
COLUMNS += ["control_bleu", "delta", "delta_low", "delta_high", "p", "signature"]


@exhibits.table("voita_pruning", needs=("pruned_bleu", "updates"))
def pruning(results: Results) -> Table:
    """Every pruned run."""
    table = records(results)
    return Table(
        table,
        _summary(table),
        "Every pruned run: how many heads it has left, and how its BLEU differs from the control "
        "that was trained for as long and has lost no head to λ.",
        (
            "Heads left: in all and by kind; in brackets by layer, the first layer first. "
            f"Polarised: share of gates with a chance above {DECIDED} of being 0, or of being 1. "
            "Difference: to the run with λ = 0 of the same scope, start and seed, which was "
            "trained for as many updates and has lost no head to λ; its 95 % interval and p by "
            "paired bootstrap over test sentences, for each seed in turn. Start: BLEU of the "
            "model that was pruned. The difference of a run from scratch also holds that it was "
            "trained anew.",
            of_one_training("test sentences"),
            OVER_SEEDS,
            *measured.describe_updates(results, measured.pruned_models(results)),
            *measured.describe_scored(results),
        ),
        measured.warn_of_updates(results, measured.pruned_models(results)),
    )


@cache
def records(results: Results) -> pd.DataFrame:
    """One pruned run on one test set a row: columns of `COLUMNS`.

    `lambda` in nats per target token and head; `<kind>_layers` lists heads left by layer, separated
    by spaces; `delta` = BLEU − that of the control, which is the run with λ = 0; `start_bleu` is
    empty for gates from random weights.
    """
    models, scores = measured.pruned_models(results), measured.all_scores(results)
    for _, compared in models.groupby(["pair", "control", "seed"], sort=False):
        found = compared.to_dict("records")
        control = key_of(found[0], "control")
        for test, *_ in scores.of(control):  # all at once, which is faster
            scores.compare(control, map(key_of, found), test)
    rows = []
    for model in models.to_dict("records"):
        key, start, control = (key_of(model, name) for name in ("run", "start", "control"))
        trained = model["start"] != RANDOM_WEIGHTS
        model |= {name: " ".join(map(str, model[name])) for name in LAYERS}
        for test, bleu, _ in scores.of(key):
            row = model | {"test_set": test, "bleu": bleu}
            row["start_bleu"] = scores.bleu(start, test) if trained else ""
            row["control_bleu"] = scores.bleu(control, test)
            rows.append(row | compare(scores, key, control, test))
    return pd.DataFrame(rows, columns=COLUMNS)


def _summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per run and test set, means over seeds."""
    rows = []
    for (pair, test, run), found in table.groupby(["pair", "test_set", "run"], sort=False):
        row = {"pair": pair, "test set": test, "run": run, "λ": _price(found.iloc[0])}
        row["heads left"] = mean_count(found["heads_left"])
        for kind, words in WORDS.items():
            layers = f" ({found[f'{kind}_layers'].iloc[0]})" if len(found) == 1 else ""
            row[words] = mean_count(found[kind]) + layers
        row["polarised"] = mean_sd(found["polarised"])
        row |= {"start": mean_sd(found["start_bleu"]), "BLEU": mean_sd(found["bleu"])}
        control = (found["how"] == "gates") & (found["lambda"] == 0)
        rows.append(row | difference_cells(found[~control]))
    return pd.DataFrame(rows)


def _price(model: pd.Series) -> str:
    """λ as people read it; a dash for a subset, which has none."""
    return NONE if model["how"] == "subset" else decimal(model["lambda"])


LIMITS = (0.25, 1.0)  # points of BLEU
_SWEEP = ["pair", "scope", "start", "seed"]
_FELL = ["lambda", "delta", "delta_low", "delta_high", "p"]
_SHARES = [f"{kind}_share" for kind in KINDS]
FALLS = ["pair", "test_set", "scope", "start", "seed", "limit", "runs", "scope_heads", "holds_at"]
FALLS += ["holds_delta", "falls_at", *_FELL]
FALLS += [*_SHARES, "first_kind", "enc_self_lowest", "runs_shorn", "signature"]


@exhibits.table("voita_falls", needs=("pruned_bleu",))
def falls(results: Results) -> Table:
    """Where BLEU begins to fall."""
    tidy = _falls(records(results), results.model.grid)
    return Table(
        tidy,
        pd.DataFrame([_shown(row) for row in tidy.to_dict("records")]),
        "At how many heads BLEU first falls by more than a limit below the λ = 0 control, when "
        "the runs of a sweep over λ are taken from most heads to fewest. Also which kind of "
        "attention goes first.",
        (
            "Heads are those of the scope: encoder self-attention alone, or all. Holds to: "
            "fewest heads before that fall. The 95 % interval and p are those of the run that "
            "fell, by paired bootstrap, p nearly one-sided; where the interval reaches above "
            "−limit, the fall may be less. Which goes first, for the scope all: shares of heads "
            "left by kind (encoder, decoder, encoder–decoder), mean over the runs but the control "
            "that lost any; the kind with the smallest; and in how many of these runs encoder "
            "self-attention has the smallest share of the three.",
            MASKED_OR_GATED,
            of_one_training("test sentences"),
            *measured.describe_scored(results),
        ),
    )


def _falls(runs: pd.DataFrame, grid: HeadGrid) -> pd.DataFrame:
    """One sweep, test set and limit a row: columns of `FALLS`.

    `runs` comes from `records`, `grid` has the heads of the original model. `falls_at`, λ to p: the
    first run whose delta lies below −`limit` points; empty where none does. `holds_at`: heads of
    the run before it, the control if there is none.
    `runs_shorn`: how many runs but the control have lost a head; over these, `<kind>_share` is the
    mean share of heads left and `enc_self_lowest` counts those where no other kind has a share as
    small; empty unless the scope is all.
    """
    rows = []
    for key, found in runs[runs["how"] == "gates"].groupby(_SWEEP, sort=False):
        # The control stands first even where a run with λ above 0 kept as many heads, or more.
        found = found.assign(penalised=found["lambda"] > 0, lost=-found["heads_left"])
        sweep = found.sort_values(["penalised", "lost", "lambda"], kind="stable")
        alone = sweep.drop_duplicates("run").to_dict("records")
        head = dict(zip(_SWEEP, key, strict=True)) | _order_of_kinds(alone, grid)
        head |= {"scope_heads": alone[0]["scope_heads"], "runs": len(alone) - 1}
        for test, of_test in sweep.groupby("test_set", sort=False):
            for limit in LIMITS:
                fall = _fall(of_test.to_dict("records"), limit)
                rows.append(head | {"test_set": test, "limit": limit} | fall)
    return pd.DataFrame(rows, columns=FALLS)


def _fall(sweep: list[dict], limit: float) -> dict:
    """The first run below the limit, and the last before it; the first of all is the control."""
    place = next((n for n, row in enumerate(sweep) if row["delta"] < -limit), len(sweep))
    held = sweep[place - 1]
    fell = sweep[place] if place < len(sweep) else dict.fromkeys(["scope_left", *_FELL], "")
    facts = {"holds_at": held["scope_left"], "holds_delta": held["delta"]}
    facts |= {"falls_at": fell["scope_left"], "signature": sweep[0]["signature"]}
    return facts | {name: fell[name] for name in _FELL}


def _order_of_kinds(sweep: list[dict], grid: HeadGrid) -> dict:
    """Mean shares left by kind over the runs that lost any head, and which is smallest.

    The first of the sweep is the control, which may lose heads without a price on them.
    """
    totals = [max(sum(grid.counts[kind]), 1) for kind in KINDS]
    shorn = [row for row in sweep[1:] if row["scope_left"] < row["scope_heads"]]
    if sweep[0]["scope"] != "all" or not shorn:
        nothing = dict.fromkeys([*_SHARES, "first_kind", "enc_self_lowest"], "")
        return nothing | {"runs_shorn": len(shorn)}
    shares = pd.DataFrame(shorn)[list(KINDS)] / totals
    mean = shares.mean()
    lowest = shares["enc_self"] < shares[list(KINDS[1:])].min(axis=1)
    found = dict(zip(_SHARES, mean, strict=True)) | {"runs_shorn": len(shorn)}
    found["first_kind"] = " and ".join(mean.index[mean == mean.min()])
    return found | {"enc_self_lowest": int(lowest.sum())}


def _shown(row: dict) -> dict[str, str]:
    """One row as people read it."""
    fell = row["falls_at"] != ""
    all_kinds = row["first_kind"] != ""
    shares = " / ".join(f"{row[name]:.2f}" for name in _SHARES) if all_kinds else NONE
    lowest = f"{row['enc_self_lowest']} of {row['runs_shorn']} runs"
    cells = {"pair": row["pair"], "test set": row["test_set"], "scope": SCOPES[row["scope"]]}
    cells |= {"start": row["start"], "seed": str(row["seed"]), "limit": f"{row['limit']:.2f}"}
    return (
        cells
        | {"holds to": f"{row['holds_at']} of {row['scope_heads']}"}
        | {"falls at": str(row["falls_at"]) if fell else "no run of the sweep"}
        | {"λ": decimal(row["lambda"]) if fell else NONE}
        | {"difference": mean_sd([row["delta"]], "+")}
        | {"95 % interval": interval([row["delta_low"]], [row["delta_high"]])}
        | {"p": p_value(row["p"]), "shares left": shares}
        | {
            "goes first": " and ".join(map(kind_words, row["first_kind"].split(" and "))) or NONE,
            "encoder lowest": lowest if all_kinds else NONE,
        }
    )

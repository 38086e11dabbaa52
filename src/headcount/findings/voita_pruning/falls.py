"""At how many heads BLEU begins to fall, and which kind of attention loses its heads first."""

import pandas as pd

from headcount.base.addresses import KINDS
from headcount.base.settings.runs import label
from headcount.base.settings.short_names import decimal
from headcount.findings.cells import NONE, p_value
from headcount.findings.results import Results
from headcount.findings.scores import Scores
from headcount.findings.setting import of_one_training
from headcount.findings.tables import Table
from headcount.findings.voita_pruning.heads import PrunedModel, sweeps
from headcount.findings.voita_pruning.measured import all_scores, describe_scored, pruned_models

LIMITS = (0.25, 1.0)  # points of BLEU
_SHARES = [f"{kind}_share" for kind in KINDS]
COLUMNS = ["pair", "test_set", "scope", "start", "seed", "limit", "runs", "scope_heads", "holds_at"]
COLUMNS += ["holds_delta", "falls_at", "lambda", "delta", "delta_low", "delta_high", "p"]
COLUMNS += [*_SHARES, "first_kind", "enc_self_lowest", "runs_shorn", "signature"]

CAPTION = (
    "At how many heads BLEU first falls by more than a limit below the λ = 0 control, when the "
    "runs of a sweep over λ are taken from most heads to fewest. Heads are those of the scope: "
    "encoder self-attention alone, or all. Holds to: fewest heads before that fall. The 95 % "
    "interval and p are those of the run that fell, by paired bootstrap; where the interval "
    "reaches above −limit, the fall may be less. Which goes first, for the scope all: shares of "
    "heads left by kind (encoder, decoder, decoder-encoder), mean over the runs that lost any; the "
    "kind with the smallest; and in how many of these runs encoder self-attention has the smallest "
    f"share of the three. {of_one_training('test sentences')}"
)


def falls(results: Results) -> Table:
    """Where BLEU begins to fall in every sweep over λ."""
    table = falls_table(pruned_models(results), all_scores(results))
    return Table(table, falls_summary(table), f"{CAPTION} {describe_scored(results)}")


def falls_table(models: list[PrunedModel], scores: Scores) -> pd.DataFrame:
    """One sweep, test set and limit a row: columns of `COLUMNS`.

    `falls_at`, λ to p: the first run whose delta lies below −`limit` points; empty where none
    does. `holds_at`: heads of the run before it, the control if there is none. `runs_shorn`: how
    many runs have lost a head; over these, `<kind>_share` is the mean share of heads left and
    `enc_self_lowest` counts those where no other kind has a share as small; empty unless the scope
    is all.
    """
    rows = []
    for sweep in sweeps(models):
        model = sweep[0]
        head = {"pair": model.pair, "scope": model.run.scope, "start": label(model.run.init_from)}
        head |= {"seed": model.seed, "scope_heads": model.scope_heads, "runs": len(sweep) - 1}
        order = _order_of_kinds(sweep)
        for test, *_ in scores.of(model.control):
            for limit in LIMITS:
                fall = _fall(sweep, scores, test, limit)
                rows.append(head | {"test_set": test, "limit": limit} | fall | order)
    return pd.DataFrame(rows, columns=COLUMNS)


def _fall(sweep: list[PrunedModel], scores: Scores, test: str, limit: float) -> dict:
    """The first run below the limit, and the last before it."""
    control = sweep[0].control
    found = scores.compare(control, [model.key for model in sweep], test)
    # The control stands first even where a run with λ above 0 kept as many heads, or more.
    penalised = [model for model in sweep if model.key != control]
    held = next(model for model in sweep if model.key == control)
    signature = found[control].signature
    facts = {"holds_at": held.scope_left, "holds_delta": 0.0, "signature": signature}
    for model in penalised:
        judged = found[model.key]
        if judged.delta < -limit:
            fell = {"falls_at": model.scope_left, "lambda": model.run.lambda_}
            bounds = {
                "delta": judged.delta,
                "delta_low": judged.low,
                "delta_high": judged.high,
                "p": judged.p_value,
            }
            return facts | fell | bounds
        facts |= {"holds_at": model.scope_left, "holds_delta": judged.delta}
    return facts | dict.fromkeys(
        ["falls_at", "lambda", "delta", "delta_low", "delta_high", "p"], ""
    )


def _order_of_kinds(sweep: list[PrunedModel]) -> dict:
    """Mean shares left by kind, and which is smallest."""
    shares = [
        {kind: model.by_kind[kind] / max(sum(model.grid.counts[kind]), 1) for kind in KINDS}
        for model in sweep
        if model.scope_left < model.scope_heads
    ]
    if sweep[0].run.scope != "all" or not shares:
        nothing = dict.fromkeys([*_SHARES, "first_kind", "enc_self_lowest"], "")
        return nothing | {"runs_shorn": len(shares)}
    mean = {kind: sum(share[kind] for share in shares) / len(shares) for kind in KINDS}
    first = [kind for kind in KINDS if mean[kind] == min(mean.values())]
    others = KINDS[1:]
    lowest = sum(share["enc_self"] < min(share[kind] for kind in others) for share in shares)
    found = dict(zip(_SHARES, mean.values(), strict=True))
    return found | {
        "first_kind": " and ".join(first),
        "enc_self_lowest": lowest,
        "runs_shorn": len(shares),
    }


def falls_summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table as people read it: a row per sweep, seed, test set and limit."""
    return pd.DataFrame([_shown(row) for row in table.to_dict("records")])


def _shown(row: dict) -> dict[str, str]:
    fell = row["falls_at"] != ""
    all_kinds = row["first_kind"] != ""
    shares = " / ".join(f"{row[name]:.2f}" for name in _SHARES) if all_kinds else NONE
    lowest = f"{row['enc_self_lowest']} of {row['runs_shorn']} runs"
    return {
        "pair": row["pair"],
        "test set": row["test_set"],
        "scope": row["scope"],
        "start": row["start"],
        "seed": str(row["seed"]),
        "limit": f"{row['limit']:.2f}",
        "holds to": f"{row['holds_at']} of {row['scope_heads']}",
        "falls at": str(row["falls_at"]) if fell else "no run of the sweep",
        "λ": decimal(row["lambda"]) if fell else NONE,
        "difference": f"{row['delta']:+z.2f}" if fell else NONE,
        "95 % interval": (
            f"{row['delta_low']:+z.2f} to {row['delta_high']:+z.2f}" if fell else NONE
        ),
        "p": p_value(row["p"]) if fell else NONE,
        "shares left": shares,
        "goes first": row["first_kind"] or NONE,
        "encoder lowest": lowest if all_kinds else NONE,
    }

"""At how many heads BLEU begins to fall, and which kind of attention loses its heads first."""

import pandas as pd

from headcount.base.addresses import KINDS, HeadGrid
from headcount.base.settings.short_names import decimal
from headcount.findings import exhibits
from headcount.findings.cells import NONE, interval, mean_sd, p_value
from headcount.findings.results import Results
from headcount.findings.setting import of_one_training
from headcount.findings.tables import Table
from headcount.findings.voita_pruning.measured import describe_scored
from headcount.findings.voita_pruning.records import records

LIMITS = (0.25, 1.0)  # points of BLEU
_SWEEP = ["pair", "scope", "start", "seed"]
_FELL = ["lambda", "delta", "delta_low", "delta_high", "p"]
_SHARES = [f"{kind}_share" for kind in KINDS]
COLUMNS = ["pair", "test_set", "scope", "start", "seed", "limit", "runs", "scope_heads", "holds_at"]
COLUMNS += ["holds_delta", "falls_at", *_FELL]
COLUMNS += [*_SHARES, "first_kind", "enc_self_lowest", "runs_shorn", "signature"]


@exhibits.table("voita_falls", needs=("pruned_bleu",))
def falls(results: Results) -> Table:
    """Where BLEU begins to fall."""
    tidy = _falls(records(results), results.model.grid)
    return Table(
        tidy,
        pd.DataFrame([_shown(row) for row in tidy.to_dict("records")]),
        "At how many heads BLEU first falls by more than a limit below the λ = 0 control, when the "
        "runs of a sweep over λ are taken from most heads to fewest. Heads are those of the scope: "
        "encoder self-attention alone, or all. Holds to: fewest heads before that fall. The 95 % "
        "interval and p are those of the run that fell, by paired bootstrap; where the interval "
        "reaches above −limit, the fall may be less. Which goes first, for the scope all: shares "
        "of heads left by kind (encoder, decoder, decoder-encoder), mean over the runs that lost "
        "any; the kind with the smallest; and in how many of these runs encoder self-attention has "
        f"the smallest share of the three. {of_one_training('test sentences')} "
        f"{describe_scored(results)}",
    )


def _falls(runs: pd.DataFrame, grid: HeadGrid) -> pd.DataFrame:
    """One sweep, test set and limit a row: columns of `COLUMNS`.

    `runs` comes from `records`, `grid` has the heads of the original model. `falls_at`, λ to p: the
    first run whose delta lies below −`limit` points; empty where none does. `holds_at`: heads of
    the run before it, the control if there is none. `runs_shorn`: how many runs have lost a head;
    over these, `<kind>_share` is the mean share of heads left and `enc_self_lowest` counts those
    where no other kind has a share as small; empty unless the scope is all.
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
    return pd.DataFrame(rows, columns=COLUMNS)


def _fall(sweep: list[dict], limit: float) -> dict:
    """The first run below the limit, and the last before it; the first of all is the control."""
    place = next((n for n, row in enumerate(sweep) if row["delta"] < -limit), len(sweep))
    held = sweep[place - 1]
    fell = sweep[place] if place < len(sweep) else dict.fromkeys(["scope_left", *_FELL], "")
    facts = {"holds_at": held["scope_left"], "holds_delta": held["delta"]}
    facts |= {"falls_at": fell["scope_left"], "signature": sweep[0]["signature"]}
    return facts | {name: fell[name] for name in _FELL}


def _order_of_kinds(sweep: list[dict], grid: HeadGrid) -> dict:
    """Mean shares left by kind over the runs that lost any head, and which is smallest."""
    totals = [max(sum(grid.counts[kind]), 1) for kind in KINDS]
    shorn = [row for row in sweep if row["scope_left"] < row["scope_heads"]]
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
    cells = {"pair": row["pair"], "test set": row["test_set"], "scope": row["scope"]}
    cells |= {"start": row["start"], "seed": str(row["seed"]), "limit": f"{row['limit']:.2f}"}
    return (
        cells
        | {"holds to": f"{row['holds_at']} of {row['scope_heads']}"}
        | {"falls at": str(row["falls_at"]) if fell else "no run of the sweep"}
        | {"λ": decimal(row["lambda"]) if fell else NONE}
        | {"difference": mean_sd([row["delta"]], "+")}
        | {"95 % interval": interval([row["delta_low"]], [row["delta_high"]])}
        | {"p": p_value(row["p"]), "shares left": shares}
        | {"goes first": row["first_kind"] or NONE, "encoder lowest": lowest if all_kinds else NONE}
    )

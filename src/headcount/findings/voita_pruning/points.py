"""Points of the figures of pruning: means over seeds, with what lies between their ends."""

import pandas as pd

from headcount.base.addresses import KINDS
from headcount.base.settings.runs import BASELINE, label
from headcount.findings.masking import SEEDS, TEST
from headcount.findings.published import voita
from headcount.findings.run_tables import BASE
from headcount.findings.voita_pruning.heads import PrunedModel

PAPER_HEADS = 48  # of each kind
_PER_GROUP = 2  # layers, where a decoder has more than three, as in the paper


def encoder_points(records: pd.DataFrame) -> pd.DataFrame:
    """Figure 7: a gates run on encoder self-attention a row, then the paper's points.

    Columns: pair, test_set, run, lambda, heads_left (mean over seeds), bleu (mean), low, high,
    spread, seeds, start_bleu, control_bleu, source. `low` and `high` bound what `spread` names:
    the standard deviation over seeds, or with one seed the bootstrap interval of the difference to
    the control, laid around the control. Empty in the paper's rows.
    """
    gates = (records["how"] == "gates") & (records["scope"] == "enc_self")
    chosen = records[gates & (records["start"] == BASE)]
    rows = []
    for (pair, test, run), found in chosen.groupby(["pair", "test_set", "run"], sort=False):
        row = {"pair": pair, "test_set": test, "run": run, "lambda": found["lambda"].iloc[0]}
        row |= {"heads_left": found["scope_left"].mean(), "bleu": found["bleu"].mean()}
        row |= {"seeds": len(found), "start_bleu": found["start_bleu"].mean()}
        rows.append(row | {"control_bleu": found["control_bleu"].mean()} | _spread(found))
    columns = ["pair", "test_set", "run", "lambda", "heads_left", "bleu", "low", "high", "spread"]
    columns += ["seeds", "start_bleu", "control_bleu", "source"]
    ours = pd.DataFrame(rows, columns=columns).assign(source="ours")
    ours = ours.sort_values("heads_left", ascending=False, kind="stable")
    printed = voita.bleu_by_heads().rename(columns={"value": "bleu"}).assign(source="paper")
    return _joined(ours, printed.reindex(columns=columns))


def _spread(found: pd.DataFrame) -> dict:
    if len(found) > 1:
        mean, sd = found["bleu"].mean(), found["bleu"].std()
        return {"low": mean - sd, "high": mean + sd, "spread": SEEDS}
    row = found.iloc[0]
    low, high = (row["control_bleu"] + row[side] for side in ("delta_low", "delta_high"))
    return {"low": low, "high": high, "spread": TEST}


def kind_points(models: list[PrunedModel]) -> pd.DataFrame:
    """Figure 9: heads left of each kind, a gates run on all kinds and kind a row.

    Columns: pair, run, seed, lambda, point (what belongs together over seeds: the run, or a place
    in the paper's drawing), kind, pruned (in the whole model), heads_left, source.
    """
    rows = [
        (
            *model.key,
            model.run.lambda_,
            label(model.run),
            kind,
            model.grid.size - model.heads_left,
            left,
            "ours",
        )
        for model in _sweep_of_all(models)
        for kind, left in model.by_kind.items()
    ]
    columns = ["pair", "run", "seed", "lambda", "point", "kind", "pruned", "heads_left", "source"]
    printed = voita.heads_by_kind().rename(columns={"value": "heads_left"})
    printed = printed.assign(source="paper", point=printed["pruned"])
    return _joined(pd.DataFrame(rows, columns=columns), printed.reindex(columns=columns))


def layer_points(models: list[PrunedModel]) -> pd.DataFrame:
    """Figure 10: heads left in the decoder's layers, a gates run, kind and group of layers a row.

    Columns: as `kind_points`, with layers (from 1; two neighbours where a decoder has more than
    three) after kind; here pruned counts heads of this kind.
    """
    rows = []
    for model in _sweep_of_all(models):
        for kind in KINDS[1:]:
            pruned = sum(model.grid.counts[kind]) - model.by_kind[kind]
            for words, left in _by_layers(model.left[kind]):
                point = (*model.key, model.run.lambda_, label(model.run), kind)
                rows.append((*point, words, pruned, left, "ours"))
    columns = ["pair", "run", "seed", "lambda", "point", "kind", "layers", "pruned", "heads_left"]
    columns += ["source"]
    printed = voita.decoder_heads_by_layers().rename(columns={"value": "heads_left"})
    # The paper's axis: heads of this kind, not of the whole model as in Figure 9.
    left = printed.groupby(["kind", "pruned"], sort=False)["heads_left"].transform("sum")
    printed = printed.assign(point=printed["pruned"], pruned=PAPER_HEADS - left, source="paper")
    return _joined(pd.DataFrame(rows, columns=columns), printed.reindex(columns=columns))


def _sweep_of_all(models: list[PrunedModel]) -> list[PrunedModel]:
    """Gates runs on all kinds from the baseline, fewest heads pruned first."""
    chosen = [
        model
        for model in models
        if model.run.method == "gates"
        and model.run.scope == "all"
        and model.run.init_from == BASELINE
    ]
    return sorted(chosen, key=lambda model: -model.heads_left)


def _by_layers(left: tuple[int, ...]) -> list[tuple[str, int]]:
    """Names of groups of layers, from 1, and the heads left in each."""
    size = _PER_GROUP if len(left) > _PER_GROUP + 1 else 1
    groups = []
    for first in range(0, len(left), size):
        last = min(first + size, len(left))
        words = f"{first + 1}–{last}" if last > first + 1 else str(last)
        groups.append((words, sum(left[first:last])))
    return groups


def _joined(ours: pd.DataFrame, printed: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([ours.astype(object), printed.astype(object)], ignore_index=True).fillna("")

"""Result files of HeadMask's and Michel's tables, from numbers chosen by hand.

Rows are dicts; files of runs are named `<phase>/<pair>/<run>/seed<k>/<name>`.
"""

import csv
import json
from collections.abc import Iterator
from pathlib import Path

Rows = list[dict]
Files = dict[str, Rows | dict]

PAIR = "some.en-de"
SEEDS = (1, 2, 3)
KINDS = ("enc_self", "dec_self", "dec_enc")


def write_results(folder: Path, files: Files) -> Path:
    """The folder of results, with these files in it: lists of rows as CSV, mappings as JSON."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, dict):
            path.write_text(json.dumps(content))
            continue
        columns = list(dict.fromkeys(key for row in content for key in row))
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(content)
    return folder


def of(run: str = "baseline", seed: int = 1, pair: str = PAIR, **cells) -> dict:
    """A row of a table or figure."""
    return {"pair": pair, "run": run, "seed": seed, "source": "ours"} | cells


def effect(delta: float, reach: float = 0.3, p: float | None = None) -> dict:
    """A BLEU change with an interval of ± reach; significant if that lies on one side of 0."""
    found = (0.001 if abs(delta) > reach else 0.5) if p is None else p
    return {"delta": delta, "delta_low": delta - reach, "delta_high": delta + reach, "p": found}


def masking(run: str, seed: int, groups: list[float], up=(), down=(), bleu=30.0) -> Files:
    """headmask.csv of a run: changes by groups, and along both orders from no head to all."""
    rows = [{"order": "none", "index": 0, "heads_masked": 0, "bleu": bleu} | effect(0, 0, 1)]
    curves = {"group": (groups, 1), "ascending": (up, 0), "descending": (down, 0)}
    for order, (changes, first) in curves.items():
        for index, change in enumerate(changes, start=first):
            masked = 6 * (1 if order == "group" else index)
            at = {"order": order, "index": index, "heads_masked": masked, "bleu": bleu + change}
            rows.append(at | effect(change, 0 if masked == 0 else 0.3))
    own = [{"test_set": "test", "ranking": "own"} | row for row in rows]
    return {f"masking/{PAIR}/{run}/seed{seed}/headmask.csv": own}


def groups_of(changes: list[float]) -> Files:
    return masking("baseline", 1, changes)


def orders_of(up: list[float], down: list[float]) -> Files:
    return masking("baseline", 1, [], up, down)


def heads_table(**more: list) -> Rows:
    """Table 5 of 48 heads, 6 of them are 12.5 %: cells by run, then seed."""
    runs = ("baseline", "random-6", "impt-6")
    return [
        of(run, seed, heads=48) | {name: values[place][seed - 1] for name, values in more.items()}
        for place, run in enumerate(runs if more else (*runs, "random-12", "impt-12"))
        for seed in SEEDS
    ]


def deltas(method: str, gains: dict[str, list[float]]) -> Files:
    """BLEU differences to the baseline, by pair and seed."""
    rows = [
        of(f"{method}-6", seed, pair, test_set="test", statistic="delta", value=gain)
        for pair, values in gains.items()
        for seed, gain in enumerate(values, start=1)
    ]
    return {"tables/headmask_table2.csv": rows, "tables/headmask_table5.csv": heads_table()}


def both_methods(random: list[float], impt: list[float]) -> Files:
    files = deltas("random", {PAIR: random})
    return files | {"tables/headmask_table3.csv": next(iter(deltas("impt", {PAIR: impt}).values()))}


def ratios(number: int, random: list[float], impt: list[float]) -> Files:
    table = heads_table(ratio_to_baseline=[[1, 1, 1], random, impt])
    return {
        "tables/headmask_table5.csv": heads_table(),
        f"tables/headmask_table{number}.csv": table,
    }


def spreads(random: list[float], impt: list[float]) -> Files:
    """Coefficient of variation and Gini's, equal; the baseline has 0.5."""
    values = [[0.5, 0.5, 0.5], random, impt]
    return {"tables/headmask_table5.csv": heads_table(cv=values, gini=values)}


def heads_of(run: str, seed: int, importances: list[float]) -> Iterator[dict]:
    """Importances of the heads of one model; ranks by size, from 1."""
    order = sorted(importances, reverse=True)
    for place, value in enumerate(importances):
        yield of(run, seed, kind="enc_self", layer=0, head=place, importance=value,
                 rank=1 + order.index(value))  # fmt: skip


def super_heads(baseline: float, random: float, impt: float) -> Files:
    """Of 48 heads one has this importance, a bit more with each seed, the others 1."""
    sizes = {"baseline": baseline, "random-6": random, "impt-6": impt}
    rows = [
        row
        for run, size in sizes.items()
        for seed in SEEDS
        for row in heads_of(run, seed, [size + 0.1 * seed, *[1.0] * 47])
    ]
    return {"figures/headmask_heads.csv": rows, "tables/headmask_table5.csv": heads_table()}


def masked_runs(changes: dict[str, list[list[float]]], order: str) -> Files:
    """Three seeds of each run, `order` (group, up or down curves) with changes by run."""
    files: Files = {"tables/headmask_table5.csv": heads_table()}
    for run, parts in changes.items():
        for seed in SEEDS:
            moved = [[change * (1 + 0.01 * seed) for change in part] for part in parts]
            files |= (
                masking(run, seed, *moved) if order == "group" else masking(run, seed, [], *moved)
            )
    return files


def early_heads(rho: list[float], tops: list[int]) -> Files:
    """Correlations of the first checkpoint by seed; which of 8 heads is the top one by seed."""
    rows = [of(seed=seed, update=update, spearman_raw_with_last=value)
            for seed, first in zip(SEEDS, rho, strict=True)
            for update, value in ((100, first), (1000, 1.0))]  # fmt: skip
    heads = []
    for seed, top in zip(SEEDS, tops, strict=True):
        heads += heads_of("baseline", seed, [2.0 if head == top else 1.0 for head in range(8)])
    return {"tables/michel_training.csv": rows, "figures/headmask_heads.csv": heads}


def mask_counts(shares: list[float]) -> Files:
    """Share of 1,000 updates that masked each of the heads; 1/8 of them each time."""
    count = len(shares) // 8
    rows = [of(f"random-{count}", step=1000, kind="enc_self", layer=0, head=head, masked=share,
               updates=1000) for head, share in enumerate(shares)]  # fmt: skip
    table = [of(f"random-{count}", heads=len(shares))]
    return {"figures/headmask_frequency.csv": rows, "tables/headmask_table5.csv": table}


def ablation(tests: dict[str, list[dict]], sentences: int = 1000) -> Files:
    """Effects of single heads by test set."""
    rows = [of(test_set=test, kind="enc_self", layer=0, head=head) | found
            for test, effects in tests.items() for head, found in enumerate(effects)]  # fmt: skip
    facts = {"sentences": dict.fromkeys(tests, sentences)}
    return {"tables/michel_ablation.csv": rows,
            f"masking/{PAIR}/baseline/seed1/ablation.json": facts}  # fmt: skip


def transfer(r: float, low: float, high: float, p: float) -> Files:
    row = of(test_set="test", other_test_set="dev", kind="all", pearson=r, pearson_low=low,
             pearson_high=high, pearson_p=p)  # fmt: skip
    return {"tables/michel_transfer.csv": [row]}


def layers(changes: list[float], sentences: int = 1000) -> Files:
    """The best single head of layers 0 and on of encoder, then decoder-encoder attention."""
    half = len(changes) // 2
    rows = [of(test_set="test", kind="enc_self" if place < half else "dec_enc", layer=place % half)
            | effect(change) for place, change in enumerate(changes)]  # fmt: skip
    facts = {"sentences": {"test": sentences}}
    return {"tables/michel_all_but_one.csv": rows,
            f"masking/{PAIR}/baseline/seed1/ablation.json": facts}  # fmt: skip


def steps(changes: dict[int, float], order: str = "importance") -> Files:
    """BLEU change by percent of all heads pruned; 30 BLEU with all."""
    rows = [of(test_set="test", scope="all", order=order, percent=percent, bleu=30 + change)
            | effect(change) for percent, change in changes.items()]  # fmt: skip
    return {"figures/michel_pruning.csv": rows}


def areas(curves: dict[str, float], against: str) -> Files:
    """Differences of areas to one curve, `<scope>/<order>`."""
    rows = [of(test_set="test", scope=name.split("/")[0], order=name.split("/")[1],
               against=against) | effect(gap) for name, gap in curves.items()]  # fmt: skip
    return {"tables/michel_areas.csv": rows}


def profiles(late: dict[str, float], bleu: float = 10.0) -> Files:
    """First checkpoint: R² 0.95, end mass 0.3; last as given, a bit else with each seed."""
    first = {"r_squared": 0.95, "end_mass": 0.3}
    rows = [of(seed=seed, update=update, test_set="test", bleu=bleu)
            | {name: value + 0.01 * seed * (update > 1) for name, value in found.items()}
            for seed in SEEDS for update, found in ((1, first), (9, late))]  # fmt: skip
    return {"tables/michel_training.csv": rows}


def kept_at_40(shares: dict[int, float]) -> Files:
    """Percent of BLEU kept by update, ± 2."""
    rows = [of(update=update, test_set="test", kept_40=share, kept_low_40=share - 2,
               kept_high_40=share + 2) for update, share in shares.items()]  # fmt: skip
    return {"tables/michel_training.csv": rows}


def speeds(small: float, large: float) -> Files:
    """Sentences per second of the halved model at batch 1 and 64; 100 with all heads, sd 1."""
    rows = [of(phase="decode", batch_size=size, percent=percent, repeats=5, sd=1, mean=mean)
            for size, pruned in ((1, small), (64, large))
            for percent, mean in ((0, 100), (50, pruned))]  # fmt: skip
    return {"figures/michel_speed.csv": rows}


def importance_speed(ratio: float) -> Files:
    """Seconds of importance; 2 of training, and an interval of a tenth to both sides."""
    row = of(repeats=5, importance=2 * ratio, training=2, ratio=ratio, ratio_low=ratio - 0.1,
             ratio_high=ratio + 0.1)  # fmt: skip
    return {"tables/michel_importance_speed.csv": [row]}


def parameters(each: int) -> Files:
    """1,000 in all with 10 heads; each head has this many."""
    rows = [of(percent=percent, heads_left=left, parameters=1000 - (10 - left) * each)
            for percent, left in ((0, 10), (50, 5))]  # fmt: skip
    return {"figures/michel_speed.csv": rows}

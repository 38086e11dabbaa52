"""Result files of Voita's tables and figures, from numbers chosen by hand; see `planted_files`."""

from planted_files import KINDS, PAIR, SEEDS, Files, Rows, effect, of


def roles(heads: Rows, seeds: int = 1, more: Files | None = None) -> Files:
    """Encoder heads of baselines; cells that are left out have values that say nothing."""
    plain = {"layer": 0, "function": "", "relevance": 0.25, "confidence": 0.5, "survival": 0.5,
             "rare_two_rarest": 0.2, "rare_two_rarest_chance": 0.2}  # fmt: skip
    rows = []
    for seed in range(1, seeds + 1):
        for place, cells in enumerate(heads):
            row = of(seed=seed, head=place) | plain | cells
            around = {"relevance_low": row["relevance"] - 0.01,
                      "relevance_high": row["relevance"] + 0.01}  # fmt: skip
            rows.append(row | around)
    return {"tables/voita_roles.csv": rows} | (more or {})


def heads_with(**columns: list) -> Rows:
    """Heads from columns of cells."""
    names = list(columns)
    return [dict(zip(names, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def positions(before: int, after: int) -> Files:
    """One head points at -1 so often of 1,000 times, another at +1."""
    found = ((0, -1, before), (1, 1, after))
    rows = [{"kind": "enc_self", "layer": 0, "head": head, "offset": offset, "hits": hits,
             "trials": 1000} for head, offset, hits in found]  # fmt: skip
    folder = f"heads/{PAIR}/baseline/seed1"
    return {f"{folder}/positions.csv": rows, f"{folder}/roles.json": {"sentences": 1000}}


def relations(margins: dict[str, float], p: float = 0.0001) -> Files:
    """The best head of each relation, both ways: its margin over a baseline of 0.4."""
    rows = [of(treebank="trees", relation=relation, direction=direction, baseline=0.4,
               held_out=0.4 + margin, margin=margin, p=p, accuracy=0.4 + margin, trials=1000)
            for relation, margin in margins.items()
            for direction in ("to_dependent", "to_governor")]  # fmt: skip
    return {"tables/voita_table1.csv": rows}


def syntax(hits: list[int]) -> Files:
    """Heads that are right so often of 1,000 times; the baseline 400 times."""
    rows = [{"kind": "enc_self", "layer": 0, "head": head, "treebank": "trees",
             "relation": "nsubj", "direction": "to_dependent", "hits": count, "trials": 1000,
             "baseline_hits": 400, "head_only": count, "baseline_only": 400}
            for head, count in enumerate(hits)]  # fmt: skip
    return {f"heads/{PAIR}/baseline/seed1/syntax.csv": rows}


def domains(subtitles: float, news: float) -> Files:
    """Margins for subjects in both domains, a bit more with each of three seeds."""
    rows = []
    for pair, margin in (("opensubtitles2018_en_ru.en-ru", subtitles), ("wmt_en_ru.en-ru", news)):
        for seed in SEEDS:
            found = relations({"nsubj": margin + 0.01 * seed})["tables/voita_table1.csv"]
            rows += [row | {"pair": pair, "seed": seed} for row in found]
    return {"tables/voita_table1.csv": rows}


def rare_words(share: float) -> Files:
    """Of 1,000 sentences; the second head of layer 1 points at the rarest words."""
    heads = heads_with(rare_two_rarest=[0.1, share], relevance=[0.4, 0.6])
    return roles(heads, more={f"heads/{PAIR}/baseline/seed1/roles.json": {"rare_sentences": 1000}})


def gates(runs: list[dict], scope: str = "enc_self", heads: int = 16) -> Files:
    """Gates runs on one scope: λ, left, delta, and what else they have."""
    rows = []
    for run in runs:
        name = f"gates-{scope}-l{run['lambda']:g}"
        plain = {"test_set": "test", "how": "gates", "scope": scope, "start": "baseline",
                 "heads": 48, "heads_left": 48 - heads + run["left"], "scope_heads": heads,
                 "scope_left": run["left"], "enc_self_layers": "8 8", "polarised": 1,
                 "bleu": 30 + run.get("delta", 0)}  # fmt: skip
        extra = {key: run[key] for key in run if key not in ("left", "delta")}
        rows.append(of(run.get("run", name)) | plain | effect(run.get("delta", 0)) | extra)
    return {"tables/voita_pruning.csv": rows}


def sweep(left: list[int], deltas_: list[float], scope: str = "enc_self", heads: int = 16) -> Files:
    """A sweep of gates runs, λ from 0.01 on."""
    lambdas = [0.01 * place for place in range(1, len(left) + 1)]
    found = zip(lambdas, left, deltas_, strict=True)
    return gates([{"lambda": a, "left": b, "delta": c} for a, b, c in found], scope, heads)


def settled(polarised: float, moved: float) -> Files:
    """One run that prunes; P(open) of its gates moved so far at last."""
    rows = [of("gates-enc_self-l0.1", step=step, kind="enc_self", layer=0, head=0, p_open=p)
            for step, p in ((1, 0.5), (2, 0.9), (3, 0.9 + moved))]  # fmt: skip
    found = gates([{"lambda": 0.1, "left": 8, "polarised": polarised}])
    return found | {"figures/voita_gates.csv": rows}


def from_none(gain: float) -> Files:
    """Three seeds of gates on the baseline and from random weights, BLEU apart by this."""
    rows = []
    for seed in SEEDS:
        for start, more in (("baseline", gain + 0.01 * seed), ("random weights", 0)):
            run = {"lambda": 0.1, "left": 8, "delta": more, "start": start, "run": f"on {start}"}
            rows += [row | {"seed": seed} for row in gates([run])["tables/voita_pruning.csv"]]
    return {"tables/voita_pruning.csv": rows}


def scratch(loss: float) -> Files:
    """Three seeds; the twin from scratch loses so much against the pruned model, of 8 heads left.

    The one of 16 heads does the opposite, and does not count.
    """
    rows = [of("x", seed, test_set="test", comparison="tuned", contender="scratch",
               gates_run=f"gates-{left}", heads_left=left, delta=sign * (loss + 0.01 * seed))
            for seed in SEEDS for left, sign in ((8, -1), (16, 1))]  # fmt: skip
    return {"tables/voita_comparison.csv": rows}


def ranked(change: float, spread: float = 0.01) -> Files:
    """Ranked against gates, both tuned, with 24 and 12 of 48 heads left; so much more a seed."""
    plain = {"test_set": "test", "comparison": "tuned", "contender": "ranked"}
    rows = [of("x", seed, gates_run=f"gates-{left}", heads_left=left, delta=change + spread * seed)
            | plain for seed in SEEDS for left in (24, 12)]  # fmt: skip
    return sweep([8], [0.0]) | {"tables/voita_comparison.csv": rows}


def functions(models: list[tuple[str, str, int, dict[str, int]]], labels: int = 1) -> Files:
    """Models as (run, scope, heads left, heads by function); each such head has so many labels."""
    rows = [of(run, scope=scope, start="baseline", heads_left=left, function=name, heads=count,
               several=0, labels=count * labels * (name != "unknown"))
            for run, scope, left, found in models for name, count in found.items()]  # fmt: skip
    return {"figures/voita_fig8.csv": rows}


def kinds_left(points: list[tuple[int, int, int]], seeds=(1,), pair: str = PAIR,
               sizes: tuple[int, int, int] = (16, 16, 16)) -> Rows:  # fmt: skip
    """Heads left, of so many, of each kind: encoder, decoder, decoder-encoder."""
    return [of(f"gates-{place}", seed, pair, kind=kind, pruned=sum(sizes) - sum(point), heads=size,
               heads_left=left, **{"lambda": 0.1})
            for seed in seeds for place, point in enumerate(points)
            for kind, size, left in zip(KINDS, sizes, point, strict=True)]  # fmt: skip


def places(news: list[int], subtitles: list[int]) -> Files:
    """Decoder self-attention heads left by seed, between 2 of the encoder and 12 of the other."""
    rows = []
    for pair, left in (("wmt_en_ru.en-ru", news), ("opensubtitles2018_en_ru.en-ru", subtitles)):
        for seed, count in enumerate(left, start=1):
            rows += kinds_left([(2, count, 12)], (seed,), pair)
    return {"figures/voita_fig9.csv": rows}


def decoder_layers(low: tuple[int, int], high: tuple[int, int]) -> Files:
    """Heads left of 16 in each of two layers: self-attention, decoder-encoder attention."""
    rows = [of("gates-1", kind=kind, layers=layer, pruned=32 - sum(left), heads_left=count,
               **{"lambda": 0.1})
            for kind, left in (("dec_self", low), ("dec_enc", high))
            for layer, count in enumerate(left)]  # fmt: skip
    return {"figures/voita_fig10.csv": rows}


def correlation(first: str, second: str, rho: float, reach: float = 0.1, kind="enc_self",
                scope="within layers") -> dict:  # fmt: skip
    return of(kind=kind, scope=scope, first=first, second=second, spearman=rho, low=rho - reach,
              high=rho + reach, p=0.001 if abs(rho) > reach else 0.5)  # fmt: skip


def agreement(*rows: dict) -> Files:
    return {"tables/voita_agreement.csv": list(rows)}


def all_pairs(rho: float) -> Files:
    """Every two of five measures correlate by 0.5, one pair by `rho`."""
    names = ["importance", "relevance", "confidence", "survival", "bleu_lost"]
    pairs = [(a, b) for place, a in enumerate(names) for b in names[place + 1 :]]
    return agreement(
        *(correlation(*pair, 0.5 if place else rho) for place, pair in enumerate(pairs))
    )


def widths(few: float, many: float) -> Files:
    """Models of one head a layer and of eight, of three seeds, and their means."""
    rows = []
    for run, heads, bleu in (("baseline-h1", 1, few), ("baseline", 8, many)):
        scores = {1: bleu, 2: bleu + 0.01 * heads, 3: bleu - 0.01 * heads, "": bleu}
        for seed, score in scores.items():
            rows.append(of(run=run, seed=seed, test_set="test", heads_per_layer=heads, bleu=score))
    return {"tables/heads_per_layer.csv": rows}

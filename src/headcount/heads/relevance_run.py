"""Relevance of heads from files to files: a model and its dev text in, a CSV out."""

import time
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from headcount.base.files import write_json
from headcount.base.head_values import write_head_values
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.lrp import LrpSettings
from headcount.data.batches import Ids
from headcount.heads.relevance import sentence_relevance
from headcount.model.transformer import Transformer
from headcount.scoring.bootstrap import SEED
from headcount.search.beam_search import translate
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

RESAMPLES = 1000


def write_relevance(
    folder: ModelFolder, pair: PairFolder, settings: LrpSettings, out: Path, origin: dict[str, Any]
) -> None:
    """Write the relevance of every head by the rule of the settings, and by the other rule.

    `out` is a CSV with the statistics relevance, relevance_low, relevance_high (95 % bootstrap
    over sentences) and relevance_<other rule>: means over generation steps. Beside it goes a JSON
    of the same name: sentences, steps, seconds, `origin`. Raises UserError if the dev text is
    empty or the model knows other words.
    """
    folder.check(pair)
    text = pair.first_pairs("dev", settings.max_sentences)
    pairs = list(zip(text.src, text.tgt, strict=True))
    model = folder.load(settings.device)
    begun = time.perf_counter()
    if settings.prefix == "hypothesis":
        pairs = _translated(model, [src for src, _ in pairs])
    other = "ratio" if settings.rule == "alpha_beta" else "alpha_beta"
    both = (settings, settings.model_copy(update={"rule": other}))
    with tqdm(total=2 * len(pairs), unit="sentence", disable=None) as bar:
        (sums, steps), (others, _) = (measure_relevance(model, pairs, each, bar) for each in both)
    values = relevance_values(sums, steps) | {f"relevance_{other}": others.sum(0) / steps.sum()}
    write_head_values(out, model.grid, values)
    facts = {"sentences": len(pairs), "steps": int(steps.sum())}
    facts |= {"seconds": round(time.perf_counter() - begun, 2), "provenance": origin}
    write_json(out.with_suffix(".json"), facts)


def measure_relevance(
    model: Transformer, pairs: list[tuple[Ids, Ids]], settings: LrpSettings, bar: tqdm
) -> tuple[np.ndarray, np.ndarray]:
    """Relevance summed over generation steps, [sentences, heads], and the steps, [sentences]."""
    found = []
    for src, tgt in pairs:
        found.append(sentence_relevance(model, src, tgt, settings).double().cpu().numpy())
        bar.update()
    return np.stack([each.sum(0) for each in found]), np.array([len(each) for each in found])


def relevance_values(sums: np.ndarray, steps: np.ndarray) -> dict[str, np.ndarray]:
    """Mean over steps, [heads], with the bounds of its 95 % bootstrap interval over sentences."""
    drawn = np.random.default_rng(SEED).integers(len(steps), size=(RESAMPLES, len(steps)))
    means = sums[drawn].sum(1) / steps[drawn].sum(1)[:, None]
    low, high = np.quantile(means, (0.025, 0.975), axis=0)
    return {
        "relevance": sums.sum(0) / steps.sum(),
        "relevance_low": low,
        "relevance_high": high,
    }


def _translated(model: Transformer, sources: list[Ids]) -> list[tuple[Ids, Ids]]:
    """The sources with the model's own greedy translations."""
    found = translate(model, sources, DecodeSettings(beam=1))
    return [(src, list(each.ids)) for src, each in zip(sources, found, strict=True)]

"""BLEU of many systems against one baseline on one test set, with intervals of the difference."""

from dataclasses import dataclass

import numpy as np
from sacrebleu.metrics import BLEU

from headcount.runs.bleu import Lines, bleu_metric, check_lengths

SEED = 12345
"""Of the resamples; sacreBLEU's own default, so that both give the same p-values."""


@dataclass(frozen=True)
class Difference:
    """A system against the baseline, by paired bootstrap over sentences."""

    bleu: float  # of the system, points
    delta: float  # system − baseline, points; negative is worse
    low: float  # 95 % interval of delta
    high: float
    p_value: float  # chance of a difference this large between equal systems
    signature: str


def compare_systems(
    baseline: Lines, systems: list[Lines], references: Lines, language: str, samples: int = 1000
) -> list[Difference]:
    """Every system against the baseline, all on the same resamples of the test set.

    Scores and p-values are those of `score_corpus` and of sacreBLEU's paired bootstrap; the
    interval lies between the 2.5 % and 97.5 % quantiles of the resampled differences, which
    sacreBLEU does not give. Source: Koehn 2004. Raises UserError if the numbers of lines differ.
    """
    for lines in (baseline, *systems):
        check_lengths(lines, references)
    metric = bleu_metric(language, [references])
    times = _resamples(len(references), samples)
    plain, plain_samples = _scores(metric, baseline, times)
    signature = metric.get_signature()
    signature.update("seed", SEED)
    signature.update("bs", samples)
    found = []
    for lines in systems:
        score, resampled = _scores(metric, lines, times)
        interval, p_value = _judge(score - plain, resampled - plain_samples)
        found.append(Difference(score, score - plain, *interval, p_value, str(signature)))
    return found


def _resamples(sentences: int, samples: int) -> np.ndarray:
    """How often each sentence stands in each resample, [samples, sentences]."""
    drawn = np.random.default_rng(SEED).choice(sentences, size=(samples, sentences), replace=True)
    return np.stack([np.bincount(row, minlength=sentences) for row in drawn]).astype(float)


def _scores(metric: BLEU, lines: Lines, times: np.ndarray) -> tuple[float, np.ndarray]:
    """BLEU of the test set, and of each resample.

    The first two methods are sacreBLEU's own of its pinned version; it has no public ones.
    """
    statistics = np.array(metric._extract_corpus_statistics(lines, None))
    of_sums = metric._compute_score_from_stats
    sums = times @ statistics
    return of_sums(statistics.sum(0)).score, np.array([of_sums(row).score for row in sums])


def _judge(delta: float, samples: np.ndarray) -> tuple[tuple[float, float], float]:
    """The 95 % interval of a difference, and its p-value as sacreBLEU defines it.

    A difference of 0 has p = 1: sacreBLEU would count only larger ones.
    """
    ordered = np.sort(samples)
    cut = len(ordered) // 40
    interval = (float(ordered[cut]), float(ordered[len(ordered) - 1 - cut]))
    spread = np.abs(samples)
    beyond = int((spread - spread.mean() > abs(delta)).sum())
    return interval, (beyond + 1) / (len(samples) + 1) if delta else 1.0

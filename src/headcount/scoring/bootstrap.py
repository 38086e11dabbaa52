"""BLEU of many systems against one baseline on one test set, with intervals of the difference."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from headcount.scoring.bleu import Lines, bleu_metric, check_lengths, reference_streams

SEED = 12345
"""Of the resamples; sacreBLEU's own default, so that both give the same p-values."""

_BLOCK = 1000  # resamples that are in memory at once


@dataclass(frozen=True)
class Difference:
    """A system against the baseline, by paired bootstrap over sentences."""

    bleu: float  # of the system, points; or its accuracy, percent
    delta: float  # system − baseline, points; negative is worse
    low: float  # 95 % interval of delta
    high: float
    p_value: float  # as sacreBLEU defines it, near a one-sided p; see `p_value`
    signature: str
    scores: np.ndarray = field(repr=False, compare=False)  # on the test set, then on each resample


def compare_systems(
    baseline: Lines, systems: list[Lines], targets: Lines, language: str, samples: int = 1000
) -> list[Difference]:
    """Every system against the baseline, all on the same resamples of the test set.

    Scores and p-values are those of `score_corpus` and of sacreBLEU's paired bootstrap; the
    interval lies between the 2.5 % and 97.5 % quantiles of the resampled differences, which
    sacreBLEU does not give. Source: Koehn 2004. Raises UserError if the numbers of lines differ.
    """
    scores = resample_bleu([baseline, *systems], targets, language, samples)
    return judge_systems(scores[0], scores[1:], targets, language)


def judge_systems(
    baseline: np.ndarray, systems: Sequence[np.ndarray], targets: Lines, language: str
) -> list[Difference]:
    """Every system against the baseline, from their rows of `resample_bleu`."""
    signature = bleu_metric(language, reference_streams(targets[:1])).get_signature()
    signature.update("seed", SEED)
    signature.update("bs", len(baseline) - 1)
    return judge_scores(baseline, systems, str(signature))


def judge_scores(
    baseline: np.ndarray, systems: Sequence[np.ndarray], signature: str
) -> list[Difference]:
    """Every system against the baseline: the score on the test set, then on each resample."""
    found = []
    for row in systems:
        differences = row - baseline
        delta = float(differences[0])
        low, high = interval(differences[1:])
        chance = p_value(delta, differences[1:])
        found.append(Difference(float(row[0]), delta, low, high, chance, signature, row))
    return found


def resample_bleu(
    systems: list[Lines], targets: Lines, language: str, samples: int = 1000
) -> np.ndarray:
    """BLEU of every system: first on the test set, then on each resample, [systems, 1 + samples].

    `targets` are the lines of the test set's `.tgt`, with all references of each. Resamples are the
    same for every system. Raises UserError if the numbers of lines differ.
    """
    for lines in systems:
        check_lengths(lines, targets)
    metric = bleu_metric(language, reference_streams(targets))
    # What several systems say of a sentence, as most do of most when few heads differ, is counted
    # once. By the pinned version of sacreBLEU: its public methods would read each reference once
    # more for each system.
    places: dict[tuple[int, str], int] = {}
    rows = [[places.setdefault(key, len(places)) for key in enumerate(lines)] for lines in systems]
    of_places = np.array(
        [
            metric._compute_segment_statistics(
                metric._preprocess_segment(line), metric._ref_cache[sentence]
            )
            for sentence, line in places
        ]
    )
    counts = [of_places[of_system] for of_system in rows]  # see `bleu_of_counts`
    scores = [[[metric._compute_score_from_stats(of_system.sum(0)).score] for of_system in counts]]
    for times in _resamples(len(targets), samples):
        scores.append([bleu_of_counts(times @ of_system) for of_system in counts])
    return np.concatenate(scores, axis=1)


def resample_accuracy(correct: Sequence[np.ndarray], samples: int = 1000) -> np.ndarray:
    """Percent right of every system: on the test set, then on resamples, [systems, 1 + samples].

    `correct`: 1 for each example that the system gets right, else 0; equally many of each system.
    """
    right = np.stack(correct, axis=1)  # [examples, systems]
    blocks = [np.ones((1, len(right))), *_resamples(len(right), samples)]
    return np.concatenate([times @ right for times in blocks]).T * 100 / len(right)


def bleu_of_counts(counts: np.ndarray) -> np.ndarray:
    """BLEU in points of each row of sacreBLEU's counts, [rows, 2 + 2n].

    A row: words of the system, words of the reference, n-grams that match by their order, n-grams
    of the system by their order. Smoothing is sacreBLEU's `exp`: the k-th order without a match
    counts as 1 / 2^k matches. Without any match BLEU is 0. Source: Papineni et al. 2002.
    sacreBLEU's own takes one row at a time: minutes for the resamples of a hundred systems.
    """
    words, wanted = counts[:, 0], counts[:, 1]
    matches, all_ngrams = np.split(counts[:, 2:], 2, axis=1)
    halvings = np.cumsum((matches == 0) & (all_ngrams > 0), axis=1)
    smoothed = np.where(matches == 0, 0.5**halvings, matches)
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.where(all_ngrams > 0, smoothed / all_ngrams, 0)
        brevity = np.where(words < wanted, np.exp(1 - wanted / words), 1)
        scores = 100 * brevity * np.exp(np.log(precision).mean(axis=1))
    return np.where(matches.any(axis=1), scores, 0)


def _resamples(sentences: int, samples: int) -> Iterator[np.ndarray]:
    """How often each sentence stands in each resample, [up to `_BLOCK`, sentences] at a time."""
    generator = np.random.default_rng(SEED)
    for start in range(0, samples, _BLOCK):
        shape = (min(_BLOCK, samples - start), sentences)
        drawn = generator.choice(sentences, size=shape, replace=True)
        yield np.stack([np.bincount(row, minlength=sentences) for row in drawn]).astype(float)


def interval(samples: np.ndarray) -> tuple[float, float]:
    """The 95 % interval that resampled values span."""
    ordered = np.sort(samples)
    cut = len(ordered) // 40
    return float(ordered[cut]), float(ordered[len(ordered) - 1 - cut])


def p_value(delta: float, samples: np.ndarray) -> float:
    """The p-value of a difference as sacreBLEU defines it, nearly one-sided.

    It is the share of resamples whose size exceeds the mean size of all of them by more than the
    difference. A difference of 0 has p = 1: sacreBLEU would count only larger ones.
    """
    spread = np.abs(samples)
    beyond = int((spread - spread.mean() > abs(delta)).sum())
    return (beyond + 1) / (len(samples) + 1) if delta else 1.0

"""Scores of many systems beside one baseline, with intervals of the difference."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from headcount.scoring.bleu import Lines, bleu_metric, check_lengths, reference_streams

SEED = 12345  # of the resamples: sacreBLEU's default, so that both give the same p-values
_BLOCK = 1000  # resamples that are in memory at once


@dataclass(frozen=True)
class Difference:
    """A system against the baseline, by paired bootstrap over sentences."""

    score: float  # of the system, points
    delta: float  # system − baseline, points, negative is worse
    low: float  # 95 % interval of delta
    high: float
    p_value: float  # as sacreBLEU defines it, near a one-sided p, see `p_value`
    signature: str
    scores: np.ndarray = field(repr=False, compare=False)  # on the test set, then on each resample
    others: Mapping[str, "Difference"] = field(default_factory=dict, repr=False, compare=False)

    def by(self, metric: str) -> "Difference":
        """Return the difference by one of the `others`, or this one."""
        return self.others.get(metric, self)


def compare_systems(
    baseline: Lines, systems: list[Lines], targets: Lines, language: str, samples: int = 1000
) -> list[Difference]:
    """Compare every system with the baseline, all on the same resamples of the test set.

    Scores equal `score_corpus`, and p-values sacreBLEU's paired bootstrap. The interval lies
    between the 2.5 % and 97.5 % quantiles of the resampled differences, which sacreBLEU does not
    give. Source: Koehn 2004. Raises UserError if the numbers of lines differ.
    """
    scores = resample_bleu([baseline, *systems], targets, language, samples)
    return judge_scores(scores[0], scores[1:], bleu_signature(targets, language, samples))


def bleu_signature(targets: Lines, language: str, samples: int = 1000) -> str:
    """Return sacreBLEU's signature of differences by `resample_bleu`."""
    signature = bleu_metric(language, reference_streams(targets[:1])).get_signature()
    signature.update("seed", SEED)
    signature.update("bs", samples)
    return str(signature)


def judge_scores(
    baseline: np.ndarray, systems: Sequence[np.ndarray], signature: str
) -> list[Difference]:
    """Compare every system with the baseline, from scores on the test set and on each resample."""
    judged = []
    for row in systems:
        delta, resampled = float(row[0] - baseline[0]), (row - baseline)[1:]
        bounds, chance = interval(resampled), p_value(delta, resampled)
        judged.append(Difference(float(row[0]), delta, *bounds, chance, signature, row))
    return judged


def resample_bleu(
    systems: list[Lines], targets: Lines, language: str, samples: int = 1000
) -> np.ndarray:
    """Return BLEU of every system on the test set, then on resamples, [systems, 1 + samples].

    `targets` are the lines of the test set's `.tgt`, with all references of each. Resamples are the
    same for every system. Raises UserError if the numbers of lines differ.
    """
    for lines in systems:
        check_lengths(lines, targets)
    metric = bleu_metric(language, reference_streams(targets))
    # A translation that several systems share is counted once. With private methods of
    # sacreBLEU 2: its public ones would read each reference once more for each system.
    places: dict[tuple[int, str], int] = {}
    rows = [[places.setdefault(key, len(places)) for key in enumerate(lines)] for lines in systems]
    count = metric._compute_segment_statistics
    lines, references = metric._preprocess_segment, metric._ref_cache
    of_places = np.array([count(lines(line), references[number]) for number, line in places])
    counts = [of_places[of_system] for of_system in rows]  # see `bleu_of_counts`
    scores = [[[metric._compute_score_from_stats(of_system.sum(0)).score] for of_system in counts]]
    for times in resamples(len(targets), samples):
        scores.append([bleu_of_counts(times @ of_system) for of_system in counts])
    return np.concatenate(scores, axis=1)


def compare_classifiers(correct: Sequence[np.ndarray], samples: int = 1000) -> list[Difference]:
    """Compare the accuracy, in percent, of classifiers (1: right) with that of the first."""
    scores = resample_means([100 * right for right in correct], samples)
    return judge_scores(scores[0], scores, f"accuracy|bs:{samples}|seed:{SEED}")


def resample_means(scores: Sequence[np.ndarray], samples: int = 1000) -> np.ndarray:
    """Return the mean score of every system on the test set, then on resamples."""
    values = np.stack(scores, axis=1)  # [examples, systems]
    blocks = [np.ones((1, len(values))), *resamples(len(values), samples)]
    return np.concatenate([times @ values for times in blocks]).T / len(values)


def bleu_of_counts(counts: np.ndarray) -> np.ndarray:
    """Return BLEU in points of each row of sacreBLEU's counts, [rows, 2 + 2n].

    A row: words of the system, words of the reference, n-grams that match by their order, n-grams
    of the system by their order. Smoothing is sacreBLEU's `exp`: the k-th order without a match
    counts as 1 / 2^k matches. Without any match BLEU is 0. Source: Papineni et al. 2002.
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


def resamples(sentences: int, samples: int) -> Iterator[np.ndarray]:
    """Yield counts of each sentence in each resample, [up to `_BLOCK`, sentences] at a time."""
    generator = np.random.default_rng(SEED)
    for start in range(0, samples, _BLOCK):
        shape = (min(_BLOCK, samples - start), sentences)
        drawn = generator.choice(sentences, size=shape, replace=True)
        yield np.stack([np.bincount(row, minlength=sentences) for row in drawn]).astype(float)


def interval(samples: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval of resampled values."""
    ordered = np.sort(samples)
    cut = len(ordered) // 40
    return float(ordered[cut]), float(ordered[len(ordered) - 1 - cut])


def p_value(delta: float, samples: np.ndarray) -> float:
    """Return the p-value of a difference as sacreBLEU defines it, nearly one-sided.

    It is the share of resamples whose size exceeds the mean size of all resamples by more than the
    difference. A difference of 0 has p = 1: sacreBLEU would count only larger ones.
    """
    spread = np.abs(samples)
    beyond = int((spread - spread.mean() > abs(delta)).sum())
    return (beyond + 1) / (len(samples) + 1) if delta else 1.0

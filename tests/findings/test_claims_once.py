"""Claims from several experiments that hold one training: it counts once."""

import pytest
from planted_claims import PLANTED
from planted_files import Files, early_heads, heads_of, transfer, write_results
from planted_heads import heads_with, roles

from headcount.findings.claims.decisions import decide
from headcount.findings.claims.evidence import Evidence, result_files
from headcount.findings.claims.ledger import claims
from headcount.findings.claims.verdicts import FAILS, HOLDS, UNDECIDED, Decision


def of_all(folder, name: str, experiments: dict[str, Files]) -> Decision:
    """The decision on a claim from several experiments' files."""
    for experiment, files in experiments.items():
        write_results(folder / experiment, files)
    return decide(claims()[name], Evidence(result_files(folder)))[0]


def only(files: Files, *seeds: int) -> Files:
    """The rows of these seeds."""
    return {name: [row for row in rows if row["seed"] in seeds] for name, rows in files.items()}


@pytest.mark.parametrize("name", PLANTED)
def test_the_same_trainings_in_two_experiments_are_those_of_one(tmp_path, name):
    for verdict, planted in zip((HOLDS, FAILS), PLANTED[name], strict=True):
        folder, files = tmp_path / verdict, planted()
        once = of_all(folder, name, {"a": files})
        twice = of_all(folder, name, {"b": files})
        # Of numbers that may be NaN, and a mean of two equal ones to the last digits.
        numbers = ([each.value, each.low, each.high, each.p] for each in (once, twice))
        assert next(numbers) == pytest.approx(next(numbers), nan_ok=True)
        assert (twice.verdict, twice.seeds, twice.reason) == (verdict, once.seeds, once.reason)


SEEDED = [
    name
    for name, both in PLANTED.items()
    if all("seed" in row for planted in both for rows in planted().values() for row in rows)
]
"""Claims all of whose rows are of a training; others are of files, such as tables of costs."""


@pytest.mark.parametrize("name", SEEDED)
def test_a_training_that_two_experiments_hold_has_no_other_weight(tmp_path, name):
    """One experiment holds all seeds, the other the first alone: the mean is that of all seeds."""
    for verdict, planted in zip((HOLDS, FAILS), PLANTED[name], strict=True):
        folder, files = tmp_path / verdict, planted()
        once = of_all(folder, name, {"a": files})
        rows = [row for of_file in files.values() for row in of_file]
        first = min({row["seed"] for row in rows} - {""})
        twice = of_all(folder, name, {"b": only(files, first, "")})
        assert twice.value == pytest.approx(once.value, nan_ok=True)
        assert (twice.verdict, twice.seeds) == (verdict, once.seeds)


def test_a_mean_of_too_few_seeds_has_each_once(tmp_path):
    files = only(PLANTED["HM-04"][0](), 1, 2)
    once = of_all(tmp_path, "HM-04", {"a": files})
    twice = of_all(tmp_path, "HM-04", {"b": only(files, 1)})
    assert (once.verdict, twice.verdict) == (UNDECIDED, UNDECIDED)
    both = [of_all(tmp_path / str(s), "HM-04", {"a": only(files, s)}).value for s in (1, 2)]
    assert both[0] != both[1] and once.value == twice.value == pytest.approx(sum(both) / 2)


def second(files: Files) -> Files:
    """The rows as those of seed 2."""
    return {name: [row | {"seed": 2} for row in rows] for name, rows in files.items()}


def test_a_model_of_two_experiments_has_one_share_in_a_mean(tmp_path):
    """Correlation 0.6 of seed 1, twice, and 0.9 of seed 2: 0.75 on average, of three it were 0.7.

    With 0.3 in a third experiment, another training of seed 1, that has 0.5 and the mean is 0.7.
    """
    low, high = transfer(0.6, 0.5, 0.7, 0.001), transfer(0.9, 0.8, 1.0, 0.002)
    found = of_all(tmp_path, "MI-03", {"a": low, "b": low, "c": second(high)})
    assert (found.verdict, found.seeds) == (HOLDS, 2)
    assert (found.value, found.low, found.high) == (pytest.approx(0.75), 0.5, 1.0)
    found = of_all(tmp_path, "MI-03", {"d": transfer(0.3, -0.1, 0.5, 0.2)})
    assert (found.value, found.seeds) == (pytest.approx(0.7), 2)
    assert (found.low, found.high, found.p) == (-0.1, 1.0, 0.2)


def test_what_experiments_say_otherwise_of_one_model_is_undecided(tmp_path):
    """Its r is 0.6 in one, 0.0 in the other."""
    apart = {"a": transfer(0.6, 0.3, 0.8, 0.001), "b": transfer(0, -0.2, 0.2, 0.9)}
    found = of_all(tmp_path, "MI-03", apart)
    assert found.reason == "of 2: holds in 1, does not hold in 1 (test and dev)"
    assert found == Decision(UNDECIDED, found.reason, 0.3, -0.2, 0.8, 1.0, 1)


def test_two_seeds_of_two_experiments_are_no_four_models(tmp_path):
    """Claims on all models need three: seeds 1 and 2, each twice, are two.

    By chance the most relevant of four heads leads in both with 1 / 16, which is not below 0.05.
    """
    leading = heads_with(relevance=[0.4, 0.2, 0.2, 0.2], rare_two_rarest=[0.8, 0.1, 0.1, 0.1],
                         confidence=[0.3, 0.5, 0.5, 0.5])  # fmt: skip
    files = roles(leading, seeds=2)
    for name, reason in (
        ("VO-03", "in 2 of 2 models; in all by chance with p = 0.062; 2 seeds: a claim about"),
        ("VO-11", "2 of 2 models: a claim about all models needs 3"),
    ):
        found = of_all(tmp_path / name, name, {"a": files, "b": files})
        assert (found.verdict, found.seeds) == (UNDECIDED, 2)
        assert found.reason.startswith(reason)


def test_a_seed_shares_its_top_heads_with_other_seeds_alone(tmp_path):
    """Tops 0, 0 and 1 of seeds 1 to 3: one of three pairs shares its top head.

    With seed 1 in a second experiment, two of five pairs of other seeds would, and it with itself.
    """
    files = early_heads([0.5, 0.6, 0.7], [0, 0, 1])
    found = of_all(tmp_path, "HM-14", {"a": files, "b": only(files, 1)})
    assert (found.verdict, found.seeds) == (HOLDS, 3)
    assert found.reason == "seeds share 33% of their top heads"


def test_top_heads_of_models_of_other_sizes_are_not_compared(tmp_path):
    """Of 8 heads one is at the top: 0, 1, 2 by seed. Of 16 it is two: 5, and 0, 1, 2 by seed.

    Two seeds share none of the one and half of the two.
    """
    small, large = (early_heads([0.5, 0.6, 0.7], tops) for tops in ([0, 1, 2], [5, 5, 5]))
    heads = [
        row
        for seed, second in ((1, 0), (2, 1), (3, 2))
        for row in heads_of(
            "baseline", seed, [{5: 3.0, second: 2.0}.get(h, 1.0) for h in range(16)]
        )
    ]
    large["figures/headmask_heads.csv"] = heads
    found = of_all(tmp_path, "HM-14", {"a": small, "b": large})
    assert found.reason == "seeds share 25% of their top heads"

"""What the study says of each experiment's trainings: model, text, gates, and the baseline."""

import pandas as pd
from test_study import CONFIG, cost, kept, locked_heads, locked_table, page_of, plant

from headcount.findings.report.study.design import design_words, paper_words
from headcount.findings.report.study.kept import Kept

__all__ = ["kept"]  # a fixture
_GATED = ("multi30k_seeds", "multi30k_from_none", "collapse")


def test_what_the_baseline_reaches(kept):
    """Means over its trainings and test sets, of BLEU alone."""
    assert "baseline reaches" not in page_of(kept)
    rows = [("baseline", 4, "bleu", "a", 30.0), ("baseline", 5, "bleu", "b", 33.0)]
    rows += [("baseline", 4, "bleu", "hard", 9.0)]
    rows += [("baseline", 4, "chrf", "a", 60.0), ("impt-6", 4, "bleu", "a", 1.0)]
    scores = pd.DataFrame(rows, columns=["run", "seed", "metric", "test_set", "score"])
    scores = scores.assign(pair="synthetic.en-art")
    plant(kept, "collapse", bleu=scores)
    assert (
        page_of(kept).replace("\n", " ").count("The baseline reaches 24.0 BLEU (a, b, hard).") == 1
    )
    # One training of impt-6, which has 29 BLEU less than the baseline of its seed on the one test
    # set that both have.
    assert "| 25 % (by chance 17 %; p 0.40) | -29.0 |" in page_of(kept)
    rows = [("synthetic.en-art", "train", 30000), ("synthetic.en-art", "dev", 500)]
    corpus = pd.DataFrame(rows, columns=["pair", "split", "value"]).assign(statistic="sentences")
    plant(kept, "collapse", corpus=corpus)
    told = "On 30,000 training pairs the baseline reaches 24.0 BLEU (a, b, hard)."
    assert page_of(kept).replace("\n", " ").count(told) == 1


def test_what_gates_learn():
    """Of trained models, of random weights, and twins of as many updates as both together."""
    words = {name: design_words(Kept(CONFIG, CONFIG, CONFIG), name) for name in _GATED}
    told = "a validation every 250; gates learn for 400 updates more, at λ of 0, 0.01, 0.02, 0.05, "
    assert words["multi30k_seeds"].endswith(
        f"{told}0.1 and a peak rate of 0.5; twins from scratch train for 2,400 updates"
    )
    told = "gates learn for 1,000 updates more, at λ of 0, 0.013 and a peak rate of 0.02; gates "
    told += "that begin with random weights learn for 3,000 updates, at λ of 0, 0.003"
    assert words["multi30k_from_none"].endswith(told)
    assert words["collapse"].endswith("a validation every 25")


def test_when_training_ends():
    """After so many validations without a lower dev loss, where there is such a number."""
    kept = Kept(CONFIG, CONFIG, CONFIG)
    told = "; 6,000 updates at most, or until 5 validations without a lower dev loss, at a peak"
    assert told in design_words(kept, "lowdata")
    assert "; 600 updates at most, at a peak rate" in design_words(kept, "collapse")


def test_of_the_paper_only_what_it_says():
    """Sun et al. 2020, section 4.1: Transformer base; of norm and updates it says nothing."""
    assert paper_words(Kept(CONFIG, CONFIG, CONFIG)) == (
        "6 encoder and 6 decoder layers of width 512 with 144 heads in all, dropout 0.1 and a "
        "warm-up of 4,000 updates"
    )


def test_trainings_at_a_lower_rate_stand_beside_those_of_collapse(kept):
    prose = page_of(kept).replace("\n", " ")
    assert "one size of model, one learning rate and one dropout." in prose
    assert "At a peak rate" not in prose
    tables = {"headmask_locked": locked_table(), "headmask_locked_heads": locked_heads()}
    plant(kept, "collapse_slow", **tables, cost=cost(60, 30))
    page = page_of(kept)
    told = "2 of 2 trainings of `impt-6` locked heads in, 4.0 (1.5 to 6.5) on average, 2.0 of them"
    assert page.count(f"- At a peak rate of 0.001: {told}") == 1
    assert page.count("| impt-6 | 2 of 2 | 4.0 / 2.0 |") == 2
    prose = page.replace("\n", " ")
    assert "one size of model, two learning rates and one dropout." in prose
    assert "`collapse`; 2 encoder and 2 decoder layers of width 96 with 48 heads in all," in prose
    assert "1,500 updates at most, at a peak rate of 0.001 after 50 updates of warm-up" in prose
    assert "| [collapse_slow](collapse_slow.md#the-runs) | 0 |" in page

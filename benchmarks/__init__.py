"""Speed and memory of this project beside its peers: one command per question.

`python -m benchmarks.training --help`; what each prints stands in docs/guides/speed.md.
"""

from pathlib import Path

FOLDER = Path("data/bpe/bench/multi30k.en-de")  # the pair that they work on unless told another

RUNS = {
    "baseline": "baseline",
    "impt-12.5%": "{method: importance, share: 12.5%}",
    "gates-all-l0.01": "{method: gates, lambda: 0.01}",
}
"""Runs whose training is measured, by label: values of `--run`."""

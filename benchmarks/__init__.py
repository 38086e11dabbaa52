"""Speed and memory of this project beside its peers: one command per question.

`python -m benchmarks.training --help`; what each prints stands in docs/guides/speed.md.
"""

from pathlib import Path

FOLDER = Path("data/bpe/bench/multi30k.en-de")  # the pair that they work on unless told another

"""Speed and memory of this project beside its peers: one command per question.

`python -m benchmarks.training --help`; what each prints stands in docs/guides/speed.md.
"""

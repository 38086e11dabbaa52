"""What the HeadMask paper prints. Its pairs are named as ours are, `<corpus>.<src>-<tgt>`."""

from headcount.analysis.published.numbers import read

PAPER = read(__file__)
table = PAPER.table

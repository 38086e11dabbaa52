"""Numbers that the HeadMask paper prints. Pairs have names like ours, `<corpus>.<src>-<tgt>`."""

from headcount.analysis.published.numbers import read

PAPER = read(__file__)
table = PAPER.table

"""Numbers that the HeadMask paper prints. Pairs have names like ours, `<corpus>.<src>-<tgt>`."""

from headcount.analysis import read_beside
from headcount.analysis.published.numbers import Published

PAPER: Published = read_beside(__file__, Published)
table = PAPER.table

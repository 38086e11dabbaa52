"""What benchmarks measured: a line of JSON for each table, and the page that is made of them."""

from pathlib import Path

RESULTS = Path("results/benchmarks")  # a file for each machine; the page lies beside this folder

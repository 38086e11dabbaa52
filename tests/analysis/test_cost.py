"""The table of time and memory, from Snakemake's benchmarks."""

import pandas as pd
import pytest
from script_runner import run_script

from headcount.analysis.tables.general.cost import cost


@pytest.fixture
def benchmarks(tmp_path):
    jobs = {"text/a": "0.25\tNA\tNA", "bleu/a": "2.5\t90.5\t2", "bleu/b": "1.5\t100\t1"}
    paths = []
    for job, cells in (jobs | {"train/a": "40\t700\t39.5"}).items():
        paths.append(tmp_path / f"{job}.tsv")
        paths[-1].parent.mkdir(exist_ok=True)
        paths[-1].write_text(f"s\tmax_rss\tcpu_time\n{cells}\n")
    return paths


def test_jobs_are_added_by_rule_the_longest_first(benchmarks):
    assert cost(benchmarks).to_numpy().tolist() == [
        ["train", 1, 40.0, 40.0, 39.5, 700.0],
        ["bleu", 2, 4.0, 2.5, 3.0, 100.0],
        ["text", 1, 0.25, 0.25, 0.0, 0.0],
        ["all", 4, 44.25, 40.0, 42.5, 700.0],
    ]


def test_the_script_leaves_out_later_rules(tmp_path, benchmarks):
    late = tmp_path / "report" / "a.tsv"
    late.parent.mkdir()
    late.write_text(benchmarks[0].read_text())
    assert run_script("cost", ["--benchmarks", tmp_path, "--out", tmp_path]) == 0
    assert pd.read_csv(tmp_path / "cost.csv")["rule"].tolist() == ["train", "bleu", "text", "all"]

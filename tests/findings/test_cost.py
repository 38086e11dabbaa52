"""The table of what jobs took, from Snakemake's benchmarks."""

import json
from pathlib import Path

import pandas as pd
import pytest
from script_runner import run_script
from workflow_modules import load

from headcount.base.errors import UserError
from headcount.findings.cost.rules import ESTIMATED, cost_table

HEAD = "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\tcpu_time\n"


def benchmark(folder: Path, job: str, seconds, memory, cpu) -> Path:
    """A file as Snakemake writes it."""
    path = folder / f"{job}.tsv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{HEAD}{seconds}\t0:00:01\t{memory}\t9\t9\t9\t0\t0\t50\t{cpu}\n")
    return path


@pytest.fixture
def measured(tmp_path) -> list[Path]:
    """A long job, two short ones, and one that ended before it was looked at."""
    return [
        benchmark(tmp_path, "text/a.train", 0.25, "NA", "NA"),
        benchmark(tmp_path, "bleu/a.seed1", 2.5, 90.5, 2),
        benchmark(tmp_path, "bleu/a.seed2", 1.5, 100, 1),
        benchmark(tmp_path, "train/a.seed1", 40, 700, 39.5),
    ]


def test_jobs_are_added_up_by_rule_the_longest_first(measured):
    table = cost_table(measured)
    assert list(table.itertuples(index=False, name=None)) == [
        ("train", 1, 40.0, 40.0, 39.5, 700.0),
        ("bleu", 2, 4.0, 2.5, 3.0, 100.0),
        ("text", 1, 0.25, 0.25, 0.0, 0.0),
        ("all", 4, 44.25, 40.0, 42.5, 700.0),
    ]


def test_what_is_no_benchmark_is_named(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text("s\tmax_rss\n1\t2\n1\t2\n")
    with pytest.raises(UserError, match=r"x\.tsv: expected one row .* found 2 with s, max_rss"):
        cost_table([path])


def made(folder: Path) -> pd.DataFrame:
    """What the command writes from the benchmarks in a folder."""
    assert run_script("cost", ["--benchmarks", folder, "--out", folder / "out"]) == 0
    assert json.loads((folder / "out" / "cost.json").read_text())["rows"]
    return pd.read_csv(folder / "out" / "cost.csv")


def test_what_comes_later_does_not_count(tmp_path, measured):
    benchmark(tmp_path, "report/report", 3, 80, 3)
    benchmark(tmp_path, "cost/cost", 3, 80, 3)
    assert list(made(tmp_path)["rule"]) == ["train", "bleu", "text", "all"]


def test_where_nothing_ran_the_table_says_so(tmp_path):
    """As in a fresh clone whose results came with `dvc pull`."""
    table = made(tmp_path)
    assert table.drop(columns=ESTIMATED).to_numpy().tolist() == [["all", 0, 0, 0, 0, 0]]
    assert table[ESTIMATED].isna().all()


def test_the_estimate_stands_beside_what_jobs_took(tmp_path, measured):
    """Rule by rule, jobs times seconds; of all the sum over rules that have run."""
    rows = "train,2,30\ntrain,1,9\nbleu,2,3\nspeed,1,50\n"
    (tmp_path / "estimate.csv").write_text(f"rule,jobs,rated_seconds\n{rows}")
    found = made(tmp_path).set_index("rule")[ESTIMATED]
    assert found.drop("text").to_dict() == {"train": 69, "bleu": 6, "all": 75}
    assert pd.isna(found["text"])


class Rule:
    """What `forget_benchmarks` looks at in one of Snakemake's rules."""

    def __init__(self, name: str, output: str, *wildcards: str):
        self.name, self.output, self.wildcard_names = name, [output], set(wildcards)
        self.benchmark = "some"


def test_benchmarks_of_jobs_that_are_no_more_go(monkeypatch, tmp_path, measured):
    rules = [
        Rule("bleu", "x/{pair,a|b}/seed{seed}/bleu.json", "seed", "pair"),
        Rule("train", "x/{pair}/seed{seed}/y", "pair", "seed"),
        Rule("text", "x/{pair}/{split}", "pair", "split"),
    ]
    jobs = [("bleu", {"seed": [2, 3], "pair": ["a"]}), ("train", {"seed": [], "pair": ["a"]})]
    jobs += [("speed", {"seed": []})]  # a rule that makes nothing in this experiment
    load(monkeypatch, "defaults").forget_benchmarks(tmp_path, rules, jobs)
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*.tsv"))
    assert left == ["bleu/a.seed2.tsv", "text/a.train.tsv"]  # of text nothing is known

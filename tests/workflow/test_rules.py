"""The rules as they are written, and what each of them has by its name."""

import json
import re
import subprocess
import sys
from typing import Any

import pytest
from project_copy import link_project

from headcount.analysis.outputs import chapters

PRUNING = ("gates", "gates_from_none", "subset", "scratch", "fine_tune")
LOADED = """
import json, runpy, sys
from pathlib import Path
from snakemake.api import SnakemakeApi
from snakemake.io import strip_wildcard_constraints as plain
from snakemake.settings.types import ConfigSettings, ResourceSettings
with SnakemakeApi() as api:
    workflow = api.workflow(
        snakefile=Path("workflow/Snakefile"),
        resource_settings=ResourceSettings(cores=1),
        config_settings=ConfigSettings(config={"experiment": "tiny"}),
    )
    workflow.lint()
    found = {
        rule.name: {
            "log": [plain(log) for log in rule.log],
            "output": [plain(file) for file in rule.output],
            "benchmark": plain(rule.benchmark),
            "shell": rule.shellcmd,
            "script": rule.params.script,
            "code": rule.params.code,
            "message": rule.message,
        }
        for rule in workflow._workflow.rules
        if rule.shellcmd
    }
    everything = workflow._workflow.globals["everything"]

Path("rules.json").write_text(json.dumps({"rules": found, "everything": everything}))
sys.path[0], sys.argv[1:] = "workflow", ["plan", "multi30k_short"]
runpy.run_path("workflow/bridge.py", run_name="__main__")
"""
"""One process imports Snakemake for all that the tests below ask of it."""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory) -> dict[str, Any]:
    """What Snakemake knows of the tiny experiment: each rule, and every file.

    Also which files the jobs of multi30k_short read, by the first that each makes, and what
    `snakemake --lint` prints.
    """
    folder = link_project(tmp_path_factory.mktemp("work"))
    asked = [sys.executable, "-c", LOADED]
    done = subprocess.run(asked, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    plans = (folder / "results/multi30k_short/plan").glob("*.json")
    jobs = [job for file in plans for job in json.loads(file.read_text())]
    found = json.loads((folder / "rules.json").read_text())
    return found | {"read": {job["output"][0]: job["input"] for job in jobs}, "lint": done.stderr}


@pytest.fixture
def rules(loaded) -> dict[str, dict]:
    """What Snakemake knows of each rule."""
    return loaded["rules"]


def test_files_of_rules_that_measure_heads_are_among_everything(loaded):
    """They are found by their names, and asked for even where nothing reads them."""
    heads = "results/tiny/heads/synthetic_tiny.en-art/baseline/seed1"
    tables = ("importance.csv", "relevance.csv", "attention.csv", "roles.json")
    assert {f"{heads}/{table}" for table in tables} <= set(loaded["everything"])


def test_silver_links_are_made_on_request_where_gold_links_are_used(loaded):
    rules, made = loaded["rules"], set(loaded["everything"])
    asked = ("silver_links", "silver_pieces", "silver_alignment", "silver_agreement")
    assert all(made.isdisjoint(rules[name]["output"]) for name in asked)
    assert not [path for path in made if "silver" in path]


def test_every_rule_has_a_script_its_code_a_log_and_a_benchmark(rules):
    assert len(rules) > 20
    made_by = {chapter.name: ("analysis", chapter.outputs) for chapter in chapters()}
    shared = {"pruned_roles": "roles", "loss_change": "importance"}
    shared |= {"pruned_alignment": "alignment", "silver_alignment": "alignment"}
    shared |= {"silver_pieces": "links", "unit_importance": "importance"}
    shared |= dict.fromkeys(("mask_feed_forward", "mask_layers"), "masking")
    shared |= dict.fromkeys(PRUNING, "prune")
    shared |= dict.fromkeys(("fetch_classifier", "fetch_pretrained"), "download")
    for name, rule in rules.items():
        script, outputs = made_by.get(name, (shared.get(name, name), ()))
        assert rule["script"] == f"scripts/{script}.py"
        assert {rule["script"], "src/headcount/base/command.py"} <= set(rule["code"])
        made = {out.module for out in outputs if f"results/tiny/{out.files[0]}" in rule["output"]}
        for module in made:
            file = f"src/{module.replace('.', '/')}"
            assert {f"{file}.py", f"{file}.yaml"} <= set(rule["code"])
        assert re.match(rf"python (scripts/{script}\.py|{{params\.script}}) ", rule["shell"])
        assert rule["shell"].endswith(" > {log:q} 2>&1")
        (log,) = rule["log"]
        assert re.fullmatch(rf"results/tiny/logs/{name}/.+\.log", log)
        assert rule["message"].endswith(" Log: {log}") or name in made_by
        assert rule["benchmark"] == re.sub(r"/logs/(.*)\.log$", r"/benchmarks/\1.tsv", log)


def test_jobs_read_the_texts_of_their_own_pair(loaded):
    pair, read = "multi30k.en-de", loaded["read"]
    tests = [
        f"test_{name}" for name in ("2016_flickr", "2017_flickr", "2017_mscoco", "2018_flickr")
    ]
    text, results = f"data/text/multi30k_short/{pair}", "results/multi30k_short"
    assert read[f"{text}/train.json"][1:] == [f"{text}/{name}.src" for name in ("dev", *tests)]
    assert len(read[f"{text}/dev.json"]) == 1
    for run in (f"train/{pair}/baseline", f"prune/{pair}/gates-all-l0"):
        run = f"{results}/{run}/seed1"
        made = [f"{run}/translations/{test}.{end}" for test in tests for end in ("json", "txt")]
        assert read[f"{run}/bleu.json"] == [*(f"{text}/{test}.tgt" for test in tests), *made]
    masking = f"{results}/masking/{pair}/baseline/seed1"
    for table, names in (
        ("headmask.csv", tests[:1]),
        ("ablation.csv", ["dev", tests[0], tests[2]]),
        ("training_profile.csv", tests[:1]),
    ):
        texts = [f"{text}/{name}.{side}" for name in names for side in ("src", "tgt")]
        assert [path for path in read[f"{masking}/{table}"] if path.startswith(text)] == texts
    profile = read[f"{masking}/training_profile.csv"]
    assert f"data/bpe/multi30k_short/{pair}/train.tgt" in profile
    kept = f"{results}/train/{pair}/baseline/seed1/updates"
    assert {f"{kept}/{n}.safetensors" for n in (100, 250, 750, 2000)} < set(profile)


def test_snakemakes_lint(loaded):
    """It misses software for each rule alone: pip installs it for all of them."""
    remarks = set(re.findall(r"^    \* (.*):$", loaded["lint"], re.MULTILINE))
    assert remarks == {"Specify a conda environment or container for each rule."}, loaded["lint"]

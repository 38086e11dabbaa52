"""Which estimate of an experiment is kept, and when a run makes one."""

import os

import pytest
from workflow_modules import load


@pytest.fixture
def announce(monkeypatch):
    """The module; its `commands` has what it would have run."""
    module = load(monkeypatch, "announce")
    module.commands = []
    monkeypatch.setattr(
        module.subprocess, "run", lambda command, **_: module.commands.append(command)
    )
    return module


@pytest.fixture
def plan(monkeypatch, announce, tmp_path):
    """That of `quickstart`, in a folder without results."""
    made = load(monkeypatch, "plan").Plan({"experiment": "quickstart"}, [])
    monkeypatch.chdir(tmp_path)
    return made


def change(plan, monkeypatch, **settings):
    """Give a plan other settings."""
    monkeypatch.setattr(plan, "settings", plan.settings.model_copy(update=settings))


def test_the_first_estimate_for_the_same_settings_stays(monkeypatch, announce, plan):
    announce.keep(plan, ["rule"], [["train"]])
    announce.keep(plan, ["rule"], [["later"]])
    change(plan, monkeypatch, title="Another")
    announce.keep(plan, ["rule"], [["later"]])
    settings, rule = announce.kept("quickstart").read_text().splitlines()[1].split(",")
    assert rule == "train"
    change(plan, monkeypatch, seeds=[1, 2])
    announce.keep(plan, ["rule"], [["other"]])
    changed, rule = announce.kept("quickstart").read_text().splitlines()[1].split(",")
    assert rule == "other" and changed != settings


def test_a_run_estimates_settings_that_have_no_estimate(monkeypatch, announce, plan):
    given = {"cores": 2, "gpus": 4}
    announce.announce(plan, given)
    flags = ["--cores", "2", "--gpus", "4"]
    assert announce.commands[0][1:] == ["workflow/estimate.py", "quickstart", *flags]
    announce.keep(plan, ["rule"], [["train"]])
    announce.announce(plan, given)
    assert len(announce.commands) == 1
    corpora = plan.corpora | {
        "synthetic": plan.corpora["synthetic"].model_copy(update={"length": 9})
    }
    monkeypatch.setattr(plan, "corpora", corpora)
    announce.announce(plan, {})
    assert announce.commands[1][1:] == ["workflow/estimate.py", "quickstart"]


def test_on_a_cluster_this_machine_is_not_measured(capsys, announce, plan):
    announce.announce(plan, None)
    assert not announce.commands
    assert "python workflow/estimate.py quickstart measures the" in capsys.readouterr().err


def test_an_estimate_of_other_settings_goes_where_measuring_does_not_pay(
    monkeypatch, announce, plan
):
    announce.keep(plan, ["rule"], [["train"]])
    short = plan.settings.train.model_copy(update={"updates": 9})
    change(plan, monkeypatch, train=short, runs=plan.settings.runs[:1], pruned=[])
    monkeypatch.setattr(
        plan, "pruning", load(monkeypatch, "pruning").Pruning(plan.layout, plan.settings)
    )
    announce.announce(plan, {"cores": 2})
    assert not announce.commands and not announce.kept("quickstart").exists()


def test_records_count_of_rules_that_have_run_since_the_estimate(
    monkeypatch, announce, plan, tmp_path
):
    """Both jobs of `text` have, 2 and 4 seconds; one of `bleu` ran before, one of `trees` only."""
    estimate = object.__new__(load(monkeypatch, "estimate").Estimate)
    monkeypatch.chdir(tmp_path)  # the module was loaded in the project's folder
    estimate.plan = plan
    estimate.jobs = [{"rule": rule} for rule in ("text", "text", "bleu", "trees", "trees")]
    folder = announce.kept("quickstart").parent
    for name, seconds in (("text/a", 2), ("text/b", 4), ("bleu/a", 8), ("trees/a", 9)):
        path = folder / f"{name}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"s\tmax_rss\n{seconds}\t1\n")
        os.utime(path, (2000, 2000) if name != "bleu/a" else (500, 500))
    assert estimate._records() == {}
    announce.keep(plan, ["rule"], [["train"]])
    os.utime(announce.kept("quickstart"), (1000, 1000))
    assert estimate._records() == {"text": 3}
    change(plan, monkeypatch, seeds=[1, 2])
    assert estimate._records() == {}

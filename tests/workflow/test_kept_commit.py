"""The commit that runs are kept with: whether it has all that made them."""

import subprocess

import pytest
from project_copy import PERSON
from workflow_modules import load

from headcount.base.errors import UserError


def git(*words: str) -> str:
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


def test_runs_kept_from_a_tree_with_changes_are_told_to_be_more_than_their_commit(
    monkeypatch, tmp_path
):
    kept = load(monkeypatch, "kept")
    monkeypatch.chdir(tmp_path)
    for name, value in PERSON.items():
        monkeypatch.setenv(name, value)
    run = kept.Run("a.x-y", "baseline", 2)
    found = {"settings_of": {}, "planned_jobs": [], "_by_run": {run: []}}
    for name, value in found.items():
        monkeypatch.setattr(kept, name, lambda *_, value=value: value)
    monkeypatch.setattr(kept, "changed_settings", lambda then, now, run: "updates" * (then != now))
    monkeypatch.setattr(kept, "_gather", lambda *given: kept.Archive(given[-1], {}, {}))

    code = tmp_path / "src/a.py"
    code.parent.mkdir()
    code.write_text("1\n")
    git("init", "-q")
    git("add", "src")
    git("commit", "-qm", "One")
    told = kept.keep("mine", "a lathe", replace=False)
    assert "1 runs kept" in told and "not committed" not in told

    settings = tmp_path / "config/mine.yaml"
    settings.parent.mkdir()
    settings.write_text("title: of no commit yet\n")
    assert kept._commit().endswith(" and changes")
    settings.unlink()

    code.write_text("2\n")
    told = kept.keep("mine", "a lathe", replace=False)
    assert "0 runs kept, 1 stay" in told and "not committed" not in told  # it has its own commit
    path = kept.archive_path("mine", run)
    path.unlink()
    told = kept.keep("mine", "a lathe", replace=False)
    alone = f"commit {git('rev-parse', '--short', 'HEAD').strip()} alone cannot make these runs"
    assert "1 runs kept" in told and "changes that are not committed" in told and alone in told
    assert kept.read_archives("mine")[run].about["commit"].endswith(" and changes")

    code.write_text("1\n")
    old = kept.read_archives("mine")[run]
    more = {"results/mine/benchmarks/a.tsv": b"s\n7\n"}
    monkeypatch.setattr(kept, "_gather", lambda *given: kept.Archive(given[-1], {}, more))
    assert "1 runs kept" in kept.keep("mine", "a loom", replace=False)
    grown = kept.read_archives("mine")[run]
    now = git("rev-parse", "--short", "HEAD").strip()
    assert grown.files == more and old.about["commit"] == f"{now} and changes"
    assert grown.about["commit"] == f"{now} and changes; later files: {now}"
    assert grown.about["machine"] == "a lathe; later files: a loom"
    other = {"results/mine/benchmarks/b.tsv": b"s\n9\n"}  # and this machine lacks a.tsv
    monkeypatch.setattr(kept, "_gather", lambda *given: kept.Archive(given[-1], {}, other))
    assert "1 runs kept" in kept.keep("mine", "a loom", replace=False)
    grown = kept.read_archives("mine")[run]
    assert grown.files == more | other
    assert grown.about["machine"] == "a lathe; later files: a loom"  # once
    changed = {"train.updates": 7}
    monkeypatch.setattr(kept, "settings_of", lambda experiment: changed)
    monkeypatch.setattr(kept, "_gather", lambda *given: kept.Archive(given[-1], {}, {"c": b""}))
    told = kept.keep("mine", "a loom", replace=False)  # files of other settings are none of it
    assert "0 runs kept, 1 stay" in told and "baseline, seed 2 of a.x-y (updates)" in told
    assert kept.read_archives("mine")[run] == grown


def test_outside_a_git_checkout_the_fault_is_told(monkeypatch, tmp_path):
    kept = load(monkeypatch, "kept")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(UserError, match="expected a Git checkout, .* not a git repository"):
        kept._commit()

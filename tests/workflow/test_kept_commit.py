"""The commit that runs are kept with: whether it has all that made them."""

import subprocess

from project_copy import PERSON
from workflow_modules import load


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

"""Fixtures of the tests of two engines: a repository with results, and a fresh clone of it."""

import pytest
from project_copy import ProjectCopy
from shared_results import TINY, fresh_clone


@pytest.fixture(scope="module")
def origin(tmp_path_factory) -> ProjectCopy:
    """A repository whose experiment Snakemake built, DVC adopted, and both committed and pushed."""
    copy = ProjectCopy(tmp_path_factory.mktemp("engines") / "-the team's $HOME; 🙂 שלום")
    copy.change("dvc.yaml", "experiments: [quickstart]", "experiments: [tiny]")
    copy.change(".dvc/config", "../../headcount-remote", "../../remote")
    copy.change("config/tiny.yaml", "updates: 300", "updates: 60")
    copy.change("config/tiny.yaml", "seeds: [1]", "seeds: [1, 2]")
    rule = "workflow/rules/train.smk"
    copy.change(rule, "--state ", "--save-seconds 0 --state ")
    copy.call("git", "init", "-q", "-b", "main")
    copy.commit()
    code, output = copy.run(*TINY)
    assert code == 0, output
    copy.adopted = copy.call("dvc", "repro")
    copy.call("dvc", "push")
    copy.commit()
    return copy


@pytest.fixture
def clone(origin, tmp_path) -> ProjectCopy:
    """A fresh clone beside the origin, with everything pulled."""
    return fresh_clone(origin, tmp_path.name)

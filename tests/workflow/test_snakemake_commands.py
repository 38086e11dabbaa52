"""Snakemake's other commands, none of which needs to be told how many cores there are."""

import re

import pytest
from project_copy import ProjectCopy
from shared_results import own_copy

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def finished(origin, tmp_path_factory) -> ProjectCopy:
    """Everything is built."""
    return own_copy(origin, tmp_path_factory.mktemp("finished"))


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory) -> ProjectCopy:
    """Nothing is built."""
    return ProjectCopy(tmp_path_factory.mktemp("unfinished") / "copy")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("--summary", r"report\.html\t.*\tok\tno update"),
        ("--dag", r"digraph snakemake_dag \{"),
        ("--unlock", "Unlocked working directory"),
        ("--list-rules", r"(?m)^share_speed \("),
        ("--list-changes code", r"Building DAG of jobs\.\.\.\s*$"),
        ("--touch", "Nothing to be done"),
        ("--delete-all-output --dry-run", "Would delete results/quickstart/report.html"),
    ],
)
def test_on_finished_results(finished, command, words):
    assert re.search(words, finished.shell(f"snakemake {command}"))


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("--summary", r"report\.html\t-\t.*\tmissing\tupdate pending"),
        ("--rulegraph", r"digraph snakemake_dag \{"),
        ("--unlock", "Unlocked working directory"),
    ],
)
def test_before_any_result(unfinished, command, words):
    assert re.search(words, unfinished.shell(f"snakemake {command}"))


def test_a_report_opens_offline(finished):
    finished.shell("snakemake --report page.html")
    page = (finished.folder / "page.html").read_text()
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=.https?:", page)

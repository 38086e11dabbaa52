"""What a person sees of a run: lines, bars, claims; with a terminal and without one."""

import io
import logging
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from project_copy import ROOT, ran
from shared_results import own_copy
from snakemake.settings.types import OutputSettings
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_logger_plugin_headcount.progress import Job, Left, Planned, Progress, spoken
from workflow_modules import load

from headcount.analysis.report import answers
from headcount.analysis.report.answers import decided_claims
from snakemake_logger_plugin_headcount import LogHandler
from snakemake_logger_plugin_headcount.display import Display, console_on

SMALL = """
import sys

sys.path.insert(0, {workflow!r})
from engine import jobs_of_run
from snakemake.logging import logger
from snakemake_logger_plugin_headcount.progress import Job, Planned

onstart:
    jobs = sorted(jobs_of_run(workflow), key=lambda job: job.rule != "text")
    jobs = {{job.number: Job(job.rule + "s", job.rule, job.share) for job in jobs}}
    logger.info("3 jobs", extra={{"planned": Planned(jobs, {{"count": 90}})}})

onsuccess:
    logger.warning("warning: a test")
    logger.info("The report: page.html")

rule all:
    default_target: True
    input: expand("out/{{pair}}/seed{{seed}}.count", pair=["de-en"], seed=[1, 2])

rule text:
    output: "out/{{pair}}/text"
    shell: "echo word > {{output}}"

rule count:
    input: "out/{{pair}}/text"
    output: "out/{{pair}}/seed{{seed}}.count"
    log: "logs/{{pair}}.seed{{seed}}.log"
    threads: 1
    shell: "(seq 30; {command}) > {{log}} 2>&1; wc -w < {{input}} > {{output}}; exit {code}"
"""
PROFILE = ROOT / "workflow" / "profiles" / "default" / "config.yaml"
OTHER = """
from snakemake_logger_plugin_headcount import LogHandler as Base

class LogHandler(Base):
    def emit(self, record):
        print("mine:", record.getMessage())
"""


def small(folder: Path, command: str = "true", code: int = 0) -> Path:
    """A workflow of three jobs in a folder, with the project's own profile."""
    text = SMALL.format(workflow=str(ROOT / "workflow"), command=command, code=code)
    (folder / "workflow" / "profiles" / "default").mkdir(parents=True)
    (folder / "workflow" / "Snakefile").write_text(text)
    (folder / "workflow" / "profiles" / "default" / "config.yaml").write_text(PROFILE.read_text())
    return folder


def command(*flags: str) -> list[str]:
    return [sys.executable, "-m", "snakemake", "--cores", "1", *flags]


def variables(first: Path | None = None) -> dict[str, str]:
    """Of this project's package, and of modules in a folder before it."""
    path = os.pathsep.join(str(each) for each in (first, ROOT / "src") if each)
    return os.environ | {"PYTHONPATH": path, "TERM": "xterm", "FORCE_COLOR": "1", "COLUMNS": "90"}


def without_terminal(folder: Path, *flags: str, first: Path | None = None) -> tuple[int, str]:
    """Exit code and all that was printed, to a pipe."""
    done = subprocess.run(
        command(*flags), cwd=folder, env=variables(first), capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


def on_terminal(words: list[str], folder: Path, first: Path | None = None) -> tuple[int, str]:
    """Exit code and all that was printed, control characters too, to a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        words, cwd=folder, env=variables(first), stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    found = b""
    try:
        while part := os.read(ours, 65536):
            found += part
    except OSError:  # its other end is closed
        pass
    os.close(ours)
    return process.wait(), found.decode().replace("\r\n", "\n")


def record(event: LogEvent | None, at: float, **said) -> logging.LogRecord:
    """A record of Snakemake's, made so many seconds after the run began."""
    made = logging.LogRecord("snakemake", said.pop("level", logging.INFO), "", 1, "", (), None)
    made.__dict__ |= {"event": event, "created": 1000.0 + at, **said}
    return made


def info(number: int, rule: str, at: float, **wildcards: str) -> logging.LogRecord:
    said = {"jobid": number, "rule_name": rule, "wildcards": wildcards, "output": ["file"]}
    return record(LogEvent.JOB_INFO, at, **said)


PLANNED = Planned(
    {
        1: Job("data", "text", 0.5),
        2: Job("train", "train", 1.0),
        3: Job("train", "train", 1.0),
        4: Job("report", "general", 0.5),
    },
    {"text": 4.0, "train": 100.0},
)


def test_time_left_is_counted_by_rules_and_shares():
    progress = Progress(PLANNED)
    # 4 s on half of the machine and 2 × 100 s on all of it; nothing is known of `general`.
    assert progress.left(0.0) == Left(202.0, 1)
    progress.begin(1, 0.0)
    assert progress.end(1, 6.0, done=True) == 6.0
    progress.begin(2, 6.0)
    assert progress.left(16.0) == Left(190.0, 1)  # 90 s of the one that runs
    progress.end(2, 56.0, done=True)  # 50 s, and so is the other one taken for
    assert progress.left(56.0) == Left(50.0, 1)
    assert progress.by_phase() == {"data": (1, 1), "train": (1, 2), "report": (0, 1)}
    assert progress.counts() == (2, 4)


def test_a_job_that_takes_longer_than_its_rule_is_not_less_than_nothing():
    progress = Progress(Planned({1: Job("data", "text", 0.1)}, {"text": 4.0}))
    assert progress.left(0.0) == Left(4.0, 0)  # no less than its longest job
    progress.begin(1, 0.0)
    assert progress.left(9.0) == Left(0.0, 0)


def test_no_time_is_told_where_nothing_limits_what_runs_at_once():
    """As on a cluster."""
    assert Progress(Planned({1: Job("data", "text", None)}, {"text": 4.0})).left(0.0) is None


def test_a_job_that_failed_is_still_to_do():
    progress = Progress(PLANNED)
    progress.begin(1, 0.0)
    progress.end(1, 2.0, done=False)
    assert progress.counts() == (0, 4) and progress.running(2.0) == {}
    assert progress.left(2.0) == Left(202.0, 1)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (59.6, "60 s"), (150, "2.5 min"), (2400, "40 min")]
    + [(7200, "2.0 h"), (90000, "25 h")],
)
def test_seconds_are_told_in_the_unit_of_their_size(seconds, words):
    assert spoken(seconds) == words


def test_lines_of_a_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORCE_COLOR", "1")
    Path("a.log").write_text("".join(f"line {n}\n" for n in range(30)))
    stream = io.StringIO()
    display = Display(console_on(stream, False), lambda each: each.msg, bars=False)
    display.show(record(None, 0, planned=PLANNED, msg="4 jobs"))
    display.show(info(1, "text", 1, pair="de-en", phase="train", recipe="0123456789ab"))
    display.show(record(LogEvent.JOB_FINISHED, 5, job_id=1))
    display.show(info(2, "train", 5, pair="de-en", run="impt-6", seed="1"))
    failure = {"jobid": 2, "rule_name": "train", "log": ["a.log", "gone.log"]}
    display.show(record(LogEvent.JOB_ERROR, 65, **failure))
    long = "RuleException:\nCalledProcessError in file \"a\", line 3:\nCommand 'a b' "
    said = {"msg": f"{long}returned non-zero exit status 3.", "level": logging.ERROR}
    display.show(record(LogEvent.ERROR, 65, **said))
    display.show(record(None, 66, level=logging.WARNING, msg="warning: [of] a rule"))
    # 2 × 100 s are left of `train`, and `general`.
    assert stream.getvalue().splitlines() == [
        "4 jobs",
        "0/4 started text de-en",
        "1/4 done    text de-en, 4.0 s; about 3.3 min and 1 job of unknown length left",
        "1/4 started train de-en impt-6 seed 1",
        "1/4 failed  train de-en impt-6 seed 1, 60 s",
        "The last lines of a.log:",
        *[f"  line {n}" for n in range(10, 30)],
        "The last lines of gone.log:",
        "  there is no such file",
        "A job's command returned non-zero exit status 3.",
        "warning: [of] a rule",
    ]


def test_a_fault_of_the_display_is_told_once_and_snakemakes_words_follow(capsys, monkeypatch):
    handler = LogHandler(OutputSettings(), None)
    monkeypatch.setattr(handler._display, "show", lambda _: 1 / 0)
    for words in ("first", "second"):
        handler.emit(record(None, 0, msg=words))
    told = capsys.readouterr().err
    assert told.count("The display of this run failed") == told.count("ZeroDivisionError") == 1
    assert re.findall("^(?:first|second)$", told, re.MULTILINE) == ["first", "second"]


def test_a_job_is_told_in_the_phase_of_dvc_that_has_its_files(monkeypatch):
    phases = load(monkeypatch, "phases")
    declared = phases.declared("tiny")
    assert list(declared) == ["data", "train", "heads", "prune", "masking", "report"]
    for name, phase in declared.items():
        assert {phases.phase_of(f"{path}/file", declared) for path in phase.writes} == {name}
    assert phases.phase_of("data/raw/synthetic/0123/manifest.json", declared) == "data"
    assert phases.phase_of("elsewhere/file", declared) is None


def test_decided_claims_are_told_in_their_order(tmp_path):
    assert decided_claims(tmp_path) == []
    known = {"paper": "A 2020", "statistic": "share", "seeds": 1, "value": 0.5}
    verdicts = ("undecided", "holds", "does not hold")
    rows = [known | {"statement": f"Claim {n}.", "verdict": v} for n, v in enumerate(verdicts)]
    (tmp_path / "tables").mkdir()
    table = pd.DataFrame(rows).reindex(columns=answers._COLUMNS)
    table.to_csv(tmp_path / answers.TABLE, index=False)
    assert [line.splitlines()[0] for line in decided_claims(tmp_path)] == [
        "  holds: Claim 1. (A 2020)",
        "  does not hold: Claim 2. (A 2020)",
    ]


def test_warnings_of_outputs_are_logged_once(monkeypatch, tmp_path):
    for name, text in (
        ("a", '{"warnings": ["w", "v"]}'),
        ("b", '{"warnings": ["w"]}'),
        ("c", "{}"),
    ):
        (tmp_path / name).write_text(text)
    read_warnings = load(monkeypatch, "outputs").read_warnings
    assert read_warnings(tmp_path / name for name in "abc") == ["w", "v"]


@pytest.mark.slow
def test_without_a_terminal_there_are_short_lines_and_the_reasons_are_in_the_log(tmp_path):
    code, output = without_terminal(small(tmp_path))
    assert code == 0 and not re.search(r"[\x00-\x09\x0b-\x1f]", output)
    lines = [re.sub(r"seed \d|(?<=, )\d+\.\d(?= s)", "N", each) for each in output.splitlines()]
    # One job of a rule of which 90 s are told beforehand, then that one's own time.
    assert lines[1:-2] == [
        "Building DAG of jobs...",
        "3 jobs",
        "0/3 started text de-en",
        "1/3 done    text de-en, N s; about 3.0 min left",
        "1/3 started count de-en N",
        "2/3 done    count de-en N, N s; less than 10 s left",
        "2/3 started count de-en N",
        "3/3 done    count de-en N, N s",
        "warning: a test",
        "The report: page.html",
    ]
    (log,) = (tmp_path / ".snakemake" / "log").iterdir()
    assert f"Complete log(s): {log}" in output
    assert "reason: Missing output files: out/de-en/text" in log.read_text()


@pytest.mark.slow
def test_on_a_terminal_there_are_bars_which_go_in_the_end(tmp_path):
    code, output = on_terminal(command(), small(tmp_path, command="sleep 1"))
    assert code == 0 and output.count("\x1b[?25l") == output.count("\x1b[?25h") == 1
    drawn, after = output.split("\x1b[?25h")
    plain = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", drawn).replace("\r", "\n")
    for line in ("texts  ━+ 1/1", "counts ━+ 0/2", "counts [━╺]+ 1/2"):
        assert re.search(
            f"(?m)^running count de-en seed [12], [\\d.]+ s *\n(.*\n)?{line} *$", plain
        ), plain
    assert "about 3.0 min left" in plain and "1/3 done    text de-en" in plain
    assert "started" not in plain and "━" not in after
    assert "3/3 done    count de-en" in plain
    assert "warning: a test" in after and "\nThe report: page.html\n" in after


@pytest.mark.slow
def test_a_failed_job_shows_its_log_and_its_code_is_told(tmp_path):
    code, output = without_terminal(small(tmp_path, command="echo wrong", code=2))
    assert code == 1 and "1/3 failed  count de-en seed " in output
    shown = re.split(r"The last lines of logs/de-en.seed[12].log:\n", output)[1].splitlines()
    assert shown[:20] == [*(f"  {n}" for n in range(12, 31)), "  wrong"]  # of 31 lines
    assert "A job's command returned non-zero exit status 2.\n" in output
    assert "set -euo pipefail" not in output  # the command, which the log has
    (log,) = (tmp_path / ".snakemake" / "log").iterdir()
    assert "returned non-zero exit status 2." in log.read_text()


@pytest.mark.slow
def test_flags_of_ones_own_win(tmp_path):
    small(tmp_path)
    (tmp_path / "own" / "snakemake_logger_plugin_mine").mkdir(parents=True)
    (tmp_path / "own" / "snakemake_logger_plugin_mine" / "__init__.py").write_text(OTHER)
    _, mine = without_terminal(tmp_path, "--logger", "mine", first=tmp_path / "own")
    assert "mine: Finished jobid: 0" in mine and "done    text" not in mine
    _, words = without_terminal(tmp_path, "--verbose", "-F")
    assert "reason: " in words and "3 of 3 steps" not in words and "4 of 4 steps" in words
    _, quiet = without_terminal(tmp_path, "--quiet", "all", "-F")
    assert "3 jobs" not in quiet and "done" not in quiet
    _, rules = without_terminal(tmp_path, "--quiet", "rules", "-F")
    assert "3 jobs" in rules and "done" not in rules
    code, plan = without_terminal(tmp_path, "-n", "-F")
    assert code == 0 and "reason: Forced execution" in plan and "This was a dry-run" in plan


@pytest.mark.slow
def test_a_reader_that_has_gone_stops_no_job(tmp_path):
    small(tmp_path)
    said = {"cwd": tmp_path, "env": variables(), "stderr": subprocess.PIPE}
    with subprocess.Popen(command(), **said) as process:
        process.stderr.readline()
        process.stderr.close()
        assert process.wait() == 0
    assert (tmp_path / "out/de-en/seed2.count").read_text() == "1\n"


@pytest.mark.slow
def test_a_run_of_ours_ends_with_the_report_its_warnings_and_claims(origin, monkeypatch, tmp_path):
    results = "results/quickstart"
    assert f"\nThe report: {results}/report.html" in origin.built
    assert re.search(
        r"(?m)^quickstart: (\d+) jobs \(data \d+, train \d+, heads \d+, prune", origin.built
    )
    total = int(re.search(r"(?m)^quickstart: (\d+) jobs", origin.built)[1])
    assert total == sum(ran(origin.built).values())
    copy = own_copy(origin, tmp_path)
    (copy.folder / results / "report.html").unlink()
    code, output = on_terminal(command(), copy.folder, copy.folder / "src")
    plain = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", output)
    last = re.search(r"(\d+)/\1 done    report", plain)
    assert code == 0 and "report ━" in plain and last, plain
    after = plain[last.end() :]
    found = (copy.folder / results).glob("*/*.json")
    pages = sorted(page for page in found if page.parent.name in ("tables", "figures"))
    for warning in load(monkeypatch, "outputs").read_warnings(pages):
        assert f"warning: {warning}\n" in after
    claims = decided_claims(copy.folder / results)
    first = f"; the first {len(claims[:3])} of {len(claims)} decided claims:" if claims else ""
    assert "\n".join([f"The report: {results}/report.html{first}", *claims[:3]]) in after

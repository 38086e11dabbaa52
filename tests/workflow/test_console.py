"""Messages of a run: lines, bars, claims; with a terminal and without one."""

import io
import logging
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from project_copy import ROOT
from snakemake.settings.types import OutputSettings
from snakemake_interface_logger_plugins.common import LogEvent
from workflow_modules import load

from snakemake_logger_plugin_headcount import LogHandler
from snakemake_logger_plugin_headcount.display import Display, console_on

SMALL = """
from collections import Counter
from snakemake.logging import logger

onstart:
    jobs = Counter({{"text": 1, "count": 2}})
    logger.info("3 jobs", extra={{"jobs": jobs, "seconds": {{"text": 1, "count": 2}}}})

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
    shell: "{command} > {{log}} 2>&1; wc -w < {{input}} > {{output}}"
"""
PROFILE = ROOT / "workflow" / "profiles" / "default" / "profile.yaml"


def small(folder: Path, command: str = "true") -> Path:
    """A workflow of three jobs in a folder, with the project's own profile."""
    (folder / "workflow" / "profiles" / "default").mkdir(parents=True)
    text = SMALL.format(command=command)
    (folder / "workflow" / "Snakefile").write_text(text)
    (folder / "workflow" / "profiles" / "default" / "profile.yaml").write_text(PROFILE.read_text())
    return folder


COMMAND = [sys.executable, "-m", "snakemake", "--cores", "1"]
VARIABLES = {"PYTHONPATH": str(ROOT / "src"), "TERM": "xterm", "FORCE_COLOR": "1", "COLUMNS": "90"}


def record(event: LogEvent | None, at: float, **facts) -> logging.LogRecord:
    """A record of Snakemake's, made so many seconds after the run began."""
    made = logging.LogRecord("snakemake", facts.pop("level", logging.INFO), "", 1, "", (), None)
    made.__dict__ |= {"event": event, "created": 1000.0 + at, **facts}
    return made


def info(number: int, rule: str, at: float, **wildcards: str) -> logging.LogRecord:
    facts = {"jobid": number, "rule_name": rule, "wildcards": wildcards, "output": ["file"]}
    return record(LogEvent.JOB_INFO, at, **facts)


def test_lines_of_a_run(tmp_path, monkeypatch):
    """One training is expected to take 25 times as long as the text, then 20 times."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORCE_COLOR", "1")
    Path("a.log").write_text("".join(f"line {n}\n" for n in range(30)))
    stream = io.StringIO()
    display = Display(console_on(stream, False), lambda record: record.msg, bars=False)
    jobs = {"jobs": Counter(text=1, train=3), "seconds": {"text": 3.0, "train": 100.0}}
    display.show(record(None, 0, msg="4 jobs", **jobs))
    display.show(info(1, "text", 1, pair="de-en", phase="train", recipe="0123456789ab"))
    display.show(record(LogEvent.JOB_FINISHED, 5, job_id=1))
    display.show(info(2, "train", 5, pair="de-en", run="impt-6", seed="1"))
    display.show(record(LogEvent.JOB_FINISHED, 85, job_id=2))
    display.show(info(3, "train", 85, pair="de-en", run="impt-6", seed="2"))
    failure = {"jobid": 3, "rule_name": "train", "log": ["a.log", "gone.log"]}
    display.show(record(LogEvent.JOB_ERROR, 145, **failure))
    long = "RuleException:\nCalledProcessError in file \"a\", line 3:\nCommand 'a b' "
    text = {"msg": f"{long}returned non-zero exit status 3.", "level": logging.ERROR}
    display.show(record(LogEvent.ERROR, 145, **text))
    display.show(record(None, 146, level=logging.WARNING, msg="warning: [of] a rule"))
    assert stream.getvalue().splitlines() == [
        "4 jobs",
        "0/4 started text de-en",
        "1/4 done    text de-en, 4.0 s; about 5.0 min left",
        "1/4 started train de-en impt-6 seed 1",
        "2/4 done    train de-en impt-6 seed 1, 80 s; about 2.7 min left",
        "2/4 started train de-en impt-6 seed 2",
        "2/4 failed  train de-en impt-6 seed 2, 60 s",
        "The last lines of a.log:",
        *[f"  line {n}" for n in range(10, 30)],
        "The last lines of gone.log:",
        "  there is no such file",
        "A job's command returned non-zero exit status 3.",
        "warning: [of] a rule",
    ]


def test_a_fault_of_the_display_is_shown_once_and_snakemakes_messages_follow(capsys, monkeypatch):
    handler = LogHandler(OutputSettings(), None)
    monkeypatch.setattr(handler._display, "show", lambda _: 1 / 0)
    for words in ("first", "second"):
        handler.emit(record(None, 0, msg=words))
    printed = capsys.readouterr().err
    assert printed.count("The display of this run failed") == printed.count("ZeroDivision") == 1
    assert re.findall("^(?:first|second)$", printed, re.MULTILINE) == ["first", "second"]


def test_warnings_of_outputs_are_logged_once(monkeypatch, tmp_path):
    texts = {"a": '{"warnings": ["w", "v"]}', "b": '{"warnings": ["w"]}', "c": "{}"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    read_warnings = load(monkeypatch, "session").read_warnings
    assert read_warnings(tmp_path / name for name in texts) == ["w", "v"]


@pytest.mark.slow
def test_a_reader_that_has_gone_stops_no_job(tmp_path):
    small(tmp_path)
    options = {"cwd": tmp_path, "env": os.environ | VARIABLES, "stderr": subprocess.PIPE}
    with subprocess.Popen(COMMAND, **options) as process:
        process.stderr.readline()
        process.stderr.close()
        assert process.wait() == 0
    assert (tmp_path / "out/de-en/seed2.count").read_text() == "1\n"

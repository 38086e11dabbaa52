"""A run as a person sees it: a line for each job, and on a terminal a bar for each phase below."""

import os
import re
import sys
import time
from collections.abc import Callable
from logging import ERROR, WARNING, LogRecord
from pathlib import Path
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from snakemake_interface_logger_plugins.common import LogEvent

from snakemake_logger_plugin_headcount.progress import Left, Planned, Progress, spoken

LAST_LINES = 20
"""Of a failed job's log."""
_SHOWN = 8  # running jobs below each other
_WIDTH = 40  # of a bar, in letters
_UNTOLD = {
    *(LogEvent.WORKFLOW_STARTED, LogEvent.RUN_INFO, LogEvent.RESOURCES_INFO, LogEvent.PROGRESS),
    *(LogEvent.JOB_STARTED, LogEvent.GROUP_INFO, LogEvent.RULEGRAPH),
}
_CHATTER = re.compile("Assuming unrestricted|Using shell:|Select jobs to execute")
_ENDED = re.compile(r"CalledProcessError in file .*' ((?:returned|died with) [^']*)$", re.DOTALL)
_UNNAMED = {"phase", "recipe"}  # wildcards: one is told by the bars, one is a checksum


def console_on(stream: TextIO, colourless: bool) -> Console:
    """A console that draws on a terminal only, whatever FORCE_COLOR says."""
    draws = stream.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")
    return Console(file=stream, force_terminal=draws, no_color=colourless or None)


class Display:
    """Shows Snakemake's records one by one."""

    def __init__(self, console: Console, words: Callable[[LogRecord], str], bars: bool):
        """`words`: Snakemake's own for a record. `bars`: below the lines, until `close`."""
        self._console, self._words = console, words
        self._progress = Progress(Planned({}, {}))
        self._names: dict[int, str] = {}
        self._live = None
        if bars:
            self._live = Live(
                self,
                console=console,
                refresh_per_second=2,
                transient=True,
                redirect_stdout=sys.stdout.isatty(),  # or what goes to a file would come here
            )

    def show(self, record: LogRecord) -> None:
        """Show a record, or remember what it says of the run."""
        event = getattr(record, "event", None)
        if event == LogEvent.JOB_INFO:
            self._begin(record)
        elif event == LogEvent.JOB_FINISHED:
            self._end(record.job_id, record.created)
        elif event == LogEvent.JOB_ERROR:
            self._fail(record)
        elif event not in _UNTOLD:
            self._say(record)

    def close(self) -> None:
        """Take the bars away."""
        if self._live:
            self._live.stop()

    def _begin(self, record: LogRecord) -> None:
        if not record.output:  # a rule that only asks for files
            return
        self._names[record.jobid] = _named(record)
        self._progress.begin(record.jobid, record.created)
        if self._live:
            self._live.start()
        else:
            self._print(f"{self._counted('started')}{self._names[record.jobid]}")

    def _end(self, number: int, now: float) -> None:
        took = self._progress.end(number, now, done=True)
        if number in self._names:
            line = f"{self._counted('done')}{self._names[number]}, {spoken(took)}"
            left = "" if self._live else _left(self._progress.left(now))
            self._print(f"{line}; {left}" if left else line)
        done, total = self._progress.counts()
        if done == total:
            self.close()

    def _fail(self, record: LogRecord) -> None:
        took = self._progress.end(record.jobid, record.created, done=False)
        name = self._names.get(record.jobid, record.rule_name)
        self._print(f"{self._counted('failed')}{name}, {spoken(took)}", "bold red")
        for log in record.log:
            self._print(f"The last lines of {log}:", "red")
            self._print(_last_lines(Path(log)))

    def _say(self, record: LogRecord) -> None:
        planned = getattr(record, "planned", None)
        if planned:
            self._progress = Progress(planned)
        words = self._words(record)
        if ended := _ENDED.search(words):  # of the command, whose words Snakemake's log file has
            words = f"A job's command {ended[1]}"
        if words and not _CHATTER.match(words):
            style = {WARNING: "yellow", ERROR: "red"}.get(record.levelno, "")
            self._print(words, style)

    def _counted(self, what: str) -> str:
        done, total = self._progress.counts()
        counts = f"{done:{len(str(total))}}/{total} " if total else ""
        return f"{counts}{what:8}"

    def _print(self, words: str, style: str = "") -> None:
        self._console.print(Text(words, style), soft_wrap=True)

    def __rich__(self) -> Group:
        """What runs, the phases, and the time left: drawn anew at each refresh."""
        now = time.time()
        running = self._progress.running(now)
        lines = [
            f"running {self._names[number]}, {spoken(took)}" for number, took in running.items()
        ]
        more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
        bars = Table.grid(padding=(0, 1))
        for phase, (done, total) in self._progress.by_phase().items():
            bar = ProgressBar(total=total, completed=done, width=_WIDTH)
            bars.add_row(phase, bar, f"{done}/{total}")
        left = _left(self._progress.left(now))
        return Group(*map(Text, [*lines[:_SHOWN], *more]), bars, Text(left))


def _named(record: LogRecord) -> str:
    """A job in short: its rule, and what it is for."""
    wildcards = dict(record.wildcards or {})
    words = [
        f"seed {value}" if name == "seed" else value
        for name, value in wildcards.items()
        if name not in _UNNAMED
    ]
    return " ".join([record.rule_name, *words])


def _left(left: Left | None) -> str:
    """Time left in words; empty where nothing is known of it."""
    if not left or not (left.seconds or left.unknown):
        return ""
    time_left = f"about {spoken(left.seconds)}" if left.seconds >= 10 else "less than 10 s"
    if not left.unknown:
        return f"{time_left} left"
    jobs = f"{left.unknown} job{'s' if left.unknown > 1 else ''} of unknown length"
    return f"{time_left} and {jobs} left" if left.seconds else f"{jobs} left"


def _last_lines(log: Path) -> str:
    """The end of a job's log, indented."""
    if not log.exists():
        return "  there is no such file"
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(f"  {line}" for line in lines[-LAST_LINES:]) or "  nothing was written there"

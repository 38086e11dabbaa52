"""A run as a person sees it: a line for every job, and on a terminal bars below the lines."""

import os
import re
import sys
from collections import Counter
from collections.abc import Callable
from logging import ERROR, WARNING, LogRecord
from pathlib import Path
from statistics import fmean
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text
from snakemake_interface_logger_plugins.common import LogEvent

_HIDDEN = {
    *(LogEvent.WORKFLOW_STARTED, LogEvent.RUN_INFO, LogEvent.RESOURCES_INFO, LogEvent.PROGRESS),
    *(LogEvent.JOB_STARTED, LogEvent.GROUP_INFO, LogEvent.RULEGRAPH),
}
_CHATTER = re.compile("Assuming unrestricted|Using shell:|Select jobs to execute")
_ENDED = re.compile(r"CalledProcessError in file .*' ((?:returned|died with) [^']*)$", re.DOTALL)


def console_on(stream: TextIO, colourless: bool) -> Console:
    """Return a console that draws on a terminal only, whatever FORCE_COLOR says."""
    draws = stream.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")
    return Console(file=stream, force_terminal=draws, no_color=colourless or None)


class Display:
    """Shows Snakemake's records one by one."""

    def __init__(self, console: Console, format_: Callable[[LogRecord], str], bars: bool):
        """`format_`: Snakemake's text of a record. `bars`: whether they are drawn."""
        self._format, self._drawn = format_, bars
        self._planned: Counter[str] = Counter()  # jobs of every rule in this run
        self._expected: dict[str, float] = {}  # seconds of a job of every rule
        self._seconds: dict[str, list[float]] = {}  # of the jobs of every rule that are done
        self._running: dict[int, tuple[str, str, float, TaskID]] = {}  # rule, name, start, bar
        self._start, self._all = 0.0, None
        columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[count]}")
        options = {"console": console, "disable": not bars, "transient": True}
        options["redirect_stdout"] = sys.stdout.isatty()  # or what goes to a file would come here
        self.bars = Progress(*columns, TimeElapsedColumn(), refresh_per_second=2, **options)

    def show(self, record: LogRecord) -> None:
        """Show a record, or remember its facts about the run."""
        event = getattr(record, "event", None)
        if event == LogEvent.JOB_INFO and record.output:
            self._begin(record)
        elif event == LogEvent.JOB_FINISHED and record.job_id in self._running:
            self._end(record.job_id, record.created)
        elif event == LogEvent.JOB_ERROR:
            self._fail(record)
        elif event not in (LogEvent.JOB_INFO, LogEvent.JOB_FINISHED, *_HIDDEN):
            self._message(record)

    def _begin(self, record: LogRecord) -> None:
        name, now = _name(record), record.created
        if self._all is None:
            self._start = now
            self.bars.start()
            self._all = self.bars.add_task("all jobs", count="")
        bar = self.bars.add_task(f"running {name}", total=None, count="")
        self._running[record.jobid] = record.rule_name, name, now, bar
        self._update(self._left(now))
        if not self._drawn:
            self._print(f"{self._counted('started')}{name}")

    def _end(self, number: int, now: float) -> None:
        rule, name, start, bar = self._running.pop(number)
        self._seconds.setdefault(rule, []).append(now - start)
        self.bars.remove_task(bar)
        left = self._left(now)
        self._update(left)
        line = f"{self._counted('done')}{name}, {spoken(now - start)}"
        self._print(f"{line}; {left}" if left and not self._drawn else line)
        if self._done == self._planned.total():
            self.bars.stop()

    def _fail(self, record: LogRecord) -> None:
        if record.jobid in self._running:
            _, name, start, bar = self._running.pop(record.jobid)
            self.bars.remove_task(bar)
            line = f"{self._counted('failed')}{name}, {spoken(record.created - start)}"
            self._print(line, "bold red")
        for log in record.log:
            self._print(f"The last lines of {log}:", "red")
            self._print(_last_lines(Path(log)))

    def _message(self, record: LogRecord) -> None:
        self._planned += getattr(record, "jobs", Counter())
        self._expected |= getattr(record, "seconds", {})
        text = self._format(record)
        if ended := _ENDED.search(text):  # of the command, whose text is in Snakemake's log file
            text = f"A job's command {ended[1]}"
        if text and not _CHATTER.match(text):
            self._print(text, {WARNING: "yellow", ERROR: "red"}.get(record.levelno, ""))

    def _update(self, left: str) -> None:
        total = self._planned.total()
        count = f"{self._done}/{total}{', ' * bool(left)}{left}"
        self.bars.update(self._all, completed=self._done, total=total, count=count)

    @property
    def _done(self) -> int:
        return sum(map(len, self._seconds.values()))

    def _left(self, now: float) -> str:
        """Return the time of the run so far, times the seconds of jobs left over those done."""
        known = self._expected | {rule: fmean(done) for rule, done in self._seconds.items()}
        left = self._planned - Counter({rule: len(done) for rule, done in self._seconds.items()})
        done = sum(map(sum, self._seconds.values()))
        if not left or not done or not known.keys() >= left.keys():
            return ""
        work = sum(known[rule] * count for rule, count in left.items())
        return f"about {spoken((now - self._start) * work / done)} left"

    def _counted(self, what: str) -> str:
        total = self._planned.total()
        return f"{self._done:{len(str(total))}}/{total} {what:8}" if total else f"{what:8}"

    def _print(self, text: str, style: str = "") -> None:
        self.bars.console.print(Text(text, style), soft_wrap=True)


def _name(record: LogRecord) -> str:
    """Return a job's rule and wildcards."""
    named = {k: v for k, v in dict(record.wildcards or {}).items() if k not in ("phase", "recipe")}
    return " ".join(
        [record.rule_name, *(f"seed {v}" if k == "seed" else v for k, v in named.items())]
    )


def _last_lines(log: Path) -> str:
    """Return the end of a job's log, indented."""
    lines = ["there is no such file"]
    if log.exists():
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:]
    return "\n".join(f"  {line}" for line in lines)


def spoken(seconds: float) -> str:
    """Return seconds in words, with two or three digits."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.{seconds < 10 * size:d}f} {unit}"
    return f"{seconds:.{seconds < 10:d}f} s"

"""What a person sees of a run. Snakemake finds this logger by its name: `--logger headcount`.

Its own log file, below `.snakemake/log`, goes on to hold every word.
"""

import sys
import traceback
from contextlib import suppress
from logging import LogRecord

from snakemake.logging import ColorizingTextHandler, DefaultFormatter
from snakemake.settings.enums import Quietness
from snakemake_interface_logger_plugins.base import LogHandlerBase

_FAILED = "The display of this run failed, so Snakemake's own words follow; the run goes on."


class LogHandler(LogHandlerBase):
    """A run in short lines and bars; a plan, and all with `--verbose`, in Snakemake's own words."""

    def __post_init__(self) -> None:
        """Nothing is written yet."""
        asked = self.common_settings
        stream = sys.stdout if asked.stdout else sys.stderr
        words = DefaultFormatter(asked.quiet, asked.show_failed_logs)
        self._snakemake = ColorizingTextHandler(asked.nocolor, stream, formatter=words)
        self._display = None
        if not (asked.dryrun or asked.verbose or asked.debug_dag):
            from snakemake_logger_plugin_headcount.display import Display, console_on

            progress = {Quietness.ALL, Quietness.PROGRESS}.isdisjoint(asked.quiet or ())
            console = console_on(stream, asked.nocolor)
            self._display = Display(console, words.format, bars=progress and console.is_terminal)

    def emit(self, record: LogRecord) -> None:
        """Show a record. Whatever goes wrong is told once, and no fault leaves this thread."""
        with suppress(OSError):  # nobody reads any more
            if self._display:
                try:
                    self._display.show(record)
                    return
                except (Exception, SystemExit):  # the latter is how rich leaves a closed pipe
                    self._give_up()
            self._snakemake.emit(record)

    def close(self) -> None:
        """Take the bars away."""
        if self._display:
            with suppress(Exception):
                self._display.close()
        super().close()

    def _give_up(self) -> None:
        display, self._display = self._display, None
        with suppress(Exception):
            display.close()
        print(f"{_FAILED}\n{traceback.format_exc()}", file=sys.stderr, flush=True)

    @property
    def writes_to_stream(self) -> bool:
        """In place of Snakemake's own handler."""
        return True

    @property
    def writes_to_file(self) -> bool:
        """No: Snakemake does."""
        return False

    @property
    def has_filter(self) -> bool:
        """No: Snakemake's own heeds `--quiet`."""
        return False

    @property
    def has_formatter(self) -> bool:
        """Lines are made here."""
        return True

    @property
    def needs_rulegraph(self) -> bool:
        """No: phases come with the plan."""
        return False

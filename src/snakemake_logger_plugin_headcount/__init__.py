"""Messages of a run for a person. Snakemake finds this logger by its name: `--logger headcount`."""

import sys
import traceback
from contextlib import suppress
from logging import LogRecord

from snakemake.logging import ColorizingTextHandler, DefaultFormatter
from snakemake.settings.enums import Quietness
from snakemake_interface_logger_plugins.base import LogHandlerBase

_FAILED = "The display of this run failed. Snakemake's own messages follow, and the run goes on."


class LogHandler(LogHandlerBase):
    """Short lines and bars for a run; Snakemake's own messages for a plan and with `--verbose`."""

    writes_to_stream = has_formatter = True
    writes_to_file = has_filter = needs_rulegraph = False

    def __post_init__(self) -> None:
        """Prepare the display; nothing is written yet."""
        asked, self._display = self.common_settings, None
        stream = sys.stdout if asked.stdout else sys.stderr
        formatter = DefaultFormatter(asked.quiet, asked.show_failed_logs)
        self._plain = ColorizingTextHandler(asked.nocolor, stream, formatter=formatter)
        if not (asked.dryrun or asked.verbose or asked.debug_dag):
            from snakemake_logger_plugin_headcount.display import Display, console_on

            bars = {Quietness.ALL, Quietness.PROGRESS}.isdisjoint(asked.quiet or ())
            console = console_on(stream, asked.nocolor)
            self._display = Display(console, formatter.format, bars and console.is_terminal)

    def emit(self, record: LogRecord) -> None:
        """Show a record. A fault of the display is shown once and ends no run."""
        with suppress(OSError):  # nobody reads any more
            if self._display:
                try:
                    self._display.show(record)
                    return
                except (Exception, SystemExit):  # rich leaves a closed pipe by SystemExit
                    self._display = None
                    print(f"{_FAILED}\n{traceback.format_exc()}", file=sys.stderr, flush=True)
            self._plain.emit(record)

    def close(self) -> None:
        """Remove the bars."""
        with suppress(Exception):
            self._display.bars.stop()
        super().close()

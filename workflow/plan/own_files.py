"""Files of one's own that corpora and models are copies of, checked before any job."""

import os
import sys
from collections.abc import Sequence

from engines.records import own_content
from plan.layout import Source

from headcount.base.errors import UserError
from headcount.base.settings.names import check_own_file


class OwnFiles:
    """Files of one's own that one plan needs."""

    def __init__(self, dry: bool):
        """`dry`: no job will run, so that a missing file is only reported."""
        self._dry = dry
        self._lacking: set[str] = set()  # manifests of what is planned without them

    def check(self, source: Source, outputs: Sequence[str]) -> None:
        """Raise UserError for a missing file that has no copy, and for one with a wrong SHA-256.

        If all `outputs` that depend on the file are here, or no job will run, report it and go on:
        who pulled them may have no right to the text itself. Snakemake then leaves them as they
        are.
        """
        for path, expected in source.pinned.items():
            if os.path.isfile(path) and (content := own_content(path)) != expected:
                raise UserError(
                    f"{path}: expected SHA-256 {expected}, as {source.settings} has it, found "
                    f"{content}: the file has changed. Put the earlier one back, or write the new "
                    f"checksum into {source.settings}; then all that depends on it is made anew"
                )
        if os.path.exists(source.manifest):
            _date_back(source)
            return
        try:
            for path in source.own:
                check_own_file(path, source.settings)
        except UserError as fault:
            if all(map(os.path.exists, outputs)):
                rest = f"until then {outputs[0]} and the like stay as they are"
            elif self._dry:
                rest = "without it there is only this plan"
                self._lacking.add(source.manifest)
            else:
                raise
            print(f"note: {fault}; {rest}", file=sys.stderr)

    def of(self, source: Source) -> list[str]:
        """Return the files that `source` is a copy of, except those that a dry plan lacks."""
        lacking = source.manifest in self._lacking
        return [path for path in source.own if os.path.exists(path) or not lacking]


def _date_back(source: Source) -> None:
    """Make a copy older than a file that was put into the place of what it is a copy of.

    Snakemake compares contents only of files that are newer, and to move, unpack or `cp -p` a file
    keeps its time. The time of the last change of its inode cannot be kept.
    """
    made = os.stat(source.manifest)
    own = [os.stat(path) for path in source.own if os.path.exists(path)]
    put = [file.st_mtime_ns for file in own if file.st_ctime_ns > made.st_mtime_ns]
    if put and min(put) <= made.st_mtime_ns:
        os.utime(source.manifest, ns=(made.st_atime_ns, min(put) - 10**9))

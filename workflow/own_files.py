"""Files of one's own that corpora and models are copies of, checked before any job."""

import os
import sys

from contents import own_content
from raw import CORPORA, Source

from headcount.base.errors import UserError
from headcount.base.settings.names import check_own_file


class OwnFiles:
    """One's own files, as one plan asks for them."""

    def __init__(self, dry: bool):
        """`dry`: no job will run, so that a missing file is only told."""
        self._dry = dry
        self._lacking: set[str] = set()  # manifests of what is planned without them

    def check(self, source: Source, made: list[str], settings: str = CORPORA) -> None:
        """Raise UserError for a missing file of one's own, unless its copy is here.

        And for one that is not the file that the settings pin by its SHA-256, whatever is here: an
        earlier copy would be taken for it in silence.

        If all that is made of it is here, or no job will run, say so and go on: who pulled that may
        have no right to the text itself. Snakemake then takes it without a word of its own.
        """
        for path, expected in source.pinned.items():
            if os.path.isfile(path) and (found := own_content(path)) != expected:
                raise UserError(
                    f"{path}: expected SHA-256 {expected}, as {settings} has it, found {found}: "
                    f"the file has changed. Put the earlier one back, or write the new checksum "
                    f"into {settings}; then all that follows from it is made anew"
                )
        if os.path.exists(source.manifest):
            _date_back(source)
            return
        try:
            for path in source.own:
                check_own_file(path, settings)
        except UserError as fault:
            if all(map(os.path.exists, made)):
                rest = f"until then {made[0]} and the like stay as they are"
            elif self._dry:
                rest = "without it there is only this plan"
                self._lacking.add(source.manifest)
            else:
                raise
            print(f"note: {fault}; {rest}", file=sys.stderr)

    def of(self, source: Source) -> list[str]:
        """Files that `source` is a copy of, but for those that it is planned without."""
        lacking = source.manifest in self._lacking
        return [path for path in source.own if os.path.exists(path) or not lacking]


def _date_back(source: Source) -> None:
    """Make a copy older than a file that was put into the place of what it is a copy of.

    Snakemake compares contents of files that are newer alone, and to move, unpack or `cp -p` a file
    keeps its time; the time of the last change of its inode cannot be kept.
    """
    made = os.stat(source.manifest)
    found = [os.stat(path) for path in source.own if os.path.exists(path)]
    put = [each.st_mtime_ns for each in found if each.st_ctime_ns > made.st_mtime_ns]
    if put and min(put) <= made.st_mtime_ns:
        os.utime(source.manifest, ns=(made.st_atime_ns, min(put) - 10**9))

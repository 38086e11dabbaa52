"""The finished outputs of a job, stored until all of them are in their places."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headcount.base.files import (
    flush_to_disk,
    read_json,
    sha256,
    whole_file,
    whole_folder,
    write_json,
)


class FinishedSet:
    """All outputs of one job, in a folder that is committed by one rename, with checksums."""

    def __init__(self, folder: Path):
        self.folder = folder

    @contextmanager
    def written(self, out: Path) -> Iterator[Path]:
        """Yield a folder for outputs that belong below `out`. At the end it becomes the set."""
        with whole_folder(self.folder) as part:
            yield part
            paths = sorted(path for path in part.rglob("*") if path.is_file())
            for path in paths:
                flush_to_disk(path)  # the training state is deleted once the set exists
            files = {path.relative_to(part).as_posix(): sha256(path) for path in paths}
            write_json(part / "manifest.json", {"out": out.as_posix(), "files": files})

    def is_whole(self) -> bool:
        """Return True if the set exists and all its files have their checksums."""
        sums = {
            self.folder / name: digest for name, digest in self._manifest().get("files", {}).items()
        }
        return bool(sums) and all(p.is_file() and sha256(p) == digest for p, digest in sums.items())

    def outputs(self) -> list[Path]:
        """Return the places of the outputs, [] without a readable manifest."""
        manifest = self._manifest()
        return [Path(manifest["out"], name) for name in manifest.get("files", {})]

    def place(self, out: Path) -> None:
        """Put the outputs below `out` as new files, each whole or absent."""
        for name in self._manifest()["files"]:
            source, target = self.folder / name, out / name
            if target.exists() and target.samefile(source):
                os.utime(target)  # a rename between two names of one file would leave both
                continue
            with whole_file(target) as part:
                try:
                    os.link(source, part)  # one file under two names takes no room twice
                except OSError:
                    shutil.copyfile(source, part)
                os.utime(part)

    def _manifest(self) -> dict[str, Any]:
        """Return the manifest, {} if it is missing or damaged."""
        try:
            return dict(read_json(self.folder / "manifest.json"))
        except (FileNotFoundError, TypeError, ValueError):
            return {}

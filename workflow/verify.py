"""Hold the files of this folder against what dvc.lock says they are, and name each that differs.

DVC refuses a damaged object of a remote, but does not say which file it is. Nothing is changed.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from headcount.base import command
from headcount.base.errors import EnvironmentFault, UserError

LOCK = Path("dvc.lock")
CACHE = Path(".dvc/cache/files/md5")
SHOWN = 9


@dataclass(frozen=True)
class Kept:
    """A file that DVC keeps: its MD5 names its object; a folder's list is an object as well."""

    path: Path
    md5: str
    folder: str | None = None

    def objects(self) -> str:
        """Where its objects lie below a remote."""
        names = [name for name in (self.md5, self.folder) if name]
        return " and ".join(f"files/md5/{name[:2]}/{name[2:]}" for name in names)


def expected() -> Iterator[Kept]:
    """Every file that DVC keeps; for a folder whose list is missing, the folder."""
    if not LOCK.exists():
        raise UserError(f"{LOCK}: expected this file, found none; run dvc repro first")
    stages = yaml.safe_load(LOCK.read_text(encoding="utf-8"))["stages"]
    for out in (out for stage in stages.values() for out in stage.get("outs", [])):
        path, name = Path(out["path"]), out["md5"]
        listed = CACHE / name[:2] / name[2:]
        if name.endswith(".dir") and listed.exists():
            entries = json.loads(listed.read_text(encoding="utf-8"))
            yield from (Kept(path / entry["relpath"], entry["md5"], name) for entry in entries)
        else:
            yield Kept(path, name)


def faults() -> list[str]:
    """What is wrong, a line for each file."""
    found = []
    for kept in expected():
        if not kept.path.exists() or kept.path.is_dir():
            found.append(f"{kept.path}: not here; fetched from {kept.objects()}")
        elif hashlib.md5(kept.path.read_bytes(), usedforsecurity=False).hexdigest() != kept.md5:
            found.append(f"{kept.path}: changed here; recorded as {kept.objects()}")
    return found


def main() -> None:
    """Report every file that is not what dvc.lock says; leave with 3 if there is one."""
    command.parser(__doc__).parse_args()
    wrong = faults()
    if not wrong:
        print("every file is what dvc.lock says")
        return
    listed = "\n  ".join(wrong[:SHOWN])
    more = f"\n  and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
    raise EnvironmentFault(
        f"{len(wrong)} file(s) differ from {LOCK}:\n  {listed}{more}\n"
        "Changed here: dvc checkout --force PATH brings back the recorded file.\n"
        "Not here after dvc pull: the remote lacks it, or its copy is damaged. Delete both objects "
        "there (push skips what the remote seems to have), then dvc push in a folder that has the "
        "file, or make it again here with dvc repro and push."
    )


if __name__ == "__main__":
    command.run(main)

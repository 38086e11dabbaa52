"""Every step of the pipeline again, on a disk that has become full; prints what each one said.

`python tests/helpers/full_disk.py FOLDER OPTION` copies what the pipeline made in this folder to a
new file system in memory at FOLDER, mounted with OPTION, and fills that up. It wants a mount
namespace of its own, as of `unshare -m`.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from pipeline import run_aside, steps

LOCK = Path("state/lock")
CURVE = "s.en-art/random-1/seed2/curves.csv"
FIGURE = ("analysis", "general", "--curves", CURVE, "--out", "drawn")


def fill(folder: Path) -> None:
    """Take the last byte, and the last inode if they are few; a step may have freed some."""
    with suppress(OSError), (folder / "filler").open("ab", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    if os.statvfs(folder).f_files < 1000:
        with suppress(OSError):
            while True:
                os.close(tempfile.mkstemp(prefix="filler", dir=folder)[0])


def contents() -> dict[str, bytes]:
    """Every file but those that say nothing: what fills the disk, and a lock."""
    files = (path for path in Path().rglob("*") if path.is_file() and path != LOCK)
    return {str(path): path.read_bytes() for path in files if not path.name.startswith("filler")}


def main() -> None:
    disk, option = Path(sys.argv[1]), sys.argv[2]
    subprocess.run(["mount", "-t", "tmpfs", "-o", option, "tmpfs", disk], check=True)
    shutil.copytree(".", disk, dirs_exist_ok=True)
    os.chdir(disk)
    Path(CURVE).parent.mkdir(parents=True)
    shutil.copy("run/curves.csv", CURVE)
    Path("state").mkdir(exist_ok=True)
    LOCK.write_text("1\n")  # whose room the training takes, so that its first state has none
    before = contents()
    told = {}
    said = os.memfd_create("stderr")
    for name, *arguments in [*steps(), FIGURE]:
        fill(disk)
        os.ftruncate(said, 0)
        os.lseek(said, 0, os.SEEK_SET)
        kept = os.dup(2)
        os.dup2(said, 2)
        code = run_aside(name, arguments)
        os.dup2(kept, 2)
        words = os.pread(said, 100_000, 0).decode()
        told[" ".join([name, str(arguments[-1])])] = [code, words, contents() == before]
    print(json.dumps(told))


if __name__ == "__main__":
    main()

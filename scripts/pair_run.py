"""Copy the files of a training run that several pairs share into the run's folder of one pair."""

import os
from pathlib import Path

from headcount.base.command import Flags, path, script
from headcount.base.files import write_bytes


@script(
    path("--files", "files of the run; run.json lies in its folder", nargs="+"),
    folder="folder of the run to write",
)
def main(args: Flags) -> None:
    shared = Path(os.path.commonpath(args.files))
    for file in args.files:
        write_bytes(args.out / file.relative_to(shared), file.read_bytes())

"""Files of an experiment that are not what a job left there, so are not taken for ours."""

import os

import contents
from engine import read_records, unfinished
from leaving import listed
from packed import packed_records, take, unpack

from headcount.base.errors import UserError


def settle(experiment: str, files: list[str], vouched: bool) -> None:
    """Take over records that came with files; raise UserError naming what no job left as it is.

    `files`: what the experiment consists of. `vouched`: whether a person says, by `--touch`, that
    files of which nothing is recorded are right. Where contents were never noted before, those of
    files that Snakemake knows are noted now: an earlier version made them.
    """
    first = not contents.RECORDS.exists()
    unpack(experiment, files)
    there = [file for file in files if os.path.exists(file)]
    doubtful = [file for file in there if not contents.is_as_recorded(file)]
    if not doubtful:
        return
    edited, unknown = _judge(experiment, sorted(set(doubtful) - unfinished(doubtful)), first)
    if edited or (unknown and not vouched):
        raise UserError(_told(experiment, edited, [] if vouched else unknown))


def lost(files: list[str]) -> list[str]:
    """Files, of those given, that were made here and are gone.

    Snakemake does not miss a file in the middle while what follows it is there.
    """
    return [file for file in files if not os.path.exists(file) and contents.recorded(file)]


def _judge(experiment: str, doubtful: list[str], first: bool) -> tuple[dict[str, str], list[str]]:
    """Edited files and what made each, and files of which nothing is known."""
    made = read_records(doubtful)
    packed = packed_records(experiment)
    edited, unknown = {}, []
    for file in doubtful:
        if file in packed and take(file, packed[file]):
            continue  # brought back by `dvc checkout FILE`
        known = packed.get(file) or made.get(file)
        if contents.recorded(file) or file in packed:
            edited[file] = known["rule"] if known else "unknown"
        elif first and file in made:
            contents.record(file)
        else:
            unknown.append(file)
    return edited, unknown


def _told(experiment: str, edited: dict[str, str], unknown: list[str]) -> str:
    faults = [f"{file}: changed since rule {rule} wrote it" for file, rule in edited.items()]
    faults += [f"{file}: nothing records what made it" for file in unknown]
    lines = [
        f"{len(faults)} file(s) are not what the jobs of {experiment} wrote; no job was run:",
        f"  {listed(faults)}",
        "Delete a file, and the same command makes it again, with all that follows from it; "
        f"snakemake --cores all --config experiment={experiment} -- FILE makes it alone. Keep a "
        "version of your own under another name. "
        "After a change of branch or commit: dvc checkout.",
    ]
    if unknown:
        lines.append(
            "Was .snakemake lost, and are the files right? Then snakemake --touch --forceall "
            f"--cores 1 --config experiment={experiment}"
        )
    return "\n".join(lines)

"""Check that the files of an experiment are what its jobs wrote."""

import os
from collections.abc import Mapping, Sequence

from console import listed
from engines.phases import pack_file
from engines.records import (
    freshen,
    is_as_noted,
    is_untouched,
    note,
    noted,
    read_pack,
    records_of,
    take,
    unfinished,
)

from headcount.base.errors import UserError


def settle(experiment: str, files: Sequence[str], trusted: bool) -> None:
    """Adopt records that DVC brought. Raise UserError for files that no job left as they are.

    `files`: all outputs of the experiment. `trusted`: a person says by `--touch` that files without
    a record are right.
    """
    files = [file for file in files if os.path.exists(file)]
    touched = [file for file in files if not is_untouched(file)]
    doubtful = [file for file in touched if not is_as_noted(file)]
    packed = _adopt(experiment, doubtful, files)
    if touched:
        freshen(files)
    doubtful = [file for file in doubtful if not is_as_noted(file)]
    if doubtful:
        doubtful = sorted(set(doubtful) - unfinished(doubtful))
    edited = [file for file in doubtful if noted(file) or file in packed]
    unknown = [file for file in doubtful if file not in edited and not trusted]
    if edited or unknown:
        known = packed | {file: record["rule"] for file, record in records_of(edited).items()}
        rules = {file: known.get(file, "unknown") for file in edited}
        raise UserError(_message(experiment, rules, unknown))


def _adopt(experiment: str, doubtful: Sequence[str], files: Sequence[str]) -> dict[str, str]:
    """Adopt records in new packs and of doubtful files. Return rules by packed output.

    A new pack has come by `dvc pull` or `dvc checkout`.
    """
    # A writer that was killed leaves a pack whose name begins with a dot.
    packs = sorted(pack_file(experiment, "").parent.glob("[!.]*.json"))
    new = {str(path) for path in packs if not is_as_noted(str(path))}
    packed: dict[str, str] = {}
    for path in packs if doubtful or new else []:
        records = read_pack(path)
        packed |= {output: record["rule"] for output, record in records.items()}
        # No other file than those of the experiment, whatever a pack names.
        wanted = {*records} & {*(files if str(path) in new else doubtful)}
        take({output: records[output] for output in wanted})
        note(str(path))
    return packed


def _message(experiment: str, edited: Mapping[str, str], unknown: Sequence[str]) -> str:
    faults = [f"{file}: changed since rule {rule} wrote it" for file, rule in edited.items()]
    faults += [f"{file}: no record says what made it" for file in unknown]
    lines = [
        f"{len(faults)} file(s) are not what the jobs of {experiment} wrote; no job was run:",
        f"  {listed(faults)}",
        "Delete a file, and the same command makes it again, with all that depends on it; "
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

"""Compare the files of this folder with dvc.lock and with what jobs recorded; name what differs.

DVC refuses a damaged object of a remote, but does not say which file it is. Without dvc.lock the
records say what each job wrote. Nothing is changed.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import contents
import yaml
from leaving import listed

from headcount.base import command
from headcount.base.errors import EnvironmentFault, UserError
from headcount.base.files import sha256

LOCK = Path("dvc.lock")
CACHE = Path(".dvc/cache/files/md5")


def expected() -> Iterator[tuple[Path, list[str]]]:
    """Every file that DVC keeps; for a folder whose list is missing or damaged, the folder.

    Beside it the MD5s that name its objects: its own and, where it lies in a folder, the list's.
    """
    for path, name in _recorded():
        entries = CACHE / _below(name)
        whole = entries.exists() and _md5(entries) == name.removesuffix(".dir")
        if name.endswith(".dir") and whole:
            for entry in json.loads(entries.read_text(encoding="utf-8")):
                yield path / entry["relpath"], [entry["md5"], name]
        else:
            yield path, [name]


def _recorded() -> list[tuple[Path, str]]:
    """Outputs and their MD5s in dvc.lock. Raises UserError where it is not as DVC writes it."""
    try:
        stages = yaml.safe_load(LOCK.read_text(encoding="utf-8"))["stages"]
        every = (out for stage in stages.values() for out in stage.get("outs", []))
        return [(Path(out["path"]), out["md5"]) for out in every]
    except (yaml.YAMLError, UnicodeDecodeError, AttributeError, KeyError, TypeError) as fault:
        raise UserError(
            f"{LOCK}: expected stages with the paths and MD5s of their outputs, as DVC writes it, "
            f"found otherwise ({fault}). Merge it, or bring it back by git checkout {LOCK}"
        ) from fault


def faults() -> list[str]:
    """What is wrong, a line for each file that differs from dvc.lock or from its job's record."""
    if not LOCK.exists() and not contents.RECORDS.exists():
        raise UserError(
            f"{LOCK}: expected this file, found none, and no job has run here; "
            "run snakemake --cores all, or dvc pull, first"
        )
    found = _unlike_lock() if LOCK.exists() else {}
    return list((found | _unlike_records() | found).values())  # the lock's first, in its words


def _unlike_lock() -> dict[str, str]:
    found = {}
    for path, names in expected():
        objects = " and ".join(f"files/md5/{_below(name)}" for name in names)
        if not path.exists() or path.is_dir():
            found[str(path)] = f"{path}: not here; fetched from {objects}"
            entries = CACHE / _below(names[0])
            if entries.exists() and _md5(entries) != names[0].removesuffix(".dir"):
                found[str(path)] += f"; {entries} is damaged: delete it, then dvc pull"
        elif _md5(path) != names[0]:
            found[str(path)] = f"{path}: changed here; recorded as {objects}"
            cached = CACHE / _below(names[0])
            if cached.exists() and _md5(cached) != names[0]:
                repair = "delete it and the file, then dvc pull"
                found[str(path)] += f"; {cached} is damaged: {repair}"
    return found


def _below(name: str) -> str:
    """Where DVC puts the object of this name, below a cache or a remote's files/md5."""
    return f"{name[:2]}/{name[2:]}"


def _md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()


def _unlike_records() -> dict[str, str]:
    """Files that are there and not what their jobs wrote; each is read, whatever its times say."""
    there = sorted(path for path in contents.all_recorded() if Path(path).is_file())
    wrong = [path for path in there if sha256(Path(path)) != contents.recorded(path)]
    return {path: f"{path}: changed since its job wrote it" for path in wrong}


def main() -> None:
    """Report every file that is not what dvc.lock and the jobs' records say; 3 if there is one."""
    command.parser(__doc__).parse_args()
    wrong = faults()
    if not wrong:
        print(f"every file is what {f'{LOCK} says' if LOCK.exists() else 'its job wrote'}")
        return
    raise EnvironmentFault(
        f"{len(wrong)} file(s) are not what they should be:\n  {listed(wrong)}\n"
        "Delete a changed file, and snakemake makes it again. "
        "dvc checkout --force PATH brings back what dvc.lock says.\n"
        "Not here after dvc pull: the remote lacks it, or its copy is damaged. Delete both objects "
        "there (push skips what the remote seems to have), then dvc push in a folder that has the "
        "file, or make it again here with dvc repro and push."
    )


if __name__ == "__main__":
    command.run(main)

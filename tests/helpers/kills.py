"""Kill real commands at random instants, again and again; in the end no file may differ.

    python tests/helpers/kills.py 200

The project is copied and its experiment `quickstart`, made small, built once. Then each of six
commands (training, gates, importance, translation, the report, `dvc push`) is started, killed with
SIGKILL, looked at and started again until it ends. After each kill a file that the command writes
is either absent or what an undisturbed run wrote, and every other file is as it was.
"""

import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from project_copy import ProjectCopy, timeless
from shared_results import build

from headcount.base.files import read_json

RULES = {"train": "train", "gates": "prune", "importance": "heads", "translate": "train"}
RULES |= {"report": "report"}
"""Rules whose commands are killed, with the phase that each belongs to."""
LATE = 0.2  # share of a command's time at its end, when it writes: half of the kills fall there
PUSH_AGAIN = "DVC_SITE_CACHE_DIR=$(mktemp -d) dvc push"
"""How documents say to push after a kill: without what DVC noted before it."""
Hashes = dict[str, str]


@dataclass(frozen=True)
class Victim:
    """A command to be killed, and the files that it writes."""

    name: str
    copy: ProjectCopy
    command: tuple[str, ...]
    folders: tuple[Path, ...]  # to look at
    outputs: tuple[Path, ...]  # files that the command writes, or folders of such
    leftovers: tuple[Path, ...] = ()  # unfinished states

    def clear(self) -> None:
        """Remove what the command writes."""
        for path in (*self.outputs, *self.leftovers):
            if path.is_dir():
                shutil.rmtree(path)
            path.unlink(missing_ok=True)

    def runs(self, seconds: float = 600) -> bool:
        """Run the command, in a group of its own; return False if it had to be killed."""
        process = self.copy.start_command(*self.command, HEADCOUNT_JOB=str(os.getpid()))
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return False
        assert process.returncode == 0, f"{self.name}: {output}"
        return True

    def hashes(self) -> Hashes:
        """Return the SHA-256 of every finished file in the folders."""
        paths = (path for folder in self.folders for path in sorted(folder.rglob("*")))
        finished = filter(self._is_finished, paths)
        return {str(path): hashlib.sha256(timeless(path)).hexdigest() for path in finished}

    def _is_finished(self, path: Path) -> bool:
        aside = path.name.startswith(".part-") or path.suffix == ".tmp"
        inside = any(path.is_relative_to(folder) for folder in self.leftovers)
        return path.is_file() and not (aside or inside)


def attack(victim: Victim, kills: int, draw: random.Random) -> Counter:
    """Kill the command so many times; let it end whenever it was faster, and after the last kill.

    Return the numbers of kills, and of files that were compared, that differed and were missing.
    """
    victim.clear()
    before, start = victim.hashes(), time.monotonic()
    victim.runs()
    length, whole = time.monotonic() - start, victim.hashes()
    tally = Counter(kills=0, compared=0, differing=0, missing=0)
    while tally["kills"] < kills:
        victim.clear()
        while tally["kills"] < kills and not victim.runs(_instant(draw, length)):
            tally["kills"] += 1
            tally.update(_compare(victim, whole | before, before))
        victim.runs()
        tally.update(_compare(victim, whole | before, whole))
    return tally


def _instant(draw: random.Random, length: float) -> float:
    """Return the seconds to the next kill; one in ten may come too late."""
    early = draw.random() < 0.5
    return draw.uniform(0, length) if early else draw.uniform(length * (1 - LATE), length * 1.1)


def _compare(victim: Victim, right: Hashes, needed: Hashes) -> Counter:
    """Count the files that are neither as before nor as an undisturbed run wrote them."""
    here = victim.hashes()
    wrong = {path for path, checksum in here.items() if right.get(path) != checksum}
    gone = needed.keys() - here.keys()
    for path in sorted(wrong | gone):
        print(f"{victim.name}: {path} differs or is gone", file=sys.stderr)
    return Counter(compared=len(here), differing=len(wrong), missing=len(gone))


def victims(copy: ProjectCopy) -> Iterator[Victim]:
    """Yield the commands, as the plan of `quickstart` has them and as a person types them."""
    results = copy.folder / "results" / "quickstart"
    phases = ("train", "prune", "heads", "masking", "tables", "figures")
    folders = (copy.folder / "data", *(results / phase for phase in phases))
    for rule, phase in RULES.items():
        jobs = read_json(results / "plan" / f"{phase}.json")
        job = next(job for job in jobs if job["rule"] == rule)
        outputs = tuple(copy.folder / path for path in job["output"])
        command = ("bash", "-c", f"exec {job['shell']}")
        yield Victim(rule, copy, command, (*folders, *outputs[:1]), outputs, (results / "state",))
    remote = copy.folder.parent / "killed_remote"
    copy.call("dvc", "remote", "add", "--local", "-f", "killed", str(remote))
    push = ("bash", "-c", f"{PUSH_AGAIN} -r killed")
    yield Victim("dvc push", copy, push, (remote,), (remote,))


def run(copy: ProjectCopy, kills: int, *names: str) -> dict[str, Counter]:
    """Share out the kills among the commands of these names, or all."""
    draw = random.Random(1)
    targets = [victim for victim in victims(copy) if not names or victim.name in names]
    shares = [kills // len(targets) + (i < kills % len(targets)) for i in range(len(targets))]
    return {v.name: attack(v, share, draw) for v, share in zip(targets, shares, strict=True)}


def main() -> None:
    """Build, kill, print a line for each command; exit code 1 if a file differs or is missing."""
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder) / "project")
        tallies = run(ProjectCopy.of(Path(folder) / "project"), int(sys.argv[1]))
    for name, tally in tallies.items():
        print(name, dict(tally))
    sys.exit(any(tally["differing"] + tally["missing"] for tally in tallies.values()))


if __name__ == "__main__":
    main()

"""Kill real commands at random instants, again and again; in the end no file may differ.

    python tests/helpers/kills.py --kills 200

The project is copied and its experiment `quickstart`, made small, built once. Then each of six
commands (training, gates, importance, translation, the report, `dvc push`) is started, killed with
SIGKILL, looked at and started again until it ends. After each kill a file that the command writes
is either absent or what an undisturbed run wrote, and every other file is as it was.
"""

import argparse
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from project_copy import ProjectCopy
from shared_results import build
from tqdm import tqdm

from headcount.base.files import read_json

RULES = {"train": "train", "gates": "prune", "importance": "heads", "translate": "train"}
RULES |= {"report": "report"}
"""Rules whose commands are killed, with the phase that each belongs to."""
CLOCK = (5, 7)  # columns of curves.csv that tell the time
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
    outputs: tuple[Path, ...]  # written by the command, or a folder of such
    leftovers: tuple[Path, ...] = ()  # unfinished states

    def start(self) -> subprocess.Popen:
        """The command in a group of its own, as the engine starts it."""
        return self.copy.start_command(*self.command, HEADCOUNT_JOB=str(os.getpid()))

    def clear(self) -> None:
        """As before the command was first given."""
        for path in (*self.outputs, *self.leftovers):
            if path.is_dir():
                shutil.rmtree(path)
            path.unlink(missing_ok=True)

    def hashes(self) -> Hashes:
        """SHA-256 of every file in the folders; unfinished files have names that begin so."""
        return {
            str(path): _checksum(path)
            for folder in self.folders
            for path in sorted(folder.rglob("*"))
            if path.is_file() and not self._unfinished(path)
        }

    def _unfinished(self, path: Path) -> bool:
        aside = path.name.startswith(".part-") or path.suffix == ".tmp"
        return aside or any(path.is_relative_to(folder) for folder in self.leftovers)


@dataclass
class Tally:
    """What the kills of one command led to."""

    kills: int = 0
    finished: int = 0  # times it was given again until it ended
    compared: int = 0  # files
    differing: int = 0  # files that are not what an undisturbed run wrote
    missing: int = 0  # files that it should have left, or found


def attack(victim: Victim, kills: int, draw: random.Random, done: tqdm) -> Tally:
    """Kill the command so many times, and let it end whenever it was faster than the kill."""
    before = _before(victim)
    length, whole = _undisturbed(victim)
    tally = Tally()
    while tally.kills < kills:
        victim.clear()
        while _killed(victim, _instant(draw, length)):
            tally.kills += 1
            done.update()
            _compare(victim, before, whole, tally, finished=False)
            if tally.kills >= kills:
                _end(victim)
                break
        tally.finished += 1
        _compare(victim, before, whole, tally, finished=True)
    return tally


def _before(victim: Victim) -> Hashes:
    """Every file that the command only finds there."""
    victim.clear()
    return victim.hashes()


def _undisturbed(victim: Victim) -> tuple[float, Hashes]:
    """Seconds that the command takes, and every file after it."""
    victim.clear()
    start = time.monotonic()
    _end(victim)
    return time.monotonic() - start, victim.hashes()


def _instant(draw: random.Random, length: float) -> float:
    """Seconds to the next kill; one in ten may come too late."""
    if draw.random() < 0.5:
        return draw.uniform(0, length)
    return draw.uniform(length * (1 - LATE), length * 1.1)


def _killed(victim: Victim, seconds: float) -> bool:
    """Give the command so long; True if it had to be killed. A fault of its own is an error."""
    process = victim.start()
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        return True
    assert process.returncode == 0, f"{victim.name}: {output}"
    return False


def _end(victim: Victim) -> None:
    output, _ = (process := victim.start()).communicate(timeout=600)
    assert process.returncode == 0, f"{victim.name}: {output}"


def _compare(victim: Victim, before: Hashes, whole: Hashes, tally: Tally, finished: bool) -> None:
    """Count the files that are neither as before nor as an undisturbed run wrote them."""
    found = victim.hashes()
    tally.compared += len(found)
    right = whole | before
    wrong = {path for path, checksum in found.items() if right.get(path) != checksum}
    gone = (set(whole) if finished else set(before)) - set(found)
    for path in sorted(wrong | gone):
        print(f"{victim.name}: {path} differs or is gone after kill {tally.kills}", file=sys.stderr)
    tally.differing += len(wrong)
    tally.missing += len(gone)


def _checksum(path: Path) -> str:
    data = path.read_bytes()
    if path.name == "curves.csv" and path.parent.name.startswith("seed"):
        rows = (row.split(b",") for row in data.splitlines())
        data = b"\n".join(b",".join(row[: CLOCK[0]] + row[CLOCK[1] :]) for row in rows)
    return hashlib.sha256(data).hexdigest()


def victims(copy: ProjectCopy) -> Iterator[Victim]:
    """The commands, as the plan of `quickstart` has them and as a person types them."""
    results = copy.folder / "results" / "quickstart"
    folders = (copy.folder / "data", *(results / phase for phase in ("train", "prune", "heads")))
    folders += tuple(results / name for name in ("masking", "tables", "figures"))
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


def run(copy: ProjectCopy, kills: int, seed: int) -> dict[str, Tally]:
    """Share out the kills among the commands; the draws of the instants depend on the seed."""
    draw, targets = random.Random(seed), list(victims(copy))
    shares = [kills // len(targets) + (i < kills % len(targets)) for i in range(len(targets))]
    with tqdm(total=kills, unit="kill", disable=None) as done:
        return {
            victim.name: attack(victim, share, draw, done)
            for victim, share in zip(targets, shares, strict=True)
        }


def main() -> None:
    """Build, kill, print a table; exit code 1 if a file differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1, help="of the instants")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder) / "project")
        tallies = run(ProjectCopy.of(Path(folder) / "project"), args.kills, args.seed)
    columns = f"{'command':<12}{'kills':>7}{'ended':>7}{'files compared':>16}"
    print(f"{columns}{'differing':>11}{'missing':>9}")
    for name, t in tallies.items():
        print(
            f"{name:<12}{t.kills:>7}{t.finished:>7}{t.compared:>16}{t.differing:>11}{t.missing:>9}"
        )
    differing, missing = (
        sum(getattr(t, fault) for t in tallies.values()) for fault in ("differing", "missing")
    )
    kills = sum(t.kills for t in tallies.values())
    print(f"{kills} kills, {differing} differing hashes, {missing} missing files")
    sys.exit(differing + missing > 0)


if __name__ == "__main__":
    main()

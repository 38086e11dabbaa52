"""The kill suite itself: it sees a half-written file, and real commands leave it nothing to see."""

import random
import shutil

import pytest
from kills import PUSH_AGAIN, Victim, attack, run
from project_copy import ROOT, ProjectCopy
from tqdm import tqdm

pytestmark = pytest.mark.slow

HALVES = "printf half > out/file; sleep 0.2; printf 'half and half' > out/file"
ASIDE = (
    "printf half > out/.part-file; sleep 0.2; printf half > out/file.tmp; mv out/file.tmp out/file"
)
AGAIN = "test -e out/log; first=$?; echo > out/log; sleep 0.3; test $first = 1 || echo > out/file"


def attacked(folder, command: str, kills: int = 6):
    (folder / "out").mkdir()
    (folder / "out" / "input").write_text("as it was")
    copy = ProjectCopy.of(folder)
    written = (folder / "out" / "file", folder / "out" / "log")
    victim = Victim("writer", copy, ("bash", "-c", command), (folder / "out",), written)
    return attack(victim, kills, random.Random(1), tqdm(disable=True))


def test_a_half_written_file_is_seen_and_one_written_aside_is_whole(tmp_path):
    for name in ("halves", "aside"):
        (tmp_path / name).mkdir()
    halves = attacked(tmp_path / "halves", HALVES)
    assert halves.kills == 6 and 0 < halves.differing <= 6
    aside = attacked(tmp_path / "aside", ASIDE)
    assert aside.kills == 6 and aside.differing == 0 and aside.compared >= 6 + 2


def test_a_damaged_input_and_a_command_that_ends_otherwise_the_second_time_are_seen(tmp_path):
    for name in ("input", "again"):
        (tmp_path / name).mkdir()
    damaged = attacked(tmp_path / "input", "echo damaged > out/input; sleep 0.2")
    assert damaged.differing > 0
    again = attacked(tmp_path / "again", AGAIN, kills=12)
    assert again.differing + again.missing > 0


def test_f28_real_commands_killed_at_random_instants(origin, tmp_path):
    """One kill for each of six commands; `python tests/helpers/kills.py --kills 200` has more."""
    folder = tmp_path / "project"
    shutil.copytree(origin.folder, folder, symlinks=True)
    tallies = run(ProjectCopy.of(folder), kills=6, seed=1)
    faults = {name: (tally.differing, tally.missing) for name, tally in tallies.items()}
    assert faults == dict.fromkeys(tallies, (0, 0))
    assert set(tallies) == {"train", "gates", "importance", "translate", "report", "dvc push"}
    assert all(t.kills == 1 and t.finished and t.compared > 100 for t in tallies.values())


def test_the_push_that_is_tried_is_the_one_that_documents_print():
    assert PUSH_AGAIN in (ROOT / "docs/guides/share.md").read_text()

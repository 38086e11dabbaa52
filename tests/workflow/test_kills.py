"""The kill suite itself: it sees a half-written file, and real commands leave it nothing to see."""

import random
import shutil

import pytest
from kills import Victim, attack, run
from project_copy import ProjectCopy

pytestmark = pytest.mark.slow

HALVES = "printf half > out/file; sleep 0.2; printf 'half and half' > out/file"
ASIDE = (
    "printf half > out/.part-file; sleep 0.2; printf half > out/file.tmp; mv out/file.tmp out/file"
)


def attacked(folder, command: str, kills: int):
    (folder / "out").mkdir()
    (folder / "out" / "input").write_text("as it was")
    copy = ProjectCopy.of(folder)
    written = (folder / "out" / "file", folder / "out" / "log")
    victim = Victim("writer", copy, ("bash", "-c", command), (folder / "out",), written)
    return attack(victim, kills, random.Random(1))


@pytest.mark.parametrize(("command", "seen"), [(HALVES, True), (ASIDE, False)])
def test_a_half_written_or_damaged_file_is_seen(tmp_path, command, seen):
    tally = attacked(tmp_path, command, 6)
    assert tally["kills"] == 6 and tally["compared"] > 6
    assert (tally["differing"] + tally["missing"] > 0) == seen


def test_f28_real_commands_killed_at_random_instants(origin, tmp_path):
    """One kill for each of three commands; `python tests/helpers/kills.py 200` has more."""
    folder = tmp_path / "project"
    shutil.copytree(origin.folder, folder, symlinks=True)
    tallies = run(ProjectCopy.of(folder), 3, "gates", "importance", "dvc push")
    faults = {name: (tally["differing"], tally["missing"]) for name, tally in tallies.items()}
    assert faults == dict.fromkeys(tallies, (0, 0))
    assert set(tallies) == {"gates", "importance", "dvc push"}
    assert all(tally["kills"] == 1 and tally["compared"] > 100 for tally in tallies.values())

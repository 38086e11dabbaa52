"""An experiment that is made in parts: by two machines with one remote, and on several days."""

import json
import re
import shutil
import time
from pathlib import Path

import pytest
from project_copy import ProjectCopy, planned, saved_states
from shared_results import GATHERED, QUIET, ROLES, own_copy
from workflow_modules import load

from headcount.base.errors import UserError
from headcount.base.files import sha256

pytestmark = pytest.mark.slow

PRUNE = "results/quickstart/prune/synthetic.en-art"
GATES = [f"{PRUNE}/gates-all-{name}/seed1/run.json" for name in ("l0", "l0.03")]


def give(copy: ProjectCopy, *flags: str) -> str:
    """Give a part as the guide prints it, push it, and commit what names it."""
    told = copy.shell("python workflow/part.py give quickstart parts/lab " + " ".join(flags))
    copy.shell("dvc add parts/lab ")
    copy.shell("dvc push parts/lab.dvc ")
    copy.shell("git add parts/lab.dvc ")
    copy.shell('git commit -m "Part of lab"')
    copy.shell("git push ")
    return told


def fetch(copy: ProjectCopy) -> None:
    copy.shell("git pull ")
    copy.shell("dvc pull parts/lab.dvc ")


def take(copy: ProjectCopy, fails: bool = False, part: str = "parts/lab") -> str:
    if part == "parts/lab":
        return copy.shell("python workflow/part.py take quickstart parts/lab", fails=fails)
    return copy.call("python", "workflow/part.py", "take", "quickstart", part)


@pytest.fixture
def machines(origin, tmp_path) -> tuple[ProjectCopy, ProjectCopy]:
    """One that has trained and measured heads, one with nothing; they share remotes of Git, DVC."""
    first = own_copy(origin, tmp_path)
    for phase in ("prune", "masking", "tables", "figures"):
        shutil.rmtree(first.folder / "results/quickstart" / phase)
    shared = tmp_path / "shared.git"
    first.call("git", "clone", "-q", "--bare", str(first.folder), str(shared))
    first.call("git", "remote", "add", "origin", str(shared))
    first.call("git", "config", "pull.rebase", "false")
    first.call("git", "push", "-q", "--set-upstream", "origin", "main")
    first.call("git", "clone", "-q", str(shared), str(first.folder.parent / "second"))
    return first, ProjectCopy.of(first.folder.parent / "second")


def test_two_machines_share_the_work_over_one_remote(origin, machines):
    first, second = machines
    assert "0 states" in give(first)
    told = first.shell("python workflow/part.py give quickstart parts", fails=True)
    assert (
        "parts: expected no folder, an empty one or an earlier part alone, found other files"
        in told
    )
    assert "0 states" in first.shell("python workflow/part.py give quickstart parts/lab")
    fetch(second)
    assert "snakemake --cores all raw" in (told := take(second))
    (taken,) = re.findall(r"(\d+) files taken, 0 stay", told)
    second.shell("snakemake --cores all raw")
    assert "train" not in planned(second.call("snakemake", "-n", "--cores", "1"))

    second.call("snakemake", "--cores", "2", *GATES)
    second.call("python", "workflow/part.py", "give", "quickstart", "parts/home")
    second.call("dvc", "add", "parts/home")
    second.call("dvc", "push", "parts/home.dvc")
    second.commit()
    first.shell("git commit -q --allow-empty -m meanwhile")
    first.shell("git push ")
    second.shell("git pull --no-rebase --no-edit && git push")  # each has a file of its own
    first.shell("git pull ")
    first.shell("dvc pull parts/home.dvc")
    assert f"{taken} stay as they are here" in take(first, part="parts/home")
    left = planned(first.call("snakemake", "-n", "--cores", "1"))
    assert not {"train", "gates", "importance", "roles"} & left.keys()
    assert {"masking", *GATHERED, *ROLES} <= left.keys()
    first.call("snakemake", "--cores", "2")
    assert QUIET in first.call("snakemake", "-n", "--cores", "1")
    results = (str(each.folder / "results/quickstart") for each in (origin, first))
    told = first.call("python", "workflow/compare.py", *results, fails=True)
    assert re.findall(r"(.*): ", told) == ["tables/cost.csv"]  # of the jobs of one machine


def test_states_of_other_settings_are_no_further_ones(monkeypatch, tmp_path):
    """A folder of states has one for each settings and code: those of before may be far."""
    part = load(monkeypatch, "part")
    monkeypatch.chdir(tmp_path)
    state, lab = "results/mine/state/a", tmp_path / "lab"
    for folder in (f"{state}/before/update-900", f"lab/files/{state}/now/update-300"):
        Path(folder).mkdir(parents=True)
        Path(folder, "state.json").write_text("{}")
    assert part._take_state(lab, state, ["never"])
    assert Path(state, "now/update-300/state.json").exists()
    assert not part._take_state(lab, state, ["never"])
    shutil.rmtree(lab / "files" / state / "now")
    with pytest.raises(UserError, match="gone from the part"):
        part._take_state(lab, state, ["never"])


def test_what_a_killed_take_has_placed_gets_its_records_from_the_next(monkeypatch, tmp_path):
    """It lies here as the part has it, and nothing says what made it."""
    part = load(monkeypatch, "part")
    monkeypatch.chdir(tmp_path)
    own, lab, name = Path("results/mine/a.txt"), tmp_path / "lab", "results/mine/a.txt"
    for path in (own, lab / "files" / name):
        path.parent.mkdir(parents=True)
        path.write_text("1\n")
    records = {name: {"sha256": sha256(own), "endtime": 1000.0}}
    taken, marked = [], []
    monkeypatch.setattr(part.packed, "take", lambda output, record: taken.append(output))
    monkeypatch.setattr(part, "mark_whole", marked.extend)
    monkeypatch.setattr(part, "finished", lambda outputs: outputs if taken else [])
    assert not part._is_here(records)
    (lab / "files" / name).unlink()  # what is here need not be there
    part._take_job(lab, records)
    assert (taken, marked, own.stat().st_mtime) == ([name], [name], 1000.0)
    assert part._is_here(records)
    own.write_text("2\n")
    taken.clear()
    assert part._is_here(records)  # as another one, which stays


def test_a_training_goes_on_where_another_machine_left_it(machines):
    first, second = machines
    for copy in machines:
        copy.change("config/quickstart.yaml", "  updates: 30\n", "  updates: 30000\n")
    first.commit()
    process = first.start(GATES[0])
    end = time.monotonic() + 60
    while not saved_states(first.folder):
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.1)
    process.kill()  # its jobs end with it
    process.wait(timeout=60)
    assert "1 states of unfinished trainings" in give(first, "--states")
    (last,) = saved_states(first.folder / "parts/lab/files")

    second.call("snakemake", "--cores", "1", "raw")
    shutil.copytree(first.folder / "parts/lab", second.folder / "parts/lab")  # any way will do
    assert "1 states of unfinished trainings taken" in take(second)
    assert saved_states(second.folder) == [last]
    assert "0 states of unfinished trainings taken" in take(second)
    process = second.start(GATES[0])
    log = second.folder / "results/quickstart/logs/gates/synthetic.en-art.gates-all-l0.seed1.log"
    while not (log.exists() and "going on from" in log.read_text()):
        assert time.monotonic() < end + 60 and process.poll() is None
        time.sleep(0.1)
    process.kill()  # its jobs end with it
    process.wait(timeout=60)
    assert f"going on from update {int(last.partition('-')[2])}" in log.read_text()


def test_a_part_that_is_damaged_is_refused_and_what_is_here_stays(machines):
    first, second = machines
    give(first)
    shutil.copytree(first.folder / "parts/lab", second.folder / "parts/lab")
    part = second.folder / "parts/lab"
    own = second.folder / "data/bpe/quickstart/synthetic.en-art/segmentation.json"
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    damage = part / "files/data/text/quickstart/synthetic.en-art/train.src"
    whole = damage.read_bytes()
    damage.unlink()
    damage.write_bytes(whole[:-1])
    assert re.search(r"train\.src: changed since its job wrote it\. Fetch the part again",
                     take(second, fails=True))  # fmt: skip
    damage.unlink()
    assert "train.src: gone from the part" in take(second, fails=True)
    damage.write_bytes(whole)
    assert " stay as they are here" in take(second)
    assert own.read_text() == "mine"
    assert [path.name for path in own.parent.iterdir() if path.is_file()] == [own.name]
    for wrong in ("results/quickstart/../../etc", "results/tiny/state/run", "src/state/run"):
        (part / "states.json").write_text(json.dumps({wrong: []}))
        told = take(second, fails=True)
        assert f"'{wrong}' is no folder of states of quickstart. Fetch the part again" in told
    for torn in ("{", "[]", '{"results/quickstart/state/run": 1}'):
        (part / "states.json").write_text(torn)
        assert "states.json: expected outputs by folders of states" in take(second, fails=True)
    (part / "states.json").unlink()
    assert "states.json: gone from the part. Fetch the part again" in take(second, fails=True)
    shutil.rmtree(part / "records")
    told = take(second, fails=True)
    assert "expected a part that part.py give wrote, found no records" in told


def test_nothing_is_taken_beside_a_run(machines):
    first, _ = machines
    process = first.start(GATES[0])
    while not saved_states(first.folder):
        assert process.poll() is None
        time.sleep(0.1)
    code, told = first.end("python", "workflow/part.py", "take", "quickstart", "parts/none")
    process.kill()
    process.wait(timeout=60)
    assert code == 3 and re.search(r"process \d+ is running this workflow in", told)

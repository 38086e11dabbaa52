"""Locale, clock, user, limits: a small pipeline of real scripts makes the same bytes in each."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from project_copy import ROOT, ProjectCopy, timeless

pytestmark = pytest.mark.slow

PIPELINE = Path(__file__).parents[1] / "helpers" / "pipeline.py"
SECRET = "hunter2-of-the-month"
NOBODY = 61234  # a user who is in no list, so that neither a name nor a home is known
CLOCK = """
import itertools, time
now = time.time()
hours = itertools.count()
time.time = lambda: now - 3600 * next(hours)
"""


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> dict[str, bytes]:
    """What the pipeline makes as it is run every day."""
    folder = tmp_path_factory.mktemp("plain")
    run(folder, [])
    return made(folder)


def run(
    folder: Path, before: list[str], *stamp: str, umask: int = 0o022, **variables: str | None
) -> str:
    """Run the pipeline in a folder, by a command that changes its surroundings.

    Returns what it printed on standard error. A variable that is None is taken out.
    """
    env = os.environ | {"ACCESS_TOKEN": SECRET} | variables
    done = subprocess.run(
        [*before, sys.executable, str(PIPELINE), *stamp],
        cwd=folder,
        env={name: value for name, value in env.items() if value is not None},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        start_new_session=True,  # no terminal to ask
        umask=umask,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def made(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder by its path, the curve without its times."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): timeless(path) for path in paths}


def same(folder: Path, plain: dict[str, bytes]) -> None:
    found = made(folder)
    assert list(found) == list(plain)
    assert [name for name in plain if found[name] != plain[name]] == []


def needs(*command: str) -> None:
    """Skip the test where a command that it needs is missing, or not allowed."""
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as fault:
        pytest.skip(f"{command[0]} cannot do this here: {fault}")


def test_the_pipeline_ends_in_a_table_and_a_figure(plain):
    assert {"run/model/weights.safetensors", "out.txt", "map.pdf", "tables/corpus.csv"} <= set(
        plain
    )
    assert plain["out.txt"].count(b"\n") == 12 and "ä".encode() in plain["bpe/s.en-art/tgt.vocab"]
    assert "Ein ı, ein İ".encode() in plain["map.svg"]
    assert not any(name.startswith("state/") or ".part-" in name for name in plain)


def test_f50_other_letters_clocks_zones_and_times_of_files_change_nothing(plain, tmp_path):
    """Turkish letters and commas; a clock that goes back an hour at every look; files of 2040."""
    locales, folder, own = (tmp_path / name for name in ("locales", "work", "own"))
    for made_here in (locales, folder, own):
        made_here.mkdir()
    needs("localedef", "-i", "tr_TR", "-f", "UTF-8", str(locales / "tr_TR.UTF-8"))
    turkish = {"LOCPATH": str(locales), "LC_ALL": "tr_TR.UTF-8"}
    comma = ["locale", "decimal_point"]
    printed = subprocess.run(comma, env=os.environ | turkish, capture_output=True, text=True)
    assert printed.stdout == ",\n"
    (own / "sitecustomize.py").write_text(CLOCK)
    path = os.pathsep.join([str(own), os.environ.get("PYTHONPATH", "")])
    zone = {"TZ": "America/St_Johns", "PYTHONHASHSEED": "7", "PYTHONPATH": path}
    run(folder, [], "2208988800", **turkish, **zone)
    same(folder, plain)


def test_f50_f52_x07_a_poor_user_without_letters_home_name_cores_and_network(plain):
    """Few files may be open, and what is written is closed to others."""
    few = ["sh", "-c", 'ulimit -n 24; exec "$@"', "sh"]
    alone = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    # May read, but not write, another's files: Python itself may lie in a home that is closed.
    alone += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    before = ["unshare", "-n", "taskset", "-c", "0", *few, *alone]
    needs(*before, sys.executable, "-c", "import headcount, torch")
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to others
        os.chown(name, NOBODY, NOBODY)
        poor = dict.fromkeys(("HOME", "USER", "LOGNAME", "XDG_CACHE_HOME", "LANG"))
        poor |= {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        printed = run(Path(name), before, umask=0o077, **poor)
        same(Path(name), plain)
        assert (Path(name) / "out.txt").stat().st_mode & 0o077 == 0
    assert "\r" not in printed and len(printed.splitlines()) < 20  # no progress bar in a log


def test_f55_x28_neither_secrets_nor_homes_nor_folders_are_written(plain, tmp_path_factory):
    """Not in data, results, metadata of figures; commands are told relative to the folder."""
    home, here = f"{Path.home()}/".encode(), str(tmp_path_factory.getbasetemp()).encode()
    for hidden in (SECRET.encode(), home, here, b"ACCESS_TOKEN"):
        assert [name for name, content in plain.items() if hidden in content] == []
    assert b"scripts/train.py" in plain["run/model/model.json"]
    assert b"CreationDate" not in plain["map.pdf"] and b"<dc:date>" not in plain["map.svg"]


FULL = """
mount -t tmpfs -o {option} tmpfs {disk} && cp -r . {disk} && cd {disk}
look() {{ find . -type f ! -name 'filler*' ! -name lock | sort | xargs sha256sum; }}
look > {before}
for step in train analysis; do
    (cat /dev/zero > filler; for n in $(seq 99); do : > filler$n; done) 2> /dev/null
    {python} {pipeline} $step; echo "code $?"
done
look | diff {before} - && echo all as before
"""
"""Some steps again on a disk that has become full."""


@pytest.mark.parametrize("option", ["size=2m", "size=9m,nr_inodes=90"])
def test_f32_on_a_full_disk_every_step_names_its_file_and_harms_none(
    plain, tmp_path_factory, tmp_path, option
):
    disk = tmp_path / "disk"
    disk.mkdir()
    needs("unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", str(disk))
    names = {"option": option, "disk": disk, "before": tmp_path / "before"}
    script = FULL.format(**names, python=sys.executable, pipeline=PIPELINE)
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script],
        cwd=tmp_path_factory.getbasetemp() / "plain0",
        capture_output=True,
        text=True,
    )
    assert re.findall("code .*|all as before", done.stdout) == ["code 3"] * 2 + ["all as before"]
    errors = re.findall(r"error: \S+: No space left on device; make room", done.stderr)
    assert len(errors) == 2 and "Traceback" not in done.stderr, done.stderr


def test_a_copy_in_the_environment_of_another_checkout_is_refused(tmp_path):
    """Its rules and scripts would run the other's code. Stages of DVC run the copy's own."""
    copy = ProjectCopy(tmp_path / "copy")
    copy.call("git", "init", "-q")
    script = f"cd .. && python {copy.folder}/scripts/analysis.py"
    stage = "dvc repro -s plan@quickstart"
    for command, codes in (("snakemake -n", (3, 0)), (stage, (0, 0)), (script, (3, 2))):
        for checkout, expected in zip((ROOT, copy.folder), codes, strict=True):
            code, told = copy.end("bash", "-c", command, PYTHONPATH=str(checkout / "src"))
            assert code == expected and "Traceback" not in told, told
            both = all(f"{each}/src/headcount" in told for each in (ROOT, copy.folder))
            assert both == (expected == 3), told

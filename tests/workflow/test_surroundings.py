"""Locale, clock, user, limits: a small pipeline of real scripts makes the same bytes in each."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from project_copy import ROOT, ProjectCopy

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
    """Every file below a folder; of the curve, the columns that do not tell the time."""
    found = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    content = {name: path.read_bytes() for name, path in sorted(found.items())}
    rows = content["run/curves.csv"].splitlines()
    timeless = [row.split(b",")[:5] + row.split(b",")[7:] for row in rows]
    return content | {"run/curves.csv": b"\n".join(map(b",".join, timeless))}


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


def test_f50_a_locale_without_letters_changes_nothing(plain, tmp_path):
    ascii_only = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    run(tmp_path, [], LC_ALL="C", LANG=None, **ascii_only)
    same(tmp_path, plain)


def test_f50_a_turkish_locale_with_its_commas_changes_nothing(plain, tmp_path):
    locales = tmp_path / "locales"
    locales.mkdir()
    needs("localedef", "-i", "tr_TR", "-f", "UTF-8", str(locales / "tr_TR.UTF-8"))
    turkish = {"LOCPATH": str(locales), "LC_ALL": "tr_TR.UTF-8"}
    comma = ["locale", "decimal_point"]
    found = subprocess.run(comma, env=os.environ | turkish, capture_output=True, text=True)
    assert found.stdout == ",\n"
    folder = tmp_path / "work"
    folder.mkdir()
    run(folder, [], **turkish)
    same(folder, plain)


def test_f50_clocks_zones_and_times_of_files_change_nothing(plain, tmp_path):
    """The clock goes back an hour whenever it is read; files are of 2040, and of another zone."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text(CLOCK)
    folder = tmp_path / "work"
    folder.mkdir()
    path = os.pathsep.join([str(tmp_path / "own"), os.environ.get("PYTHONPATH", "")])
    run(folder, [], "2208988800", TZ="America/St_Johns", PYTHONHASHSEED="7", PYTHONPATH=path)
    same(folder, plain)


def test_f52_a_user_without_home_and_name_and_with_a_strict_mask(plain):
    alone = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    # May read, but not write, another's files: Python itself may lie in a home that is closed.
    alone += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    needs(*alone, sys.executable, "-c", "import headcount, torch")
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to others
        os.chown(name, NOBODY, NOBODY)
        nameless = dict.fromkeys(("HOME", "USER", "LOGNAME", "XDG_CACHE_HOME"))
        run(Path(name), alone, umask=0o077, **nameless)
        same(Path(name), plain)
        assert (Path(name) / "out.txt").stat().st_mode & 0o077 == 0


def test_x07_f52_one_core_few_descriptors_and_no_network(plain, tmp_path):
    needs("unshare", "-n", "taskset", "-c", "0", "true")
    few = ["sh", "-c", 'ulimit -n 24; exec "$@"', "sh"]
    told = run(tmp_path, ["unshare", "-n", "taskset", "-c", "0", *few])
    same(tmp_path, plain)
    assert "\r" not in told and len(told.splitlines()) < 20  # no progress bar in a log


def test_f55_x28_neither_secrets_nor_homes_nor_folders_are_written(plain, tmp_path_factory):
    """Not in data, results, metadata of figures; commands are told relative to the folder."""
    home, here = f"{Path.home()}/".encode(), str(tmp_path_factory.getbasetemp()).encode()
    for hidden in (SECRET.encode(), home, here, b"ACCESS_TOKEN"):
        assert [name for name, content in plain.items() if hidden in content] == []
    assert b"scripts/train.py" in plain["run/model/model.json"]
    assert b"CreationDate" not in plain["map.pdf"] and b"<dc:date>" not in plain["map.svg"]


WRITTEN = {
    "synthetic raw/manifest.json": "raw/train.en",
    "text text/s.en-art/dev.json": "text/s.en-art/dev.(src|tgt)",
    "text text/s.en-art/test.json": "text/s.en-art/test.(src|tgt)",
    "text text/s.en-art/test.src": "text/s.en-art/train.(src|tgt)",
    "bpe bpe/s.en-art": "bpe/s.en-art/src.codes",
    "train 4": r"state/\w+/(.part-new-update-000000001/tensors.safetensors|finished)",
    "translate 2": "out.txt",
    "bleu bleu.json": "bleu.json",
    "importance heads/importance.csv": "heads/importance.csv",
    "attention attention.json": "attention.json",
    "attention_map map.svg": "map.svg",
    "attention_map map.pdf": "map.pdf",
    "analysis .": "tables/corpus.csv",
    "analysis drawn": "drawn/figures/curves.pdf",
}
"""What each step, known by its last argument, cannot write when nothing can be written."""


@pytest.fixture(scope="module")
def results(plain, tmp_path_factory) -> Path:
    """The folder of the plain run; no test changes it."""
    return tmp_path_factory.getbasetemp() / "plain0"


@pytest.mark.parametrize(
    ("option", "room"),
    [
        (
            "size=2m",
            r"(it needs [\d,]+ bytes and 0 are free|it needs more than the 0 bytes that .*)",
        ),
        ("size=9m,nr_inodes=90", "no inode is free there, so it takes no more files, .*"),
    ],
)
def test_f32_on_a_full_disk_every_step_names_its_file_and_harms_none(
    results, tmp_path, option, room
):
    needs("unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", str(tmp_path))
    command = [sys.executable, str(PIPELINE.with_name("full_disk.py")), str(tmp_path), option]
    done = subprocess.run(["unshare", "-m", *command], cwd=results, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert list(told) == list(WRITTEN)
    for step, (code, words, as_before) in told.items():
        assert (code, as_before) == (3, True), (step, words)
        named = f"error: {WRITTEN[step]}: No space left on device: {room}"
        assert re.search(named, words) and "make room on the disk" in words, (step, words)
        assert "Traceback" not in words


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


def test_an_installed_package_serves_in_a_folder_that_is_no_checkout(tmp_path):
    installed = tmp_path / "site-packages"
    shutil.copytree(ROOT / "src" / "headcount", installed / "headcount")
    (tmp_path / "mine.py").write_text("from headcount.base import command\ncommand.run(dict)\n")
    mine = [sys.executable, "mine.py"]
    subprocess.run(mine, check=True, cwd=tmp_path, env=os.environ | {"PYTHONPATH": installed})

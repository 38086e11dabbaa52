"""Faults under two engines: kills, second runs, damaged and edited files, odd disks and orders."""

import hashlib
import os
import re
import shlex
import shutil
import signal
from pathlib import Path

import pytest
import yaml
from project_copy import PATH, ProjectCopy, planned, ran, saved_states, training_of, wait_until
from shared_results import (
    DECODED,
    GATHERED,
    QUIET,
    REDRAWN,
    ROLES,
    RUN,
    TRAINED,
    bare_clone,
    both_quiet,
    weights,
)
from warm_python import clients

pytestmark = pytest.mark.slow

REVERSED_LISTINGS = """
import os
from contextlib import nullcontext
listed, scanned = os.listdir, os.scandir
os.listdir = lambda *path: sorted(listed(*path), reverse=True)


class Reversed(nullcontext):
    def __init__(self, *path):
        with scanned(*path) as entries:
            self.entries = iter(sorted(entries, key=lambda entry: entry.name, reverse=True))

    def __enter__(self):
        return self

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.entries)

    def close(self):
        pass


os.scandir = Reversed
"""


def test_f31_f44_dvc_killed_in_a_training_leaves_no_orphan_and_finishes(origin, clone):
    """The command is that of one phase and all before it; nothing is left to do in them."""
    command = ("dvc", "repro", "train@quickstart")
    clone.change("config/quickstart.yaml", "peak_lr: 1e-2", "peak_lr: 9e-3")
    clone.change("config/quickstart.yaml", "updates: 60", "updates: 400")
    process = clone.start_command(*command)
    wait_until(lambda: saved_states(clone.folder))
    training = training_of(clone.folder)
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_until(lambda: not Path(f"/proc/{training}/cwd").exists(), 5)
    assert ran(clone.call(*command)) == {"train": 1, "translate": 1, "bleu": 1}
    (log,) = (clone.folder / "results/quickstart/logs/train").glob("*.log")
    assert "going on from update" in log.read_text()
    assert "up to date" in clone.call("dvc", "status", "train@quickstart")
    forced = clone.shell("dvc repro -f --single-item train@quickstart")
    assert QUIET in forced and ran(forced) == {}  # the stage runs, and finds no job out of date
    code, output = clone.run("-n")
    assert code == 0 and "importance" in planned(output) and "train" not in planned(output)
    assert weights(clone) != weights(origin)


TRANSLATION = f"{RUN}/seed1/translations/test.txt"
CODES = "data/bpe/quickstart/synthetic_near.en-art/src.codes"
TABLE = "results/quickstart/tables/bleu.csv"
MAKERS = {TRANSLATION: "translate", CODES: "bpe", TABLE: "general"}


def test_f48_edited_files_stop_both_engines_by_name_and_come_back(clone):
    """Also one as large as before whose time was set back; a time alone stops nothing."""
    before = {path: (clone.folder / path).read_bytes() for path in MAKERS}
    for path, content in before.items():
        times = os.stat(clone.folder / path)
        (clone.folder / path).write_bytes(bytes([content[0] ^ 1]) + content[1:])
        os.utime(clone.folder / path, ns=(times.st_atime_ns, times.st_mtime_ns))
    lock = (clone.folder / "dvc.lock").read_bytes()
    code, output = clone.run()
    under_dvc = clone.call("dvc", "repro", fails=True)
    assert code == 2 and "Traceback" not in output
    for path, rule in MAKERS.items():
        assert f"{path}: changed since rule {rule} wrote it" in output
        assert f"{path}: changed since rule {rule} wrote it" in under_dvc
    assert "Delete a file, and the same command makes it again" in output
    assert ran(output) == ran(under_dvc) == {}
    assert (clone.folder / "dvc.lock").read_bytes() == lock  # never committed as ours
    (clone.folder / TABLE).unlink()
    for path in (TRANSLATION, CODES):
        clone.call("dvc", "checkout", "--force", path)
        os.utime(clone.folder / path)
    assert planned(clone.run("-n")[1]) == REDRAWN
    code, output = clone.run(TABLE)
    assert ran(output) == {"general": 1}
    assert {path: (clone.folder / path).read_bytes() for path in MAKERS} == before
    both_quiet(clone)


def test_f46_a_damaged_object_in_the_cache_is_refused_by_the_records(clone):
    """DVC copies it into the folder unseen, and says that all is up to date."""
    path = clone.folder / RUN / "seed1" / "model" / "weights.safetensors"
    whole = path.read_bytes()
    name = hashlib.md5(whole).hexdigest()
    cached = clone.folder / ".dvc/cache/files/md5" / name[:2] / name[2:]
    cached.chmod(0o644)
    cached.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    cached.chmod(0o444)
    path.unlink()
    clone.call("dvc", "checkout")
    assert "up to date" in clone.call("dvc", "status")
    code, output = clone.run("-n")
    assert code == 2
    assert f"{RUN}/seed1/model/weights.safetensors: changed since rule train wrote it" in output
    cached.unlink()
    path.unlink()
    clone.call("dvc", "pull")
    assert path.read_bytes() == whole
    both_quiet(clone)


def test_every_file_that_is_gone_is_made_again(clone):
    """Whether something reads it or not."""
    for phase in ("train", "heads", "prune", "masking", "tables", "figures"):
        shutil.rmtree(clone.folder / "results/quickstart" / phase)
    jobs = TRAINED | DECODED | GATHERED | ROLES
    assert planned(clone.run("-n")[1]) == jobs


def test_a_rerun_that_fails_is_undone_by_dvc_checkout(clone):
    """Snakemake removes the files of a job before it runs; DVC has those it adopted."""
    clone.change("config/quickstart.yaml", "peak_lr: 1e-2", "peak_lr: 1e30")
    code, output = clone.run()
    assert code == 2 and "expected a finite number" in output
    assert not (clone.folder / RUN / "seed1/model/weights.safetensors").exists()
    clone.call("dvc", "checkout", "--force")
    assert planned(clone.run("-n")[1])["train"] == 1  # not taken for what failed
    clone.call("git", "checkout", "config/quickstart.yaml")
    both_quiet(clone)


def test_f47_a_read_only_checkout_and_read_only_results_are_refused(clone):
    for folder in (".", "results"):
        code, output = read_only(clone, folder, "snakemake -n")
        assert code == 3, output
        assert f"{(clone.folder / folder).resolve()} is read-only" in output
        assert "make it writable, or copy the project elsewhere" in output
        assert "Traceback" not in output and "Exception" not in output
    both_quiet(clone)


def read_only(copy: ProjectCopy, folder: str, command: str) -> tuple[int, str]:
    """Exit code and output of a shell command while a folder of the copy can't be written."""
    place = shlex.quote(str(copy.folder / folder))
    mount = f"mount --bind {place} {place} && mount -o remount,ro,bind {place}"
    here = f"cd {shlex.quote(str(copy.folder))}"
    if copy.start_command("unshare", "-m", "sh", "-c", mount).wait():
        pytest.skip("a read-only mount needs root and mount namespaces")
    process = copy.start_command("unshare", "-m", "sh", "-c", f"{mount} && {here} && {command}")
    output, _ = process.communicate(timeout=300)
    return process.returncode, output


def test_f51_dvc_alone_under_another_hash_seed_and_order_of_folders_makes_the_same(
    origin, tmp_path
):
    """By `dvc repro`, and no result before: data and the baseline's weights are the origin's.

    The commands are forked from a Python that was started so.
    """
    copy = bare_clone(origin, f"{tmp_path.name}-seeded")
    (copy.folder / "src" / "sitecustomize.py").write_text(REVERSED_LISTINGS)
    config = copy.folder / "config/quickstart.yaml"
    config.write_text(re.sub(r"(pruned|ablation):\n(  .*\n)+", "", config.read_text()))
    other = {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"}
    forked = clients(PYTHONPATH=str(copy.folder / "src"), **other)
    lock = copy.folder / "dvc.lock"
    before = yaml.safe_load(lock.read_text())["stages"]["data@quickstart"]["outs"]
    output = copy.call("dvc", "repro", PATH=f"{forked}{os.pathsep}{PATH}", **other)
    once = {"synthetic": 1, "text": 3, "bpe": 1, "trees": 1, "train": 1, "report": 1}
    assert once.items() <= ran(output).items()
    assert weights(copy) == weights(origin)
    after = yaml.safe_load(lock.read_text())["stages"]["data@quickstart"]["outs"]
    assert [out["md5"] for out in after[:2]] == [out["md5"] for out in before[:2]]

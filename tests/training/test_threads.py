"""The machine's cores and its variables change no result: threads are a setting."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from project_copy import ROOT
from small_run import MODEL, outcome, segment

from headcount.base.settings.flags import as_flags
from headcount.base.settings.train import TrainSettings

SHORT = TrainSettings(updates=6, batch_tokens=150, warmup_updates=2, dev_interval=3, threads=2)


def train(bpe: Path, folder: Path, cores: set[int], **variables: str) -> dict:
    """What a training writes that may use these cores and sees these variables."""
    folder.mkdir()
    flags = [*as_flags(MODEL), *as_flags(SHORT), "--bpe", bpe, "--run", "impt-3", "--seed", "3"]
    command = [sys.executable, ROOT / "scripts" / "train.py", *flags, "--out", "out"]
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        subprocess.run(
            [*map(str, command), "--state", "state"],
            cwd=folder,
            env=os.environ | variables,
            check=True,
            capture_output=True,
        )
    finally:
        os.sched_setaffinity(0, before)
    return outcome(folder / "out")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="cores are Linux's to give")
def test_f42_cores_and_variables_change_no_byte(tmp_path):
    """One core and a variable that asks for 7 threads; all cores and one that asks for 1."""
    bpe, cores = segment(tmp_path / "text"), os.sched_getaffinity(0)
    one = train(bpe, tmp_path / "one", {min(cores)}, OMP_NUM_THREADS="7", MKL_NUM_THREADS="7")
    other = train(bpe, tmp_path / "all", cores, OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    assert one == other and len(one) >= 5

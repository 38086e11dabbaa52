"""An experiment on a real SLURM cluster, of two nodes on this machine: stopped, limited, whole."""

import hashlib
import re
from pathlib import Path

import pytest
from project_copy import ProjectCopy, wait_until
from slurm_cluster import SlurmCluster, available, run, told

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not available(), reason="needs slurm-wlm, munge, root"),
]

NAME = "cluster"
RUN = f"results/{NAME}/train/synthetic_tiny.en-art/baseline/seed1"
LOG = f"results/{NAME}/logs/train/synthetic_tiny.en-art.baseline.seed1.log"
HEADS = RUN.replace("/train/", "/heads/")
TARGETS = [f"{RUN}/bleu.json", f"{HEADS}/importance.csv", f"{HEADS}/relevance.csv"]
ON_GPU = ("--set-resources", "importance:gpu=1", "relevance:gpu=1")
ASKED = ("--config", f"experiment={NAME}")
PROFILE = ("--workflow-profile", "workflow/profiles/slurm", "--latency-wait", "5")
SOON = ("--slurm-init-seconds-before-status-checks", "1")
VERSION = 'min_version("9.27")'
LOOK = """
import asyncio
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
RemoteExecutor.sleep = lambda self: asyncio.sleep(1)
"""
"""Asks SLURM every second what jobs do; the executor would wait longer each time."""


def copies(folder: Path, updates: str, threads: int = 1) -> tuple[ProjectCopy, ProjectCopy]:
    """Two copies of the project with `tiny` cut down to one training of so many updates.

    The first looks often after its jobs.
    """
    made = []
    for name in ("submitted", "local"):
        (folder / name).mkdir()
        copy = ProjectCopy(folder / name)
        text = (copy.folder / "config/tiny.yaml").read_text()
        for key in ("pruned", "ablation", "runs"):
            text = re.sub(rf"(?m)^{key}:.*\n(?:[ -].*\n)*", "", text)
        text = text.replace("updates: 150", f"updates: {updates}")
        text += f"runs: [baseline]\nresources: {{threads: {threads}}}\n"
        (copy.folder / f"config/{NAME}.yaml").write_text(text)
        made.append(copy)
    made[0].change("workflow/Snakefile", VERSION, f"{VERSION}\n{LOOK}")
    return made[0], made[1]


def training() -> str:
    """Id of the SLURM job that trains now; empty while none does."""
    lines = told("squeue", "-h", "-t", "RUNNING", "-o", "%i %k").splitlines()
    return next((line.split()[0] for line in lines if "rule_train" in line), "")


def weights(copy: ProjectCopy) -> str:
    return hashlib.sha256(
        (copy.folder / RUN / "model/weights.safetensors").read_bytes()
    ).hexdigest()


def test_cancelled_it_ends_with_the_weights_of_a_local_run(tmp_path):
    """The log of the new attempt says that it goes on from a state."""
    copy, local = copies(tmp_path, "300")
    log = copy.folder / LOG
    with SlurmCluster(tmp_path / "slurm") as cluster:
        process = copy.start(*TARGETS, *PROFILE, *SOON, *ASKED, *ON_GPU)
        wait_until(lambda: log.exists() and "update 50/300" in log.read_text(), 240)
        job = training()
        run("scancel", job)
        wait_until(lambda: job not in cluster.queue(), 150)
        assert cluster.state(job) == "CANCELLED"
        output, _ = process.communicate(timeout=400)
        assert process.returncode == 0, output
        jobs = told("scontrol", "show", "job").split("\n\n")
        assert len(jobs) <= 5  # text; the training twice; scores; heads
        (heads,) = [job for job in jobs if "Comment=rule_heads_importance_relevance" in job]
        assert "NumCPUs=1 " in heads and "gres:gpu:1" in heads  # one after the other, on one GPU
        assert cluster.queue() == []
    assert "going on from update" in log.read_text()
    code, output = local.run(f"{RUN}/model/weights.safetensors", *ASKED)
    assert code == 0, output
    assert weights(copy) == weights(local)


def test_two_processes_of_a_training_have_a_node_each(tmp_path):
    """A node has as many cores as one process has threads; sums of two are the same to the bit."""
    copy, local = copies(tmp_path, "60\n  processes: 2\n  accumulate: 2", threads=2)
    target, log = f"{RUN}/model/weights.safetensors", copy.folder / LOG
    with SlurmCluster(tmp_path / "slurm"):
        process = copy.start(target, *PROFILE, *SOON, *ASKED)
        wait_until(lambda: log.exists() and "update 50/" in log.read_text(), 240)
        steps = told("squeue", "-h", "-s", "-o", "%j %N").splitlines()
        output, _ = process.communicate(timeout=400)
        assert process.returncode == 0, output
    assert "python n[1-2]" in steps
    code, output = local.run(target, *ASKED)
    assert code == 0, output
    assert weights(copy) == weights(local)

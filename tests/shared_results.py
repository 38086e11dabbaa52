"""Results that two engines share: their repository, its clones, and when both are idle."""

import json

from project_copy import ProjectCopy

TINY = ("--config", "experiment=tiny")
QUIET = "Nothing to be done"
RUN = "results/tiny/train/synthetic_tiny.en-art/baseline"
HEADMASK = {"headmask_tables": 1, "headmask_figures": 1}


def fresh_clone(origin: ProjectCopy, name: str) -> ProjectCopy:
    folder = origin.folder.parent / name
    origin.call("git", "clone", "-q", str(origin.folder), str(folder))
    copy = object.__new__(ProjectCopy)
    copy.folder = folder
    copy.call("dvc", "pull", "-q")
    return copy


def both_quiet(copy: ProjectCopy) -> None:
    assert "up to date" in copy.call("dvc", "status")
    code, output = copy.run("-n", *TINY)
    assert code == 0 and QUIET in output, output


def weights(copy: ProjectCopy, seed: int = 1) -> str:
    model = copy.folder / RUN / f"seed{seed}" / "model" / "model.json"
    return json.loads(model.read_text())["sha256"]["weights.safetensors"]

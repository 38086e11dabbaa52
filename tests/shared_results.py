"""Results that two engines share: their repository, its clones, and when both are idle."""

import json
from pathlib import Path

from project_copy import ProjectCopy

TINY = ("--config", "experiment=tiny")
QUIET = "Nothing to be done"
RUN = "results/tiny/train/synthetic_tiny.en-art/baseline"
SMALLER = (
    ("updates: 150", "updates: 60"),
    ("  - scratch-gates-all-l0.3\n  - ranked-gates-all-l0.3\n", ""),
    ("  runs: [baseline]\n  sentences: 10", "  sentences: 10"),
)
"""What makes `tiny` smaller for engines: shorter, without ablation, from scratch or by rank."""

VOITA = {"voita_tables": 1, "voita_figures": 1}
GATHERED = {"headmask_tables": 1, "headmask_figures": 1, "report": 1} | VOITA
"""What shows all runs in the end."""
ROLES = {"roles_tables": 1, "roles_figures": 1}
"""The same, of what heads do: translations have no part in it."""

TRANSLATED = {"translate": 3, "bleu": 3, "masking": 1, "removal": 1, "speed": 1}
"""Jobs that decode, for each pair and seed: the baseline and two gates runs."""
TRAINED = {"train": 1, "importance": 1, "gates": 2, "relevance": 1, "roles": 1, "pruned_roles": 1}
"""Jobs that make, rank and examine their models."""


def times(number: int, *jobs: dict[str, int]) -> dict[str, int]:
    """So many times each of these jobs."""
    return {rule: number * count for each in jobs for rule, count in each.items()}


def build(folder: Path) -> str:
    """Make a repository with the results of `tiny`, adopted, committed and pushed.

    Its trainings save a state whenever they may. Returns what DVC printed.
    """
    copy = ProjectCopy(folder)
    copy.change("dvc.yaml", "experiments: [quickstart]", "experiments: [tiny]")
    copy.change(".dvc/config", "../../headcount-remote", "../../remote")
    for old, new in SMALLER:
        copy.change("config/tiny.yaml", old, new)
    for rules in ("train", "prune"):
        copy.change(f"workflow/rules/{rules}.smk", "--state ", "--save-seconds 0 --state ")
    copy.call("git", "init", "-q", "-b", "main")
    copy.commit()
    code, output = copy.run(*TINY)
    assert code == 0, output
    adopted = copy.call("dvc", "repro")
    copy.call("dvc", "push")
    copy.commit()
    return adopted


def bare_clone(origin: ProjectCopy, name: str) -> ProjectCopy:
    """A clone beside the origin, without results."""
    folder = origin.folder.parent / name
    origin.call("git", "clone", "-q", str(origin.folder), str(folder))
    return ProjectCopy.of(folder)


def fresh_clone(origin: ProjectCopy, name: str) -> ProjectCopy:
    """A clone beside the origin, with everything pulled."""
    copy = bare_clone(origin, name)
    copy.call("dvc", "pull", "-q")
    return copy


def both_quiet(copy: ProjectCopy) -> None:
    assert "up to date" in copy.call("dvc", "status")
    code, output = copy.run("-n", *TINY)
    assert code == 0 and QUIET in output, output


def weights(copy: ProjectCopy) -> str:
    model = copy.folder / RUN / "seed1" / "model" / "model.json"
    return json.loads(model.read_text())["sha256"]["weights.safetensors"]

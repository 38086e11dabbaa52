"""Results that two engines share: their repository, its clones, and when both are idle."""

import json
import shutil
from pathlib import Path

from project_copy import ProjectCopy

QUIET = "Nothing to be done"
PULLED = "pulled"
"""Name of a clone beside the origin that no test changes."""
RUN = "results/quickstart/train/synthetic_near.en-art/baseline"
SMALLER = (
    ("updates: 150", "updates: 60"),
    ("runs: [baseline, {method: baseline, attention_heads: 1}]\n", ""),
    ("lambda: 0.3}", "lambda: 0.015}"),
    ("\nbpe:", "  - {method: gates, lambda: [0, 0.015], from: none}\n\nbpe:"),
    ("  draws: 1\n  sentences: 20", "  draws: 1\n  sentences: 6"),
    ("  repeats: 2\n  batch_sizes: [1, 4]", "  repeats: 1\n  batch_sizes: [4]"),
    ("\nsavings:\n  compute_types: [float32, int8]\n", "\nsavings:\n  compute_types: []\n"),
)
"""What makes a quickstart of `tiny`: shorter, with one training and every way to prune it."""

NAMES = (
    ("synthetic_tiny.en-art", "synthetic_near.en-art"),
    ("lambda: [0, 0.3]", "lambda: [0, 0.015]"),
    ("heads: 3", "heads: 8"),
    ("  beam: 2\n", ""),
)
"""What gives such a `tiny` the names in `quickstart` that documents use: pair, run, head, key."""

MEASURING = ("importance", "relevance", "roles", "alignment")
REDRAWN = {"general": 1, "claims": 1, "cost": 1, "report": 1}
"""Jobs after a change of the chapter `general`."""
GATHERED = REDRAWN | {"headmask": 1, "voita_pruning": 1, "michel": 1}
"""Jobs that show all runs in the end."""
ROLES = {"voita_roles": 1, "atlas": 1}
"""The same, of what heads do."""
DECODED = dict.fromkeys(("masking", "untuned_masking", "speed", "share_speed"), 1)
DECODED |= dict.fromkeys(("ablation", "pruning_profile", "training_profile"), 1)
DECODED |= {"translate": 10, "bleu": 10, "mask_feed_forward": 1, "mask_layers": 1}
"""Jobs that decode, for each seed: with the baseline and nine pruned runs."""
TRAINED = {"train": 1, "gates": 3, "gates_from_none": 2, "scratch": 1, "fine_tune": 2, "subset": 1}
TRAINED |= {"unit_importance": 1}
TRAINED |= dict.fromkeys(("pruned_roles", "loss_change", "more_measures", "importance_speed"), 1)
TRAINED |= dict.fromkeys((*MEASURING, "pruned_alignment"), 1)
"""Jobs that make, rank and examine their models."""
SECRET = "hunter2-of-the-month"


def shrink_quickstart(copy: ProjectCopy) -> None:
    """Make the `quickstart` of a copy small: its names, the sizes of `tiny`."""
    shutil.copy(copy.folder / "config/tiny.yaml", copy.folder / "config/quickstart.yaml")
    for old, new in SMALLER + NAMES:
        copy.change("config/quickstart.yaml", old, new)
    pairs = "train_pairs: {}, dev_pairs: {}, test_pairs: {}, variation"
    copy.change("config/corpora.yaml", pairs.format(2500, 1000, 1000), pairs.format(2500, 100, 200))


def leave_figures_empty(copy: ProjectCopy) -> None:
    """Skip the drawing, which took a quarter of a build's time; the golden tests draw all."""
    drawn = "    drawing.draw_without_rendering()"
    file = "src/headcount/analysis/figures/style.py"
    copy.change(file, drawn, f"    drawing.clear()\n{drawn}")


def build(folder: Path) -> dict[str, str]:
    """Make a repository with the results of a small `quickstart`, adopted, committed and pushed.

    Its trainings save a state whenever they may, and its figures are empty. Returns what the
    engines printed, `built` and `adopted`, and what Git saw between them, `untidy`.
    """
    copy = ProjectCopy(folder)
    shrink_quickstart(copy)
    copy.change("workflow/plan/plan.py", '["--run", ', '["--save-seconds", "0", "--run", ')
    leave_figures_empty(copy)
    copy.call("git", "init", "-q", "-b", "main")
    copy.commit()
    built = copy.shell(f"export ACCESS_TOKEN={SECRET}; snakemake --cores all")
    untidy = copy.call("git", "status", "--porcelain")
    adopted = copy.call("dvc", "repro")
    copy.shell('git add -A && git commit -m "Results" && dvc push')
    fresh_clone(copy, PULLED)
    return {"built": built, "untidy": untidy, "adopted": adopted}


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


def copied_clone(origin: ProjectCopy, name: str) -> ProjectCopy:
    """A copy of a fresh clone of the origin, beside it: faster than to clone and to pull again."""
    folder = origin.folder.parent / name
    unlocked = shutil.ignore_patterns("tmp")  # DVC's locks
    shutil.copytree(origin.folder.parent / PULLED, folder, symlinks=True, ignore=unlocked)
    return ProjectCopy.of(folder)


def own_copy(origin: ProjectCopy, folder: Path) -> ProjectCopy:
    """The origin with its results, records, logs and remote, in a folder of one's own."""
    unlocked = shutil.ignore_patterns("tmp")  # DVC's locks, which come and go
    for source in (origin.folder, origin.folder.parent / "headcount-remote"):
        shutil.copytree(source, folder / source.name, ignore=unlocked)
    return ProjectCopy.of(folder / origin.folder.name)


def both_quiet(copy: ProjectCopy) -> None:
    assert "up to date" in copy.call("dvc", "status")
    code, output = copy.run("-n")
    assert code == 0 and QUIET in output, output


def weights(copy: ProjectCopy) -> str:
    model = copy.folder / RUN / "seed1" / "model" / "model.json"
    return json.loads(model.read_text())["sha256"]["weights.safetensors"]

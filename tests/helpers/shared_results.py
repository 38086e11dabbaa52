"""Results that two engines share: their repository, its clones, and when both are idle."""

import json
import re
import shutil
from pathlib import Path

from project_copy import ROOT, ProjectCopy

QUIET = "Nothing to be done"
PULLED = "pulled"
"""Name of a clone beside the origin that no test changes."""
RUN = "results/quickstart/train/synthetic.en-art/baseline"
SMALLER = (
    ("updates: 150", "updates: 60"),
    ("runs: [baseline, baseline-h1]\n", ""),
    ("  - {method: [scratch, importance], lambda: 0.3}\n", ""),
    ("  - {method: subset, heads: 6}\n", ""),
    ("  runs: [baseline]\n  sentences: 10", "  sentences: 10"),
    ("  draws: 1\n  sentences: 20", "  draws: 1\n  sentences: 6"),
    ("  repeats: 2\n  batch_sizes: [1, 4]", "  repeats: 1\n  batch_sizes: [4]"),
)
"""What makes `tiny` smaller for engines: shorter, one training, nothing pruned but by gates."""

NAMES = (
    ("synthetic_tiny.en-art", "synthetic.en-art"),
    ("lambda: [0, 0.3]", "lambda: [0, 0.03]"),
    ("heads: 3", "heads: 8"),
    ("  beam: 2\n", ""),
)
"""What gives such a `tiny` the names in `quickstart` that documents use: pair, run, head, key."""


def measuring() -> list[str]:
    """Rules whose first file lies in <heads>: they measure every trained model."""
    files = sorted(ROOT.joinpath("workflow", "rules").glob("*.smk"))
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    rules = re.split(r"(?m)^(?:use rule \w+ as|rule) (?=\w+)", text)
    outputs = r'output:\s+(?:\w+=|multiext\()?"<heads>/'
    return [re.match(r"\w+", rule)[0] for rule in rules if re.search(outputs, rule)]


GATHERED = {"general": 1, "headmask": 1, "voita_pruning": 1, "claims": 1, "cost": 1, "report": 1}
"""What shows all runs in the end."""
ROLES = {"voita_roles": 1, "atlas": 1}
"""The same, of what heads do: translations have no part in it."""

TRANSLATED = {"translate": 3, "bleu": 3, "masking": 1, "untuned_masking": 1, "speed": 1}
"""Jobs that decode, for each pair and seed: the baseline and two gates runs."""
TRAINED = {"train": 1, "gates": 2, "pruned_roles": 1} | dict.fromkeys(measuring(), 1)
"""Jobs that make, rank and examine their models."""


def shrink_quickstart(copy: ProjectCopy) -> None:
    """Make the `quickstart` of a copy small: its names, the sizes of `tiny`."""
    shutil.copy(copy.folder / "config/tiny.yaml", copy.folder / "config/quickstart.yaml")
    for old, new in SMALLER + NAMES:
        copy.change("config/quickstart.yaml", old, new)
    pairs = "train_pairs: {}, dev_pairs: {}, test_pairs: {}"
    copy.change("config/corpora.yaml", pairs.format(30000, 1000, 1000), pairs.format(600, 20, 20))


def leave_figures_empty(copy: ProjectCopy) -> None:
    """To draw them took a quarter of a build's time; test_workflow.py draws them all."""
    drawn = "    drawing.draw_without_rendering()"
    file = "src/headcount/analysis/figures/style.py"
    copy.change(file, drawn, f"    drawing.clear()\n{drawn}")


def times(number: int, *jobs: dict[str, int]) -> dict[str, int]:
    """So many times each of these jobs."""
    return {rule: number * count for each in jobs for rule, count in each.items()}


def build(folder: Path) -> dict[str, str]:
    """Make a repository with the results of a small `quickstart`, adopted, committed and pushed.

    Its trainings save a state whenever they may, and its figures are empty. Returns what the
    engines printed, `built` and `adopted`, and what Git saw between them, `untidy`.
    """
    copy = ProjectCopy(folder)
    shrink_quickstart(copy)
    copy.change("workflow/rules/train.smk", "--state ", "--save-seconds 0 --state ")
    leave_figures_empty(copy)
    copy.call("git", "init", "-q", "-b", "main")
    copy.commit()
    built = copy.shell("snakemake --cores all")
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

"""The page `files` of the reference: kinds of result files, and their columns."""

from collections.abc import Iterable
from pathlib import Path

import yaml

from headcount.ablation import masking, pruning_profile
from headcount.analysis.inputs import INPUTS, OWNERS, Input
from headcount.analysis.measures import MEASURES
from headcount.base import head_values
from headcount.data import trees
from headcount.deployment import speed
from headcount.heads import head_measures, measures_files, roles
from headcount.training import progress, pruning_run, training_run
from headcount_hf.classifiers.classifier import accuracy_columns

MEANINGS = Path(__file__).with_name("columns.yaml")

WRITTEN = {
    "<treebank>.csv": trees.ARC_COLUMNS,
    "curves.csv": progress.CURVE_COLUMNS,
    "masks.csv": training_run.MASK_COLUMNS,
    "slopes.csv": training_run.SLOPE_COLUMNS,
    "importance.csv": head_values.COLUMNS,
    "relevance.csv": head_values.COLUMNS,
    "attention.csv": head_values.COLUMNS,
    "positions.csv": head_measures.POSITION_COLUMNS,
    "syntax.csv": roles.SYNTAX_COLUMNS,
    "headmask.csv": masking.COLUMNS,
    "untuned_masking.csv": masking.UNTUNED_COLUMNS,
    "heads.csv": head_values.COLUMNS,
    "gates.csv": pruning_run.GATE_COLUMNS,
    "speed.csv": speed.COLUMNS,
    "loss_change.csv": head_values.COLUMNS,
    "measures.csv": head_values.COLUMNS,
    "measures_fisher.csv": measures_files.COLUMNS["fisher"],
    "measures_means.csv": measures_files.COLUMNS["means"],
    "ablation.csv": masking.ABLATION_COLUMNS,
    "pruning_profile.csv": pruning_profile.COLUMNS,
    "pruning_profile_areas.csv": pruning_profile.AREA_COLUMNS,
    "share_speed.csv": speed.COLUMNS,
    "importance_speed.csv": speed.IMPORTANCE_COLUMNS,
    "training_profile.csv": pruning_profile.TRAINING_COLUMNS,
    "training_profile_heads.csv": ("update", *head_values.COLUMNS),
    "classifier_ablation.csv": accuracy_columns(masking.ABLATION_COLUMNS),
    "classifier_profile.csv": accuracy_columns(pruning_profile.COLUMNS),
    "classifier_profile_areas.csv": pruning_profile.AREA_COLUMNS,
}
"""Columns of files by name, from the modules that write them."""

_INTRODUCTION = """\
# Files and columns

The folder `text` is `data/text/<experiment>/<pair>`, and `bpe` is `data/bpe/<experiment>/<pair>`.
Every other folder is `results/<experiment>/<folder>`; what belongs to a run lies there in
`<pair>/<run>/seed<k>`. Times of pruned runs lie in `prune/<pair>/speed/seed<k>`.

## Kinds of files

The list of [tables and figures](outputs.md) names their input files by these kinds.

"""


def files_page() -> str:
    """Return kinds of files with their columns, then the meanings of all columns."""
    first: dict[tuple[str, ...], str] = {}  # the kind that has some columns, by these columns
    rows = []
    for name, kind in INPUTS.items():
        named = columns(kind)
        same = first.setdefault(named, name)
        shown = listed(named) if same == name or not named else f"as `{same}`"
        owner = OWNERS[kind.owner]
        rows.append((f"`{name}`", f"`{kind.folder}`", listed(kind.names), owner, shown))
    parts = [
        _INTRODUCTION + table(("kind", "folder", "files", "of", "columns"), rows),
        "## Columns\n\nOf the files above, and of the CSV of tables and figures, whose first line "
        "names them.\n",
    ]
    for title, group in meanings().items():
        rows = [(listed(names.split(", ")), words) for names, words in group.items()]
        parts.append(f"### {title}\n\n" + table(("column", "meaning"), rows))
    return "\n".join(parts)


def columns(kind: Input) -> tuple[str, ...]:
    """Return the columns of the files of a kind, or none for files that are no CSV."""
    return tuple(WRITTEN.get(Path(kind.names[0]).name, ()))


def meanings() -> dict[str, dict[str, str]]:
    """Return the meanings of columns, by group of columns. Measures explain themselves."""
    groups = yaml.safe_load(MEANINGS.read_text(encoding="utf-8"))
    known = {name for group in groups.values() for names in group for name in names.split(", ")}
    measures = {
        name: f"{measure.title}, {measure.unit}; larger means: {measure.more}"
        for name, measure in MEASURES.items()
        if name not in known
    }
    return groups | {"Measures of heads": measures}


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown."""
    heads = tuple(heads)
    return "".join(f"| {' | '.join(row)} |\n" for row in (heads, ["---"] * len(heads), *rows))


def listed(names: Iterable[str]) -> str:
    """Return names as code, with commas."""
    return ", ".join(f"`{name}`" for name in names)

"""The page `files` of the reference: result files, the rules that make them, their columns."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import yaml

from headcount.ablation import ablation, masking, pruning_profile
from headcount.analysis.inputs import INPUTS, OWNERS, Input
from headcount.base import folders, head_values
from headcount.data import trees
from headcount.deployment import importance_speed, speed
from headcount.estimate import work
from headcount.heads import fisher, head_measures, head_outputs, syntax
from headcount.training import progress, pruning_run, training_run
from headcount_hf.classifiers.classifier import accuracy_columns

RULES = Path(__file__).with_name("rules")
MEANINGS = Path(__file__).with_name("columns.yaml")
_LIST = re.compile(r"^([A-Z_]+) = (.+?)^(?=$|[A-Z])", re.M | re.S)
_RULE = re.compile(
    r"^(?:use rule \w+ as|rule) (\w+)(?:(?!^rule|^use).)*?^    output:\n(.*?)^    \w", re.M | re.S
)
_MODEL = re.compile(r'model_in\("(.*?)"\)')
_EXTENDED = re.compile(r'multiext\("(.*?)", (.*?)\)', re.S)

WRITTEN = {
    "estimate.csv": ("settings", *work.COLUMNS),
    "<treebank>.csv": trees.ARC_COLUMNS,
    "curves.csv": progress.CURVE_COLUMNS,
    "masks.csv": training_run.MASK_COLUMNS,
    "slopes.csv": training_run.SLOPE_COLUMNS,
    "importance.csv": head_values.COLUMNS,
    "relevance.csv": head_values.COLUMNS,
    "attention.csv": head_values.COLUMNS,
    "positions.csv": head_measures.POSITION_COLUMNS,
    "syntax.csv": syntax.SYNTAX_COLUMNS,
    "headmask.csv": masking.COLUMNS,
    "untuned_masking.csv": masking.UNTUNED_COLUMNS,
    "heads.csv": head_values.COLUMNS,
    "gates.csv": pruning_run.GATE_COLUMNS,
    "speed.csv": speed.COLUMNS,
    "loss_change.csv": head_values.COLUMNS,
    "measures.csv": head_values.COLUMNS,
    "measures_fisher.csv": fisher.COLUMNS,
    "measures_means.csv": head_outputs.COLUMNS,
    "ablation.csv": ablation.COLUMNS,
    "pruning_profile.csv": pruning_profile.COLUMNS,
    "pruning_profile_areas.csv": pruning_profile.AREA_COLUMNS,
    "share_speed.csv": speed.COLUMNS,
    "importance_speed.csv": importance_speed.COLUMNS,
    "training_profile.csv": pruning_profile.TRAINING_COLUMNS,
    "training_profile_heads.csv": ("update", *head_values.COLUMNS),
    "classifier_ablation.csv": accuracy_columns(ablation.COLUMNS),
    "classifier_profile.csv": accuracy_columns(pruning_profile.COLUMNS),
    "classifier_profile_areas.csv": pruning_profile.AREA_COLUMNS,
}
"""Columns by name of the file, as its writer has them."""

_INTRODUCTION = """\
# Files and columns

The folder `text` is `data/text/<experiment>/<pair>`, and `bpe` is `data/bpe/<experiment>/<pair>`.
Every other folder is `results/<experiment>/<folder>`; what belongs to a run lies there in
`<pair>/<run>/seed<k>`. Times of pruned runs lie in `prune/<pair>/speed/seed<k>`.

## Kinds of files

The list of [tables and figures](outputs.md) names their input files by these kinds.

"""


def files_page() -> str:
    """Kinds of files with their rules and columns, then what every column means."""
    rows = "".join(
        f"| `{name}` | `{kind.folder}` | {_listed(kind.names)} | {OWNERS[kind.owner]} "
        f"| {_listed(makers(kind))} | {_told(name)} |\n"
        for name, kind in INPUTS.items()
    )
    parts = [
        f"{_INTRODUCTION}| kind | folder | files | of | rule | columns |\n"
        f"|---|---|---|---|---|---|\n{rows}",
        "## Columns\n\nOf the files above, and of the CSV of tables and figures, whose first line "
        "names them.\n",
    ]
    for title, found in {**meanings(), "The estimate (`estimate.csv`)": work.UNITS}.items():
        rows = "".join(f"| {_names(name)} | {words} |\n" for name, words in found.items())
        parts.append(f"### {title}\n\n| column | meaning |\n|---|---|\n{rows}")
    return "\n".join(parts)


def columns(kind: Input) -> tuple[str, ...]:
    """Columns of the files of a kind; none where they are no CSV or have those of other kinds."""
    return tuple(WRITTEN.get(Path(kind.names[0]).name, ()))


def _told(name: str) -> str:
    """The columns of a kind, or the first kind that has the same ones."""
    found = columns(INPUTS[name])
    first = next(each for each, kind in INPUTS.items() if columns(kind) == found)
    return _listed(found) if first == name or not found else f"as `{first}`"


def makers(kind: Input) -> list[str]:
    """Rules whose outputs name the first file of a kind; none for what jobs leave by themselves."""
    known = {"train": "<trained>|<run>", "prune": "<pruned>|<run>|<results>/prune/.*?"}
    folder = known.get(kind.folder, f"<{kind.folder}>")
    name = kind.names[0].replace("<measure>", r"\w+")
    name = re.sub(r"<\w+>", r"{\\w+}", name)
    bare = "?" if kind.folder == "prune" else ""  # a rule lists names for many folders
    path = re.compile(f'"(({folder})/){bare}{name}"')
    return [rule for rule, output in _outputs() if path.search(output)]


def _outputs() -> Iterator[tuple[str, str]]:
    """Every rule and what it lists as outputs; lists, `model_in` and `multiext` are spelt out."""
    lists = {name: str(found) for name, found in vars(folders).items() if name.isupper()}
    for file in sorted(RULES.glob("*.smk")):
        text = file.read_text(encoding="utf-8")
        known = lists | dict(_LIST.findall(text))
        for rule, output in _RULE.findall(text):
            words = re.split(r"\b([A-Z_]+)\b", output)
            spelt = "".join(known.get(word, word) for word in words).replace("'", '"')
            spelt = _MODEL.sub(rf'"\1/model/{folders.DESCRIPTION}"', spelt)
            yield rule, _EXTENDED.sub(_spell, spelt)


def _spell(extended: re.Match[str]) -> str:
    """The paths that a `multiext` stands for."""
    return " ".join(f'"{extended[1]}{end}"' for end in re.findall('"(.*?)"', extended[2]))


def meanings() -> dict[str, dict[str, str]]:
    """Meaning by column, by group of columns."""
    return yaml.safe_load(MEANINGS.read_text(encoding="utf-8"))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _names(names: str) -> str:
    return _listed(names.split(", "))

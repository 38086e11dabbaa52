"""Pages of the reference that are made from the code."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import yaml

from headcount.ablation import masking, pruning_profile
from headcount.analysis.claims.table import claims_page
from headcount.analysis.inputs import INPUTS, OWNERS, Input
from headcount.analysis.measures import MEASURES
from headcount.analysis.outputs import chapters
from headcount.base import errors, head_values
from headcount.base.handbook import settings_page
from headcount.base.settings.experiment import experiment_names, load_experiment
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


CONFIG = Path(__file__).parents[1] / "config"
RULES = Path(__file__).with_name("rules")
OF_PAPERS = ("headmask_ro", "headmask_tr", "headmask_vi", "headmask_zh", "voita_", "michel_")
"""Prefixes of the experiments with the corpora and sizes of a paper."""
_HEADER = re.compile(r"(?:#.*\n)+")
_RULE = re.compile(
    r'^(?:use rule (?P<base>\w+) as )?(?:rule )?(?P<name>\w+)(?: with)?:\n    """(?P<text>.*)"""',
    re.M,
)
_TEXT_OF_PAPERS = """# The papers' own experiments

`config/` contains one file for each experiment of a paper. Its comments list what the paper says,
what its code says, and what was chosen where both are silent. The corpora come from the addresses
in `config/corpora.yaml`. `snakemake -n --config experiment=headmask_ro` lists all jobs of an
experiment with nothing on disk.

"""

_TEXT_OF_OUTPUTS = """\
# Tables and figures

A chapter is one rule: `snakemake --cores all headmask` makes the tables and figures of HeadMask.
Tables are `results/<experiment>/tables/<name>.{csv,md,tex,json}`. Figures are
`results/<experiment>/figures/<name>.{pdf,svg,png,csv,json}`. The `.json` records how a table or
figure was made. A page is `results/<experiment>/<name>.html`.

A table or figure is made if the experiment has files of all the kinds that it is made from. Kinds
in brackets are optional. [Files and columns](files.md) lists the files of all kinds. The
declarations are in `src/headcount/analysis/tables/*/*.yaml`.
"""

_TEXT_OF_RULES = """\
# Rules

A rule runs the script of its name in `scripts/`; each has `--help`. `snakemake -n`
lists the jobs of an experiment. Folders in angle brackets are those of the experiment:
`<results>` is `results/<experiment>`.
"""

_TEXT_OF_EXIT_CODES = """\
# Exit codes

Every script ends with one of these (1 of `workflow/compare.py` says that files differ), and so does
`snakemake`: with the code of the job that failed, whose message it repeats. Where Snakemake itself
refuses its command line, its code is 1.

"""
_CTRL_C = "Ctrl-C ended the command. At the first, a training saves its state."


def outputs_page() -> str:
    """Return the list of all tables and figures, with the kinds of files they are made from."""
    parts = [_TEXT_OF_OUTPUTS]
    for chapter in chapters():
        rows = []
        for output in chapter.outputs:
            kinds = [*output.needs, *(f"({kind})" for kind in output.uses)]
            rows.append((f"`{output.name}`", output.form, output.title, ", ".join(kinds)))
        shown = table(("name", "form", "content", "made from"), rows)
        parts.append(f"## {chapter.title}: `{chapter.name}`\n\n{shown}")
    return "\n".join(parts)


def rules_page() -> str:
    """Return the list of all rules by file, with the inputs and outputs of the file."""
    parts = [_TEXT_OF_RULES]
    for file in sorted(RULES.glob("*.smk")):
        text = file.read_text(encoding="utf-8")
        header = re.sub(r"^# ?", "", _HEADER.match(text)[0], flags=re.M)
        rows = [
            (f"`{rule['name']}`", listed(filter(None, [rule["base"]])), rule["text"])
            for rule in _RULE.finditer(text)
        ]
        shown = table(("rule", "based on", "content"), rows)
        parts.append(f"## `{file.name}`\n\n```text\n{header}```\n\n{shown}")
    rows = [(f"`{chapter.name}`", chapter.title) for chapter in chapters()]
    parts.append(
        "## Chapters\n\nEach chapter of [tables and figures](outputs.md) is a rule.\n\n"
        + table(("rule", "tables and figures"), rows)
    )
    return "\n".join(parts)


def exit_codes_page() -> str:
    """Return the list of exit codes."""
    known = (errors.UserError, errors.EnvironmentFault)
    rows = [("0", "All is done."), ("1", "A bug: the message is a traceback.")]
    rows += [(str(fault.exit_code), fault.__doc__) for fault in known]
    rows += [("128 + signal", errors.Interrupted.__doc__), ("130", _CTRL_C)]
    rest = errors.__doc__.removeprefix("Faults that are not bugs. ")
    return f"{_TEXT_OF_EXIT_CODES}{table(('code', 'when'), rows)}\n{rest}\n"


def papers_page() -> str:
    """Return the table of the papers' experiments."""
    rows = []
    for name in (name for name in experiment_names(CONFIG) if name.startswith(OF_PAPERS)):
        settings = load_experiment(name, CONFIG)
        texts = ", ".join(settings.pairs or [settings.classifiers.corpus])
        runs = settings.runs if settings.pairs else []
        counts = [str(len(items)) for items in (settings.seeds, runs, settings.pruned)]
        rows.append((f"`{name}`", settings.title, texts, *counts))
    heads = ("experiment", "content", "pairs", "seeds", "runs", "pruned runs")
    return _TEXT_OF_PAPERS + table(heads, rows)


PAGES: dict[str, Callable[[], str]] = {
    "settings": settings_page,
    "rules": rules_page,
    "outputs": outputs_page,
    "files": files_page,
    "exit_codes": exit_codes_page,
    "claims_list": claims_page,
    "papers": papers_page,
}
"""All pages by name; the site has them in docs/reference."""

"""The page `config/README.md`: every key of the settings, made from the classes that check it."""

from pydantic.fields import FieldInfo

from headcount.base.settings.corpora import Corpus, Source, Treebank
from headcount.base.settings.data import SyntheticSettings
from headcount.base.settings.experiment import Experiment
from headcount.base.settings.flags import shown_default
from headcount.base.settings.gates import PRESETS as GATE_PRESETS
from headcount.base.settings.gates import GatesSettings
from headcount.base.settings.model import PRESETS, ModelSettings
from headcount.base.settings.runs import PrunedSettings, RunSettings, label
from headcount.base.settings.schema import Schema
from headcount.base.settings.section import Section

_INTRODUCTION = """\
# Settings

*Made from the classes in `src/headcount/base/settings`; after changing one, run
`python scripts/settings_handbook.py`.*

In: nothing. Out: `<experiment>.yaml`, one file per experiment, and `corpora.yaml`, the corpora
they may name. `snakemake --cores all --config experiment=multi30k` builds the experiment in
`multi30k.yaml`. Copy a file to make a new experiment; a key that is left out takes its default,
and a key that does not exist is an error. `--config` takes the experiment's name and nothing else:
a setting is changed in the file.

The files are plain YAML. Words that YAML readers disagree about (`no`, `on`, `010`, `12:30`)
must be quoted, and true and false are written so; anchors and tags are not read.
"""

_SWEEPS = """\
A list in a mapping stands for a run with each of its values; of several lists the last goes
fastest. Mappings and short names may stand side by side, and both end in the same paths:

```yaml
runs:
  - baseline
  - {method: [random, importance], share: 12.5%}        # random-12.5%, impt-12.5%
  - {method: importance, heads: 6, probability: 0.5}    # impt-6-p0.5
pruned:
  - {method: gates, lambda: [0, 0.01, 0.03]}            # gates-all-l0, gates-all-l0.01, …
  - {method: [scratch, importance, random], lambda: 0.03}
  - {method: gates, lambda: [0, 0.01], from: impt-12.5%}
```

The names that paths have (`gates-all-l0.01-from-impt-6`) are made from these settings, and
`run.json` beside each run's model has the settings themselves.
"""

_OWN_CORPUS = """\
## Adding a language pair

1. Put one sentence on each line, UTF-8, line n of one file translating line n of the other; a
   training file, a dev file and a test file for each language.
2. Describe them in `corpora.yaml`: the commented entry at its end is a pattern to copy. A file of
   one's own is a `path`; a published one is a `file` below `base_url`, with its `sha256`.
3. Name the pair, `<corpus>.<source>-<target>`, under `pairs` in an experiment file.

Call a language by its two letters, `ja` and not `jpn`: tokenisers and BLEU know it so. To score
translations into Japanese or Korean, first `pip install -e '.[ja]'` or `'.[ko]'`.

Corpus and experiment names have letters, digits, `_` and `-`; languages letters, digits and `_`;
splits and files may also have `.`.
"""


def _is_section(field: FieldInfo) -> bool:
    return isinstance(field.annotation, type) and issubclass(field.annotation, Section)


_SECTIONS: dict[str, tuple[str, type[Section]]] = {
    "": ("The experiment file", Experiment),
    "runs.": ("A run in `runs`", RunSettings),
    "pruned.": ("A run in `pruned`", PrunedSettings),
} | {
    f"{name}.": (f"`{name}`", field.annotation)
    for name, field in Experiment.model_fields.items()
    if _is_section(field)
}

_CORPORA: dict[str, tuple[str, type[Section]]] = {
    "<corpus>": ("A corpus", Corpus),
    "<corpus>.splits.<split>.<language>": ("A file", Source),
    "<corpus>.trees.<treebank>": ("A treebank", Treebank),
    "<corpus>.settings": ("The generated corpus", SyntheticSettings),
}


def write_page() -> str:
    """The whole page, Markdown."""
    parts = [_INTRODUCTION]
    for prefix, (title, section) in _SECTIONS.items():
        parts.append(f"## {title}\n\n{section.__doc__}\n\n{_keys(section, prefix)}")
        if section is PrunedSettings:
            parts.append(_SWEEPS)
        if section is ModelSettings:
            parts.append(f"Presets:\n\n{_presets()}")
        if section is GatesSettings:
            parts.append(f"The preset `paper`:\n\n{_paper_gates()}")
    parts.append(_OWN_CORPUS)
    for prefix, (title, section) in _CORPORA.items():
        parts.append(
            f"### {title}\n\n{section.__doc__} Keys below `{prefix}`:\n\n{_keys(section, '')}"
        )
    return "\n".join(parts)


def _keys(section: type[Section], prefix: str) -> str:
    fields = section.model_fields.items()
    rows = [_row(section, field, prefix, field.alias or name) for name, field in fields]
    return _table(("key", "value", "default", "meaning"), rows)


def _row(section: type[Section], field: FieldInfo, prefix: str, name: str) -> tuple[str, ...]:
    key = prefix + name
    if isinstance(field.default, RunSettings):
        return f"`{key}`", "a run, as in `runs`", f"`{label(field.default)}`", field.description
    if _is_section(field):
        return f"`{key}`", "a mapping: see below", "all its defaults", field.description
    schema = Schema(section)
    default = f"`{shown_default(field)}`" if shown_default(field) else "none"
    if field.is_required():
        default = "from the preset" if section is ModelSettings else "must be given"
    return f"`{key}`", schema.words(schema.at((name,))), default, field.description


def _presets() -> str:
    sizes = list(next(iter(PRESETS.values())))
    rows = [(f"`{name}`", *(str(each[size]) for size in sizes)) for name, each in PRESETS.items()]
    return _table(("preset", *sizes), rows)


def _paper_gates() -> str:
    rows = [(f"`gates.{key}`", f"`{value}`") for key, value in GATE_PRESETS["paper"].items()]
    return _table(("key", "value"), rows)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(_cell(text) for text in line)} |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")

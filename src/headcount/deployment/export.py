"""A model exported to a folder with all that it needs: weights and subwords."""

import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headcount.base.files import (
    check_apart,
    check_replaceable,
    read_json,
    whole_folder,
    write_json,
)
from headcount.base.folders import SEGMENTERS
from headcount.deployment.deployed import Deployed
from headcount.store.model_folder import ModelFolder

MARK = "export.json"
"""Marks an export, and lists its files, which another export may replace."""


@dataclass(frozen=True)
class Form:
    """The format of a model for a program."""

    save: Callable[[Path], None]
    summary: str
    facts: dict[str, Any] = field(default_factory=dict)


def own_form(what: Deployed) -> Form:
    """Return the form of this project: a model with its subwords beside it."""

    def save(part: Path) -> None:
        ModelFolder(part).save(what.model, dict(what.model.named_parameters()), what.facts())
        copy_segmenters(what, part, SEGMENTERS)

    size = what.model.grid.size
    return Form(save, f"{size} heads, none of them silent; as --model it needs no --bpe")


def write_export(
    what: Deployed,
    form: Form,
    out: Path,
    origin: dict[str, Any],
    inputs: Sequence[Path] = (),
    check: Callable[[Path], object] | None = None,
) -> str:
    """Write a model in a form, with an `export.json` that describes it; return a summary.

    `inputs`: folders that were read beside the model and its subwords. `check` compares the files
    before the folder has its name, so a failed folder is removed. Raises UserError for an `out`
    that overlaps the inputs or has files that no export wrote.
    """
    check_apart(out, [what.source.path, what.pair.path, *inputs])
    check_replaceable(out, "an earlier export", _listed(out))
    lines = [f"{out}: {form.summary}"]
    with whole_folder(out) as part:
        form.save(part)
        heads = {kind: list(counts) for kind, counts in what.model.grid.counts.items()}
        files = sorted(path.name for path in part.iterdir())
        about = {"heads": heads, **form.facts, "files": files, "provenance": origin}
        write_json(part / MARK, about)
        lines += [str(check(part))] if check else []
    return "\n".join(lines)


def copy_segmenters(what: Deployed, part: Path, names: Iterable[str]) -> None:
    """Copy these files of the subwords."""
    for path in what.pair.files(names):
        shutil.copyfile(path, part / path.name)


def _listed(out: Path) -> Iterable[str]:
    """Return the names of the files that an earlier export wrote there."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        return [*read_json(out / MARK)["files"], MARK]
    return []

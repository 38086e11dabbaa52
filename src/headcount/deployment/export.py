"""A model to use outside of its experiment: without masked units, in a folder with its subwords."""

import copy
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import torch

from headcount.base.addresses import Head
from headcount.base.errors import UserError
from headcount.base.files import check_apart, check_replaceable, read_json, whole_folder, write_json
from headcount.base.folders import SEGMENTERS
from headcount.deployment.pieces import used_ids, with_ids, write_pieces
from headcount.model.removal import order_heads, remove_units
from headcount.model.transformer import Transformer, parameter_count
from headcount.model.units import with_grid
from headcount.store.kept_heads import grid_named, read_mask
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

Mask = Sequence[str | Path] | str | Path  # see `read_mask`
_OWN_FACTS = ("format", "model", "src_size", "tgt_size", "joint", "sha256")
_OWN_FACTS += ("kept_heads", "closed_layers")


@dataclass(frozen=True)
class Deployed:
    """A model, its heads, and the folders of both."""

    model: Transformer
    originals: list[Head]  # of its heads in flat order: their addresses in the first model
    source: ModelFolder
    pair: PairFolder  # its subwords
    cut: TemporaryDirectory | None = None  # folder of these, if the vocabularies are cut

    @classmethod
    def open(
        cls, source: ModelFolder, pair: PairFolder, mask: Mask = (), device: str = "cpu"
    ) -> Self:
        """Return the model in a folder, without the units of a `mask`, see `read_mask`."""
        source.check(pair)
        model = source.load(device)
        whole = cls(model, source.original_heads(model.grid), source, pair)
        return whole.without(mask) if mask else whole

    def without(self, mask: Mask) -> Self:
        """Return a smaller model without the units. The others are numbered again in a layer."""
        whole = with_grid(self.model, grid_named(mask, self.model.settings))
        kept = read_mask(mask, whole.grid)
        smaller = remove_units(whole, torch.from_numpy(kept))
        heads = [self.originals[place] for place in whole.grid.heads_left(kept)]
        return replace(self, model=smaller, originals=heads)

    def with_pieces_of(self, *texts: str | Path) -> Self:
        """Return the model with a vocabulary of these texts' pieces, special pieces and marks.

        Other pieces become unknown, so give as much text as you have.
        """
        used = [used_ids(side, [*map(Path, texts)]) for side in self.pair.segmenters()]
        if self.model.own_src_embedding is None:
            used = [used[0] | used[1]] * 2
        kept, cut = [sorted(ids) for ids in used], TemporaryDirectory()
        pair = write_pieces(self.pair, kept, Path(cut.name))
        return replace(self, model=with_ids(self.model, kept), pair=pair, cut=cut)

    def place(self, original: Head) -> Head:
        """Return the address here of a head of the original model. Raises UserError if it lacks."""
        if original not in self.originals:
            lack = f"head {original.name()} does not exist in this model, or is masked"
            raise UserError(f"{lack}; take another head, or measure the model without it")
        return self.model.settings.grid.heads()[self.originals.index(original)]

    def beginning_with(self, heads: Sequence[Head]) -> Self:
        """Return the same function with these heads first in their layers."""
        grid = self.model.settings.grid
        first = [grid.index(head) for head in heads]
        rest = [place for place in range(grid.size) if place not in first]
        order = [
            place
            for *_, span in grid.layers()
            for place in (*first, *rest)
            if span.start <= place < span.stop
        ]
        originals = [self.originals[place] for place in order]
        return replace(self, model=order_heads(self.model, order), originals=originals)

    def on_cpu(self) -> Self:
        """Return a copy on the CPU."""
        return replace(self, model=copy.deepcopy(self.model).cpu())

    def facts(self) -> dict[str, Any]:
        """Return facts for its model.json beside its shape: its heads, and facts of its source."""
        source = self.source.facts()
        facts = {key: value for key, value in source.items() if key not in _OWN_FACTS}
        facts |= self.pair.subwords()
        facts["parameters"] = parameter_count(self.model)
        grid = self.model.settings.grid
        if "kept_heads" in source or grid.size < self.source.settings.grid.size:
            closed = [f"{kind}.{n}" for kind, n, at in grid.layers() if at.start == at.stop]
            facts |= {
                "kept_heads": [head.name() for head in self.originals],
                "closed_layers": closed,
            }
        return facts


MARK = "export.json"  # lists the files of an export, which another export may replace


@dataclass(frozen=True)
class Form:
    """The format of a model for a program."""

    save: Callable[[Path], None]
    subwords: Sequence[str]  # files of the pair that are copied beside it
    summary: str
    facts: dict[str, Any] = field(default_factory=dict)


def own_form(what: Deployed) -> Form:
    """Return the form of this project: a model with its subwords beside it."""
    model, size = what.model, what.model.settings.grid.size
    return Form(
        lambda part: ModelFolder(part).save(model, dict(model.named_parameters()), what.facts()),
        SEGMENTERS,
        f"{size} heads, none of them silent; as --model it needs no --bpe",
    )


def write_export(
    what: Deployed,
    form: Form,
    out: Path,
    origin: dict[str, Any],
    inputs: Sequence[Path] = (),
    check: Callable[[Path], object] | None = None,
) -> str:
    """Write a model in a form, as `write_form` does, with its subwords, and return a summary."""
    settings = what.model.settings
    heads = {kind: list(counts) for kind, counts in what.model.settings.grid.counts.items()}
    widths = {kind: list(counts) for kind, counts in settings.ffn_widths.items()}
    form = replace(form, facts={"heads": heads, "feed_forward_units": widths, **form.facts})
    folders = [what.source.path, what.pair.path, *inputs]
    return write_form(form, what.pair.files(form.subwords), out, origin, folders, check)


def write_form(
    form: Form,
    files: Sequence[Path],
    out: Path,
    origin: dict[str, Any],
    inputs: Sequence[Path],
    check: Callable[[Path], object] | None = None,
) -> str:
    """Write a form and copies of files, with an `export.json` that lists them; return a summary.

    `inputs`: folders that were read. `check` compares the files before the folder has its name.
    Raises UserError for an `out` that has files that no export wrote.
    """
    check_apart(out, inputs)
    earlier: list[str] = []
    with suppress(OSError, ValueError, KeyError, TypeError):
        earlier = [*read_json(out / MARK)["files"], MARK]
    check_replaceable(out, "an earlier export", earlier)
    lines = [f"{out}: {form.summary}"]
    with whole_folder(out) as part:
        form.save(part)
        for path in files:
            shutil.copyfile(path, part / path.name)
        names = sorted(path.name for path in part.iterdir())
        write_json(part / MARK, {**form.facts, "files": names, "provenance": origin})
        lines += [str(check(part))] if check else []
    return "\n".join(lines)

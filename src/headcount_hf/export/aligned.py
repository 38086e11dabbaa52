"""Heads that align source and target, in exports: where other programs look for them.

CTranslate2 returns the mean of the first heads of one decoder layer. Whisper has a list of heads in
its generation config. A list across layers lies beside other exports.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from headcount.base.addresses import Head
from headcount.base.errors import UserError, reading
from headcount.base.files import read_json, write_json
from headcount.deployment.export import Deployed, Form, write_form
from headcount_hf.pretrained.families import CONFIG
from headcount_hf.pretrained.library import whole_files
from headcount_hf.pretrained.segment import GENERATION

LIST = "alignment_heads.json"


@dataclass(frozen=True)
class Aligned:
    """Cross-attention heads that align, by their addresses in the original model."""

    layer: Sequence[Head]  # of one layer
    heads: Sequence[Head]  # of any layer

    @classmethod
    def of(cls, heads: Sequence[Head]) -> Self:
        """Return these heads, and the heads among them of the layer with the most."""
        heads = list(dict.fromkeys(heads))
        if not heads or any(head.kind != "dec_enc" for head in heads):
            names = ", ".join(head.name() for head in heads) or "none"
            raise UserError(f"alignment: expected heads such as dec_enc.1.3, found {names}")
        layer = Counter(head.layer for head in heads).most_common(1)[0][0]
        return cls([head for head in heads if head.layer == layer], heads)

    def shown_in(self, what: Deployed) -> tuple[int, int]:
        """Return the layer's number in this model, and how many of its heads align."""
        return what.place(self.layer[0]).layer, len(self.layer)

    def first_in(self, what: Deployed) -> Deployed:
        """Return the same function with the heads of the layer first. Raises as `place`."""
        return what.beginning_with([what.place(head) for head in self.layer])

    @classmethod
    def read(cls, given: Sequence[str]) -> Self:
        """Return heads by addresses, or the best heads of an alignment.json."""
        path = Path(given[0])
        if path.suffix != ".json":
            return cls.of(list(map(_head, given)))
        with reading(path, "scripts/alignment.py"):
            best = read_json(path)["best"]
            layer = list(map(_head, best["layer"]))
            return cls(layer, list(map(_head, best[str(len(layer))])))


def _head(name: str) -> Head:
    """Return the head of an address. Raises UserError for another text."""
    try:
        return Head.parse(name)
    except ValueError as fault:
        advice = "expected addresses such as dec_enc.1.3, or one alignment.json"
        raise UserError(f"alignment: {advice}, found {name!r}") from fault


def with_list(form: Form, heads: Sequence[Head], aligned: Aligned) -> Form:
    """Return a form with a list of the heads that align, by addresses there and in the original."""
    listed = {"heads": heads, "original_heads": aligned.heads}
    listed = {key: [head.name() for head in named] for key, named in listed.items()}

    def save(folder: Path) -> None:
        form.save(folder)
        write_json(folder / LIST, listed)

    summary = f"{form.summary}; heads that align: {', '.join(listed['heads'])}"
    return replace(form, save=save, summary=summary, facts=form.facts | {"alignment": listed})


def export_whisper(theirs: Path, heads: Sequence[Head], out: Path, origin: dict[str, Any]) -> str:
    """Copy a Whisper with these heads as `alignment_heads`, and return a summary."""
    files = [path for path in whole_files(theirs) if path.name != GENERATION]
    path = theirs / GENERATION
    with reading(theirs / CONFIG, "save_pretrained"):
        config = read_json(theirs / CONFIG)
        search = read_json(path) if path.is_file() else {}
    if config.get("model_type") != "whisper":
        raise UserError(f"{theirs}: --alignment expects a Whisper or a model of this project")
    sizes = config["decoder_layers"], config["decoder_attention_heads"]
    for head in heads:
        if head.layer not in range(sizes[0]) or head.head not in range(sizes[1]):
            expected = f"expected {sizes[0]} layers of {sizes[1]} heads"
            raise UserError(f"alignment: {theirs} has no {head.name()}, {expected}")
    search.pop("_from_model_config", None)  # with which the library forgets other keys
    search["alignment_heads"] = [list(head[1:]) for head in heads]
    form = Form(lambda part: write_json(part / GENERATION, search), (), "a Whisper")
    return write_form(form, files, out, origin, [theirs])

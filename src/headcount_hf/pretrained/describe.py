"""What settings say of a pretrained model, to be pasted into them."""

from collections.abc import Iterator
from pathlib import Path

from headcount.base.files import sha256
from headcount.base.settings.model import ModelSettings
from headcount_hf.pretrained.families import Config
from headcount_hf.pretrained.imports import imported_files


def describe(folder: Path, hub: str | None = None, commit: str | None = None) -> Iterator[str]:
    """Give lines of YAML about the model in a folder, for an experiment and models.yaml.

    `hub`, `commit`: where that came from, if not from oneself.
    """
    config = Config.read(folder)
    defaults = ModelSettings().model_dump()
    sizes = config.settings().model_dump(exclude={"preset", "d_head"})
    yield "# in config/models.yaml"
    yield f"{_name(folder)}:"
    yield "  licence: see the model card"
    yield "  citation: see the model card"
    yield from [f"  hub: {hub}", f"  revision: {commit}"] if hub else [f"  path: {folder}"]
    yield "  files:"
    for path in imported_files(folder):
        yield f"    {path.name}: {sha256(path)}"
    yield "# in config/<experiment>.yaml"
    yield "text: {normal_form: none}"
    yield "model:"
    yield f"  imported: {_name(folder)}"
    for key, value in sizes.items():
        if value != defaults[key]:
            yield f"  {key}: {str(value).lower() if isinstance(value, bool) else value}"


def _name(folder: Path) -> str:
    """Return a name for a model that settings allow."""
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in folder.resolve().name)

"""Frame of every command: flags, settings and provenance."""

import argparse
import json
import os
import platform
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, get_args

from headcount.base import fingerprint
from headcount.base.ending import run
from headcount.base.files import check_apart, sha256
from headcount.base.settings.data import BpeSettings
from headcount.base.settings.flags import add_flags, from_flags
from headcount.base.settings.metrics import read_metrics
from headcount.base.settings.section import Section

_PACKAGES = ("torch", "numpy", "sacrebleu", "subword-nmt", "sacremoses", "jieba", "pandas",
             "snakemake")  # fmt: skip

HUGGING_FACE = ("transformers", "tokenizers", "safetensors", "accelerate")
"""Packages beside `_PACKAGES` that shape results of models of that library."""

Flag = tuple[str, dict[str, Any]]  # name, in brackets if it may be left out; options of argparse


def flag(name: str, description: str, **options: Any) -> Flag:
    """Return a flag. It is required unless it has a default or its name is in brackets."""
    return name, {"help": description, **options}


path = partial(flag, type=Path)


def _manifest(text: str) -> Path:
    if Path(text).name != "manifest.json":
        raise argparse.ArgumentTypeError(f"expected a file named manifest.json, found {text}")
    return Path(text)


MANIFEST = flag("--out", "<folder>/manifest.json to write", type=_manifest)
_UNSPACED = BpeSettings.model_fields["unsegmented_scripts"]
_SHARED: dict[str, dict[str, Any]] = dict([
    path("--model", "folder of the model"),
    path("--init-from", "folder of the model to prune"),
    path("--bpe", "folder of the segmented pair"),
    flag("--mask", "masked heads: addresses such as enc_self.0.3, or files: a heads.csv with gates,"
         " a text that lists heads", nargs="+", default=[]),
    path("--text", "folder of the pair's text"),
    flag("--metrics", "metrics beside BLEU by name, each with command and scale, as JSON",
         type=read_metrics, default={}),
    flag("--seed", "seed of all random draws", type=int),
    path("--importance", "importance.csv of the model, which ranks its heads"),
    path("--kept", "heads.csv of the gates run"),
    path("--treebanks", "files that trees.py wrote", nargs="*", default=[]),
    path("--pretrained", "folder of the Hugging Face model"),
    flag("--revision", "commit of a model on the hub, in full", metavar="COMMIT"),
    flag("--corpus", "name of the corpus, such as multi30k"),
    flag("--entry", "its entry in config/corpora.yaml or config/models.yaml, as JSON",
         type=json.loads),
    path("--raw", "manifest.json of the corpus"),
    path("--source", "text, a sentence on each line"),
    flag("--pretokenised", "text is tokenised already", action="store_true", default=False),
    flag("--unsegmented-scripts", "words of scripts without spaces, as in the settings under bpe",
         choices=get_args(_UNSPACED.annotation), default=_UNSPACED.default),
    flag("--src-lang", "source language, such as en"),
    flag("--tgt-lang", "target language, such as de"),
    flag("--run", "settings of a run, such as {method: random, heads: 6}"),
    path("--state", "folder of unfinished states"),
    flag("--save-seconds", "time between two saved states", type=float, default=30),
    path("--out-folder", "folder to write into"),
    *[path(f"--{split}-{side}", f"cleaned {split} text, {side}")
      for split in ("train", "dev") for side in ("src", "tgt")],
])  # fmt: skip
TRAINING = ("--bpe", "--seed", "--state", "--save-seconds", "--run")
"""Flags of all scripts that train a model."""
WORDS = ("--pretokenised", "--unsegmented-scripts")
"""Flags of all scripts that cut plain text into words."""
MASKING = ("--model", "--bpe", "--text", "--metrics")
"""Flags of all scripts that translate with heads of one model masked."""
CLEANED = ("--src-lang", "--tgt-lang", "--train-src", "--train-tgt", "--dev-src", "--dev-tgt")
"""Flags of all scripts that cut cleaned text into subwords."""


_FORMATTER = argparse.ArgumentDefaultsHelpFormatter


class _Parser(argparse.ArgumentParser):
    """Parser that refuses an output folder that is an input, holds or lies in one."""

    folder = "out_folder"
    """Attribute of the output folder in what is parsed."""

    def parse_known_args(self, args=None, namespace=None):
        flags, rest = super().parse_known_args(args, namespace)
        paths = {a.dest: vars(flags).get(a.dest) for a in self._actions if a.type is Path}
        if out := paths.pop(self.folder, None):
            paths.pop("state", None)  # written, too
            inputs = (item if isinstance(item, list) else [item] for item in paths.values())
            check_apart(out, filter(None, chain.from_iterable(inputs)))
        return flags, rest


def parser(
    description: str, *flags: str | Flag, out: str = "", folder: str = ""
) -> argparse.ArgumentParser:
    """Return a parser of flags, shared ones by name, with `--out` for a file or a folder."""
    made = _Parser(description=description, formatter_class=_FORMATTER, allow_abbrev=False)
    return with_flags(made, *flags, out=out, folder=folder)


def with_flags(
    made: argparse.ArgumentParser, *flags: str | Flag, out: str = "", folder: str = ""
) -> argparse.ArgumentParser:
    """Return a parser with these flags added, as of `parser`."""
    outputs = [path("--out", out or folder)] * bool(out or folder)
    for item in (*flags, *outputs):
        shown, options = (item, _SHARED[item.strip("[]")]) if isinstance(item, str) else item
        name = shown.strip("[]")
        if name.startswith("-"):
            options = {"required": shown == name and "default" not in options} | options
        made.add_argument(name, **options)
    if folder:
        made.folder = "out"
    return made


IDENTITY = ("settings", "seed", "code", "inputs", "versions")
"""Parts of a provenance that decide a training. A state with the same parts may be resumed."""


class Flags(argparse.Namespace):
    """Parsed flags of a script, which describe the origin of its result."""

    script: str  # relative to the project's root
    sections: dict[str, Section]  # settings that are recorded

    def origin(
        self,
        *inputs: Path | Iterable[Path] | None,
        modules: Sequence[str] = (),
        packages: Sequence[str] = (),
        **settings: Any,
    ) -> dict[str, Any]:
        """Return the provenance of the result as JSON, without machine, person and time.

        `inputs` are hashed. `settings` are recorded beside the sections, or in place of one; None
        removes it. `modules` are imported by their names. `packages` shaped this result beside
        `_PACKAGES`.
        """
        files = fingerprint.code(self.script, *modules)
        paths = chain.from_iterable([i] if isinstance(i, Path) else i or () for i in inputs)
        return {
            "command": [_without_home(argument) for argument in sys.argv],
            "settings": {
                name: value.model_dump() if isinstance(value, Section) else value
                for name, value in (self.sections | settings).items()
                if value is not None
            },
            "seed": getattr(self, "seed", None),
            "code": {"digest": fingerprint.digest(files), "files": files},
            "inputs": {_without_home(path.as_posix()): sha256(path) for path in sorted(paths)},
            "versions": _versions(packages),
        }


def script(*flags: str | Flag, out: str = "", folder: str = "") -> Callable[..., Any]:
    """Make a function the command of its file, with these flags, and run it if the file is run.

    The function gets `Flags`, then sections of settings, whose keys are flags too.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        def main() -> None:
            made = parser(function.__globals__["__doc__"], *flags, out=out, folder=folder)
            _add_sections(made, function)
            file = f"scripts/{Path(function.__code__.co_filename).name}"
            _call(function, made.parse_args(namespace=Flags(script=file)))

        if function.__module__ == "__main__":
            run(main)
        return function

    return decorate


class SubCommand(NamedTuple):
    """A function as of `script`, with its flags. Its docstring is the help."""

    function: Callable[..., None]
    flags: tuple[str | Flag, ...]
    out: str = ""
    folder: str = ""


def run_one(description: str, commands: Mapping[str, SubCommand]) -> None:
    """Parse the command line and run the sub-command that it names."""

    def main() -> None:
        made = parser(description)
        added = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
        for name, (function, flags, out, folder) in commands.items():
            text = " ".join(function.__doc__.split())
            texts = {"help": text.partition(". ")[0].rstrip("."), "description": text}
            own = added.add_parser(name, allow_abbrev=False, formatter_class=_FORMATTER, **texts)
            _add_sections(with_flags(own, *flags, out=out, folder=folder), function)
        args = made.parse_args(namespace=Flags())
        function = commands[args.command].function
        args.script = function.__code__.co_filename
        _call(function, args)

    run(main)


def _sections(function: Callable[..., None]) -> dict[str, type[Section]]:
    annotated = function.__annotations__.items()
    return {name: kind for name, kind in annotated if name not in ("args", "return")}


def _add_sections(made: argparse.ArgumentParser, function: Callable[..., None]) -> None:
    for kind in _sections(function).values():
        add_flags(made, kind)


def _call(function: Callable[..., None], args: Flags) -> None:
    args.sections = {n: from_flags(args, kind) for n, kind in _sections(function).items()}
    function(args, **args.sections)


def _without_home(argument: str) -> str:
    """Return the argument with the working folder left out of paths, and the home folder as `~`."""
    for folder, short in ((Path.cwd(), ""), (os.path.expanduser("~"), "~/")):
        argument = re.sub(rf"(?<![^\s\"'=]){re.escape(str(folder))}/", short, argument)
    return argument


def _versions(packages: Sequence[str]) -> dict[str, str]:
    """Return versions of Python, these packages and `_PACKAGES`, where they are installed."""
    versions = {"python": platform.python_version()}
    for package in (*_PACKAGES, *packages):
        with suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return versions

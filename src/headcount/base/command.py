"""What every script shares: a parser, provenance, exit codes, an end when the workflow ends."""

import argparse
import ctypes
import errno
import gc
import os
import platform
import re
import select
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn, get_args

from headcount.base import fingerprint
from headcount.base.errors import EnvironmentFault, HeadcountError, UserError, lacks_memory
from headcount.base.files import check_apart, sha256
from headcount.base.settings.data import BpeSettings
from headcount.base.settings.section import Section

ENGINE = "HEADCOUNT_JOB"
"""Variable in which Snakemake and DVC tell a job their process id."""

# What the machine refuses, and what the caller named wrongly; what to do about each.
_REFUSED = {
    errno.ENOSPC: "make room on the disk, and give the same command again",
    errno.EDQUOT: "make room within your quota, and give the same command again",
    errno.EFBIG: "raise the limit on the size of a file (ulimit -f)",
    errno.EROFS: "work in a folder that can be written",
    errno.EACCES: "ask its owner, or work in a folder of your own",
    errno.EPERM: "ask its owner, or work in a folder of your own",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
}
_MISNAMED = {
    errno.ENOENT: "correct the name, or make it first",
    errno.EEXIST: "expected a folder, or nothing yet; move what is there",
    errno.ENOTDIR: "a part of this path is a file; correct the name",
    errno.EISDIR: "expected a file; correct the name",
    errno.ELOOP: "this link leads back to itself; replace it",
    errno.ENAMETOOLONG: "take a shorter name",
}

_PACKAGES = ("torch", "numpy", "sacrebleu", "subword-nmt", "sacremoses", "jieba", "pandas",
             "snakemake")  # fmt: skip

HUGGING_FACE = ("transformers", "tokenizers", "safetensors", "accelerate")
"""Packages that shape what is made with models of that library beside those that shape all."""

# Flags of several scripts: what argparse is told of each. One without a default must be given.
_SHARED: dict[str, dict[str, Any]] = {
    "--model": {"type": Path, "help": "folder of the model"},
    "--init-from": {"type": Path, "help": "folder of the model to prune"},
    "--bpe": {"type": Path, "help": "folder of the segmented pair"},
    "--mask": {
        "nargs": "+",
        "default": [],
        "help": "silent heads: addresses such as enc_self.0.3, or files: gates in a heads.csv, a"
        " text that lists heads",
    },
    "--text": {"type": Path, "help": "folder of the pair's text"},
    "--seed": {"type": int, "help": "of all that is drawn at random"},
    "--importance": {"type": Path, "help": "importance.csv of the model, which ranks its heads"},
    "--kept": {"type": Path, "help": "heads.csv of the gates run"},
    "--treebanks": {"nargs": "*", "default": [], "type": Path, "help": "files trees.py wrote"},
    "--corpus": {"help": "name of the corpus, such as multi30k"},
    "--raw": {"type": Path, "help": "manifest.json of the corpus"},
    "--source": {"type": Path, "help": "text, a sentence on each line"},
    "--pretokenised": {
        "action": "store_true",
        "default": False,
        "help": "text is tokenised already",
    },
    "--unsegmented-scripts": {
        "choices": get_args(BpeSettings.model_fields["unsegmented_scripts"].annotation),
        "default": BpeSettings().unsegmented_scripts,
        "help": "what words of scripts without spaces are, as in the settings under bpe",
    },
    "--src-lang": {"help": "source language, such as en"},
    "--tgt-lang": {"help": "target language, such as de"},
    "--src-code": {"default": "", "help": "the model's own name of the source language, if any"},
    "--tgt-code": {"default": "", "help": "the model's own name of the target language, if any"},
    "--prefix": {"default": "", "help": "what the model is told in front of every source"},
    "--state": {"type": Path, "help": "folder of unfinished states"},
    "--out-folder": {"type": Path, "help": "folder to write into"},
    "--save-seconds": {"type": float, "default": 30, "help": "time between two saved states"},
}
TRAINING = ("--bpe", "--seed", "--state", "--save-seconds")
"""What every script that trains a model asks."""
WORDS = ("--pretokenised", "--unsegmented-scripts")
"""What every script asks that cuts plain text into words."""
HOOKED = ("--text", "--src-code", "--tgt-code", "--prefix")
"""What every script asks about the text of a model that stays in Hugging Face's library."""
MASKING = ("--model", "--bpe", "--text")
"""What every script asks that translates with heads of one model masked."""


class _Parser(argparse.ArgumentParser):
    """Parser of a script that refuses an output folder that is an input, holds or lies in one."""

    folder = "out_folder"
    """The flag that names the output folder, as an attribute of what is parsed."""

    def parse_known_args(self, args=None, namespace=None):
        found, rest = super().parse_known_args(args, namespace)
        paths = {a.dest: vars(found).get(a.dest) for a in self._actions if a.type is Path}
        if out := paths.pop(self.folder, None):
            paths.pop("state", None)  # written, too
            each = (path if isinstance(path, list) else [path] for path in paths.values())
            check_apart(out, filter(None, chain.from_iterable(each)))
        return found, rest


def parser(
    description: str, *flags: str, out: str = "", folder: str = ""
) -> argparse.ArgumentParser:
    """Parser of a script: its docstring as help, each default shown once, no abbreviations.

    `flags`: those that it shares with other scripts, in brackets those that may be left out;
    `out`: what it writes to `--out`, if it does; `folder`: the same for a folder of its own.
    """
    made = _Parser(
        description=description,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    for shown in flags:
        flag = shown.strip("[]")
        required = shown == flag and "default" not in _SHARED[flag]
        made.add_argument(flag, required=required, **_SHARED[flag])
    if out or folder:
        made.add_argument("--out", required=True, type=Path, help=out or folder)
    if folder:
        made.folder = "out"
    return made


IDENTITY = ("settings", "seed", "code", "inputs", "versions")
"""What of a provenance decides a training: a state with the same may be gone on from."""


def provenance(
    script: str,
    settings: dict[str, Any],
    seed: int | None,
    inputs: list[Path],
    modules: Sequence[str] = (),
    packages: Sequence[str] = (),
) -> dict[str, Any]:
    """What made a result, as JSON that says nothing about the machine, the person or the time.

    `script` is relative to the project's root, such as `scripts/text.py`; `modules` are those that
    it imports by their names. `settings` are what it was told, sections by their names. `inputs`
    are hashed (SHA-256) and listed by path, sorted. `packages` are those that shaped this result
    beside the ones that shape every result.
    """
    files = fingerprint.code(script, *modules)
    told = {
        name: value.model_dump() if isinstance(value, Section) else value
        for name, value in settings.items()
    }
    return {
        "command": [_without_home(argument) for argument in sys.argv],
        "settings": told,
        "seed": seed,
        "code": {"digest": fingerprint.digest(files), "files": files},
        "inputs": {_without_home(path.as_posix()): sha256(path) for path in sorted(inputs)},
        "versions": _versions(packages),
    }


def _without_home(argument: str) -> str:
    """The argument with paths below the working folder made relative, and the home folder `~`."""
    # Where a user has no home, as in a container, "~" stays what it is.
    for folder, short in ((Path.cwd(), ""), (Path(os.path.expanduser("~")), "~/")):
        if folder != Path(folder.anchor):
            # Not in the middle of a longer path that ends the same way.
            argument = re.sub(rf"(?<![\w.~-]){re.escape(folder.as_posix())}/", short, argument)
    return argument


def _versions(packages: Sequence[str]) -> dict[str, str]:
    """Versions of Python, these packages and all that can change any number, where installed."""
    found = {"python": platform.python_version()}
    for package in (*_PACKAGES, *packages):
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def run(main: Callable[[], None]) -> None:
    """Call `main` and leave with 0, or 2 (user), 3 (environment), 1 (bug, with traceback).

    At Ctrl-C with 130 and without a word; a training that it asks to stop tells what it saved.
    """
    try:
        fingerprint.require_own_package(Path(sys.argv[0]).resolve().parent.parent)
        _die_with_engine()
        gc.freeze()  # modules stay; to look through them for garbage took a hundredth of a search
        main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except HeadcountError as fault:
        _leave(str(fault), fault.exit_code)
    except (MemoryError, RuntimeError) as fault:
        if not lacks_memory(fault):
            raise
        line = str(fault).partition("\n")[0][:200] or type(fault).__name__
        less = "lower the sizes of the model or of the batches, or take a machine with more memory"
        _leave(f"out of memory ({line}); {less}", EnvironmentFault.exit_code)
    except BrokenPipeError:
        if not _stdout_is_cut():
            raise
        _leave_unread()
    except OSError as fault:
        if fault.errno not in _REFUSED | _MISNAMED:
            raise
        where = fault.filename or "standard output, or a file without a name"
        user = fault.errno in _MISNAMED
        _leave(
            f"{where}: {fault.strerror}; {(_REFUSED | _MISNAMED)[fault.errno]}",
            UserError.exit_code if user else EnvironmentFault.exit_code,
        )


def _leave(message: str, code: int) -> NoReturn:
    """Leave with a message and an exit code; with the code alone if the log is on a full disk."""
    try:
        print(f"error: {message}", file=sys.stderr, flush=True)
        sys.stdout.flush()
    except OSError:
        _write_nowhere()
    sys.exit(code)


def _stdout_is_cut() -> bool:
    """Return whether standard output is a pipe whose reader has ended."""
    poll = select.poll()
    poll.register(1, 0)  # no event but errors
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _leave_unread() -> NoReturn:
    """Leave as SIGPIPE would, since the reader of standard output has ended, as `head` does."""
    _write_nowhere()
    sys.exit(128 + signal.SIGPIPE)


def _write_nowhere() -> None:
    """What Python still writes as it ends goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def die_with_parent() -> None:
    """On Linux: be killed when the parent process ends, however it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1 is PR_SET_PDEATHSIG


def has_engine() -> bool:
    """Whether Snakemake or DVC started this command, and records what it makes when it ends."""
    return bool(os.environ.get(ENGINE))


def _die_with_engine() -> None:
    """Under Snakemake or DVC: be killed with it, so that no job outlives its run.

    They put their process id into HEADCOUNT_JOB; another parent means the engine is gone. Raises
    EnvironmentFault then, but for a question about flags. What srun starts SLURM ends.
    """
    engine = os.environ.get(ENGINE)
    if int(os.environ.get("SLURM_STEP_NUM_TASKS", 1)) > 1:
        return
    if not engine or sys.platform != "linux" or {"-h", "--help"} & set(sys.argv):
        return
    die_with_parent()
    if engine != str(os.getppid()):
        raise EnvironmentFault(
            "HEADCOUNT_JOB: expected the id of the process that started this command, found "
            f"{engine[:20]!r}. Snakemake and DVC set it for their jobs: theirs has ended, or the "
            "variable is left in this shell; then: unset HEADCOUNT_JOB"
        )

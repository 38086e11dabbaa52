"""Base classes of sections, and names: of corpora, files, languages and pairs."""

import difflib
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from headcount.base.errors import UserError

# Beyond these limits a typing error takes the machine down.
LARGEST = 10**6  # widths, budgets and other sizes that memory grows with
MOST_DRAWS = 10**4


def each_once(entries: list) -> list:
    """Return the list unchanged. Raises ValueError if it has an entry twice."""
    seen = set()
    for entry in entries:
        if entry in seen:
            raise ValueError(f"{entry!r} is listed twice; name each entry once")
        seen.add(entry)
    return entries


def _ascending(numbers: list[int]) -> list[int]:
    if numbers != sorted(set(numbers)):
        raise ValueError(f"expected each number once, the smallest first, found {numbers}")
    return numbers


Numbers = Annotated[list[Annotated[int, Field(ge=1)]], AfterValidator(_ascending)]
Percents = Annotated[list[Annotated[int, Field(ge=1, le=100)]], AfterValidator(_ascending)]
Threads = Annotated[int, Field(ge=1, le=1024)]
Faults = Iterator[tuple[str, Any]]  # messages with the condition under which they are raised


def refuse(*faults: tuple[str, Any]) -> None:
    """Raise ValueError with the first message whose condition is true."""
    for message, condition in faults:
        if condition:
            raise ValueError(message)


class Section(BaseModel):
    """Settings that cannot change once read. `True` and `'1'` are not numbers."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    flag_prefix: ClassVar[str] = ""
    """Start of flags on command lines that have two sections with keys of one name."""

    @model_validator(mode="after")
    def _check_faults(self) -> "Section":
        for kind in reversed(type(self).__mro__):
            for fault in vars(kind).get("_faults", lambda _: ())(self):
                refuse(fault)
        return self


class Compute(Section):
    """Device and threads of a job."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to compute; auto takes a GPU where there is one."""
    threads: Threads = 1
    """CPU threads of one job. In training, sums depend on it in their last bits."""


class Batches(Compute):
    """Device, threads and batch size of a job."""

    batch_tokens: int = Field(4096, ge=1, le=LARGEST)
    """Budget of one batch: sentences × the longest sentence on either side (subwords)."""


class Precision(Compute):
    """Device, threads and number format of a training."""

    precision: Literal["fp32", "bf16", "auto"] = "fp32"
    """Number format of matrix products in training. auto: bf16 where the processor is clearly
    faster and the model wide enough to gain, else fp32; a resumed training keeps it."""


class Resources(Batches, Precision):
    """Device, threads, number format and batch size of all jobs."""


NAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}"  # of a corpus or an experiment
LANGUAGE = r"[A-Za-z0-9][A-Za-z0-9_]{0,31}"  # no hyphen: `<source>-<target>` reads one way only
FILE = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}"  # of a file, a split or a treebank
SHA256 = "^[0-9a-f]{64}$"
NO_BRACES = r"^[^\n\r{}]+$"  # for paths: braces would be wildcards to the workflow
CorpusName = Annotated[str, Field(pattern=f"^{NAME}$")]
Language = Annotated[str, Field(pattern=f"^{LANGUAGE}$")]
FileName = Annotated[str, Field(pattern=f"^{FILE}$")]


class Pair(NamedTuple):
    """Corpus, source language, target language; as text `<corpus>.<src>-<tgt>`."""

    corpus: str
    src: str
    tgt: str

    def __str__(self) -> str:
        return f"{self.corpus}.{self.src}-{self.tgt}"


def parse_pair(text: str) -> Pair:
    """Return the pair named by `<corpus>.<src>-<tgt>`, as in multi30k.en-de. Raises UserError."""
    match = re.fullmatch(rf"({NAME})\.({LANGUAGE})-({LANGUAGE})", text)
    if not match or match[2] == match[3]:
        form = "<corpus>.<source>-<target> as in multi30k.en-de"
        raise UserError(f"expected {form}, found {text[:100]!r}")
    return Pair(*match.groups())


def require(name: str, known: Collection[str], lack: str) -> None:
    """Raise UserError with `lack` and the nearest known name, unless a name is known."""
    if name not in known:
        raise UserError(f"{lack}; {nearest(name, known)}")


def nearest(name: str, known: Collection[str]) -> str:
    """Return 'nearest: peak_lr' if a known name is close, else 'known: ' and all names."""
    names = {one.lower(): one for one in known}
    close = difflib.get_close_matches(name.lower(), names, n=1)
    return f"nearest: {names[close[0]]}" if close else f"known: {', '.join(known) or 'none'}"


def check_own_file(path: str, settings: str = "config/corpora.yaml") -> None:
    """Raise UserError unless a path in `settings` leads to a file."""
    if not Path(path).is_file():
        remedy = f"correct the path in {settings}, or put the file there"
        raise UserError(f"{path}: expected a file of your own, found none; {remedy}")

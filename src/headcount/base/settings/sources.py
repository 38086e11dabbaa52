"""Where the text of a corpus lies: published files, files of one's own, members of archives."""

import os
import re
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from headcount.base.settings.names import FileName, Language, check_file_name, fitting
from headcount.base.settings.section import Section

_ARCHIVES = (".tar", ".tgz", ".tar.gz", ".zip")  # ends of the names of files that hold others

Format = Literal["plain", "moses", "sgm", "wmt", "ted", "tmx", "tsv", "csv"]

BY_LANGUAGE = frozenset({"tmx", "wmt"})
"""Formats of files that hold several languages, of which each side reads its own."""

_TABLES = frozenset({"tsv", "csv"})
_NO_LINES = frozenset({"json", "jsonl", "xlf", "xliff", "po", "srt", "vtt", "html"})
"""Ends of the names of files whose lines are no sentences."""

_FORMATS: dict[str, Format] = {".sgm": "sgm", ".sgml": "sgm", ".xml": "sgm", ".tmx": "tmx"}


def _digits(count: int) -> AfterValidator:
    words = f"{count} hexadecimal digits in lower case"
    return AfterValidator(fitting(f"[0-9a-f]{{{count}}}", words))


def _check_member(text: str) -> str:
    for part in text.split("/"):
        check_file_name(part)
    return text


def _check_path(text: str) -> str:
    # Braces would be wildcards to the workflow, and no line of a list can hold a line end.
    if not text or not text.isprintable() or set(text) & set("{}"):
        raise ValueError(f"expected a path without braces or line ends, found {text[:100]!r}")
    return text


# Plain http is for a server on this machine.
_ADDRESS = r"(https://[A-Za-z0-9]|http://(127\.0\.0\.1|localhost)(?=[:/]|$))[A-Za-z0-9./_~%:+-]*"
Url = Annotated[
    str,
    AfterValidator(fitting(_ADDRESS, "an address that starts with https://")),
    AfterValidator(lambda text: text.rstrip("/")),
]


def _check_last(url: str) -> str:
    check_file_name(url.rpartition("/")[2])
    return url


class File(Section):
    """A published file, or one of one's own."""

    _ways: ClassVar[tuple[str, ...]] = ("file", "url", "path")

    file: FileName | None = None
    """Name of a published file in the folder at the corpus's `base_url`; with a `url`, the name
    that the file gets here, if another of the corpus has that of the address."""

    url: Annotated[Url, AfterValidator(_check_last)] | None = None
    """Whole address of a published file."""

    sha256: Annotated[str, _digits(64)] | None = None
    """Checksum of the file. Without one, the first fetch records it in `corpora.lock.yaml`."""

    md5: Annotated[str, _digits(32)] | None = None
    """Checksum that the first fetch must match, where no other was published."""

    bytes: int | None = Field(None, ge=1)
    """Size of the file in bytes, where that is known before it is fetched."""

    member: Annotated[str, AfterValidator(_check_member)] | None = None
    """The text's name inside the file, when that is a .tar, .tgz, .tar.gz or .zip."""

    path: Annotated[str, AfterValidator(_check_path)] | None = None
    """A file of one's own, instead of `file` or `url`; relative to the project's folder."""

    @property
    def name(self) -> str:
        """Name of the file itself, without folders."""
        return (self.file or self.url or self.path or "").rpartition("/")[2]

    @model_validator(mode="after")
    def _check_kind(self) -> "File":
        given = [way for way in self._ways if getattr(self, way) is not None]
        if len(given) != 1 and given != ["file", "url"]:
            found = " and ".join(given) or "none"
            raise ValueError(f"expected one of {', '.join(self._ways)}, found {found}")
        if (self.member is not None) != self.name.endswith(_ARCHIVES):
            raise ValueError(
                f"member names a file inside a {', '.join(_ARCHIVES)}, which needs one"
            )
        return self


class Source(File):
    """A file with sentences."""

    format: Format | None = None
    """How the sentences stand in it. By default: `sgm` (WMT, NIST, IWSLT) for .sgm, .sgml and
    .xml, `tmx` for .tmx, else `plain`, one a line. `moses` is the same with the entities of Moses's
    tokeniser, such as `&apos;`. `wmt` is WMT's XML since 2021, `ted` IWSLT's train.tags. `tsv` is a
    table, `csv` one whose cells may be quoted."""

    column: Annotated[int, Field(ge=1)] | Annotated[str, Field(min_length=1)] | None = None
    """Column of a table, counted from 1, or its name in the first line; goes with `tsv`, `csv`."""

    separator: str | None = Field(None, min_length=1)
    """What stands between the columns of a table; by default a tab, in `csv` a comma."""

    translator: str | None = Field(None, min_length=1)
    """Whose translation it is, in a file in `sgm` or `wmt` that holds several: its `sysid`, its
    translator or its system, or the translator's number in their order, from 1."""

    @property
    def read_as(self) -> Format:
        """The format, found by the end of the name if it is not given."""
        return self.format or _FORMATS.get("." + self._end, "plain")

    @property
    def _end(self) -> str:
        """End of the text's name, without that of packing."""
        inner = re.sub(r"\.(gz|bz2|xz)$", "", self.member or self.name)
        return inner.rpartition(".")[2].lower()

    @property
    def text(self) -> tuple[Any, ...]:
        """What tells one text from another: its file, and where it stands in there."""
        place = os.path.normpath(self.path) if self.path else self.url or self.file
        return place, self.member, self.read_as, self.column, self.translator

    @model_validator(mode="after")
    def _check_format(self) -> "Source":
        if self.format is None and self._end in _TABLES:
            raise ValueError(
                f"a .{self._end} is a table; add format: {self._end} and column: its number or name"
            )
        if self.format is None and self._end in _NO_LINES:
            raise ValueError(
                f"a .{self._end} is not read; save it as text with a sentence a line, or add "
                "format: plain to take its lines as they are"
            )
        if (self.read_as in _TABLES) != (self.column is not None):
            raise ValueError("format tsv or csv and column go together")
        if self.separator is not None and self.read_as not in _TABLES:
            raise ValueError("separator is for the formats tsv and csv")
        if self.read_as == "csv" and len(self.separator or ",") > 1:
            raise ValueError("separator: expected a single character for the format csv")
        if self.translator is not None and self.read_as not in ("sgm", "wmt"):
            raise ValueError("translator is for the formats sgm and wmt")
        return self


class Side(Source):
    """One language of one split: a file, or several."""

    _ways: ClassVar[tuple[str, ...]] = (*File._ways, "parts", "references")

    parts: list[Source] | None = Field(None, min_length=1)
    """Files to read one after another, instead of one; part n of one language translates part n of
    the other."""

    references: list[Source] | None = Field(None, min_length=2)
    """Several translations of a dev or test set, instead of one; the first is used where only one
    can be. Such a language can only be a target."""

    @property
    def files(self) -> list[Source]:
        """All its files."""
        return self.parts or self.references or [self]

    @model_validator(mode="after")
    def _check_alone(self) -> "Side":
        if (self.parts or self.references) and len(self.model_fields_set) > 1:
            way = "parts" if self.parts else "references"
            others = ", ".join(sorted(self.model_fields_set - {way}))
            raise ValueError(f"{way} stand alone; give each of them its own {others}")
        return self


class Treebank(File):
    """Dependency trees in CoNLL-U, published or one's own."""

    language: Language
    """What its sentences are written in."""

    base_url: Url | None = None
    """Address of the folder that holds the published file."""

    @model_validator(mode="after")
    def _check_address(self) -> "Treebank":
        if self.file is not None and self.base_url is None:
            raise ValueError("a published treebank needs a base_url to fetch it from, or a url")
        return self


class Draw(Section):
    """Some of a split's pairs, drawn by a seed: the same ones in both directions."""

    pairs: int = Field(ge=1)
    """How many; more than there are is an error."""

    seed: int = Field(1, ge=0)
    """Of the draw."""


class HoldOut(Section):
    """A split that is made of another's pairs, which leave it."""

    of: FileName
    """The split that it is taken from, such as `train`."""

    every: int = Field(ge=2)
    """Every n-th pair is taken; this is n."""

    scored: bool = True
    """Models are scored on it. If not, its text is made only where it is asked for by its path."""


class Overlap(Section):
    """Subtitles that are on the screen at the same time, by OPUS's alignment."""

    at_least: float = Field(gt=0, le=1)
    """Share of the time that a kept pair's two sides have in common."""

    ids: File
    """The `.ids` of the Moses release: documents and sentences of each pair; keys as of a file."""

    links: File
    """The XCES alignment, whose links have the overlaps; keys as of a file."""


class Published(Section):
    """What of a corpus is fetched: its files, and which of their pairs a split takes."""

    base_url: Url | None = None
    """Address of the folder that holds the published files."""

    pretokenised: bool = False
    """The text is tokenised already, so the tokeniser stays off."""

    splits: dict[FileName, dict[Language, Side]] | None = None
    """Files by split and language. Splits are `train`, `dev` and one or more test sets."""

    overlap: dict[FileName, Overlap] | None = None
    """By split: how well the times of subtitles must agree."""

    hold_out: dict[FileName, HoldOut] | None = None
    """Splits that are taken out of others, by name; pairs are counted after `overlap`."""

    entailment: dict[FileName, File] | None = None
    """Labelled sentence pairs by split, for classifiers; a corpus may have nothing else."""

    @model_validator(mode="after")
    def _check_sides(self) -> "Published":
        for split, sides in (self.splits or {}).items():
            owner: dict[Any, str] = {}
            for language, side in sides.items():
                for source in side.files:
                    other = owner.setdefault(source.text, language)
                    if other != language and source.read_as not in BY_LANGUAGE:
                        raise ValueError(
                            f"splits: {split}: {other} and {language} are the same text of "
                            f"{source.name}; say which part of the file each language is, as by "
                            "format: tsv and column, or correct the path"
                        )
        return self

    @model_validator(mode="after")
    def _check_base(self) -> "Published":
        if self.base_url is None and any(each.file and not each.url for each in self.files()):
            raise ValueError("published files need a base_url to fetch them from, or a url each")
        return self

    def files(self) -> Iterator[File]:
        """Every file of its splits, of their overlaps and of its entailment, as often as named."""
        for sides in (self.splits or {}).values():
            for side in sides.values():
                yield from side.files
        for rule in (self.overlap or {}).values():
            yield from (rule.ids, rule.links)
        yield from (self.entailment or {}).values()

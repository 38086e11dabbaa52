"""Places of the text of a corpus: published files, own files, members of archives."""

import os
import re
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from headcount.base.settings.section import (
    FILE,
    LANGUAGE,
    NO_BRACES,
    SHA256,
    Faults,
    FileName,
    Language,
    Section,
)

Format = Literal["plain", "moses", "sgm", "wmt", "ted", "tmx", "tsv", "csv"]
BY_LANGUAGE = frozenset({"tmx", "wmt"})
"""Formats of files that hold several languages, of which each side reads its own."""

_ARCHIVES = (".tar", ".tgz", ".tar.gz", ".zip")
_TABLES = frozenset({"tsv", "csv"})
_NO_LINES = frozenset({"json", "jsonl", "xlf", "xliff", "po", "srt", "vtt", "html"})
_FORMATS: dict[str, Format] = {"sgm": "sgm", "sgml": "sgm", "xml": "sgm", "tmx": "tmx"}

# Plain http is for a server on this machine.
_HOST = r"(https://[A-Za-z0-9][A-Za-z0-9.:_-]*|http://(127\.0\.0\.1|localhost)(:[0-9]+)?)"
_FOLDER = f"^{_HOST}(/[A-Za-z0-9._~%:+-]+)*"
Languages = Annotated[str, Field(pattern=f"^{LANGUAGE}-{LANGUAGE}$")]
Url = Annotated[str, Field(pattern=f"{_FOLDER}/?$"), AfterValidator(lambda url: url.rstrip("/"))]


class File(Section):
    """A published file, or one of one's own."""

    _ways: ClassVar[tuple[str, ...]] = ("file", "url", "path")

    file: FileName | None = None
    """Name of a published file at the corpus's `base_url`; beside `url`, the file's name here."""
    url: str | None = Field(None, pattern=f"{_FOLDER}/{FILE}$")
    """Whole address of a published file."""
    sha256: str | None = Field(None, pattern=SHA256)
    """Checksum of the file. Without one, the first fetch records it in `corpora.lock.yaml`."""
    md5: str | None = Field(None, pattern="^[0-9a-f]{32}$")
    """Checksum that the first fetch must match, where no other was published."""
    bytes: int | None = Field(None, ge=1)
    """Size of the file in bytes, where that is known before it is fetched."""
    member: str | None = Field(None, pattern=f"^{FILE}(/{FILE})*$")
    """The text's name inside the file, when that is a .tar, .tgz, .tar.gz or .zip."""
    path: str | None = Field(None, pattern=NO_BRACES)
    """A file of one's own, instead of `file` or `url`; relative to the project's folder."""

    @property
    def name(self) -> str:
        """Name of the file itself, without folders."""
        return (self.file or self.url or self.path or "").rpartition("/")[2]

    def _faults(self) -> Faults:
        given = [way for way in self._ways if getattr(self, way) is not None]
        packed = self.name.endswith(_ARCHIVES)
        several = len(given) != 1 and given != ["file", "url"]
        yield f"expected one of {', '.join(self._ways)}", several
        yield "member goes with a .tar, .tgz or .zip", (self.member is not None) != packed


class Source(File):
    """A file with sentences."""

    format: Format | None = None
    """How the sentences stand in it. By default: `sgm` (WMT, NIST, IWSLT) for .sgm, .sgml and
    .xml, `tmx` for .tmx, else `plain`, one a line. `moses` has Moses's entities, such as `&apos;`.
    `wmt` is WMT's XML since 2021, `ted` IWSLT's train.tags. Cells of `csv` may be quoted."""
    column: Annotated[int, Field(ge=1)] | Annotated[str, Field(min_length=1)] | None = None
    """Column of a table, counted from 1, or its name in the first line; goes with `tsv`, `csv`."""
    separator: str | None = Field(None, min_length=1)
    """Separator of the columns of a table; by default a tab, in `csv` a comma."""
    translator: str | None = Field(None, min_length=1)
    """One of several translations in `sgm`, `wmt`: `sysid`, translator, or its number."""

    @property
    def read_as(self) -> Format:
        """The format, by the end of the name if it is not given."""
        return self.format or _FORMATS.get(self._end, "plain")

    @property
    def _end(self) -> str:
        """End of the text's name, without .gz and the like."""
        inner = re.sub(r"\.(gz|bz2|xz)$", "", self.member or self.name)
        return inner.rpartition(".")[2].lower()

    def _faults(self) -> Faults:
        end, read_as, is_table = self._end, self.read_as, self.read_as in _TABLES
        yield f"a .{end} needs format: {end} and column", not self.format and end in _TABLES
        yield f"a .{end} has no lines; save it as text", not self.format and end in _NO_LINES
        yield "column goes with format tsv or csv", is_table != (self.column is not None)
        yield "separator is for format tsv or csv", self.separator and not is_table
        yield "expected one separator in csv", read_as == "csv" and len(self.separator or ",") > 1
        yield "translator is for sgm and wmt", self.translator and read_as not in ("sgm", "wmt")


class Side(Source):
    """One language of one split: a file, or several."""

    _ways: ClassVar[tuple[str, ...]] = (*File._ways, "parts", "references")

    parts: list[Source] | None = Field(None, min_length=1)
    """Files to read one after another; part n of one language translates part n of the other."""
    references: list[Source] | None = Field(None, min_length=2)
    """Several translations of a dev or test set. Such a language can only be a target."""

    @property
    def files(self) -> list[Source]:
        """All files of this side."""
        return self.parts or self.references or [self]

    @property
    def texts(self) -> set[tuple]:
        """Identities of texts of one language: file, member and place in there."""
        return {
            (os.path.normpath(f.path or f.url or f.file), f.member, f.column, f.translator)
            for f in self.files
            if f.read_as not in BY_LANGUAGE
        }

    def _faults(self) -> Faults:
        several = (self.parts or self.references) and len(self.model_fields_set) > 1
        yield "parts or references stand alone; give each file its own keys", several


class Treebank(File):
    """Dependency trees in CoNLL-U, published or one's own."""

    language: Language
    """Language of its sentences."""
    base_url: Url | None = None
    """Address of the folder that holds the published file."""

    def _faults(self) -> Faults:
        yield "a file needs a base_url, or a url", self.file and not (self.base_url or self.url)


class Draw(Section):
    """Some of a split's pairs, drawn by a seed: the same ones in both directions."""

    pairs: int = Field(ge=1)
    """How many; more than there are is an error."""
    seed: int = Field(1, ge=0)
    """Seed of the draw."""


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
    """Share of the time that a pair's two sides must have in common."""
    ids: File
    """The `.ids` of the Moses release: documents and sentences of each pair; keys as of a file."""
    links: File
    """The XCES alignment, whose links have the overlaps; keys as of a file."""


class Published(Section):
    """The files of a corpus that are fetched, and which of their pairs a split takes."""

    base_url: Url | None = None
    """Address of the folder that holds the published files."""
    pretokenised: bool = False
    """The text is tokenised already, so the tokeniser stays off."""
    splits: dict[FileName, dict[Language, Side]] = {}
    """Files by split and language. Splits are `train`, `dev` and one or more test sets."""
    overlap: dict[FileName, Overlap] = {}
    """By split: how well the times of subtitles must agree."""
    hold_out: dict[FileName, HoldOut] = {}
    """Splits that are taken out of others, by name; pairs are counted after `overlap`."""
    links: dict[FileName, dict[Languages, File]] = {}
    """Word links of a split by `<source>-<target>`: lines such as `0-0 1-2 2p3` (p or ?: possible),
    for words between spaces, counted from 0."""
    entailment: dict[FileName, File] = {}
    """Labelled sentence pairs by split, for classifiers; a corpus may have nothing else."""

    def _faults(self) -> Faults:
        for split, sides in self.splits.items():
            texts = [side.texts for side in sides.values()]
            same = sum(map(len, texts)) > len(set().union(*texts))
            yield f"splits.{split}: two languages are the same text of one file", same
        named = any(file.file and not file.url for file in self.files())
        yield "files need a base_url, or a url each", named and not self.base_url

    def files(self) -> Iterator[File]:
        """Yield the files of splits, overlaps, links and entailment, as often as they are named."""
        for side in (side for sides in self.splits.values() for side in sides.values()):
            yield from side.files
        for rule in self.overlap.values():
            yield from (rule.ids, rule.links)
        for files in self.links.values():
            yield from files.values()
        yield from self.entailment.values()

"""The corpora there are: where each comes from, its licence, its splits and languages."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, RootModel, model_validator

from headcount.base.errors import UserError
from headcount.base.settings.data import SyntheticSettings
from headcount.base.settings.names import (
    CorpusName,
    FileName,
    Language,
    Pair,
    check_file_name,
    fitting,
    nearest,
    parse_pair,
    require,
)
from headcount.base.settings.reader import read_settings
from headcount.base.settings.section import Section

_ARCHIVES = (".tgz", ".tar.gz")


def _check_member(text: str) -> str:
    for part in text.split("/"):
        check_file_name(part)
    return text


def _check_path(text: str) -> str:
    # Braces would be wildcards to the workflow, and no line of a list can hold a line end.
    if not text or not text.isprintable() or set(text) & set("{}"):
        raise ValueError(f"expected a path without braces or line ends, found {text[:100]!r}")
    return text


Hash = Annotated[
    str, AfterValidator(fitting(r"[0-9a-f]{64}", "64 hexadecimal digits in lower case"))
]
Url = Annotated[
    str,
    AfterValidator(
        fitting(r"https://[A-Za-z0-9][A-Za-z0-9./_~%:+-]*", "an address that starts with https://")
    ),
    AfterValidator(lambda text: text.rstrip("/")),
]


class Source(Section):
    """One side of one split: a published file under a checksum, or a file of one's own."""

    file: FileName | None = None
    """Name of a published file in the folder at the corpus's `base_url`."""

    sha256: Hash | None = None
    """Checksum of the file; needed for published ones."""

    member: Annotated[str, AfterValidator(_check_member)] | None = None
    """The text's name inside the file, when that is a .tgz or .tar.gz."""

    path: Annotated[str, AfterValidator(_check_path)] | None = None
    """A file of one's own, instead of `file`; relative to the project's folder."""

    @model_validator(mode="after")
    def _check_kind(self) -> "Source":
        if (self.file is None) == (self.path is None):
            raise ValueError("expected either file and sha256 (published), or path (one's own)")
        if self.file is not None and self.sha256 is None:
            raise ValueError("a published file needs its sha256")
        if (self.member is not None) != (self.file or self.path).endswith(_ARCHIVES):
            raise ValueError("member names a file inside a .tgz or .tar.gz, which needs one")
        return self


class Treebank(Source):
    """Dependency trees in CoNLL-U, published or one's own."""

    language: Language
    """What its sentences are written in."""

    base_url: Url | None = None
    """Address of the folder that holds the published file."""

    @model_validator(mode="after")
    def _check_address(self) -> "Treebank":
        if self.file is not None and self.base_url is None:
            raise ValueError("a published treebank needs a base_url to fetch it from")
        return self


class Corpus(Section):
    """One corpus: splits of published or own files, or a generator and its settings, or trees."""

    licence: str = Field(min_length=1)
    """What the text may be used for."""

    citation: str = Field(min_length=1)
    """Whom to cite."""

    base_url: Url | None = None
    """Address of the folder that holds the published files."""

    pretokenised: bool = False
    """The text is tokenised already, so the tokeniser stays off."""

    splits: dict[FileName, dict[Language, Source]] | None = None
    """Files by split and language. Splits are `train`, `dev` and one or more test sets."""

    trees: dict[FileName, Treebank] | None = None
    """Treebanks by name, for the roles of heads; a corpus may have nothing else."""

    generator: Literal["synthetic"] | None = None
    """Generates the text, instead of `splits`; its languages are `en` and `art`."""

    settings: SyntheticSettings | None = None
    """Settings of the generator."""

    @model_validator(mode="after")
    def _check_origin(self) -> "Corpus":
        if self.trees and self.generator is None and self.splits is None:
            return self
        if (self.generator is None) == (self.splits is None):
            raise ValueError("expected either splits (files), or generator and settings")
        if (self.generator is None) != (self.settings is None):
            raise ValueError("generator and settings go together")
        sources = (source for sides in (self.splits or {}).values() for source in sides.values())
        if self.base_url is None and any(source.file for source in sources):
            raise ValueError("published files need a base_url to fetch them from")
        lacking = [split for split in ("train", "dev") if split not in self.languages]
        if len(self.languages) + len(lacking) < 3:
            lacking.append("a test set")
        if lacking:
            raise ValueError(f"splits: {' and '.join(lacking)} missing; found {_list(self.splits)}")
        return self

    @property
    def languages(self) -> dict[str, list[str]]:
        """Languages of each split, in file order."""
        if self.generator is not None:
            return {split: ["en", "art"] for split in ("train", "dev", "test")}
        return {split: list(sides) for split, sides in (self.splits or {}).items()}

    @property
    def tree_languages(self) -> dict[str, str]:
        """Language of each treebank, in file order; a generator makes trees of its source."""
        generated = {} if self.generator is None else {"dev": "en", "test": "en"}
        return generated | {name: tree.language for name, tree in (self.trees or {}).items()}


class _Corpora(RootModel[dict[CorpusName, Corpus]]):
    model_config = ConfigDict(frozen=True, strict=True)


def load_corpora(path: Path) -> dict[str, Corpus]:
    """Every corpus described in the file, by name. Raises UserError for every fault in it."""
    return read_settings(path, _Corpora).root


def test_sets(corpus: Corpus, src: str, tgt: str) -> list[str]:
    """Names of the test sets that both languages have, in file order."""
    return [
        split
        for split, languages in corpus.languages.items()
        if split not in ("train", "dev") and src in languages and tgt in languages
    ]


def check_pairs(pairs: Iterable[str], corpora: Mapping[str, Corpus]) -> None:
    """Raise UserError for a pair whose corpus, language or splits do not exist."""
    for pair in map(parse_pair, pairs):
        lack = f"pairs: {pair}: no corpus {pair.corpus!r} in corpora.yaml"
        require(pair.corpus, corpora, lack)
        _check_languages(pair, corpora[pair.corpus])


def _check_languages(pair: Pair, corpus: Corpus) -> None:
    place = f"pairs: {pair}: corpus {pair.corpus} has"
    known = dict.fromkeys(each for sides in corpus.languages.values() for each in sides)
    for language in (pair.src, pair.tgt):
        require(language, known, f"{place} no language {language!r}")
        for split in ("train", "dev"):
            if language not in corpus.languages.get(split, []):
                raise UserError(
                    f"{place} no {split} text in {language!r}; add it under splits.{split} in "
                    "corpora.yaml"
                )
    if not test_sets(corpus, pair.src, pair.tgt):
        found = _list(corpus.splits or {})
        raise UserError(f"{place} no test set in both languages; it has {found}")


def check_masking_tests(
    named: Iterable[str], pairs: Iterable[str], corpora: Mapping[str, Corpus]
) -> None:
    """Raise UserError for a test set that no pair has, and for a pair that has none of those named.

    The pairs must have passed `check_pairs`.
    """
    by_pair = {
        pair: test_sets(corpora[pair.corpus], pair.src, pair.tgt) for pair in map(parse_pair, pairs)
    }
    known = dict.fromkeys(test for tests in by_pair.values() for test in tests)
    wanted = list(named)
    for test in wanted:
        require(test, known, f"masking.test_sets: no pair has a test set {test!r}")
    for pair, tests in by_pair.items():
        if wanted and not set(wanted) & set(tests):
            raise UserError(
                f"masking.test_sets: {pair} has none of {', '.join(wanted)}; add one of its own: "
                f"{', '.join(tests)}"
            )


def check_treebanks(named: Iterable[str], corpora: Mapping[str, Corpus]) -> None:
    """Raise UserError for a treebank, `<corpus>.<treebank>`, that does not exist."""
    for each in named:
        corpus, _, treebank = each.partition(".")
        require(corpus, corpora, f"roles.trees: {each}: no corpus {corpus!r} in corpora.yaml")
        lack = f"roles.trees: {each}: corpus {corpus} has no trees {treebank!r}"
        require(treebank, corpora[corpus].tree_languages, lack)


def ablation_tests(
    named: Iterable[str], text: str, corpora: Mapping[str, Corpus]
) -> tuple[str, str]:
    """The two test sets of a pair between which ablation is compared; `dev` may be one.

    The first two of those named, in their order; of all, if none is named. Raises UserError for a
    pair that has fewer than two of those named. The pair must have passed `check_pairs`.
    """
    pair = parse_pair(text)
    known = [*test_sets(corpora[pair.corpus], pair.src, pair.tgt), "dev"]
    wanted = list(named) or known
    found = [test for test in dict.fromkeys(wanted) if test in known]
    if len(found) < 2:
        strange = next((test for test in wanted if test not in known), None)
        hint = f"; {nearest(strange, known)}" if strange else ""
        raise UserError(
            f"ablation.test_sets: expected two that {pair} has, of {', '.join(known)}; found "
            f"{', '.join(wanted)}{hint}"
        )
    if found[0] == "dev":
        raise UserError(
            f"ablation.test_sets: {pair} would be scored on dev, which chooses the heads to keep; "
            f"name one of {', '.join(known[:-1])} first"
        )
    return found[0], found[1]


def _list(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"

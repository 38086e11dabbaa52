"""The corpora: where each comes from, its licence, its splits and languages."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, RootModel, model_validator

from headcount.base.errors import UserError
from headcount.base.settings.data import SyntheticSettings
from headcount.base.settings.experiment import Experiment
from headcount.base.settings.names import CorpusName, FileName, Pair, nearest, parse_pair, require
from headcount.base.settings.reader import at_key_of, read_settings
from headcount.base.settings.sources import Draw, Published, Treebank

ENTAILMENT = ("train", "matched", "mismatched")
"""The labelled pairs that a corpus for classifiers has."""


WORDS = frozenset({"of", "draw", "licence", "citation", "trees"})
"""Keys of a corpus that shape none of its files, but those of its treebanks."""


class Corpus(Published):
    """One corpus: splits of published or own files, or a generator and its settings, or trees."""

    of: CorpusName | None = None
    """Another corpus, of which this one is a part: it has its files, fetched once for both, its
    splits, and every key that is not given here."""

    draw: dict[FileName, Draw] | None = None
    """By split: how many pairs to draw, after `overlap` and `hold_out`."""

    licence: str = Field(min_length=1)
    """What the text may be used for."""

    citation: str = Field(min_length=1)
    """Whom to cite."""

    trees: dict[FileName, Treebank] | None = None
    """Treebanks by name, for the roles of heads; a corpus may have nothing else."""

    generator: Literal["synthetic"] | None = None
    """Generates the text, instead of `splits`; its languages are `en` and `art`."""

    settings: SyntheticSettings | None = None
    """Settings of the generator."""

    @model_validator(mode="after")
    def _check_origin(self) -> "Corpus":
        if not self.generator and self.splits is None and (self.trees or self.entailment):
            return self
        if bool(self.generator) == (self.splits is not None):
            raise ValueError("expected either splits (files), or generator and settings")
        if bool(self.generator) != (self.settings is not None):
            raise ValueError("generator and settings go together")
        for split, rule in (self.hold_out or {}).items():
            if split in (self.splits or {}) or rule.of not in (self.splits or {}):
                raise ValueError(f"hold_out: expected a new split of one under splits, found {split}")
        for rule, known in (("overlap", self.splits or {}), ("draw", self.languages)):
            for split in sorted({*(getattr(self, rule) or {})} - {*known}):
                raise ValueError(f"{rule}: no split {split!r}; {nearest(split, known)}")
        self._check_splits()
        return self

    def _check_splits(self) -> None:
        for split, sides in (self.splits or {}).items():
            if len({len(side.parts or [side]) for side in sides.values()}) > 1:
                raise ValueError(f"splits: {split}: expected as many parts in each language")
            if split == "train" and any(side.references for side in sides.values()):
                raise ValueError("splits: train: references are for dev and test sets")
        if not {"train", "dev"} < {*self.languages}:
            raise ValueError(f"splits: expected train, dev and a test set, found {[*self.languages]}")

    @property
    def languages(self) -> dict[str, list[str]]:
        """Languages of each split, in file order, then of splits that are held out."""
        if self.generator is not None:
            return {split: ["en", "art"] for split in ("train", "dev", "test")}
        given = {split: list(sides) for split, sides in (self.splits or {}).items()}
        return given | {split: given[h.of] for split, h in (self.hold_out or {}).items()}

    def translates(self, split: str, src: str, tgt: str) -> bool:
        """Return whether a split has both languages, and the source in one wording only."""
        held = (self.hold_out or {}).get(split)
        sides = (self.splits or {}).get(held.of if held else split, {})
        several = src in sides and sides[src].references is not None
        return {src, tgt} <= {*self.languages.get(split, [])} and not several

    @property
    def tree_languages(self) -> dict[str, str]:
        """Language of each treebank, in file order; a generator makes trees of its source."""
        generated = {} if self.generator is None else {"dev": "en", "test": "en"}
        return generated | {name: tree.language for name, tree in (self.trees or {}).items()}


class Corpora(RootModel[dict[CorpusName, Corpus]]):
    """The corpora by name."""

    model_config = ConfigDict(frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _fill_parts(cls, given: Any) -> Any:
        return {name: _filled(name, given) for name in given} if isinstance(given, dict) else given


def _filled(name: str, given: Mapping[str, Any]) -> Any:
    """Return the entry of a corpus, with the keys of the one that it is a part of."""
    entry = given[name]
    if not isinstance(entry, dict) or "of" not in entry:
        return entry
    whole = {k: v for k, v in given.items() if isinstance(v, dict) and "of" not in v}
    if entry["of"] not in whole:
        hint = nearest(str(entry["of"]), whole)
        raise ValueError(f"{name}: of: expected a corpus that is no part of another; {hint}")
    if extra := sorted(set(entry) - WORDS):
        raise ValueError(f"{name}: files are those of {entry['of']}; remove {', '.join(extra)}")
    return whole[entry["of"]] | entry


def load_corpora(path: Path) -> dict[str, Corpus]:
    """Return every corpus described in the file, by name. Raises UserError for every fault in it."""
    return read_settings(path, Corpora).root


def test_sets(corpus: Corpus, src: str, tgt: str) -> list[str]:
    """Return the names of the test sets from one language to the other, in file order."""
    unscored = {name for name, rule in (corpus.hold_out or {}).items() if not rule.scored}
    splits = [split for split in corpus.languages if split not in {"train", "dev"} | unscored]
    return [split for split in splits if corpus.translates(split, src, tgt)]


def check_corpora(settings: Experiment, corpora: Mapping[str, Corpus], file: Path) -> None:
    """Raise UserError, at its line of the experiment's file, for what no corpus has."""
    with at_key_of(file):
        pairs = list(map(parse_pair, settings.pairs))
        for pair in pairs:
            lack = f"pairs: {pair}: no corpus {pair.corpus!r} in corpora.yaml"
            require(pair.corpus, corpora, lack)
            _check_languages(pair, corpora[pair.corpus])
        _check_tests(settings, {pair: _tests(pair, corpora) for pair in pairs})
        for name in settings.roles.trees:
            corpus, _, treebank = name.partition(".")
            require(corpus, corpora, f"roles.trees: {name}: no corpus {corpus!r}")
            known = corpora[corpus].tree_languages
            require(treebank, known, f"roles.trees: {name}: no treebank {treebank!r}")
        if settings.classifiers.models:
            name = settings.classifiers.corpus
            require(name, corpora, f"classifiers.corpus: no corpus {name!r} in corpora.yaml")
            if lacking := {*ENTAILMENT} - {*(corpora[name].entailment or {})}:
                raise UserError(f"classifiers.corpus: {name} has no entailment {min(lacking)!r}")


def _tests(pair: Pair, corpora: Mapping[str, Corpus]) -> list[str]:
    return test_sets(corpora[pair.corpus], pair.src, pair.tgt)


def _check_languages(pair: Pair, corpus: Corpus) -> None:
    """Raise UserError for a pair whose languages or splits do not exist."""
    place = f"pairs: {pair}: corpus {pair.corpus} has"
    known = dict.fromkeys(language for split in corpus.languages.values() for language in split)
    for language in (pair.src, pair.tgt):
        require(language, known, f"{place} no language {language!r}")
        for split in ("train", "dev"):
            if language not in corpus.languages.get(split, []):
                raise UserError(f"{place} no {split} text in {language!r}")
    if not corpus.translates("dev", pair.src, pair.tgt):
        raise UserError(f"{place} several references in {pair.src!r}, which are no source")
    if not test_sets(corpus, pair.src, pair.tgt):
        raise UserError(f"{place} no test set in both languages; it has {[*corpus.languages]}")


def _check_tests(settings: Experiment, tests: Mapping[Pair, list[str]]) -> None:
    """Raise UserError for test sets of masking and ablation that pairs lack."""
    known = dict.fromkeys(test for named in tests.values() for test in named)
    wanted = settings.masking.test_sets
    for test in wanted:
        require(test, known, f"masking.test_sets: no pair has a test set {test!r}")
    for pair, named in tests.items():
        if wanted and not set(wanted) & set(named):
            raise UserError(f"masking.test_sets: {pair} has none of these; it has {named}")
    if settings.ablation.runs:
        for test in settings.ablation.test_sets:
            require(test, [*known, "dev"], f"ablation.test_sets: no pair has a test set {test!r}")
        for pair, named in tests.items():
            _two_tests(settings.ablation.test_sets, pair, named)


def ablation_tests(
    named: Iterable[str], text: str, corpora: Mapping[str, Corpus]
) -> tuple[str, str]:
    """Return the two test sets of a pair between which ablation is compared; `dev` may be one.

    The first two of those named, in their order; of all, if none is named.
    """
    pair = parse_pair(text)
    return _two_tests(named, pair, _tests(pair, corpora))


def _two_tests(named: Iterable[str], pair: Pair, tests: list[str]) -> tuple[str, str]:
    known = [*tests, "dev"]
    found = [test for test in dict.fromkeys(list(named) or known) if test in known]
    if len(found) < 2:
        raise UserError(f"ablation.test_sets: expected two of {pair}, of {', '.join(known)}")
    if found[0] == "dev":
        raise UserError(f"ablation.test_sets: {pair}: name a test set first, for dev chooses heads")
    return found[0], found[1]

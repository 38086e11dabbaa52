"""The corpora there are: where each comes from, its licence, its splits and languages."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, RootModel, model_validator

from headcount.base.errors import UserError
from headcount.base.settings.data import SyntheticSettings
from headcount.base.settings.experiment import Experiment
from headcount.base.settings.names import CorpusName, FileName, Pair, nearest, parse_pair, require
from headcount.base.settings.reader import at_key_of, read_settings
from headcount.base.settings.sources import Draw, Published, Treebank

ENTAILMENT = ("train", "matched", "mismatched")
"""The labelled pairs that a corpus for classifiers has."""


WORDS = frozenset({"of", "draw", "licence", "citation", "trees", "pairs", "length"})
"""Keys of a corpus that shape none of its files, but those of its treebanks."""


class Corpus(Published):
    """One corpus: splits of published or own files, or a generator and its settings, or trees."""

    of: CorpusName | None = None
    """Another corpus, of which this one is a part that `draw` says: its files, fetched once for
    both, its splits, and every key that is not given here."""

    draw: dict[FileName, Draw] | None = None
    """By split: how many pairs to draw, after `overlap` and `hold_out`."""

    licence: str = Field(min_length=1)
    """What the text may be used for."""

    citation: str = Field(min_length=1)
    """Whom to cite."""

    pairs: dict[FileName, Annotated[int, Field(ge=1)]] = {}
    """About how many sentence pairs a split has, for the estimate of what an experiment costs."""

    length: int | None = Field(None, ge=1, le=1000)
    """About how many subwords a sentence has, for that too."""

    trees: dict[FileName, Treebank] | None = None
    """Treebanks by name, for the roles of heads; a corpus may have nothing else."""

    generator: Literal["synthetic"] | None = None
    """Generates the text, instead of `splits`; its languages are `en` and `art`."""

    settings: SyntheticSettings | None = None
    """Settings of the generator."""

    @model_validator(mode="after")
    def _check_origin(self) -> "Corpus":
        if self.generator is None and self.splits is None and (self.trees or self.entailment):
            return self
        if (self.generator is None) == (self.splits is None):
            raise ValueError("expected either splits (files), or generator and settings")
        if (self.generator is None) != (self.settings is None):
            raise ValueError("generator and settings go together")
        self._check_splits()
        lacking = [split for split in ("train", "dev") if split not in self.languages]
        if len(self.languages) + len(lacking) < 3:
            lacking.append("a test set")
        if lacking:
            found = _list(self.languages)
            raise ValueError(f"splits: {' and '.join(lacking)} missing; found {found}")
        return self

    def _check_splits(self) -> None:
        given, held = self.splits or {}, self.hold_out or {}
        for split, rule in held.items():
            if split in given or rule.of not in given:
                raise ValueError(
                    f"hold_out: expected a new split of one under splits, found {split} of "
                    f"{rule.of}; {nearest(rule.of, given)}"
                )
        for rule, known in (("overlap", given), ("draw", self.languages)):
            for split in (each for each in getattr(self, rule) or {} if each not in known):
                raise ValueError(f"{rule}: no split {split!r}; {nearest(split, known)}")
        if any(side.references for side in given.get("train", {}).values()):
            raise ValueError("splits: train: references are for dev and test sets")
        for split, sides in given.items():
            if len({len(side.parts or [side]) for side in sides.values()}) > 1:
                raise ValueError(f"splits: {split}: expected as many parts in each language")

    @property
    def languages(self) -> dict[str, list[str]]:
        """Languages of each split, in file order, then those of splits that are held out."""
        if self.generator is not None:
            return {split: ["en", "art"] for split in ("train", "dev", "test")}
        given = {split: list(sides) for split, sides in (self.splits or {}).items()}
        return given | {split: given[h.of] for split, h in (self.hold_out or {}).items()}

    def translates(self, split: str, src: str, tgt: str) -> bool:
        """Whether a split has both languages, and the source in one wording only."""
        held = (self.hold_out or {}).get(split)
        sides = (self.splits or {}).get(held.of if held else split, {})
        several = src in sides and sides[src].references is not None
        return {src, tgt} <= {*self.languages.get(split, [])} and not several

    @property
    def tree_languages(self) -> dict[str, str]:
        """Language of each treebank, in file order; a generator makes trees of its source."""
        generated = {} if self.generator is None else {"dev": "en", "test": "en"}
        return generated | {name: tree.language for name, tree in (self.trees or {}).items()}


class _Corpora(RootModel[dict[CorpusName, Corpus]]):
    model_config = ConfigDict(frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _fill_parts(cls, given: Any) -> Any:
        return {name: _filled(name, given) for name in given} if isinstance(given, dict) else given


def _filled(name: str, given: Mapping[str, Any]) -> Any:
    """The entry of a corpus, with the keys of the one that it is a part of.

    Raises ValueError if there is none, or if it names files of its own.
    """
    entry = given[name]
    if not isinstance(entry, dict) or not isinstance(entry.get("of"), str):
        return entry
    whole = {
        other: found
        for other, found in given.items()
        if not (isinstance(found, dict) and "of" in found)
    }
    if entry["of"] not in whole:
        raise ValueError(
            f"{name}: of: expected a corpus that is no part of another, found {entry['of']!r}; "
            f"{nearest(entry['of'], whole)}"
        )
    if extra := sorted(set(entry) - WORDS):
        raise ValueError(f"{name}: files are those of {entry['of']}; remove {', '.join(extra)}")
    base = whole[entry["of"]]
    return base | entry if isinstance(base, dict) else entry  # what is none is told by itself


def load_corpora(path: Path) -> dict[str, Corpus]:
    """Every corpus described in the file, by name. Raises UserError for every fault in it."""
    return read_settings(path, _Corpora).root


def test_sets(corpus: Corpus, src: str, tgt: str) -> list[str]:
    """Names of the test sets that go from one language to the other, in file order."""
    unscored = (name for name, rule in (corpus.hold_out or {}).items() if not rule.scored)
    others = {"train", "dev", *unscored}
    splits = (split for split in corpus.languages if split not in others)
    return [split for split in splits if corpus.translates(split, src, tgt)]


def check_corpora(settings: Experiment, corpora: Mapping[str, Corpus], file: Path) -> None:
    """Raise UserError, at its line of the experiment's file, for what no corpus has."""
    with at_key_of(file):
        check_pairs(settings.pairs, corpora)
        check_masking_tests(settings.masking.test_sets, settings.pairs, corpora)
        check_treebanks(settings.roles.trees, corpora)
        check_ablation_tests(settings, corpora)
        check_timed(settings, corpora)
        if settings.classifiers.models:
            check_entailment(settings.classifiers.corpus, corpora)


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
    if not corpus.translates("dev", pair.src, pair.tgt):
        raise UserError(
            f"{place} several references in {pair.src!r} for dev, which are no source; take the "
            "other direction"
        )
    if not test_sets(corpus, pair.src, pair.tgt):
        found = _list(corpus.languages)
        raise UserError(f"{place} no test set in both languages; it has {found}")


def check_entailment(name: str, corpora: Mapping[str, Corpus]) -> None:
    """Raise UserError for a corpus that does not exist, or lacks labelled pairs of a split."""
    require(name, corpora, f"classifiers.corpus: no corpus {name!r} in corpora.yaml")
    for split in ENTAILMENT:
        if split not in (corpora[name].entailment or {}):
            raise UserError(
                f"classifiers.corpus: {name} has no labelled pairs {split!r}; add them under "
                "entailment in corpora.yaml"
            )


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


def check_ablation_tests(settings: Experiment, corpora: Mapping[str, Corpus]) -> None:
    """Raise UserError for a test set of ablation that no pair has, and as `ablation_tests`.

    The pairs must have passed `check_pairs`.
    """
    if not settings.ablation.runs:
        return
    pairs = list(map(parse_pair, settings.pairs))
    known = {t: None for pair in pairs for t in test_sets(corpora[pair.corpus], pair.src, pair.tgt)}
    for test in settings.ablation.test_sets:
        lack = f"ablation.test_sets: no pair has a test set {test!r}, nor is it dev"
        require(test, [*known, "dev"], lack)
    for pair in settings.pairs:
        ablation_tests(settings.ablation.test_sets, pair, corpora)


def check_timed(settings: Experiment, corpora: Mapping[str, Corpus]) -> None:
    """Raise UserError for a dev set that is known to be smaller than a batch that is timed."""
    largest = max(settings.speed.batch_sizes, default=0)
    for pair in map(parse_pair, settings.pairs):
        corpus = corpora[pair.corpus]
        drawn = (corpus.draw or {}).get("dev")
        dev = drawn.pairs if drawn else corpus.settings.dev_pairs if corpus.settings else largest
        if dev < largest:
            raise UserError(
                f"speed.batch_sizes: expected at most {dev}, the sentences of dev of {pair}, found "
                f"{largest}; lower it"
            )


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

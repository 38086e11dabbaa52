"""The corpora: origin, licence, splits and languages."""

from collections.abc import Iterable, Mapping
from itertools import chain, product
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, RootModel

from headcount.base.errors import UserError
from headcount.base.settings.data import SyntheticSettings
from headcount.base.settings.experiment import Experiment
from headcount.base.settings.reader import at_key_of, read_settings
from headcount.base.settings.section import (
    CorpusName,
    Faults,
    FileName,
    Pair,
    nearest,
    parse_pair,
    refuse,
    require,
)
from headcount.base.settings.sources import Draw, Published, Treebank

ENTAILMENT = ("train", "matched", "mismatched")
"""The labelled pairs that a corpus for classifiers has."""
WORDS = frozenset({"of", "draw", "licence", "citation", "trees"})
"""Keys of a corpus that change none of its files, except for files of its treebanks."""


class Corpus(Published):
    """One corpus: splits of published or own files, or a generator and its settings, or trees."""

    of: CorpusName | None = None
    """The corpus of which this one is a part, with its files, splits and keys not given here."""
    draw: dict[FileName, Draw] = {}
    """By split: how many pairs to draw, after `overlap` and `hold_out`."""
    licence: str = Field(min_length=1)
    """What the text may be used for."""
    citation: str = Field(min_length=1)
    """Whom to cite."""
    trees: dict[FileName, Treebank] = {}
    """Treebanks by name, for the roles of heads; a corpus may have nothing else."""
    generator: Literal["synthetic"] | None = None
    """Generates the text, instead of `splits`; its languages are `en`, `art` and perhaps `qaa`."""
    settings: SyntheticSettings | None = None
    """Settings of the generator."""

    def _faults(self) -> Faults:
        given, known = {*self.splits}, {*self.languages}
        if not known and (self.trees or self.entailment):
            return
        sources, taken = {rule.of for rule in self.hold_out.values()}, {*self.hold_out} & given
        parts = {s: {len(x.parts or [x]) for x in self.splits[s].values()} for s in given}
        uneven = [split for split in parts if len(parts[split]) > 1]
        linked = {(split, pair) for split, files in self.links.items() for pair in files}
        strange = [
            f"{s}.{p}" for s, p in linked if not {*p.split("-")} <= {*self.splits.get(s, ())}
        ]
        fewer = sorted({*self.links} & {*self.overlap, *sources})
        several = any(side.references for side in self.splits.get("train", {}).values())
        yield "expected splits, or a generator", bool(self.generator) == bool(given)
        yield "settings go with a generator", bool(self.generator) != bool(self.settings)
        yield f"hold_out: expected new splits of {sorted(given)}", sources - given or taken
        yield f"links: {strange}: expected splits and their languages", strange
        yield f"links: {fewer}: expected splits that lose no pairs to overlap or hold_out", fewer
        yield f"overlap: expected splits of {sorted(given)}", {*self.overlap} - given
        yield f"draw: expected splits of {sorted(known)}", {*self.draw} - known
        yield f"splits: {uneven}: expected as many parts in each language", uneven
        yield "splits.train: expected one reference", several
        yield f"splits: expected train, dev, a test, found {known}", not {"train", "dev"} < known

    @property
    def languages(self) -> dict[str, list[str]]:
        """Languages of each split, in file order, then of splits that are held out."""
        if self.generator is not None:
            return {split: ["en", *self._targets] for split in ("train", "dev", "test")}
        given = {split: list(sides) for split, sides in self.splits.items()}
        return given | {split: given.get(h.of, []) for split, h in self.hold_out.items()}

    @property
    def _targets(self) -> list[str]:
        """Target languages of a generator."""
        return (self.settings or SyntheticSettings()).targets if self.generator else []

    def translates(self, split: str, src: str, tgt: str) -> bool:
        """Return whether a split has both languages, and the source in one wording only."""
        held = self.hold_out.get(split)
        sides = self.splits.get(held.of if held else split, {})
        several = src in sides and sides[src].references is not None
        return {src, tgt} <= {*self.languages.get(split, [])} and not several

    def linked(self, split: str, src: str, tgt: str) -> bool:
        """Return whether the words of a split have gold links, in either direction."""
        pairs = [f"en-{target}" for target in self._targets] or self.links.get(split, ())
        return split not in self.draw and not {f"{src}-{tgt}", f"{tgt}-{src}"}.isdisjoint(pairs)

    @property
    def tree_languages(self) -> dict[str, str]:
        """Language of each treebank, in file order. A generator makes trees of its source."""
        generated = {} if self.generator is None else {"dev": "en", "test": "en"}
        return generated | {name: tree.language for name, tree in self.trees.items()}


def _fill_parts(given: Any) -> Any:
    return {name: _filled(name, given) for name in given} if isinstance(given, dict) else given


def _filled(name: str, given: Mapping[str, Any]) -> Any:
    """Return the entry of a corpus, with the keys of the corpus that it is a part of."""
    entry = given[name]
    if not isinstance(entry, dict) or "of" not in entry:
        return entry
    wholes = {k: v for k, v in given.items() if not (isinstance(v, dict) and "of" in v)}
    of, extra = str(entry["of"]), sorted(set(entry) - WORDS)
    refuse(
        (f"{name}.of: expected a corpus that is no part; {nearest(of, wholes)}", of not in wholes),
        (f"{name}.{''.join(extra[:1])}: is taken from {of}; remove it", extra),
    )
    return wholes[of] | entry if isinstance(wholes[of], dict) else entry


Corpora = RootModel[Annotated[dict[CorpusName, Corpus], BeforeValidator(_fill_parts)]]


def load_corpora(path: Path) -> dict[str, Corpus]:
    """Return every corpus in the file, by name. Raises UserError for every fault in it."""
    return read_settings(path, Corpora).root


def test_sets(corpus: Corpus, src: str, tgt: str) -> list[str]:
    """Return the names of the test sets from one language to the other, in file order."""
    unscored = {name for name, rule in corpus.hold_out.items() if not rule.scored}
    splits = [split for split in corpus.languages if split not in {"train", "dev"} | unscored]
    return [split for split in splits if corpus.translates(split, src, tgt)]


def check_corpora(settings: Experiment, corpora: Mapping[str, Corpus], file: Path) -> None:
    """Raise UserError, at its line of the experiment's file, for what no corpus has."""
    with at_key_of(file):
        for pair in map(parse_pair, settings.pairs):
            require(pair.corpus, corpora, f"pairs: {pair}: no corpus {pair.corpus!r}")
            _check_languages(pair, corpora[pair.corpus])
        _check_tests(settings, corpora)
        trees = [f"{name}.{tree}" for name in corpora for tree in corpora[name].tree_languages]
        for name in settings.roles.trees:
            require(name, trees, f"roles.trees: no treebank {name!r}")
        labelled = [n for n, corpus in corpora.items() if {*ENTAILMENT} <= {*corpus.entailment}]
        if settings.classifiers.models:
            lack = f"classifiers.corpus: expected entailment {', '.join(ENTAILMENT)}"
            require(settings.classifiers.corpus, labelled, lack)


def _check_languages(pair: Pair, corpus: Corpus) -> None:
    """Raise UserError for a pair whose languages or splits do not exist."""
    for language, split in product((pair.src, pair.tgt), ("train", "dev")):
        known = corpus.languages.get(split, [])
        require(language, known, f"pairs: {pair}: no {split} text in {language!r}")
    if not corpus.translates("dev", pair.src, pair.tgt):
        raise UserError(f"pairs: {pair}: dev has several references in {pair.src!r}, the source")
    if not test_sets(corpus, pair.src, pair.tgt):
        raise UserError(f"pairs: {pair}: no test set in both languages")


def _check_tests(settings: Experiment, corpora: Mapping[str, Corpus]) -> None:
    """Raise UserError for test sets of masking and ablation that pairs lack."""
    tests = {pair: _tests(pair, corpora) for pair in settings.pairs}
    wanted, ablation = settings.masking.test_sets, settings.ablation
    for section, names, extra in (
        ("masking", wanted, []),
        ("ablation", ablation.test_sets, ["dev"]),
    ):
        for name in names:
            known = sorted({*chain(*tests.values())}) + extra
            require(name, known, f"{section}.test_sets: no pair has {name!r}")
    for pair, names in tests.items():
        if wanted and not {*wanted} & {*names}:
            raise UserError(f"masking.test_sets: {pair} has none of these; it has {names}")
        if ablation.runs:
            ablation_tests(ablation.test_sets, pair, corpora)


def ablation_tests(
    named: Iterable[str], pair: str, corpora: Mapping[str, Corpus]
) -> tuple[str, str]:
    """Return the two test sets between which ablation is compared: the first two of `named`."""
    known = [*_tests(pair, corpora), "dev"]
    chosen = [test for test in dict.fromkeys(list(named) or known) if test in known]
    if len(chosen) < 2 or chosen[0] == "dev":  # dev chooses heads
        raise UserError(f"ablation.test_sets: expected a test set, then one, of {pair}: {known}")
    return chosen[0], chosen[1]


def _tests(text: str, corpora: Mapping[str, Corpus]) -> list[str]:
    pair = parse_pair(text)
    return test_sets(corpora[pair.corpus], pair.src, pair.tgt)

"""What the rules ask of an experiment's settings: recipes of corpora, test sets, flags."""

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ablation import Ablation
from asked import experiment_name
from layout import Layout, Wildcards
from pruning import Pruning
from treebanks import Treebanks

from headcount.base.errors import HeadcountError, UserError
from headcount.base.fingerprint import code, digest
from headcount.base.folders import SIDES
from headcount.base.settings.corpora import (
    Corpus,
    check_masking_tests,
    check_pairs,
    check_treebanks,
    load_corpora,
    test_sets,
)
from headcount.base.settings.experiment import Experiment, load_experiment
from headcount.base.settings.flags import as_flags
from headcount.base.settings.names import SCORED_BY_EXTRA, parse_pair
from headcount.base.settings.own_file import check_own_file
from headcount.base.settings.runs import labels

CONFIG = Path("config")
LONGEST_NAME = 255  # of a file, on nearly every file system
NOTHING = "(?!)"  # a wildcard that matches no name


class Plan:
    """One experiment as the rules see it.

    Leaves with exit code 2 if its settings are wrong or a file of one's own is missing, and with 3
    if a target language could not be scored here.
    """

    def __init__(self, config: Mapping[str, Any], files: Sequence[Path]):
        """`config`: what `--config` gave, and `--configfile` in `files`."""
        try:
            name = experiment_name(config, files, CONFIG)
            self.settings: Experiment = load_experiment(name, CONFIG)
            self.corpora: dict[str, Corpus] = load_corpora(CONFIG / "corpora.yaml")
            check_pairs(self.settings.pairs, self.corpora)
            named = self.settings.masking.test_sets
            check_masking_tests(named, self.settings.pairs, self.corpora)
            check_treebanks(self.settings.roles.trees, self.corpora)
            self.name = name
            self.layout = Layout(name, self.settings.pairs, self.settings.seeds)
            self.treebanks = Treebanks(self.settings.roles.trees, self.corpora)
            self._check_lengths()
            self._check_own_files()
            self._try_scoring()
            self.ablation = Ablation(self.layout, self.settings, self.corpora)
        except HeadcountError as fault:
            print(f"error: {fault}", file=sys.stderr)
            sys.exit(fault.exit_code)
        self.pruning = Pruning(self.layout, self.settings)

    @property
    def runs(self) -> list[str]:
        """Names of the training runs."""
        return labels(self.settings.runs)

    @property
    def pruned(self) -> list[str]:
        """Names of the pruned runs."""
        return labels(self.settings.pruned)

    def _check_lengths(self) -> None:
        """Raise UserError for names that are allowed each, and together too long for a file."""
        run = max([*self.runs, *self.pruned], key=len)
        for pair in self.settings.pairs:
            for test in self.tests(pair):
                name = f"train.{pair}.{run}.seed{max(self.settings.seeds)}.{test}.log"
                if len(name) > LONGEST_NAME:
                    raise UserError(
                        f"pairs: {pair}: expected a log's name of at most {LONGEST_NAME} "
                        f"characters, found {len(name)} with the run {run} and the test set "
                        f"{test}; take a shorter name for the corpus, a language or the test set"
                    )

    def _check_own_files(self) -> None:
        """Raise UserError for a missing file of one's own that is still to be copied."""
        for pair in self.settings.pairs:
            text = self.layout.texts(pair, self.splits(pair), *SIDES)
            _check_own(self._own_files(parse_pair(pair).corpus), self.manifest(pair), text)
            for name in self.treebanks.of_pair(pair):
                made = self.trees({"pair": pair})
                _check_own(self.treebanks.own(name), self.tree_manifest(pair, name), made)

    def _try_scoring(self) -> None:
        """Raise EnvironmentFault for a target language whose translations could not be scored."""
        languages = {parse_pair(pair).tgt for pair in self.settings.pairs}
        for language in sorted(languages.intersection(SCORED_BY_EXTRA)):
            # Imported here: no other language has to wait a third of a second for it.
            from headcount.scoring.bleu import bleu_metric

            bleu_metric(language)

    def tests(self, pair: str) -> list[str]:
        """Names of a pair's test sets."""
        corpus, src, tgt = parse_pair(pair)
        return test_sets(self.corpora[corpus], src, tgt)

    def held_out(self, pair: str) -> list[str]:
        """Names of the splits that are not for training."""
        return ["dev", *self.tests(pair)]

    def manifest(self, pair: str) -> str:
        """Where a pair's raw corpus lies: in a folder named by what makes it.

        Another entry in corpora.yaml, or other code, is another folder, so a file there is never
        out of date and experiments may share it.
        """
        corpus = parse_pair(pair).corpus
        script = "synthetic" if self.corpora[corpus].generator else "download"
        recipe = digest([code(f"scripts/{script}.py"), self._entry(corpus)])
        return f"data/raw/{corpus}/{recipe}/manifest.json"

    def raw(self, w: Wildcards) -> str:
        """The manifest of the corpus of a pair."""
        return self.manifest(w["pair"])

    def entry(self, w: Wildcards) -> str:
        """What to fetch into a folder of data/raw, as JSON: a corpus or one of its treebanks."""
        return self.treebanks.entry(w) or self._entry(w["corpus"])

    def _entry(self, corpus: str) -> str:
        """A corpus's part that shapes its files, as JSON: all but licence, citation and trees."""
        words = {"licence", "citation", "trees"}
        return json.dumps(self.corpora[corpus].model_dump(exclude=words, exclude_none=True))

    def own_files(self, w: Wildcards) -> list[str]:
        """Files outside the project's care that a folder of data/raw is a copy of."""
        return self.treebanks.own_files(w) or self._own_files(w["corpus"])

    def _own_files(self, corpus: str) -> list[str]:
        splits = (self.corpora[corpus].splits or {}).values()
        return [source.path for sides in splits for source in sides.values() if source.path]

    def held_out_text(self, w: Wildcards) -> list[str]:
        """What the text of a split must not hold: the sources of all others, if it is to train."""
        splits = self.held_out(w["pair"]) if w["split"] == "train" else []
        return self.layout.texts(w["pair"], splits, "src")

    def splits(self, pair: str) -> list[str]:
        """Names of all splits of a pair."""
        return ["train", *self.held_out(pair)]

    def references(self, w: Wildcards) -> list[str]:
        """What the translations of a pair's test sets are compared with."""
        return self.layout.texts(w["pair"], self.tests(w["pair"]), "tgt")

    def tests_of(self, w: Wildcards) -> list[str]:
        """Names of the test sets of the pair of `w`."""
        return self.tests(w["pair"])

    def translated(self, end: str) -> Callable[[Wildcards], list[str]]:
        """A function for the files of a run's translations of its test sets, by phase as well."""

        def of_run(wildcards: Wildcards) -> list[str]:
            names = (f"translations/{test}.{end}" for test in self.tests(wildcards["pair"]))
            return self.layout.beside(wildcards["phase"], wildcards, wildcards["run"], *names)

        return of_run

    def masking_tests(self, pair: str) -> list[str]:
        """Names of the test sets that are translated under masks: those named, or the first."""
        named = self.settings.masking.test_sets
        tests = self.tests(pair)
        return [test for test in tests if test in named] if named else tests[:1]

    def masking_texts(self, w: Wildcards) -> list[str]:
        """Both sides of those test sets."""
        return self.layout.texts(w["pair"], self.masking_tests(w["pair"]), *SIDES)

    def masking_flags(self, w: Wildcards) -> list[str]:
        """The masking section, as flags, with the pair's own test sets."""
        tests = self.masking_tests(w["pair"])
        return as_flags(self.settings.masking.model_copy(update={"test_sets": tests}))

    def untuned_flags(self, w: Wildcards) -> list[str]:
        """The masking section, as flags, and the gates runs that say how many heads to mask."""
        return [*self.masking_flags(w), "--runs", *self.pruning.gates_from(w["run"])]

    def baseline_importance(self, w: Wildcards) -> list[str]:
        """The file of head importance of the baseline beside a run, if that is another."""
        if w["run"] == "baseline" or "baseline" not in self.runs:
            return []
        return self.layout.beside("heads", w, "baseline", "importance.csv")

    def trees(self, w: Wildcards) -> list[str]:
        """A pair's treebanks as its models read them; none if it has no treebank."""
        folder = f"{self.layout.bpe(w['pair'])}/trees"
        return [f"{folder}/{name}.jsonl" for name in self.treebanks.of_pair(w["pair"])]

    def raw_trees(self, w: Wildcards) -> str:
        """The manifest of the raw trees of a treebank of a pair."""
        return self.tree_manifest(w["pair"], w["treebank"])

    def tree_manifest(self, pair: str, treebank: str) -> str:
        """Where the raw trees of one of a pair's treebanks lie."""
        if self.treebanks.is_generated(treebank):
            return self.manifest(pair)
        return self.treebanks.fetched(treebank)

    def generator_flags(self, w: Wildcards) -> list[str]:
        """Settings of a generated corpus, as flags."""
        return as_flags(self.corpora[w["corpus"]].settings)

    def languages(self, w: Wildcards) -> list[str]:
        """A pair's two languages, as flags."""
        pair = parse_pair(w["pair"])
        return ["--src-lang", pair.src, "--tgt-lang", pair.tgt]

    def pretokenised(self, w: Wildcards) -> list[str]:
        """A flag if a pair's text needs no tokeniser."""
        corpus = self.corpora[parse_pair(w["pair"]).corpus]
        return ["--pretokenised"] if corpus.pretokenised or corpus.generator else []

    def section(self, *names: str) -> list[str]:
        """Sections of the experiment, as flags: every key, so that the command says it all."""
        return [flag for name in names for flag in as_flags(getattr(self.settings, name))]

    def corpus_names(self, generated: bool) -> str:
        """Wildcard pattern of the corpora that are generated, or that are fetched."""
        names = (n for n, corpus in self.corpora.items() if bool(corpus.generator) == generated)
        return alternatives(names)

    def device(self, section: str, mem_mb: int) -> dict[str, int]:
        """Memory and GPUs of a job of a section: one, if it is to use one and there is one."""
        device = getattr(self.settings, section).device
        here = device == "auto" and shutil.which("nvidia-smi") is not None
        return {"gpu": int(device == "cuda" or here), "mem_mb": mem_mb}


def _check_own(files: list[str], manifest: str, made: list[str]) -> None:
    """Raise UserError for a missing file of one's own, unless its copy is here.

    If all that is made of it is here, say so and go on: who pulled that may have no right to the
    text itself. Snakemake then takes it as it is, without a word of its own.
    """
    if os.path.exists(manifest):
        return
    try:
        for path in files:
            check_own_file(path)
    except UserError as fault:
        if not all(map(os.path.exists, made)):
            raise
        print(f"note: {fault}; until then {made[0]} and the like stay as they are", file=sys.stderr)


def alternatives(names) -> str:
    """Wildcard pattern that matches these names and nothing else."""
    return "|".join(map(re.escape, names)) or NOTHING

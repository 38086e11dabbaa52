"""What the rules ask of an experiment's settings: recipes of corpora, test sets, flags."""

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from ablation import Ablation
from asked import experiment_name
from pruning import Pruning
from treebanks import Treebanks

from headcount.base.errors import HeadcountError, UserError
from headcount.base.fingerprint import code, digest
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
from headcount.base.settings.own_file import check_own_file
from headcount.base.settings.pair import SCORED_BY_EXTRA, parse_pair
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
            self.treebanks = Treebanks(self.settings.roles.trees, self.corpora)
            self._check_lengths()
            self._check_own_files()
            self._try_scoring()
            self.ablation = Ablation(name, self.settings, self.corpora)
        except HeadcountError as fault:
            print(f"error: {fault}", file=sys.stderr)
            sys.exit(fault.exit_code)
        self.pruning = Pruning(name, self.settings)

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
                name = f"{pair}.{run}.seed{max(self.settings.seeds)}.{test}.log"
                if len(name) > LONGEST_NAME:
                    raise UserError(
                        f"pairs: {pair}: expected a log's name of at most {LONGEST_NAME} "
                        f"characters, found {len(name)} with the run {run} and the test set "
                        f"{test}; take a shorter name for the corpus, a language or the test set"
                    )

    def _check_own_files(self) -> None:
        """Raise UserError for a missing file of one's own that is still to be copied."""
        for pair in self.settings.pairs:
            text = self.text(pair, ["train", *self.held_out(pair)], "src", "tgt")
            _check_own(self.own_files(parse_pair(pair).corpus), self.manifest(pair), text)
            for name in self.treebanks.of_pair(pair):
                made = self.trees(pair, "jsonl")
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
        recipe = digest([code(f"scripts/{script}.py"), self.entry(corpus)])
        return f"data/raw/{corpus}/{recipe}/manifest.json"

    def entry(self, corpus: str) -> str:
        """A corpus's part that shapes its files, as JSON: all but licence, citation and trees."""
        words = {"licence", "citation", "trees"}
        return json.dumps(self.corpora[corpus].model_dump(exclude=words, exclude_none=True))

    def text(self, pair: str, splits: list[str], *ends: str) -> list[str]:
        """Files of a pair's cleaned text."""
        folder = f"data/text/{self.name}/{pair}"
        return [f"{folder}/{split}.{end}" for split in splits for end in ends]

    def own_files(self, corpus: str) -> list[str]:
        """A corpus's files that lie outside the project's care."""
        splits = (self.corpora[corpus].splits or {}).values()
        return [source.path for sides in splits for source in sides.values() if source.path]

    def translations(self, run: Mapping[str, str], end: str) -> list[str]:
        """Files of a run's translations of all its test sets.

        `run` has phase (train or prune), pair, run and seed.
        """
        folder = f"results/{self.name}/{run['phase']}/{run['pair']}/{run['run']}/seed{run['seed']}"
        return [f"{folder}/translations/{test}.{end}" for test in self.tests(run["pair"])]

    def of_runs(self, phase: str, name: str) -> list[str]:
        """The file of this name of every run: pairs, then training variants, then seeds."""
        folder = f"results/{self.name}/{phase}"
        return [f"{folder}/{pair}/{run}/seed{seed}/{name}" for pair, run, seed in self._runs()]

    def all_translations(self) -> list[str]:
        """Every training run's translations of all its test sets."""
        return self._translations("train", self.runs)

    def pruned_translations(self) -> list[str]:
        """Every pruned run's translations of all its test sets."""
        return self._translations("prune", self.pruned)

    def _translations(self, phase: str, runs: list[str]) -> list[str]:
        keys = product([phase], self.settings.pairs, runs, self.settings.seeds)
        names = ("phase", "pair", "run", "seed")
        return [
            file
            for key in keys
            for file in self.translations(dict(zip(names, key, strict=True)), "txt")
        ]

    def _runs(self) -> Iterator[tuple[str, str, int]]:
        return product(self.settings.pairs, self.runs, self.settings.seeds)

    def masking_tests(self, pair: str) -> list[str]:
        """Names of the test sets that are translated under masks: those named, or the first."""
        named = self.settings.masking.test_sets
        return (
            [test for test in self.tests(pair) if test in named] if named else self.tests(pair)[:1]
        )

    def masking_flags(self, pair: str) -> list[str]:
        """The masking section, as flags, with the pair's own test sets."""
        tests = self.masking_tests(pair)
        return as_flags(self.settings.masking.model_copy(update={"test_sets": tests}))

    def baseline_importance(self, run: Mapping[str, str]) -> list[str]:
        """The file of head importance of the baseline of a run's pair and seed, if it is another.

        `run` has pair, run and seed.
        """
        if run["run"] == "baseline" or "baseline" not in self.runs:
            return []
        folder = f"results/{self.name}/heads/{run['pair']}/baseline/seed{run['seed']}"
        return [f"{folder}/importance.csv"]

    def trees(self, pair: str, end: str) -> list[str]:
        """Files of a pair's treebanks as its models read them; none if it has no treebank."""
        folder = f"data/bpe/{self.name}/{pair}/trees"
        return [f"{folder}/{name}.{end}" for name in self.treebanks.of_pair(pair)]

    def tree_manifest(self, pair: str, treebank: str) -> str:
        """Where the raw trees of one of a pair's treebanks lie."""
        if self.treebanks.is_generated(treebank):
            return self.manifest(pair)
        return self.treebanks.fetched(treebank)

    def generator_flags(self, corpus: str) -> list[str]:
        """Settings of a generated corpus, as flags."""
        return as_flags(self.corpora[corpus].settings)

    def section(self, *names: str) -> list[str]:
        """Sections of the experiment, as flags: every key, so that the command says it all."""
        return [flag for name in names for flag in as_flags(getattr(self.settings, name))]

    def pretokenised(self, pair: str) -> bool:
        """Whether a pair's text needs no tokeniser."""
        corpus = self.corpora[parse_pair(pair).corpus]
        return corpus.pretokenised or corpus.generator is not None

    def corpus_names(self, generated: bool) -> str:
        """Wildcard pattern of the corpora that are generated, or that are fetched."""
        names = (n for n, corpus in self.corpora.items() if bool(corpus.generator) == generated)
        return alternatives(names)

    def gpus(self, section: str) -> int:
        """GPUs that a job of a section asks for: one, if it is to use one and there is one."""
        device = getattr(self.settings, section).device
        return int(
            device == "cuda" or (device == "auto" and shutil.which("nvidia-smi") is not None)
        )


def _check_own(own: list[str], manifest: str, made: list[str]) -> None:
    """Raise UserError for a missing file of one's own, unless its copy is here.

    If all that is made of it is here, say so and go on: who pulled that may have no right to the
    text itself. Snakemake then takes it as it is, without a word of its own.
    """
    if os.path.exists(manifest):
        return
    try:
        for path in own:
            check_own_file(path)
    except UserError as fault:
        if not all(map(os.path.exists, made)):
            raise
        print(f"note: {fault}; until then {made[0]} and the like stay as they are", file=sys.stderr)


def alternatives(names) -> str:
    """Wildcard pattern that matches these names and nothing else."""
    return "|".join(map(re.escape, names)) or NOTHING

"""What the rules ask of an experiment's settings: test sets, flags, devices."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from asked import experiment_name
from classifiers import Classifiers
from imported import MODELS, Imported
from layout import Layout, Wildcards
from own_files import OwnFiles
from pruning import Pruning
from raw import CORPORA, Raw

from headcount.base.errors import HeadcountError, UserError
from headcount.base.folders import ENTAILMENT_PARTS, SIDES
from headcount.base.settings.ablation import RerankSettings
from headcount.base.settings.corpora import (
    Corpus,
    ablation_tests,
    check_corpora,
    load_corpora,
    test_sets,
)
from headcount.base.settings.data import LetterSettings, SpellingSettings
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.experiment import Experiment, load_experiment
from headcount.base.settings.flags import as_flags, run_as_flag
from headcount.base.settings.names import SCORED_BY_EXTRA, parse_pair, two_letters
from headcount.base.settings.reader import at_key_of
from headcount.base.settings.runs import label, labels
from headcount.base.settings.training_runs import BASELINE
from headcount.data.fetching.checksums import LOCK, read_lock
from headcount.data.words import uses_jieba

CONFIG = Path("config")
BASE = label(BASELINE)
LONGEST_NAME = 255  # of a file, on nearly every file system


class Plan:
    """One experiment as the rules see it.

    Leaves with exit code 2 if its settings are wrong or a file of one's own is missing, and with 3
    if a target language could not be scored here.
    """

    def __init__(self, config: Mapping[str, Any], files: Sequence[Path], dry: bool = False):
        """`config`: what `--config` gave, and `--configfile` in `files`.

        `dry`: no job will run, so that a missing file of one's own is only told.
        """
        self._own = OwnFiles(dry)
        try:
            self.name = experiment_name(config, files, CONFIG)
            self.settings: Experiment = load_experiment(self.name, CONFIG)
            self.corpora: dict[str, Corpus] = load_corpora(Path(CORPORA))
            self.raw = Raw(self.settings.roles.trees, self.corpora)
            self.layout = Layout(self.name, self.settings.pairs, self.settings.seeds)
            self._recorded = read_lock(LOCK)
            self.classifiers = Classifiers(self.layout, self.settings)
            self.imported = Imported(self.settings, self.corpora)
            self._check()
            if not dry:
                self.classifiers.check_library()
                self._check_jieba()
        except HeadcountError as fault:
            print(f"error: {fault}", file=sys.stderr)
            sys.exit(fault.exit_code)
        self.pruning = Pruning(self.layout, self.settings)

    @property
    def runs(self) -> list[str]:
        """Names of the training runs."""
        return labels(self.settings.runs)

    @property
    def same_heads(self) -> list[str]:
        """Names of those with as many heads as `model` says."""
        return labels([run for run in self.settings.runs if run.attention_heads is None])

    @property
    def by_heads(self) -> list[str]:
        """Names of the baseline and of runs with other heads; none where there are no others."""
        several = len(self.same_heads) < len(self.runs)
        return [run for run in self.runs if run == BASE or run not in self.same_heads] * several

    @property
    def by_dropout(self) -> list[str]:
        """Names of the baseline and the others in `same_heads`, if dropout alone differs in any."""
        plain = [run for run in self.settings.runs if run.method == "baseline"]
        several = sum(run.attention_heads is None for run in plain) > 1
        return self.same_heads if several and BASELINE in plain else []

    @property
    def by_variant(self) -> list[str]:
        """Names of `same_heads` with the baseline, if runs of importance choose in several ways."""
        ways = {run.way for run in self.settings.runs if run.method == "importance"}
        return self.same_heads if BASE in self.same_heads and len(ways) > 1 else []

    @property
    def pruned(self) -> list[str]:
        """Names of the pruned runs."""
        return labels(self.settings.pruned)

    @property
    def ablated(self) -> list[str]:
        """Names of the runs whose heads are removed without further training."""
        return labels(self.settings.ablation.runs)

    @property
    def measured(self) -> list[str]:
        """Names of the ablated runs whose heads are measured in more ways."""
        return self.ablated if self.settings.ablation.measures else []

    @property
    def timed(self) -> list[str]:
        """Names of the ablated runs that are timed with fewer and fewer heads."""
        return self.ablated if self.settings.speed.batch_sizes else []

    @property
    def profiled(self) -> list[str]:
        """Names of those that are pruned at points of their training as well."""
        return self.ablated if self.settings.ablation.updates else []

    def _check(self) -> None:
        """Raise UserError or EnvironmentFault for what no job could do."""
        settings, file = self.settings, CONFIG / f"{self.name}.yaml"
        check_corpora(settings, self.corpora, file)
        for pair in settings.pairs:
            with at_key_of(file):
                self._check_lengths(pair)
            text = self.layout.texts(pair, self.splits(pair), *SIDES)
            self._own.check(self.raw.of(pair), text)
            for name in self.raw.treebanks(pair):
                made = [f"{self.layout.bpe(pair)}/trees/{name}.jsonl"]
                self._own.check(self.raw.of_tree(name), made)
        targets = {two_letters(parse_pair(pair).tgt) for pair in settings.pairs}
        for language in sorted(targets & {*SCORED_BY_EXTRA}):
            # Imported here: no other language has to wait a third of a second for it.
            from headcount.scoring.bleu import bleu_metric

            bleu_metric(language)
        for corpus in self.classifiers.corpora:
            text = [f"{self.layout.text(corpus)}/{part}.jsonl" for part in ENTAILMENT_PARTS]
            self._own.check(self.raw.of(corpus), text)
        for name in self.classifiers.models:
            folders = self.classifiers.folders("masking")
            made = [f"{folder}/classifier_ablation.csv" for _, folder in folders]
            self._own.check(self.classifiers.source(name), made, str(file))
        for name in self.imported.names:
            self._own.check(self.imported.source(name), self.imported.made(self.layout), MODELS)
        with at_key_of(file):
            self.imported.check_sizes()

    def _check_jieba(self) -> None:
        """Raise EnvironmentFault where jieba is to find a language's words, and is missing."""
        for corpus, *languages in map(parse_pair, self.settings.pairs):
            for language in languages:
                uses_jieba(language, self._is_tokenised(corpus), self.settings.bpe.unspaced)

    def say_recorded(self) -> None:
        """Tell which published files jobs have fetched first, whose checksums nobody knew."""
        new = [address for address in read_lock(LOCK) if address not in self._recorded]
        if new:
            print(
                f"note: fetched for the first time: {', '.join(new)}. Their checksums are recorded "
                f"in {LOCK} from now on; commit that file, so that everyone has the same data",
                file=sys.stderr,
            )

    def _check_lengths(self, pair: str) -> None:
        """Raise UserError for names that are allowed each, and together too long for a file."""
        run = max([*self.runs, *self.pruned], key=len)
        for test in self.tests(pair):
            name = f"train.{pair}.{run}.seed{max(self.settings.seeds)}.{test}.log"
            if len(name) > LONGEST_NAME:
                raise UserError(
                    f"pairs: {pair}: expected a log's name of at most {LONGEST_NAME} "
                    f"characters, found {len(name)} with the run {run} and the test set "
                    f"{test}; take a shorter name for the corpus, a language or the test set"
                )

    def own_files(self, w: Wildcards) -> list[str]:
        """Files of one's own that belong into the folder of `w`, but for those planned without."""
        of = {"model": self.classifiers.source, "pretrained": self.imported.source}
        [source] = [of[key](name) for key, name in w.items() if key in of] or [self.raw.at(w)]
        return self._own.of(source)

    def tests(self, pair: str) -> list[str]:
        """Names of a pair's test sets."""
        corpus, src, tgt = parse_pair(pair)
        return test_sets(self.corpora[corpus], src, tgt)

    def tests_of(self, w: Wildcards) -> list[str]:
        """Names of the test sets of the pair of `w`."""
        return self.tests(w["pair"])

    def splits(self, pair: str) -> list[str]:
        """Names of all splits of a pair; all but the first are held out of training."""
        return ["train", "dev", *self.tests(pair)]

    def held_out(self, w: Wildcards) -> list[str]:
        """Names of the splits whose sources the text of `w` must not hold: none but for train."""
        return self.splits(w["pair"])[1:] if w["split"] == "train" else []

    def masking_tests(self, w: Wildcards) -> list[str]:
        """Names of the test sets that are translated under masks: those named, or the first."""
        named, tests = self.settings.masking.test_sets, self.tests_of(w)
        return [test for test in tests if test in named] if named else tests[:1]

    def masking_flags(self, w: Wildcards) -> list[str]:
        """The masking section, as flags, with the pair's own test sets."""
        tests = {"test_sets": self.masking_tests(w)}
        return as_flags(self.settings.masking.model_copy(update=tests))

    def untuned_flags(self, w: Wildcards) -> list[str]:
        """The masking section, as flags, and the gates runs that say how many heads to mask."""
        runs = [run_as_flag(self.pruning.runs[name]) for name in self.pruning.gates_from(w["run"])]
        return [*self.masking_flags(w), "--runs", *runs]

    def run_flag(self, w: Wildcards) -> list[str]:
        """Return the settings of the run of `w`, as a flag."""
        runs = self.pruning.trained | self.pruning.runs
        return ["--run", run_as_flag(runs[w["run"]])]

    def ablation_tests(self, pair: str) -> list[str]:
        """Names of the two test sets of ablation. Raises UserError for a pair without them."""
        return list(ablation_tests(self.settings.ablation.test_sets, pair, self.corpora))

    def ablation_texts(self, w: Wildcards) -> list[str]:
        """Names of the texts that ablation reads: dev, and the two test sets."""
        return list(dict.fromkeys(["dev", *self.ablation_tests(w["pair"])]))

    def first_ablation_test(self, w: Wildcards) -> str:
        """Name of the test set that scores pruning."""
        return self.ablation_tests(w["pair"])[0]

    def ablation_flags(self, *names: str) -> Callable[[Wildcards], list[str]]:
        """A function for these keys of the ablation section, and a pair's own test sets, as flags.

        A job is told no more than it reads, and so is not done again when another key changes.
        """

        def of_pair(wildcards: Wildcards) -> list[str]:
            tests = {"test_sets": self.ablation_tests(wildcards["pair"])}
            section = self.settings.ablation.model_copy(update=tests)
            return as_flags(section, *names, "test_sets")

        return of_pair

    def rerank_flags(self) -> list[str]:
        """The importance section, as flags of scripts that measure importance anew."""
        return as_flags(RerankSettings(**self.settings.importance.model_dump()))

    def baseline_importance(self, w: Wildcards) -> list[str]:
        """The file of head importance of the baseline beside a run, if that is another."""
        if w["run"] == BASE or BASE not in self.runs:
            return []
        return self.layout.beside("heads", w, BASE, "importance.csv")

    def treebanks(self, w: Wildcards) -> list[str]:
        """Names of the treebanks of the pair of `w`; none if it has none."""
        return self.raw.treebanks(w["pair"])

    def languages(self, w: Wildcards) -> list[str]:
        """A pair's two languages, as flags."""
        pair = parse_pair(w["pair"])
        return ["--src-lang", pair.src, "--tgt-lang", pair.tgt]

    def pretokenised(self, w: Wildcards) -> list[str]:
        """A flag if a pair's text needs no tokeniser."""
        return ["--pretokenised"] if self._is_tokenised(parse_pair(w["pair"]).corpus) else []

    def _is_tokenised(self, corpus: str) -> bool:
        return self.corpora[corpus].pretokenised or self.corpora[corpus].generator is not None

    def words(self, w: Wildcards) -> list[str]:
        """How the words of a pair's target are found, as flags."""
        return [*self.pretokenised(w), "--unspaced", self.settings.bpe.unspaced]

    def section(self, *names: str) -> list[str]:
        """Sections of the experiment, as flags: every key, so that the command says it all."""
        return [flag for name in names for flag in as_flags(self.settings.section(name))]

    def spelling(self) -> list[str]:
        """How the text is written, as flags of what cuts it."""
        kind = LetterSettings if self.imported.name else SpellingSettings
        return as_flags(self.settings.text, *kind.model_fields)

    def own_search(self) -> list[str]:
        """Flags of our own beam search, for jobs that know no other `decode.engine`."""
        return as_flags(self.settings.decode, *DecodeSettings.model_fields)

    def scratch_flags(self, w: Wildcards) -> list[str]:
        """Flags of a training from scratch, as long as all of what it is compared with."""
        run = self.pruning.runs[w["run"]]
        start = BASELINE if run.from_none else run.init_from
        model = start.own_model(self.settings.section("model"))
        return [*as_flags(model), *as_flags(self.pruning.from_scratch())]

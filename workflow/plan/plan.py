"""One experiment as the rules see it: its runs, its test sets, and flags of its settings."""

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

from plan.layout import Layout, Raw, Source, Wildcards
from plan.metrics import Metrics
from plan.own_files import Classifiers, Imported, OwnFiles
from plan.pruning import Pruning

from headcount.base.folders import ENTAILMENT_PARTS, SIDES, TRAINING
from headcount.base.settings.corpora import (
    Corpus,
    ablation_tests,
    check_corpora,
    load_corpora,
    test_sets,
)
from headcount.base.settings.data import (
    SCORED_BY_EXTRA,
    LetterSettings,
    MixtureSettings,
    SpellingSettings,
    TransferSettings,
    two_letters,
)
from headcount.base.settings.decode import DecodeSettings, SavingsSettings
from headcount.base.settings.experiment import Experiment, load_experiment
from headcount.base.settings.flags import as_flags, run_as_flag
from headcount.base.settings.heads import RerankSettings
from headcount.base.settings.runs import labels
from headcount.base.settings.section import parse_pair
from headcount.base.settings.training_runs import BASELINE
from headcount.data.words import uses_jieba

CONFIG = Path("config")
BASE = BASELINE.label


class Plan:
    """One experiment. Methods that take `w` are functions of a job's wildcards."""

    def __init__(self, name: str, dry: bool = False):
        """Raise UserError for wrong settings or missing files, EnvironmentFault for lacking extras.

        `dry`: no job will run, so that missing files of one's own are only reported.
        """
        self.name = name
        self.settings: Experiment = load_experiment(name, CONFIG)
        self.corpora: dict[str, Corpus] = load_corpora(CONFIG / "corpora.yaml")
        self.raw = Raw(self.settings.roles.trees, self.corpora)
        more = dict.fromkeys(labels(self.settings.more_seeds_of), self.settings.more_seeds)
        self.layout = Layout(name, self.settings.pairs, self.settings.seeds, more)
        self.classifiers = Classifiers(self.layout, self.settings)
        self.imported = Imported(self.settings, self.corpora)
        self._own = OwnFiles(dry)
        self._check(CONFIG / f"{name}.yaml")
        if not dry:
            self._check_extras()
        self.pruning = Pruning(self.layout, self.settings)
        self.name_runs()
        self.metrics = Metrics(self.settings.metrics)
        if not dry:
            self.metrics.check_files(self._scored(), f"{CONFIG}/{name}.yaml")

    def _scored(self) -> Iterator[Wildcards]:
        """Yield pair, run, seed and test set of all translations."""
        for phase, runs in (("train", self.runs), ("prune", self.pruned)):
            for pair, run in product(self.layout.pairs, runs):
                for seed, test in product(
                    self.layout.seeds_of(phase, run), self.tests({"pair": pair})
                ):
                    yield {"pair": pair, "run": run, "seed": str(seed), "test": test}

    def _sources(self) -> Iterator[tuple[Source, list[str]]]:
        """Yield all raw data, with files that depend on them."""
        for pair in self.settings.pairs:
            text, bpe, w = self.layout.text(pair), self.layout.bpe(pair), {"pair": pair}
            yield self.raw.of(pair), [f"{text}/{split}.src" for split in self.splits(w)]
            for name in self.raw.treebanks(w):
                yield self.raw.of_tree(name), [f"{bpe}/trees/{name}.jsonl"]
        for corpus in self.classifiers.corpora:
            text = self.layout.text(corpus)
            yield self.raw.of(corpus), [f"{text}/{part}.jsonl" for part in ENTAILMENT_PARTS]
        folders = [folder for _, folder in self.classifiers.folders("masking")]
        for source in self.classifiers.sources.values():
            yield source, [f"{folder}/classifier_ablation.csv" for folder in folders]
        for source in self.imported.sources.values():
            yield source, [f"{self.layout.bpe(pair)}/{TRAINING[-1]}" for pair in self.layout.pairs]

    @property
    def manifests(self) -> list[str]:
        """Files that stand for all raw data."""
        return list(dict.fromkeys(source.manifest for source, _ in self._sources()))

    def _check(self, file: Path) -> None:
        """Raise UserError or EnvironmentFault if some job cannot do its work."""
        check_corpora(self.settings, self.corpora, file)
        for source, outputs in self._sources():
            self._own.check(source, outputs)
        targets = {two_letters(parse_pair(pair).tgt) for pair in self.settings.pairs}
        for language in sorted(targets & {*SCORED_BY_EXTRA}):
            from headcount.scoring.bleu import bleu_metric  # slow, and no other language needs it

            bleu_metric(language)
        self.imported.check_files()

    def _check_extras(self) -> None:
        """Raise EnvironmentFault where a package is missing that jobs need."""
        scripts = self.settings.bpe.unsegmented_scripts
        for corpus, *languages in map(parse_pair, self.settings.pairs):
            for language in languages:  # jieba
                uses_jieba(language, self._is_tokenised(corpus), scripts)

    def name_runs(self) -> None:
        """Set the names of training runs, pruned runs, and runs that are ablated, by their use.

        `same_heads` have as many heads as `model`. Of the runs whose heads are removed without
        further training, `measured` are measured in more ways, `timed` are timed with fewer and
        fewer heads, `profiled` are pruned at points of their training as well, and `cut` lose
        feed-forward units and layers. `shared` are models of several pairs, and `transferred` are
        masked by the rankings of all pairs. Of `ranked_units` all units have their importance.
        """
        settings, ablation = self.settings, self.settings.ablation
        self.runs = labels(settings.runs)
        self.same_heads = labels([run for run in settings.runs if run.attention_heads is None])
        self.pruned = labels(settings.pruned)
        self.ablated = ablation.runs
        together = self.one_model or settings.model.frozen and len(settings.pairs) > 1
        self.shared = self.runs if together else []
        self.transferred = self.shared if settings.many_pairs.shares else []
        self.measured = self.ablated if ablation.measures else []
        self.timed = self.ablated if settings.speed.batch_sizes else []
        self.profiled = self.ablated if ablation.updates else []
        self.cut = self.ablated if ablation.units else []
        ranked = {*self.cut, *self.pruning.ranked_units()}
        self.ranked_units = [run for run in self.runs if run in ranked]

    def tests(self, w: Wildcards) -> list[str]:
        """Return the names of a pair's test sets."""
        corpus, src, tgt = parse_pair(w["pair"])
        return test_sets(self.corpora[corpus], src, tgt)

    def first_test(self, w: Wildcards) -> str:
        """Return the first test set of a pair."""
        return self.tests(w)[0]

    def aligned_tests(self, w: Wildcards) -> list[str]:
        """Return the test set on which word alignment is measured, or none without links."""
        corpus, src, tgt = parse_pair(w["pair"])
        tests, known = self.tests(w), self.corpora[corpus]
        linked = [test for test in tests if known.linked(test, src, tgt)]
        return (linked or tests * (self.settings.alignment.links == "silver"))[:1]

    def gold_tests(self, w: Wildcards) -> list[str]:
        """Return the test set on which word alignment is measured by gold links, or none."""
        return self.aligned_tests(w) if self.settings.alignment.links == "gold" else []

    def linked_splits(self, w: Wildcards) -> list[str]:
        """Return the splits whose words get links: the test set, and dev to draw gold links."""
        known, *sides = parse_pair(w["pair"])
        gold = self.settings.alignment.links == "gold"
        drawn = gold and self.corpora[known].linked("dev", *sides)
        return self.aligned_tests(w) + ["dev"] * drawn

    def links(self, w: Wildcards, kind: str = "") -> list[str]:
        """Return the file of links between the words of a pair's test set, cut into pieces."""
        folder, kind = f"{self.layout.bpe(w['pair'])}/links", kind or self.settings.alignment.links
        return [f"{folder}/{test}.{kind}.jsonl" for test in self.aligned_tests(w)]

    def aligned(self) -> list[str]:
        """Return the pairs whose word alignment is measured."""
        return [pair for pair in self.settings.pairs if self.aligned_tests({"pair": pair})]

    def raw_links(self, w: Wildcards) -> str:
        """Return the file that has the links of a test set."""
        silver = f"{self.layout.text(w['pair'])}/links/{w['aligned']}.silver.links"
        return silver if w["links"] == "silver" else self.raw.of(w["pair"]).manifest

    def splits(self, w: Wildcards) -> list[str]:
        """Return the names of all splits of a pair, training first."""
        return ["train", "dev", *self.tests(w)]

    def held_out(self, w: Wildcards) -> list[str]:
        """Return the splits that training text must not repeat (none for other splits)."""
        return self.splits(w)[1:] if w["split"] == "train" else []

    def masking_tests(self, w: Wildcards) -> list[str]:
        """Return the test sets that are translated under masks: those named, or the first."""
        named, tests = self.settings.masking.test_sets, self.tests(w)
        return [test for test in tests if test in named] if named else tests[:1]

    def ablation_tests(self, w: Wildcards) -> list[str]:
        """Return the two test sets of ablation. Raise UserError for a pair without them."""
        return list(ablation_tests(self.settings.ablation.test_sets, w["pair"], self.corpora))

    def first_ablation_test(self, w: Wildcards) -> str:
        """Return the test set that scores pruning."""
        return self.ablation_tests(w)[0]

    def ablation_texts(self, w: Wildcards) -> list[str]:
        """Return the texts that ablation reads: dev, and the two test sets."""
        return list(dict.fromkeys(["dev", *self.ablation_tests(w)]))

    def own_files(self, w: Wildcards) -> list[str]:
        """Return the files of one's own that the raw data of `w` are copies of."""
        return self._own.of(self._source(w))

    def entry_flags(self, w: Wildcards) -> list[str]:
        """Return what the settings say of raw data, as a flag."""
        return ["--entry", self._source(w).entry]

    def _source(self, w: Wildcards) -> Source:
        models = self.classifiers.sources | self.imported.sources
        return models.get(w["corpus"]) or self.raw.at(w)

    def baseline_importance(self, w: Wildcards) -> list[str]:
        """Return the head importance of the baseline beside another run."""
        beside = w["run"] != BASE and BASE in self.runs
        return self.layout.beside("heads", w, BASE, "importance.csv") if beside else []

    def section(self, *names: str) -> list[str]:
        """Return sections of the experiment as flags, with all keys."""
        return [flag for name in names for flag in as_flags(self.settings.section(name))]

    def masking_flags(self, w: Wildcards) -> list[str]:
        """Return the masking section as flags, with the pair's own test sets."""
        tests = {"test_sets": self.masking_tests(w)}
        return as_flags(self.settings.masking.model_copy(update=tests))

    def importance_of_pairs(self, w: Wildcards) -> list[str]:
        """Return the head importance of a run and seed for every pair."""
        folders = (self.layout.run("heads", p, w["run"], w["seed"]) for p in self.settings.pairs)
        return [f"{folder}/importance.csv" for folder in folders]

    def transfer_flags(self, w: Wildcards) -> list[str]:
        """Return the masks that are compared between pairs, the pairs, and the test set."""
        flags = as_flags(self.settings.many_pairs, *TransferSettings.model_fields)
        return [*flags, "--pairs", *self.settings.pairs, "--tests", self.first_test(w)]

    def untuned_flags(self, w: Wildcards) -> list[str]:
        """Return the masking flags, and the gates runs that decide how many heads to mask."""
        runs = [run_as_flag(self.pruning.runs[name]) for name in self.pruning.masked_as(w["run"])]
        return [*self.masking_flags(w), "--runs", *runs]

    def run_flags(self, w: Wildcards) -> list[str]:
        """Return the settings of the run, and the folder of its states, as flags."""
        run = (self.pruning.trained | self.pruning.runs)[w["run"]]
        return ["--run", run_as_flag(run), *self.state_flags(w)]

    def state_flags(self, w: Wildcards) -> list[str]:
        """Return the folder of a run's states as a flag; as no output, it outlives a failed job."""
        name = f"{w['pair']}.{w['run']}.seed{w['seed']}"
        return ["--state", f"{self.layout.results}/state/{name}"]

    def savings_flags(self) -> list[str]:
        """Return what the measurement of savings reads of its section, as flags."""
        return as_flags(self.settings.savings, *SavingsSettings.model_fields.keys() - {"losses"})

    def ablation_flags(self, *names: str) -> Callable[[Wildcards], list[str]]:
        """Return a function for these keys of the ablation section, and the pair's test sets.

        A job gets only the keys that it reads, so that other keys do not make it run again.
        """

        def of_pair(w: Wildcards) -> list[str]:
            tests = {"test_sets": self.ablation_tests(w)}
            section = self.settings.ablation.model_copy(update=tests)
            return as_flags(section, *names, "test_sets")

        return of_pair

    def rerank_flags(self) -> list[str]:
        """Return the importance section as flags of scripts that measure importance anew."""
        return as_flags(RerankSettings(**self.settings.importance.model_dump()))

    def own_search(self) -> list[str]:
        """Return flags of our own beam search, for jobs that know no other `decode.engine`."""
        return as_flags(self.settings.decode, *DecodeSettings.model_fields)

    def scratch_flags(self, w: Wildcards) -> list[str]:
        """Return flags of a training from scratch, as long in total as a gates run."""
        run = self.pruning.runs[w["run"]]
        start = BASELINE if run.from_none else run.init_from
        model = start.own_model(self.settings.section("model"))
        return [*as_flags(model), *as_flags(self.pruning.from_scratch())]

    def spelling(self) -> list[str]:
        """Return how the text is written, as flags of what cuts it."""
        kind = LetterSettings if self.imported.name else SpellingSettings
        return as_flags(self.settings.text, *kind.model_fields)

    @property
    def one_model(self) -> bool:
        """True if all pairs share a model that is trained here."""
        return self.settings.many_pairs.one_model

    def mixture_flags(self) -> list[str]:
        """Return the pairs that share a model, tokenised corpora among them, and their mixture."""
        pairs = self.settings.pairs
        tokenised = sorted({c for c, *_ in map(parse_pair, pairs) if self._is_tokenised(c)})
        mix = as_flags(self.settings.many_pairs, *MixtureSettings.model_fields)
        return ["--pairs", *pairs, "--pretokenised", *tokenised, *mix]

    def languages(self, w: Wildcards) -> list[str]:
        """Return a pair's two languages, as flags."""
        pair = parse_pair(w["pair"])
        return ["--src-lang", pair.src, "--tgt-lang", pair.tgt]

    def split_flags(self, w: Wildcards) -> list[str]:
        """Return a pair's languages, and how many pairs of a split are drawn, if not all."""
        rule = self.corpora[parse_pair(w["pair"]).corpus].draw.get(w["split"])
        draw = ["--draw", str(rule.pairs), str(rule.seed)] if rule else []
        return [*self.languages(w), *draw]

    def bpe_flags(self, w: Wildcards) -> list[str]:
        """Return a pair's languages, and a flag if its text needs no tokeniser."""
        tokenised = self._is_tokenised(parse_pair(w["pair"]).corpus)
        return [*self.languages(w), *["--pretokenised"] * tokenised]

    def code_flags(self, w: Wildcards) -> list[str]:
        """Return a pair's languages, and their names in the imported model where these differ."""
        known = zip(SIDES, parse_pair(w["pair"])[1:], strict=True)
        codes = {side: self.imported.codes.get(language) for side, language in known}
        named = [word for k, code in codes.items() if code for word in (f"--{k}-code", code)]
        return [*self.languages(w), *named]

    def score_flags(self, w: Wildcards) -> list[str]:
        """Return a pair's test sets, and how the target is split into words."""
        scripts = ["--unsegmented-scripts", self.settings.bpe.unsegmented_scripts]
        tokenised = self._is_tokenised(parse_pair(w["pair"]).corpus)
        return [*scripts, *["--pretokenised"] * tokenised, "--tests", *self.tests(w)]

    def _is_tokenised(self, corpus: str) -> bool:
        return self.corpora[corpus].pretokenised or self.corpora[corpus].generator is not None

"""An experiment: one file of settings, from the pairs it trains to how it decodes."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from headcount.base.errors import UserError
from headcount.base.settings.ablation import (
    AblationSettings,
    ClassifierSettings,
    MaskingSettings,
    check_groups,
)
from headcount.base.settings.classifiers import ClassifiersSettings, FineTuningSettings
from headcount.base.settings.data import BpeSettings, TextSettings
from headcount.base.settings.decode import SpeedSettings, TranslateSettings
from headcount.base.settings.importance import ImportanceSettings, LrpSettings, MeasuresSettings
from headcount.base.settings.names import check_corpus_name, nearest, parse_pair, require
from headcount.base.settings.pretrained import ExperimentModel
from headcount.base.settings.reader import read_settings
from headcount.base.settings.roles import RolesSettings
from headcount.base.settings.run_lists import PrunedRuns, TrainingRuns, counted
from headcount.base.settings.runs import PrunedSettings, Run, label, labels
from headcount.base.settings.section import Section, each_once
from headcount.base.settings.train import GatesSettings, SubsetSettings, TrainSettings
from headcount.base.settings.training_runs import BASELINE

NOT_EXPERIMENTS = {"corpora", "models"}
IMPORTED_PIECES = 60_000
"""How large the vocabulary of an imported model is taken to be before it is read: as OPUS-MT's."""


_STRANGE = (
    "expected runs that start from its weights, for nothing here trains such a model from random "
    "ones to compare with; leave it out"
)


def _check_pair(text: str) -> str:
    try:
        return str(parse_pair(text))
    except UserError as fault:
        raise ValueError(str(fault)) from None


def _check_ablation(ablation: AblationSettings, info: ValidationInfo) -> AblationSettings:
    """With names of runs as paths have them; each is trained, and each update is kept."""
    if not {"model", "runs", "train"} <= set(info.data):
        return ablation
    runs = counted(ablation.runs, info)
    for run in runs:
        if run not in info.data["runs"]:
            raise ValueError(
                f"runs: {label(run)!r} is not among `runs` "
                f"({', '.join(labels(info.data['runs']))}); add it there"
            )
    each_once(labels(runs))
    kept = info.data["train"].keep_updates
    for update in ablation.updates:
        if update not in kept:
            raise ValueError(
                f"updates: update {update} is not among train.keep_updates "
                f"({', '.join(map(str, kept)) or 'none'}); add it there"
            )
    return ablation.model_copy(update={"runs": runs})


PairName = Annotated[str, AfterValidator(_check_pair)]
Seed = Annotated[int, Field(ge=1, le=10**9)]


class Experiment(Section):
    """One experiment file. Only `pairs` must be there, or `classifiers` with models."""

    title: str = Field("", max_length=200)
    """Shown on the report."""

    pairs: Annotated[list[PairName], AfterValidator(each_once)] = Field([], min_length=1)
    """What to train: `<corpus>.<source>-<target>`, with corpora from `corpora.yaml`; may be left
    out where `classifiers` has models."""

    seeds: Annotated[list[Seed], AfterValidator(each_once)] = Field([1], min_length=1)
    """Random seeds. Differences between runs are means over seeds."""

    text: TextSettings = TextSettings()
    """Which training pairs are kept."""

    bpe: BpeSettings = BpeSettings()
    """Subwords."""

    model: ExperimentModel = ExperimentModel()
    """The Transformer's sizes, and whether its weights are imported."""

    # Below the model, whose number of heads it needs.
    runs: TrainingRuns = Field(["baseline"], min_length=1, validate_default=True)
    """Training runs; each is trained on every pair with every seed. A run is a mapping (keys
    below), or its short name: `baseline`, or `baseline-h<n>` with other heads; `random-<N>`;
    `impt-<N>`, perhaps with other keys behind it; each with `-d<p>` for another dropout. N is a
    count or a share of all heads: `random-12.5%`."""

    # Below the runs, from whose models they start.
    pruned: PrunedRuns = []
    """Pruned runs, for every pair and seed. A run is a mapping (keys below), or its short name:
    `gates-<scope>-l<λ>`, with `scratch-`, `ranked-` or `drawn-` before it for the other methods,
    and `-from-<run>` or `-from-none` behind it. Every scope and training run that is pruned needs
    its control, λ = 0; what is from none needs the baseline."""

    train: TrainSettings = TrainSettings()
    """Training."""

    decode: TranslateSettings = TranslateSettings()
    """Beam search."""

    importance: ImportanceSettings = ImportanceSettings()
    """Head importance."""

    masking: MaskingSettings = MaskingSettings()
    """Masking experiments."""

    ablation: Annotated[AblationSettings, AfterValidator(_check_ablation)] = AblationSettings()
    """Heads removed one by one, all but one, and more and more of them."""

    measures: MeasuresSettings = MeasuresSettings()
    """Measures of heads beside importance."""

    gates: GatesSettings = GatesSettings()
    """Pruning by gates, and the fine-tuning of all pruned models."""

    subset: SubsetSettings = SubsetSettings()
    """Pruning to exactly so many heads."""

    speed: SpeedSettings = SpeedSettings()
    """Timing the pruned models."""

    roles: RolesSettings = RolesSettings()
    """What heads attend to."""

    lrp: LrpSettings = LrpSettings()
    """Relevance of heads."""

    classifiers: ClassifiersSettings = ClassifiersSettings()
    """Classifiers of sentence pairs, and their corpus."""

    fine_tuning: FineTuningSettings = FineTuningSettings()
    """Fine-tuning of classifiers."""

    classifier_ablation: ClassifierSettings = ClassifierSettings()
    """Heads of classifiers removed one by one, all but one, and more and more of them."""

    @model_validator(mode="after")
    def _check_across_sections(self) -> "Experiment":
        if not self.pairs and not self.classifiers.models:
            raise ValueError(
                "pairs: missing; expected a list of at least 1 (each text), or classifiers.models"
            )
        try:
            check_groups(self.masking.groups, self.model.grid.size)
        except UserError as fault:
            raise ValueError(str(fault)) from None
        if not sum(self.model.grid.counts["enc_self"]):
            raise ValueError(
                "model.heads: expected a head in the encoder, whose roles are described, found none"
            )
        self._check_positions()
        if self.ablation.runs and self.importance.normalise != "none":
            raise ValueError(
                f"importance.normalise: expected none where ablation.runs names runs, found "
                f"{self.importance.normalise}; heads are pruned by importance with and without "
                "its layer's norm, and ablation.normalise divides by it"
            )
        return self

    def _check_positions(self) -> None:
        """Raise ValueError for a longest sentence that a table of positions has no room for."""
        table = self.model.position_table
        for section, key in (("decode", "max_source"), ("text", "max_words")):
            length = getattr(getattr(self, section), key)
            if table and length >= table:
                raise ValueError(
                    f"{section}.{key}: expected at most {table - 1}, one less than "
                    f"model.position_table, found {length}; lower it"
                )

    @model_validator(mode="after")
    def _check_imported(self) -> "Experiment":
        """What a model that others have trained leaves no choice in, or says nothing of."""
        if self.model.imported is None:
            return self
        known = f"with the imported model {self.model.imported}"
        if extra := self.bpe.model_fields_set - {"unspaced"}:
            raise ValueError(f"bpe.{min(extra)}: its subwords are used {known}; leave it out")
        if self.text.normal_form != "none":
            raise ValueError(
                f"text.normal_form: expected none {known}, whose subwords have a normal form of "
                f"their own, found {self.text.normal_form}"
            )
        for run in [*self.runs, *self.pruned]:
            if run != BASELINE and self._is_strange(run):
                raise ValueError(f"{label(run)!r} {known}: {_STRANGE}")
        if self.model.as_it_is:
            self._check_untrained(known)
        return self

    @model_validator(mode="after")
    def _check_lengths(self) -> "Experiment":
        """Trainings that would end before their runs begin, or that pruned ones cannot have."""
        updates, patience = self.train.updates, self.train.patience
        for run in self.runs:
            if run.rule_from >= updates:
                raise ValueError(
                    f"runs: {label(run)!r}: expected after + held below train.updates {updates}, "
                    f"found {run.after} + {run.held}, so that its method would choose no head; "
                    "lower them, or raise train.updates"
                )
        if patience and self.pruned:
            raise ValueError(
                f"train.patience: expected 0 beside `pruned`, whose first run is "
                f"{label(self.pruned[0])!r}, found {patience}; pruned models are compared after as "
                "many updates in total, which trainings that end early have not; set it to 0, or "
                "prune in an experiment of its own"
            )
        return self

    def _is_strange(self, run: Run) -> bool:
        """Whether a run needs a training from random weights to be compared with."""
        return run.from_none if isinstance(run, PrunedSettings) else bool(run.attention_heads)

    def _check_untrained(self, known: str) -> None:
        """Raise ValueError for what needs a training that is told, where there is none."""
        if len(self.seeds) > 1:  # else one model would count as several trainings
            raise ValueError(
                f"seeds: expected one {known}, since the model is the same for each, found "
                f"{len(self.seeds)}; name one, with which gates of other seeds cannot be had, or "
                "set model.fine_tune: true, then each seed is a training"
            )
        if others := [label(run) for run in self.runs if run != BASELINE]:
            raise ValueError(
                f"runs: {others[0]!r} {known}: it would be trained further and the baseline not, "
                "which is no fair comparison; set model.fine_tune: true, then all are"
            )
        if self.ablation.updates:
            raise ValueError(f"ablation.updates: nothing is trained {known}; leave it out")
        if self.importance.loss != "nll":
            raise ValueError(
                f"importance.loss: expected nll {known}, whose label smoothing nobody told, found "
                f"{self.importance.loss}"
            )

    @property
    def assumed_pieces(self) -> int:
        """How large a vocabulary is taken to be before text is read."""
        return IMPORTED_PIECES if self.model.imported else self.bpe.assumed_pieces

    def section(self, name: str) -> Section:
        """A section as scripts are told it; of the model, its sizes."""
        return self.model.sizes if name == "model" else getattr(self, name)


def load_experiment(name: str, folder: Path) -> Experiment:
    """The experiment in `<folder>/<name>.yaml`, checked.

    Raises UserError for a name that is none, with the experiments there are, and for every
    fault in the file.
    """
    known = experiment_names(folder)
    try:
        check_corpus_name(name)
    except ValueError as fault:
        raise UserError(f"experiment: {fault}; {nearest(Path(name).stem, known)}") from None
    require(name, known, f"experiment {name!r}: there is no {folder / name}.yaml")
    return read_settings(folder / f"{name}.yaml", Experiment)


def experiment_names(folder: Path) -> list[str]:
    """Names of the experiment files in a folder, sorted."""
    return sorted({path.stem for path in folder.glob("*.yaml")} - NOT_EXPERIMENTS)

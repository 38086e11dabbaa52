"""An experiment: one file of settings, from the pairs it trains to how it decodes."""

from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, ConfigDict, Field, ValidationInfo, field_validator
from pydantic import model_validator

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
from headcount.base.settings.runs import label, labels
from headcount.base.settings.section import Resources, Section, each_once
from headcount.base.settings.train import GatesSettings, SubsetSettings, TrainSettings
from headcount.base.settings.training_runs import BASELINE

NOT_EXPERIMENTS = {"corpora", "models"}
IMPORTED_PIECES = 60_000
"""Assumed size of an imported model's vocabulary before it is read, as in OPUS-MT."""

_OWN = {"train.batch_tokens", "speed.threads"}
"""Keys of `resources` that a section has for itself."""


def _check_pair(text: str) -> str:
    try:
        return str(parse_pair(text))
    except UserError as fault:
        raise ValueError(str(fault)) from None


def _check_ablation(ablation: AblationSettings, info: ValidationInfo) -> AblationSettings:
    """Return the section with runs as paths name them, each trained, and updates that are saved."""
    if not {"model", "runs", "train"} <= set(info.data):
        return ablation
    runs, trained = counted(ablation.runs, info), info.data["runs"]
    each_once(labels(runs))
    if strange := [label(run) for run in runs if run not in trained]:
        raise ValueError(f"runs: {strange[0]!r} is not among `runs` ({', '.join(labels(trained))})")
    if not set(ablation.updates) <= set(info.data["train"].keep_updates):
        raise ValueError("updates: each must be among train.keep_updates")
    return ablation.model_copy(update={"runs": runs})


PairName = Annotated[str, AfterValidator(_check_pair)]
Seed = Annotated[int, Field(ge=1, le=10**9)]


class Experiment(Section):
    """One experiment file. Only `pairs` must be there, or `classifiers` with models."""

    model_config = ConfigDict(validate_default=True)  # so that defaults have the resources, too

    renamed: ClassVar[dict[str, str]] = {}
    """New names of old keys."""

    title: str = Field("", max_length=200)
    """Shown on the report."""

    pairs: Annotated[list[PairName], AfterValidator(each_once)] = []
    """Pairs to train on, `<corpus>.<source>-<target>`, with corpora from `corpora.yaml`; may be left
    out where `classifiers` has models."""

    seeds: Annotated[list[Seed], AfterValidator(each_once)] = Field([1], min_length=1)
    """Random seeds. Differences between runs are means over seeds."""

    resources: Resources = Resources()
    """Where jobs compute, for all sections below."""

    text: TextSettings = TextSettings()
    """Which training pairs are kept."""

    bpe: BpeSettings = BpeSettings()
    """Subwords."""

    model: ExperimentModel = ExperimentModel()
    """The Transformer's sizes, and whether its weights are imported."""

    # Below the model, whose number of heads it needs.
    runs: TrainingRuns = Field(["baseline"], min_length=1)
    """Training runs; each is trained on every pair with every seed. A run is a mapping (keys
    below), or its short name: `baseline`, or `baseline-h<n>` with other heads; `random-<N>`;
    `impt-<N>`, perhaps with other keys behind it; each with `-d<p>` for another dropout. N is a
    count or a share of all heads: `random-12.5%`."""

    # Below the runs, from whose models they start.
    pruned: PrunedRuns = []
    """Pruned runs, for every pair and seed. A run is a mapping (keys below), or its short name:
    `gates-<scope>-l<λ>`, with `scratch-`, `ranked-` or `drawn-` before it for the other methods,
    and `-from-<run>` or `-from-none` behind it. Every scope and training run that is pruned needs
    its control, λ = 0; a run from none needs the baseline."""

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

    @field_validator("*", mode="before")
    @classmethod
    def _share_resources(cls, given: Any, info: ValidationInfo) -> Any:
        keys = _shared(info.field_name)
        if not keys or "resources" not in info.data or not isinstance(given, dict | Section):
            return given
        own = given if isinstance(given, dict) else given.model_dump(exclude_unset=True)
        return {**info.data["resources"].model_dump(include=keys), **own}

    @model_validator(mode="after")
    def _check_across_sections(self) -> "Experiment":
        if not self.pairs and not self.classifiers.models:
            raise ValueError("pairs: expected a list of at least 1, or classifiers.models")
        try:
            check_groups(self.masking.groups, self.model.grid.size)
        except UserError as fault:
            raise ValueError(str(fault)) from None
        if not sum(self.model.grid.counts["enc_self"]):
            raise ValueError("model.heads: expected a head in the encoder")
        table = self.model.position_table or float("inf")
        for key, length in (
            ("decode.max_source", self.decode.max_source),
            ("text.max_words", self.text.max_words),
        ):
            if length >= table:
                raise ValueError(f"{key}: expected less than model.position_table, {table}")
        for run in self.runs:
            if run.rule_from >= self.train.updates:
                raise ValueError(
                    f"runs: {label(run)!r}: expected after + held below train.updates "
                    f"{self.train.updates}"
                )
        if self.train.patience and self.pruned:
            raise ValueError(
                "train.patience: expected 0 beside `pruned`, whose models are compared after as "
                f"many updates in total, found {self.train.patience}"
            )
        return self

    @model_validator(mode="after")
    def _check_imported(self) -> "Experiment":
        if self.model.imported is None:
            return self
        known = f"with the imported model {self.model.imported}"
        if extra := self.bpe.model_fields_set - {"unspaced"}:
            raise ValueError(f"bpe.{min(extra)}: its subwords are used {known}; leave it out")
        if self.text.normal_form != "none":
            raise ValueError(f"text.normal_form: expected none {known}, which has its own")
        strange = [run for run in self.runs if run.attention_heads]
        strange += [run for run in self.pruned if run.from_none]
        if strange:
            raise ValueError(f"{label(strange[0])!r} {known} does not start from its weights")
        if self.model.as_it_is:
            self._check_untrained(known)
        return self

    def _check_untrained(self, known: str) -> None:
        """Raise ValueError for what needs a training, where there is none."""
        advice = "set model.fine_tune: true, then each seed and run is a training"
        if len(self.seeds) > 1:  # else one model would count as several trainings
            raise ValueError(f"seeds: expected one {known}, which has no seed; {advice}")
        if others := [label(run) for run in self.runs if run != BASELINE]:
            raise ValueError(f"runs: {others[0]!r} {known}, but no trained baseline; {advice}")
        if self.ablation.updates:
            raise ValueError(f"ablation.updates: nothing is trained {known}; leave it out")

    @property
    def assumed_pieces(self) -> int:
        """Assumed size of the vocabulary before text is read."""
        return IMPORTED_PIECES if self.model.imported else self.bpe.assumed_pieces

    def section(self, name: str) -> Section:
        """Return a section as scripts take it; of the model, its sizes."""
        return self.model.sizes if name == "model" else getattr(self, name)


def _shared(name: str) -> set[str]:
    """Return the keys of a section that `resources` has for it."""
    section = Experiment.model_fields[name].annotation
    if name == "resources" or not (isinstance(section, type) and issubclass(section, Section)):
        return set()
    keys = Resources.model_fields.keys() & section.model_fields.keys()
    return {key for key in keys if f"{name}.{key}" not in _OWN}


Experiment.renamed.update(
    {
        f"{name}.{key}": f"resources.{key}"
        for name in Experiment.model_fields
        for key in sorted(_shared(name))
    }
)


def load_experiment(name: str, folder: Path) -> Experiment:
    """Return the experiment in `<folder>/<name>.yaml`, checked.

    Raises UserError for an unknown name, with the experiments there are, and for every fault in the
    file.
    """
    known = experiment_names(folder)
    try:
        check_corpus_name(name)
    except ValueError as fault:
        raise UserError(f"experiment: {fault}; {nearest(Path(name).stem, known)}") from None
    require(name, known, f"experiment {name!r}: there is no {folder / name}.yaml")
    return read_settings(folder / f"{name}.yaml", Experiment)


def experiment_names(folder: Path) -> list[str]:
    """Return the names of the experiment files in a folder, sorted."""
    return sorted({path.stem for path in folder.glob("*.yaml")} - NOT_EXPERIMENTS)

"""An experiment: one file of settings, from the pairs it trains to how it decodes."""

import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, ValidationInfo
from pydantic.functional_validators import AfterValidator, field_validator

from headcount.base.errors import UserError
from headcount.base.settings.data import BpeSettings, ManyPairsSettings, TextSettings
from headcount.base.settings.decode import SavingsSettings, SpeedSettings, TranslateSettings
from headcount.base.settings.heads import (
    AblationSettings,
    AlignmentSettings,
    ClassifierSettings,
    ImportanceSettings,
    LrpSettings,
    MaskingSettings,
    MeasuresSettings,
    RolesSettings,
)
from headcount.base.settings.metrics import OWN, ExperimentMetric, MetricName
from headcount.base.settings.pretrained import (
    ClassifiersSettings,
    ExperimentModel,
    FineTuningSettings,
)
from headcount.base.settings.reader import read_settings
from headcount.base.settings.runs import PrunedRuns, Runs, labels
from headcount.base.settings.section import (
    NAME,
    Faults,
    Resources,
    Section,
    each_once,
    nearest,
    parse_pair,
    refuse,
    require,
)
from headcount.base.settings.train import GatesSettings, SubsetSettings, TrainSettings
from headcount.base.settings.training_runs import BASELINE

_OVERRIDES = {"train": {"batch_tokens"}, "speed": {"threads"}, "savings": {"threads"}}
"""Keys of sections that replace keys of `resources`."""


def _check_pair(text: str) -> str:
    try:
        return str(parse_pair(text))
    except UserError as fault:
        raise ValueError(str(fault)) from None


PairName = Annotated[str, AfterValidator(_check_pair)]
Seed = Annotated[int, Field(ge=1, le=10**9)]


class Experiment(Section):
    """One experiment file. Only `pairs` must be there, or `classifiers` with models."""

    # Validators see the sections above theirs. Defaults are validated to share the resources.
    model_config = ConfigDict(validate_default=True)

    title: str = Field("", max_length=200)
    """Shown on the report."""
    pairs: Annotated[list[PairName], AfterValidator(each_once)] = []
    """Pairs to train on, `<corpus>.<source>-<target>`, with corpora from `corpora.yaml`; not needed
    where `classifiers` has models."""
    seeds: Annotated[list[Seed], AfterValidator(each_once)] = Field([1], min_length=1)
    """Random seeds. Differences between runs are means over seeds."""
    more_seeds: Annotated[list[Seed], AfterValidator(each_once)] = []
    """Further seeds of the runs in `more_seeds_of`, whose models are only translated and scored."""
    resources: Resources = Resources()
    text: TextSettings = TextSettings()
    bpe: BpeSettings = BpeSettings()
    model: ExperimentModel = ExperimentModel()
    runs: Runs = Field(["baseline"], min_length=1)
    """Training runs, for every pair and seed: `baseline`, or a mapping (keys below)."""
    more_seeds_of: Runs = []
    """Those of `runs` that are trained with `more_seeds`, too."""
    pruned: PrunedRuns = []
    """Pruned runs, for every pair and seed: mappings (keys below). Every start and scope of heads
    needs its control, λ = 0."""
    train: TrainSettings = TrainSettings()
    decode: TranslateSettings = TranslateSettings()
    metrics: dict[MetricName, ExperimentMetric] = {}
    """Metrics beside BLEU, by names of one's own (keys below)."""
    importance: ImportanceSettings = ImportanceSettings()
    masking: MaskingSettings = MaskingSettings()
    many_pairs: ManyPairsSettings = ManyPairsSettings()
    ablation: AblationSettings = AblationSettings()
    measures: MeasuresSettings = MeasuresSettings()
    gates: GatesSettings = GatesSettings()
    subset: SubsetSettings = SubsetSettings()
    speed: SpeedSettings = SpeedSettings()
    savings: SavingsSettings = SavingsSettings()
    roles: RolesSettings = RolesSettings()
    lrp: LrpSettings = LrpSettings()
    alignment: AlignmentSettings = AlignmentSettings()
    classifiers: ClassifiersSettings = ClassifiersSettings()
    fine_tuning: FineTuningSettings = FineTuningSettings()
    classifier_ablation: ClassifierSettings = ClassifierSettings()

    @classmethod
    def model_json_schema(cls, **options: Any) -> dict[str, Any]:
        """Return the JSON schema of files, whose sections lack the keys of `resources`."""
        schema = super().model_json_schema(**options)
        for name, field in cls.model_fields.items():
            for key in shared_keys(name):
                del schema["$defs"][field.annotation.__name__]["properties"][key]
        return schema

    @field_validator("*", mode="before")
    @classmethod
    def _share_resources(cls, given: Any, info: ValidationInfo) -> Any:
        keys = shared_keys(info.field_name)
        if isinstance(given, dict):
            refuse(*((f"{key}: is now resources.{key}", key in given) for key in sorted(keys)))
        if not keys or "resources" not in info.data or not isinstance(given, dict | Section):
            return given
        own = given if isinstance(given, dict) else given.model_dump(exclude_unset=True)
        return {**info.data["resources"].model_dump(include=keys), **own}

    def _faults(self) -> Faults:
        heads, table = self.model.grid, self.model.position_table or float("inf")
        yield "pairs: expected some, or models", not (self.pairs or self.classifiers.models)
        twice = sorted({*self.more_seeds} & {*self.seeds})
        yield f"more_seeds: {twice}: expected seeds that are not in seeds", twice
        one = bool(self.more_seeds) != bool(self.more_seeds_of)
        yield "more_seeds: expected more_seeds_of too, and the reverse", one
        strange = labels([run for run in self.more_seeds_of if run not in self.runs])
        yield f"more_seeds_of: {strange}: expected some of runs", strange
        yield f"masking.groups: expected at most {heads.size}", self.masking.groups > heads.size
        yield "model.heads: expected a head in the encoder", not sum(heads.counts["enc_self"])
        yield "model.decoder_layers: expected at least 1", not self.model.decoder_layers
        yield f"decode.max_source: expected below {table}", self.decode.max_source >= table
        yield f"text.max_words: expected below {table}", self.text.max_words >= table
        yield "train.patience: expected 0 beside `pruned`", self.train.patience and self.pruned
        taken = sorted({*self.metrics} & {*OWN})
        yield f"metrics: {taken}: expected other names than {', '.join(OWN)}", taken
        yield from self._run_faults()
        yield from self._import_faults()
        yield from self._pair_faults()

    def _run_faults(self) -> Faults:
        trained = labels(self.runs)
        late = [run.label for run in self.runs if run.rule_from >= self.train.updates]
        other = [run.label for run in self.runs if run.attention_heads is not None]
        unsaved = {*self.ablation.updates} - {*self.train.keep_updates}
        yield f"runs: {late}: expected start_update + warmup_mask_updates below train.updates", late
        yield f"runs: {other} need the run 'baseline'", other and BASELINE not in self.runs
        for run in self.pruned:
            start = BASELINE if run.from_none else run.init_from
            needed = [start] * (start not in self.runs)
            others = (run.gates_run, *[run.control] * run.of_heads)
            needed += [other for other in others if other not in self.pruned]
            yield f"pruned: {run.label!r} needs the runs {labels(needed)}; add them", needed
        for name in self.ablation.runs:
            yield f"ablation.runs: no run {name!r}; {nearest(name, trained)}", name not in trained
        yield "ablation.updates: expected some of train.keep_updates", unsaved

    def _import_faults(self) -> Faults:
        if self.model.imported is None:
            return
        other = sorted(self.bpe.model_fields_set - {"unsegmented_scripts"})
        fresh = [run.label for run in self.runs if run.attention_heads]
        fresh += [run.label for run in self.pruned if run.from_none]
        trained = [run.label for run in self.runs if run != BASELINE]
        frozen, advice = self.model.frozen, "set model.fine_tune: true"
        yield f"bpe: {other}: the imported model has its own subwords", other
        yield "text.normal_form: expected none", self.text.normal_form != "none"
        yield f"{fresh} would not start from the imported model", fresh
        yield f"seeds: expected one; or {advice}", frozen and len(self.seeds) > 1
        yield f"runs: {trained}: the baseline is not trained; {advice}", frozen and trained
        yield "ablation.updates: nothing is trained", frozen and self.ablation.updates

    def _pair_faults(self) -> Faults:
        many, alone = self.many_pairs, len(self.pairs) < 2
        one, imported = many.one_model, self.model.imported is not None
        advice = "expected one_model: true, or an imported model that is not trained"
        yield "many_pairs.one_model: expected two pairs or more", one and alone
        yield "many_pairs.one_model: expected bpe.joint: true", one and not self.bpe.joint
        yield "many_pairs.one_model: expected none beside model.imported", one and imported
        yield f"many_pairs.shares: {advice}", many.shares and not (one or self.model.frozen)
        yield "many_pairs.shares: expected two pairs or more", many.shares and alone
        none = [share for share in many.shares if not round(share * self.model.grid.size)]
        yield f"many_pairs.shares: {none}: less than one of {self.model.grid.size} heads", none

    @property
    def assumed_pieces(self) -> int:
        """Assumed size of the vocabulary before text is read."""
        return 60_000 if self.model.imported else self.bpe.assumed_pieces  # as OPUS-MT has

    def section(self, name: str) -> Section:
        """Return a section as scripts take it, and of `model` only the sizes."""
        return self.model.sizes if name == "model" else getattr(self, name)


def shared_keys(name: str) -> set[str]:
    """Return the keys of a section that files have under `resources` instead."""
    section = Experiment.model_fields[name].annotation
    if name == "resources" or not (isinstance(section, type) and issubclass(section, Section)):
        return set()
    keys = Resources.model_fields.keys() & section.model_fields.keys()
    return keys - _OVERRIDES.get(name, set())


def load_experiment(name: str, folder: Path) -> Experiment:
    """Return the experiment in `<folder>/<name>.yaml`. Raises UserError for every fault in it."""
    known = [stem for stem in experiment_names(folder) if re.fullmatch(NAME, stem)]
    require(name, known, f"experiment {name!r}: there is no {folder}/{name}.yaml")
    return read_settings(folder / f"{name}.yaml", Experiment)


def experiment_names(folder: Path) -> list[str]:
    """Return the names of the experiment files in a folder, sorted."""
    return sorted({path.stem for path in folder.glob("*.yaml")} - {"corpora", "models"})

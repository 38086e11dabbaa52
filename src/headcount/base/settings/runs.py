"""Pruned runs as settings, lists of runs in an experiment, and `run.json` beside a run's model."""

from collections.abc import Iterable, Sequence
from itertools import islice, product
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from headcount.base.addresses import KINDS, SCOPES
from headcount.base.files import read_json, write_json
from headcount.base.settings.checking import checked, keyed
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.section import Faults, Section, each_once, refuse
from headcount.base.settings.training_runs import BASELINE, RunSettings, written

RUN_FILE = "run.json"
RANDOM_WEIGHTS = "random weights"
"""Name of the start of a run with `from: none`, in tables and figures."""

_MOST_RUNS = 1000  # of an entry
_PRUNED_WORDS = {"importance": "ranked", "random": "drawn"}  # of other methods: themselves


class PrunedSettings(Section):
    """A pruned run: the heads that a model loses, and how the others were chosen."""

    method: Literal["gates", "scratch", "importance", "random", "subset"]
    """Train with a gate on every head, and remove heads whose gates close; or, to compare: train
    the heads that the gates left from a random start; keep as many by importance, or at random, and
    fine-tune for as long; or keep exactly `heads`, learning which."""
    scope: Literal["enc_self", "all", "ffn", "layers", "heads_ffn", "units"] = "all"
    """Units that may be removed: heads of encoder self-attention (with a frozen decoder), all
    heads, feed-forward units, layers, heads and feed-forward units, or all of these."""
    lambda_: float = Field(0.0, alias="lambda", ge=0, lt=1e6)
    """λ of the gates, the penalty of one head in nats per target token; 0 for the control."""
    price: Literal["unit", "flops"] = "unit"
    """Price of a unit, by which λ is multiplied: 1, or its multiply-adds as a multiple of the mean
    head's, for a sentence of mean length."""
    heads: int | None = Field(None, ge=1)
    """K, how many units of the scope stay, for `subset` in place of λ (`subset-all-k8`)."""
    init_from: RunSettings | Literal["none"] = Field(BASELINE, alias="from")
    """The training run whose model is pruned (`baseline` if left out); or `none`: gates from random
    weights, trained by `train` with nothing frozen, for `train.updates` + `gates.updates`."""

    def _faults(self) -> Faults:
        subset, fresh = self.method == "subset", self.from_none
        given = self.lambda_ if subset else "lambda_" in self.model_fields_set
        wrong = subset != (self.heads is not None) or bool(given) == subset
        other = not fresh and self.init_from.attention_heads is not None
        trained = self.method not in ("gates", "scratch")
        unpriced = self.price != "unit" and (subset or not self.lambda_)
        yield "price: expected lambda above 0", unpriced
        yield f"method {self.method}: expected {'heads' if subset else 'lambda'} alone", wrong
        yield "from: expected a training run with as many heads as `model`", other
        yield f"from: expected a training run for method {self.method}", fresh and trained

    @property
    def from_none(self) -> bool:
        """True if the gates start from random weights, in place of a training run's."""
        return self.init_from == "none"

    @property
    def label(self) -> str:
        """The name in paths and tables: `scratch-gates-all-l0.01-from-impt-6`."""
        size = f"k{self.heads}" if self.method == "subset" else f"l{written(self.lambda_)}"
        parts = [self.word, *["gates"] * (self.word not in ("gates", "subset")), self.scope, size]
        parts += [self.price] * (self.price != "unit")
        start = "none" if self.from_none else self.init_from.label
        return "-".join([*parts, *["from", start] * (start != "baseline")])

    @property
    def start(self) -> str:
        """Name of the start in tables: a training run, or random weights."""
        return RANDOM_WEIGHTS if self.from_none else self.init_from.label

    @property
    def word(self) -> str:
        """Name of the method in names and tables: gates, scratch, ranked, drawn or subset."""
        return _PRUNED_WORDS.get(self.method, self.method)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of units that may be removed."""
        return SCOPES[self.scope]

    @property
    def of_heads(self) -> bool:
        """True if only heads may be removed."""
        return set(self.kinds).issubset(KINDS)

    @property
    def gates_run(self) -> "PrunedSettings":
        """The gates run that decides how many heads stay, for `scratch` which; a subset itself."""
        return self if self.method == "subset" else self.model_copy(update={"method": "gates"})

    @property
    def control(self) -> "PrunedSettings":
        """The gates run with λ = 0, which shows the effect of as many updates with gates."""
        changed = {"method": "gates", "lambda_": 0.0, "heads": None, "price": "unit"}
        return self.model_copy(update=changed)

    def counted(self, model: ModelSettings) -> "PrunedSettings":
        """Return the run with numbers in place of shares. Raises ValueError for too many heads."""
        most = sum(sum(model.unit_grid.counts[kind]) for kind in self.kinds)
        wrong = (self.heads or 0) > most
        refuse((f"run {self.label!r}: expected at most {most} units of the scope", wrong))
        start = self.init_from if self.from_none else self.init_from.counted(model)
        return self.model_copy(update={"init_from": start})


Run = RunSettings | PrunedSettings


def labels(runs: list[Run]) -> list[str]:
    """Return the name of each run."""
    return [run.label for run in runs]


def counted(runs: Sequence[Run], info: ValidationInfo) -> list[Run]:
    """Return runs in one spelling, once the model is known that stands above in the file."""
    model = info.data.get("model")
    return list(runs) if model is None else [run.counted(model) for run in runs]


def expand(entry: Any) -> list[Any]:
    """Return the runs that entries stand for: all combinations of the lists in their mappings."""
    if isinstance(entry, list):
        refuse(("expected a value, or a list of at least one, found []", not entry))
        return _few(run for value in entry for run in expand(value))
    if not isinstance(entry, dict):
        return [entry]
    choices = map(expand, entry.values())
    return _few(dict(zip(entry, chosen, strict=True)) for chosen in product(*choices))


def _few(runs: Iterable[Any]) -> list[Any]:
    few = list(islice(runs, _MOST_RUNS + 1))
    refuse((f"expected at most {_MOST_RUNS} runs, found more", len(few) > _MOST_RUNS))
    return few


def _flat(entries: list[list[Run]]) -> list[Run]:
    runs = [run for entry in entries for run in entry]
    each_once(labels(runs))
    return runs


def _list_of(kind: type[Section]) -> Any:
    """Return the type of a list whose entries stand for one run or several."""
    several = BeforeValidator(expand, json_schema_input_type=kind)
    entry = Annotated[list[kind], several, AfterValidator(counted)]
    return Annotated[list[entry], AfterValidator(_flat)]


Runs = _list_of(RunSettings)
PrunedRuns = _list_of(PrunedSettings)


def write_run(folder: Path, run: Run) -> None:
    """Write `run.json`: under `run` the label, then every key of the run's settings."""
    settings = run.model_dump(by_alias=True, exclude_none=True)
    write_json(folder / RUN_FILE, {"run": run.label, **settings})


def read_run(path: Path) -> Run:
    """Return the run in a run.json. Raises UserError if the settings do not describe a run."""
    given = read_json(path)
    given.pop("run", None)
    kind = PrunedSettings if "lambda" in given else RunSettings
    # Files of older versions have keys of removed variants, which were not used if falsy.
    known = {field.alias or name for name, field in kind.model_fields.items()}
    given = {key: value for key, value in given.items() if key in known or value}
    return checked(kind, given, lambda key: f"{path}: {keyed(key)}")

"""Settings of metrics beside BLEU, which outside programs compute."""

from string import Formatter
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from headcount.base.errors import UserError
from headcount.base.settings.section import Faults, Section

OWN = ("bleu", "chrf", "bleu_tok_lc", "accuracy")
"""Names of the project's own metrics."""
_TEXTS = {"sources", "translations", "references", "scores"}
_PLACES = {"pair", "run", "seed", "test"}

MetricName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,31}$")]


class MetricSettings(Section):
    """Another metric of translations, which an outside program computes for every sentence."""

    command: str = ""
    """Program, without a shell, that reads the texts `{sources}`, `{translations}` and
    `{references}`, a sentence a line, and writes `{scores}`: CSV, or COMET's JSON."""
    scale: float = 1.0
    """Factor of all scores: 100 gives COMET points, -1 is for metrics that count errors, as larger
    scores must be better."""

    def _faults(self) -> Faults:
        yield "scale: expected a number other than 0", not self.scale
        lacking = [f"{{{name}}}" for name in ("translations", "scores") if self.command]
        lacking = [name for name in lacking if name not in self.command]
        yield f"command: expected {' and '.join(lacking)} in it", lacking
        yield from _odd("command", self.command, _TEXTS)


class ExperimentMetric(MetricSettings):
    """Another metric of translations, from a command or from files of scores."""

    files: str = ""
    """Instead of `command`: file of the scores of one run's translations of one test set, with
    `{pair}`, `{run}`, `{seed}` and `{test}` in its path. Masked translations have no such files."""

    def _faults(self) -> Faults:
        yield "expected command or files", bool(self.command) == bool(self.files)
        yield from _odd("files", self.files, _PLACES)


def read_metrics(text: str) -> dict[str, MetricSettings]:
    """Return metrics by name from JSON. Raises UserError for a fault in them."""
    known = TypeAdapter(dict[MetricName, MetricSettings])
    try:
        return known.validate_json(text)
    except ValidationError as fault:
        raise UserError(f"--metrics: {fault.errors()[0]['msg']}, found {text[:200]!r}") from None


def _odd(key: str, text: str, known: set[str]) -> Faults:
    """Yield a fault for a name in braces that has no meaning."""
    try:
        names = {name for _, name, *_ in Formatter().parse(text) if name is not None}
    except ValueError as fault:
        yield f"{key}: {fault}; write {{{{ and }}}} for braces", True
        return
    odd = sorted(names - known)
    yield f"{key}: {odd}: expected names among {sorted(known)} in braces", odd

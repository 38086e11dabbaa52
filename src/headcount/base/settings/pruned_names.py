"""Names of pruned runs: which heads a run may lose, how they are chosen, and from which model.

`gates-<scope>-l<λ>` fine-tunes the baseline with Hard Concrete gates; with `-from-<run>` at its end
it starts from another training run. `scratch-`, `ranked-` and `drawn-` before such a name are the
runs it is compared with, each with as many heads.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from headcount.base.addresses import KINDS
from headcount.base.errors import UserError
from headcount.base.settings.nearest import nearest
from headcount.base.settings.run_names import BASELINE, RunName, parse_run

SCOPES = {"enc_self": ("enc_self",), "all": KINDS}
"""Kinds of attention whose heads a scope may remove."""

Way = Literal["gates", "scratch", "ranked", "drawn"]
WAYS: tuple[Way, ...] = ("gates", "scratch", "ranked", "drawn")
_CONTROLS = WAYS[1:]
_NAME = re.compile(r"(?:([a-z]+)-)?gates-([A-Za-z_]+)-l(-?\d{1,6}(?:\.\d{1,9})?)(?:-from-(.+))?")


@dataclass(frozen=True)
class PrunedRun:
    """One pruned model. `str()` is its name in paths.

    `how`: gates, the fine-tuning with gates itself; scratch, the heads that it kept, trained from a
    random start; ranked, as many heads, the most important ones of the start model, fine-tuned;
    drawn, as many heads, drawn at random, fine-tuned.
    """

    how: Way
    scope: Literal["enc_self", "all"]
    price: float  # λ, nats per target token and head
    start: RunName = BASELINE  # the training run whose model is pruned

    def __str__(self) -> str:
        price = f"{self.price:.9f}".rstrip("0").rstrip(".")
        before = "" if self.how == "gates" else f"{self.how}-"
        after = "" if self.start == BASELINE else f"-from-{self.start}"
        return f"{before}gates-{self.scope}-l{price}{after}"

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of attention that may lose heads; those of any other kind all stay."""
        return SCOPES[self.scope]

    @property
    def gates_run(self) -> "PrunedRun":
        """The gates run that says how many heads stay, and for `scratch` which."""
        return replace(self, how="gates")

    @property
    def control(self) -> "PrunedRun":
        """The run without a price: what fine-tuning alone does to the same start, heads apart."""
        return replace(self, how="gates", price=0.0)


def parse_pruned(text: str, heads: int, ways: Sequence[Way] = WAYS) -> PrunedRun:
    """The pruned run of a name, for a model with this many heads, made in one of these ways.

    Raises UserError saying what is expected, with the nearest name that would do.
    """
    run = _parse(text, heads)
    if run.how not in ways:
        wanted = " or ".join(str(replace(run, how=way)) for way in ways)
        raise UserError(f"--run: expected {wanted} here, found {text[:100]!r}")
    return run


def _parse(text: str, heads: int) -> PrunedRun:
    found = _NAME.fullmatch(text)
    if not found or found[1] not in (None, *_CONTROLS):
        raise UserError(_expected(text))
    how, scope, price, start = found.groups()
    if scope not in SCOPES:
        raise UserError(
            f"pruned run {text[:100]!r}: scope {scope!r} does not exist; {nearest(scope, SCOPES)}"
        )
    if price.startswith("-"):
        raise UserError(
            f"pruned run {text[:100]!r}: expected a λ of 0 or more, the price of one head in nats "
            f"per target token, found {price}; nearest: gates-{scope}-l0"
        )
    try:
        begun = BASELINE if start is None else parse_run(start, heads)
    except UserError as fault:
        raise UserError(f"pruned run {text[:100]!r}: after -from-: {fault}") from None
    return PrunedRun(how or "gates", scope, float(price), begun)


def check_pruned(pruned: Iterable[PrunedRun], runs: Iterable[str]) -> None:
    """Raise UserError if a model to start from, or a run to compare with, is not made."""
    listed, trained = list(pruned), list(runs)
    for run in listed:
        if str(run.start) not in trained:
            raise UserError(
                f"{str(run)!r} starts from the run {str(run.start)!r}, which is not among `runs` "
                f"({', '.join(trained)}); add it there"
            )
        if run.gates_run not in listed:
            raise UserError(
                f"{str(run)!r} needs the heads that {str(run.gates_run)!r} keeps, which is not "
                "among `pruned`; add it there"
            )
        if run.control not in listed:
            raise UserError(
                f"{str(run)!r} needs its control {str(run.control)!r}, fine-tuned for as many "
                "updates without a price, which is not among `pruned`; add it there"
            )


def _expected(text: str) -> str:
    """What a name may be, and which is nearest to this one, with its own λ."""
    number = r"(\d+(?:\.\d+)?(?:e-?\d{1,2})?)"
    found = re.search(f"-l{number}", text) or re.search(f"-{number}", text)
    price = f"{float(found[1]):.9f}".rstrip("0").rstrip(".") if found else "0.01"
    start = re.search(r"-from-.+", text)
    plain = [f"gates-{scope}-l{price}{start[0] if start else ''}" for scope in SCOPES]
    forms = [*plain, *(f"{how}-{name}" for how in _CONTROLS for name in plain)]
    return (
        "expected gates-<scope>-l<λ>, with -from-<run> at its end or not, or scratch-, ranked- or "
        f"drawn- before it; <scope> is {' or '.join(SCOPES)}, <λ> a plain decimal number of at "
        f"most 9 decimals; found {text[:100]!r}; {nearest(text, forms)}"
    )

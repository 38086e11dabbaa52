"""What the tables and figures of pruning share: models, scores, updates, and words on them."""

from functools import cache
from typing import Any

import pandas as pd

from headcount.base.errors import UserError
from headcount.base.settings.train import GatesSettings
from headcount.findings.cells import NONE, interval, mean_sd, p_value
from headcount.findings.masking import describe_tests
from headcount.findings.results import Results
from headcount.findings.run_tables import KEYS, curve_table
from headcount.findings.scores import Key, Scores, describe_search
from headcount.findings.setting import describe_setting
from headcount.findings.voita_pruning.heads import key_of, read_pruned

_RULES = {
    "argmax01": "a head is kept at test time where P(1) > P(0)",
    "threshold": "a head is kept at test time where the noiseless gate is above 0.5",
    "louizos": "at test time a head has its noiseless gate, and is kept where that is above 0",
}
_LAMBDA = {
    "sum": "price of one head in nats per target token",
    "mean_over_modules": "weight of the mean over gated layers of their expected open heads",
}
_UNEQUAL = (
    " The two differ, so BLEU from scratch beside BLEU after pruning shows the work of updates as "
    "well as of heads, and speaks neither for nor against the paper."
)


@cache
def pruned_models(results: Results) -> pd.DataFrame:
    """Every pruned model; see `read_pruned`."""
    return read_pruned(results.files("kept"), results.files("pruned_runs"), results.model.grid)


@cache
def all_scores(results: Results) -> Scores:
    """BLEU of pruned runs and of those that they start from."""
    scores = [*results.files("start_scores"), *results.files("pruned_scores")]
    return Scores(scores, results.files("pruned_translations"), results.files("references"))


@cache
def _updates(results: Results) -> dict[Key, int]:
    """Updates of the same runs, by their curves."""
    curves = [*results.files("start_curves"), *results.files("pruned_curves")]
    return curve_table(curves).groupby(KEYS)["step"].max().to_dict()


def updates_of(results: Results, key: Key) -> int:
    """Updates of one training, without those of the model it began with.

    Raises UserError if its curve is missing.
    """
    if key not in _updates(results):
        raise UserError(
            f"curves: expected curves.csv of {key[1]} ({key[0]}, seed {key[2]}), found none; "
            "train it first"
        )
    return _updates(results)[key]


def describe_updates(results: Results, models: pd.DataFrame) -> str:
    """Sentences: how long models were fine-tuned, after what, and how long from scratch.

    `models` comes from `read_pruned`.
    """

    def different(chosen: pd.DataFrame, name: str) -> str:
        keys = {key_of(model, name) for model in chosen.to_dict("records")}
        numbers = sorted({updates_of(results, key) for key in keys})
        return " or ".join(f"{number:,}" for number in numbers)

    anew = models["how"] == "scratch"
    before, tuned = (different(models[~anew], name) for name in ("start", "run"))
    scratch = different(models[anew], "run")
    return (
        f"Updates, by the curves: {before} of the model that was pruned, then {tuned} of "
        f"fine-tuning{f'; {scratch} from scratch' if scratch else ''}."
        f"{_UNEQUAL if scratch and scratch != tuned else ''}"
    )


def describe_spent(results: Results) -> str:
    """How many updates all pruned models had; see `describe_updates`."""
    return describe_updates(results, pruned_models(results))


def describe_pruning(results: Results) -> str:
    """What λ is, how models were fine-tuned, and `describe_setting` of the models at the start."""
    gates: GatesSettings = results.settings["gates"]
    begin = "drawn evenly around 0" if gates.init == "glorot" else f"{gates.init:g}"
    starts = pruned_models(results)[["pair", "start", "seed"]].set_axis(KEYS, axis=1)
    return (
        f"λ: {_LAMBDA[gates.lambda_reduction]}. Fine-tuning: {gates.updates} updates; gates with "
        f"temperature {gates.temperature:g}, stretch {gates.stretch_low:g} to "
        f"{gates.stretch_high:g}, log α at the start {begin}, rate {gates.lr:g}; "
        f"{_RULES[gates.eval]}. {describe_setting(results, starts)}"
    )


def describe_scored(results: Results) -> str:
    """How translations were searched for, then `describe_pruning`."""
    scores = [*results.files("start_scores"), *results.files("pruned_scores")]
    return f"{describe_search(scores)} {describe_pruning(results)}"


def describe_untuned(results: Results) -> str:
    """On which sentences models without fine-tuning were scored; empty if there are none."""
    facts = results.files("untuned_facts")
    return f"Untuned: {describe_tests(facts)}" if facts else ""


def compare(scores: Scores, key: Key, against: Key, test: str) -> dict[str, Any]:
    """Cells on BLEU of one run less that of another: delta, its interval, p, signature."""
    found = scores.compare(against, [key], test)[key]
    cells = {"delta": found.delta, "delta_low": found.low, "delta_high": found.high}
    return cells | {"p": found.p_value, "signature": found.signature}


def difference_cells(rows: pd.DataFrame) -> dict[str, str]:
    """Rows of `compare` as people read them; interval and p if each seed has one row.

    Rows with an empty delta are passed over.
    """
    rows = rows[rows["delta"] != ""]
    by_seed = rows.groupby("seed", sort=False)["delta"].agg(lambda cells: cells.mean())
    alone = rows if len(by_seed) == len(rows) else rows[:0]
    return {
        "difference": mean_sd(by_seed, "+"),
        "95 % interval": interval(alone["delta_low"], alone["delta_high"]),
        "p": ", ".join(map(p_value, alone["p"])) or NONE,
    }

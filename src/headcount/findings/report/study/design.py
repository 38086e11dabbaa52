"""What the trainings of an experiment are like, in words, and how many of them are kept."""

from headcount.base.settings.experiment import Experiment
from headcount.base.settings.model import ModelSettings
from headcount.findings.report.study.kept import Kept
from headcount.findings.results import BASE

PAPER = "headmask_zh"
"""The experiment with the settings of Sun et al. 2020; where these are silent, it has its own."""


def paper_words(kept: Kept) -> str:
    """What the paper says of its models and their training."""
    model, train = kept.settings(PAPER).model, kept.settings(PAPER).train
    return (
        f"{_size_words(model)}, dropout {model.dropout:g} and a warm-up of "
        f"{train.warmup_updates:,} updates"
    )


def design_words(kept: Kept, experiment: str) -> str:
    """The model and the training of an experiment's settings."""
    settings = kept.settings(experiment)
    model, train = settings.model, settings.train
    words = f", or until {train.patience} validations without a lower dev loss"
    ends = words if train.patience else ""
    return (
        f"{_size_words(model)}, {model.norm}-norm, dropout {model.dropout:g}; {train.updates:,} "
        f"updates at most{ends}, at a peak rate of {train.peak_lr:g} after "
        f"{train.warmup_updates:,} updates of warm-up, with a validation every "
        f"{train.dev_interval:,}{_gates_words(settings)}"
    )


def _size_words(model: ModelSettings) -> str:
    return (
        f"{model.encoder_layers} encoder and {model.decoder_layers} decoder layers of width "
        f"{model.d_model} with {model.grid.size} heads in all"
    )


def _gates_words(settings: Experiment) -> str:
    """How gates are learnt, and for how long a twin from scratch trains; empty without gates."""
    runs = [run for run in settings.pruned if run.method == "gates"]
    if not runs:
        return ""
    gates, train = settings.gates, settings.train
    told, in_all = [], gates.from_scratch(train).updates
    if penalties := sorted({run.lambda_ for run in runs if not run.from_none}):
        told.append(
            f"gates learn for {gates.updates:,} updates more, at λ of {_numbers(penalties)} and a "
            f"{'peak ' * (gates.lr_schedule == 'weights')}rate of {gates.lr:g}"
        )
    if penalties := sorted({run.lambda_ for run in runs if run.from_none}):
        told.append(
            f"gates that begin with random weights learn for {in_all:,} updates, at λ of "
            f"{_numbers(penalties)}"
        )
    if any(run.method == "scratch" for run in settings.pruned):
        told.append(f"twins from scratch train for {in_all:,} updates")
    return f"; {'; '.join(told)}"


def _numbers(found: list[float]) -> str:
    return ", ".join(f"{number:g}" for number in found)


def reached_words(kept: Kept, experiment: str) -> str:
    """BLEU of the baseline, mean over trainings and test sets, and of how many training pairs.

    Empty without a table of it.
    """
    if not kept.has(experiment, "bleu"):
        return ""
    scores = kept.table(experiment, "bleu")
    bleu = scores[(scores["run"] == BASE) & (scores["metric"] == "bleu")]
    tests = ", ".join(bleu["test_set"].unique())
    text = sizes(kept, experiment)
    learnt = f"On {' or '.join(text.values())} the" if text else "The"
    return f"{learnt} baseline reaches {bleu['score'].mean():.1f} BLEU ({tests})."


def sizes(kept: Kept, experiment: str) -> dict[str, str]:
    """By pair of languages, how much text it is trained on; empty without a table of it."""
    if not kept.has(experiment, "corpus"):
        return {}
    corpus = kept.table(experiment, "corpus")
    corpus = corpus[(corpus["split"] == "train") & (corpus["statistic"] == "sentences")]
    rows = corpus[["pair", "value"]].itertuples(index=False)
    return {pair: f"{count:,.0f} training pairs" for pair, count in rows}


def kept_words(kept: Kept, experiment: str) -> str:
    """How many of the trainings that the settings plan are kept; empty once all are."""
    settings = kept.settings(experiment)
    planned = [
        f"{pair}/{run.label}.seed{seed}"
        for pair in settings.pairs
        for run in settings.runs
        for seed in settings.seeds
    ]
    found = len(kept.archives(experiment) & set(planned))
    if found == len(planned):
        return ""
    return f"Kept so far: {found} of {len(planned)} trainings that its settings plan."

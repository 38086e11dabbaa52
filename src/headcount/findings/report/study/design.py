"""What the trainings of an experiment are like, in words, and how many of them are kept."""

from headcount.findings.report.study.kept import Kept
from headcount.findings.results import BASE

PAPER = "headmask_zh"
"""The experiment with the paper's own settings."""


def design_words(kept: Kept, experiment: str) -> str:
    """The model and the training of an experiment's settings."""
    settings = kept.settings(experiment)
    model, train = settings.model, settings.train
    return (
        f"{model.encoder_layers} encoder and {model.decoder_layers} decoder layers of width "
        f"{model.d_model} with {model.grid.size} heads in all, {model.norm}-norm, dropout "
        f"{model.dropout:g}; {train.updates:,} updates at most, at a peak rate of "
        f"{train.peak_lr:g} after {train.warmup_updates:,} updates of warm-up"
    )


def reached_words(kept: Kept, experiment: str) -> str:
    """BLEU of the baseline, mean over trainings and test sets; empty without a table of it."""
    if not kept.has(experiment, "bleu"):
        return ""
    scores = kept.table(experiment, "bleu")
    bleu = scores[(scores["run"] == BASE) & (scores["metric"] == "bleu")]["score"]
    return f"The baseline reaches {bleu.mean():.1f} BLEU."


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

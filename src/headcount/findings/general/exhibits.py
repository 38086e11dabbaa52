"""The tables and figures of every experiment, whatever it is about."""

from headcount.findings.exhibits import Chapter, Exhibit

CHAPTER = Chapter(
    name="general",
    title="Corpora, scores and training",
    sections={},
    tables=(
        Exhibit(
            "corpus",
            "Sizes of the corpora",
            "corpora:corpus",
            ("counts", "text", "segmented"),
        ),
        Exhibit(
            "bleu",
            "BLEU and chrF of every run",
            "scores:bleu",
            ("scores",),
            uses=("pruned_scores",),
        ),
    ),
    figures=(
        Exhibit(
            "curves",
            "Loss by updates and by time",
            "curves:curves",
            ("curves",),
        ),
    ),
    metrics="scores:metrics",
)

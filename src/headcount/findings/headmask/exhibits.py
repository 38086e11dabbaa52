"""The tables and figures of HeadMask (Sun et al. 2020), and those that the paper lacks."""

from headcount.base.settings.importance import ImportanceSettings
from headcount.base.settings.model import ModelSettings
from headcount.findings.exhibits import Chapter, Exhibit

_SCORES = ("scores", "translations", "references")
_MASKING = ("masking", "masking_facts", "importance")
_COLLAPSE = (*_MASKING, "masks", "curves")

CHAPTER = Chapter(
    name="headmask",
    title="HeadMask: training with masked heads",
    sections={"model": ModelSettings, "importance": ImportanceSettings},
    tables=(
        Exhibit("headmask_table1", "Table 1: data sets", "corpora:table1", ("counts",)),
        Exhibit("headmask_table2", "Table 2: BLEU, the first pair", "score_tables:table2", _SCORES),
        Exhibit("headmask_table3", "Table 3: BLEU into English", "score_tables:table3", _SCORES),
        Exhibit(
            "headmask_table4", "Table 4: BLEU into other languages", "score_tables:table4", _SCORES
        ),
        Exhibit(
            "headmask_table5",
            "Table 5: variance of the importance of heads",
            "importance:table5",
            ("importance",),
        ),
        Exhibit(
            "headmask_table6",
            "Table 6: mean importance of heads",
            "importance:table6",
            ("importance",),
        ),
        Exhibit(
            "headmask_stability",
            "Stability of the ranking of heads",
            "importance:stability",
            ("importance",),
        ),
        Exhibit("headmask_collapse", "Collapse of masked training", "collapse:collapse", _COLLAPSE),
    ),
    figures=(
        Exhibit(
            "headmask_fig1",
            "Figure 1: the baseline without one group of heads",
            "figures:fig1",
            _MASKING,
        ),
        Exhibit(
            "headmask_fig2",
            "Figure 2: the baseline with more and more heads masked",
            "figures:fig2",
            _MASKING,
        ),
        Exhibit(
            "headmask_fig3",
            "Figure 3: distribution of the importance of heads",
            "figures:fig3",
            ("importance",),
        ),
        Exhibit(
            "headmask_fig4",
            "Figure 4: every training method without one group of heads",
            "figures:fig4",
            _MASKING,
        ),
        Exhibit(
            "headmask_fig5",
            "Figure 5: every training method with more and more heads masked",
            "figures:fig5",
            _MASKING,
        ),
        Exhibit("headmask_heads", "Importance of every head", "figures:heads", ("importance",)),
        Exhibit(
            "headmask_frequency",
            "How often training masked each head",
            "figures:frequency",
            ("masks", "importance"),
        ),
    ),
)

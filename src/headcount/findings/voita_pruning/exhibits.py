"""What Voita et al. 2019 show of pruning heads by gates, and what the paper lacks."""

from headcount.base.settings.gates import GatesSettings
from headcount.base.settings.model import ModelSettings
from headcount.findings.exhibits import Chapter, Exhibit

_MODELS = ("pruned_runs", "kept")
_SCORED = (*_MODELS, "start_scores", "pruned_scores", "pruned_translations", "references")
_TRAINED = (*_SCORED, "start_curves", "pruned_curves")
_UNTUNED = ("untuned", "untuned_facts")

CHAPTER = Chapter(
    name="voita_pruning",
    title="Voita et al.: pruning heads by gates",
    sections={"model": ModelSettings, "gates": GatesSettings},
    tables=(
        Exhibit("voita_table2", "Table 2: BLEU with few heads", "table2:table2", _TRAINED),
        Exhibit("voita_pruning", "Every pruned run", "records:pruning", _TRAINED),
        Exhibit("voita_falls", "Where BLEU begins to fall", "falls:falls", _SCORED),
        Exhibit(
            "voita_comparison",
            "Gates beside other ways to choose heads",
            "comparison:comparison",
            _TRAINED,
            uses=_UNTUNED,
        ),
        Exhibit(
            "voita_speedup",
            "Speed and size without the heads",
            "removal_speed:speedup",
            (*_MODELS, "pruned_speed"),
        ),
    ),
    figures=(
        Exhibit("voita_fig6", "Figure 6: distribution of a gate", "figures:fig6", ("pruned_runs",)),
        Exhibit("voita_fig7", "Figure 7: BLEU by encoder heads left", "figures:fig7", _SCORED),
        Exhibit("voita_fig9", "Figure 9: heads left of each kind", "figures:fig9", _MODELS),
        Exhibit(
            "voita_fig10", "Figure 10: heads left in the decoder's layers", "figures:fig10", _MODELS
        ),
        Exhibit(
            "voita_methods",
            "BLEU by heads left, for every way to choose them",
            "figures:methods",
            _TRAINED,
            uses=_UNTUNED,
        ),
        Exhibit("voita_gates", "Gates over fine-tuning", "figures:gates", (*_MODELS, "gates")),
        Exhibit(
            "voita_speed",
            "BLEU by time and by size",
            "figures:speed",
            (*_SCORED, "pruned_speed"),
        ),
    ),
)

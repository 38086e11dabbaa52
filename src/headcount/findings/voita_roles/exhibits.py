"""What Voita et al. 2019 show of what heads do, and what the paper lacks."""

from headcount.base.settings.lrp import LrpSettings
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.roles import RolesSettings
from headcount.findings.exhibits import Chapter, Exhibit

_HEADS = ("attention", "positions", "syntax", "relevance", "importance")
_KEPT = ("pruned_runs", "kept")  # a head's survival stands beside what it does
_PRUNED = ("pruned_attention", "pruned_positions", "pruned_syntax")

CHAPTER = Chapter(
    name="voita_roles",
    title="Voita et al.: what heads do",
    sections={"model": ModelSettings, "roles": RolesSettings, "lrp": LrpSettings},
    tables=(
        Exhibit(
            "voita_table1",
            "Table 1: the best head for each relation",
            "dependency_scores:table1",
            _HEADS,
            uses=_KEPT,
        ),
        Exhibit("voita_roles", "Every encoder head", "head_table:roles", _HEADS, uses=_KEPT),
        Exhibit(
            "voita_agreement",
            "How far measures of a head agree",
            "agreement:agreement",
            (*_HEADS, "importance_facts"),
            uses=(*_KEPT, "ablation", "ablation_facts"),
        ),
    ),
    figures=(
        Exhibit(
            "voita_fig1", "Figure 1: heads of the baseline", "figures:fig1", _HEADS, uses=_KEPT
        ),
        Exhibit(
            "voita_fig2",
            "Figure 2: heads of models trained otherwise",
            "figures:fig2",
            _HEADS,
            uses=_KEPT,
        ),
        Exhibit(
            "voita_fig3",
            "Figure 3: where dependents stand",
            "figures:fig3",
            _HEADS,
            uses=(*_KEPT, "trees"),
        ),
        Exhibit(
            "voita_fig4",
            "Figure 4: accuracy of the best heads",
            "figures:fig4",
            _HEADS,
            uses=_KEPT,
        ),
        Exhibit(
            "voita_fig5",
            "Figure 5: attention to rare words",
            "figures:fig5",
            (*_HEADS, "maps"),
            uses=_KEPT,
        ),
        Exhibit(
            "voita_fig8",
            "Figure 8: what the heads do that are left",
            "figures:fig8",
            _HEADS,
            uses=(*_KEPT, *_PRUNED),
        ),
    ),
)

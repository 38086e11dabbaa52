"""The tables and figures of heads removed from trained models (Michel et al. 2019)."""

from headcount.base.settings.ablation import AblationSettings, RerankSettings
from headcount.base.settings.model import ModelSettings
from headcount.findings.exhibits import Chapter, Exhibit

_ABLATION = ("ablation", "ablation_facts")
_PROFILES = ("profiles", *_ABLATION)
_SPEED = ("share_speed", "ablation")

CHAPTER = Chapter(
    name="michel",
    title="Sixteen heads: heads removed from trained models",
    sections={"model": ModelSettings, "ablation": AblationSettings, "importance": RerankSettings},
    tables=(
        Exhibit("michel_ablation", "Table 1: BLEU without each head", "tables:ablation", _ABLATION),
        Exhibit(
            "michel_all_but_one",
            "Tables 2 and 5: one head left in a layer",
            "tables:all_but_one",
            _ABLATION,
        ),
        Exhibit(
            "michel_transfer",
            "Figure 2 as a table: effects of heads on two test sets",
            "tables:transfer",
            _ABLATION,
        ),
        Exhibit("michel_pruning", "How many heads can be pruned", "tables:pruning", _PROFILES),
        Exhibit(
            "michel_areas",
            "Mean BLEU over shares of heads pruned",
            "tables:areas",
            ("areas", *_ABLATION),
        ),
        Exhibit("michel_speed", "Table 4: speed without heads", "tables:speed", _SPEED),
        Exhibit(
            "michel_training",
            "Heads pruned at points of the training",
            "tables:training",
            ("training", "training_heads", *_ABLATION),
        ),
    ),
    figures=(
        Exhibit("michel_ablation", "Maps of BLEU without each head", "figures:ablation", _ABLATION),
        Exhibit(
            "michel_transfer",
            "Figure 2: effects of heads on two test sets",
            "figures:transfer",
            _ABLATION,
        ),
        Exhibit(
            "michel_pruning", "Figure 3: BLEU by order of pruning", "figures:pruning", _PROFILES
        ),
        Exhibit("michel_kinds", "Figure 4: BLEU by kind of attention", "figures:kinds", _PROFILES),
        Exhibit("michel_speed", "Speed by share of heads removed", "figures:speed", _SPEED),
        Exhibit(
            "michel_training",
            "Figure 5: heads pruned at points of the training",
            "figures:training",
            ("training", *_ABLATION),
        ),
    ),
)

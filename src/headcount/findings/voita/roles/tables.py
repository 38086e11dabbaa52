"""All tables of roles: Voita's Table 1, every head, and how far the measures agree."""

from headcount.base.settings.lrp import LrpSettings
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.roles import RolesSettings
from headcount.findings.file_lists import NamedTable
from headcount.findings.run_tables import KEYS
from headcount.findings.voita.roles import agreement, dependency_scores, head_table
from headcount.findings.voita.roles.files import Measured, RolesFiles


def roles_tables(
    files: RolesFiles, model: ModelSettings, settings: RolesSettings, lrp: LrpSettings
) -> list[NamedTable]:
    """The paper's table, then those it lacks."""
    measured = Measured(files, model, settings)
    setting = measured.setting(lrp)
    scores = dependency_scores.dependency_table(measured.syntax, measured.settings)
    agreed = agreement.agreement_table(measured.measures())
    sizes = agreement.describe_sizes(files.ablation_facts, files.importance_facts)
    trees = "" if len(measured.syntax) else f" Ours are {dependency_scores.NO_TREES}."
    return [
        NamedTable(
            "voita_table1",
            scores,
            dependency_scores.dependency_summary(scores, measured.roles[KEYS].drop_duplicates()),
            f"{dependency_scores.CAPTION}{trees} {setting}",
        ),
        NamedTable(
            "voita_roles",
            measured.roles,
            head_table.roles_summary(measured.roles),
            f"{head_table.CAPTION} {setting}",
        ),
        NamedTable(
            "voita_agreement",
            agreed,
            agreement.agreement_summary(agreed),
            " ".join(filter(None, (agreement.CAPTION, sizes, setting))),
        ),
    ]

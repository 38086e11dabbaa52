"""The table of claims as files, until tables are declared as data."""

from headcount.analysis.claims.evidence import Evidence
from headcount.analysis.claims.ledger import ledger
from headcount.analysis.claims.table import caption, claims_table, readable
from headcount.findings import exhibits
from headcount.findings.results import Results
from headcount.findings.tables import Table, fill_empty


@exhibits.table(
    "claims",
    needs=("exhibits",),
    uses=("trained_runs", "masking", "positions", "role_facts"),
)
def claims(results: Results) -> Table:
    """Verdicts on the papers' claims."""
    kinds = (*claims.exhibit.needs, *claims.exhibit.uses)
    table = claims_table(Evidence(path for kind in kinds for path in results.files(kind)))
    return Table(fill_empty(table), readable(table), caption(table), tuple(ledger().notes))

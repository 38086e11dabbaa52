"""The table of claims as files, until tables are declared as data."""

from importlib import import_module

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
    analysis = import_module("headcount.analysis.claims.table")
    kinds = (*claims.exhibit.needs, *claims.exhibit.uses)
    files = [path for kind in kinds for path in results.files(kind)]
    table = analysis.claims_table(analysis.Evidence(files))
    notes = tuple(analysis.ledger().notes)
    return Table(fill_empty(table), analysis.readable(table), analysis.caption(table), notes)

"""Claims of the papers, decided from results: `claims.yaml` is the data, `table.py` the table."""

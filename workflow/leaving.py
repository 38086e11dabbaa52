"""How the Snakefile leaves with a fault's own words and exit code."""

import os
import sys
from typing import NoReturn

from headcount.base.errors import HeadcountError


def leave(fault: HeadcountError) -> NoReturn:
    """Print the fault and end at once; Snakemake would turn it, and sys.exit, into its own code."""
    print(f"error: {fault}", file=sys.stderr, flush=True)
    os._exit(fault.exit_code)

"""What captions of this chapter say of its experiment."""

from headcount.findings.masking import describe_tests
from headcount.findings.michel.single import read_ablation
from headcount.findings.michel.speed import describe_timing
from headcount.findings.results import Results
from headcount.findings.setting import describe_ranking, describe_setting


def scored(results: Results) -> str:
    """Sentences on the test sets, the search, the models and the data."""
    return f"{results.read(describe_tests, 'ablation_facts')} {_models(results)}"


def ranked(results: Results) -> str:
    """Sentences on the tests, the search, the models and the data, and how heads were ranked."""
    words = describe_ranking(results.settings["ablation"], results.ranking)
    return f"{scored(results)} {words}"


def timed(results: Results) -> str:
    """Sentences on what was timed, the models and the data."""
    return f"{results.read(describe_timing, 'share_speed')} {_models(results)}"


def _models(results: Results) -> str:
    return describe_setting(results, results.read(read_ablation, "ablation"))

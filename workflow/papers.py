"""Write docs/reference/papers.md: the papers' experiments, and their jobs by rule."""

import multiprocessing
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from engine import planned_jobs

from headcount.base import command
from headcount.base.files import write_text
from headcount.base.settings.experiment import Experiment, experiment_names, load_experiment

PAGE = Path("docs/reference/papers.md")
CONFIG = Path("config")
PAPERS = ("headmask_ro", "headmask_tr", "headmask_vi", "headmask_zh", "voita_", "michel_")
"""How the names of experiments begin that have the papers' own text and sizes."""
RULES = ("train", "gates", "scratch", "masking", "ablation", "classifier_ablation", "translate")
_BEGINNING = """# The papers' own experiments

Each is one file in `config/`, with what its paper says, what its code says, and what was chosen
where both are silent. Text comes from where `config/corpora.yaml` says; `snakemake -n` plans all of
it with nothing on disk.

Not made by hand: `python workflow/papers.py`.

| experiment | of | pairs | seeds | jobs |{rules}
|---|---|---|--:|--:|{bars}
"""


def names() -> list[str]:
    """Names of the papers' experiments."""
    return [name for name in experiment_names(CONFIG) if name.startswith(PAPERS)]


def jobs_by_rule(experiment: str) -> Counter[str]:
    """How many jobs of each rule an experiment has, by a dry run."""
    return Counter(job["rule"] for job in planned_jobs(experiment))


def rows(counted: dict[str, Counter[str]]) -> Iterator[str]:
    """A line of the table for each experiment."""
    for name, jobs in counted.items():
        settings: Experiment = load_experiment(name, CONFIG)
        of = settings.pairs or [settings.classifiers.corpus]
        cells = [f"`{name}`", settings.title, ", ".join(of), len(settings.seeds)]
        cells += [jobs.total(), *(jobs[rule] for rule in RULES)]
        yield f"| {' | '.join(map(str, cells))} |\n"


def main() -> None:
    """Plan every experiment, each in a process of its own, and write the page."""
    command.parser(__doc__).parse_args()
    with multiprocessing.get_context("spawn").Pool(2, maxtasksperchild=1) as pool:
        counted = dict(zip(names(), pool.map(jobs_by_rule, names(), chunksize=1), strict=True))
    heads = "".join(f" `{rule}` |" for rule in RULES)
    beginning = _BEGINNING.format(rules=heads, bars="--:|" * len(RULES))
    write_text(PAGE, beginning + "".join(rows(counted)))


if __name__ == "__main__":
    command.run(main)

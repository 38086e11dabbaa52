"""Pack a finished experiment as a Workflow Run RO-Crate: workflow, settings, results and its run.

    python workflow/crate.py quickstart     # writes results/quickstart.crate.zip

It needs the extra `crate`. The crate has the workflow, the settings, tables, figures and pages.
Models, texts and logs stay in the project's folders.
"""

import csv
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import chain
from mimetypes import guess_type
from pathlib import Path
from typing import Any

import yaml

from headcount.base.command import flag, parser, path
from headcount.base.ending import run
from headcount.base.errors import UserError, install, optional_package
from headcount.base.files import whole_file
from headcount.base.settings.experiment import load_experiment

SNAKEFILE = "workflow/Snakefile"
_PROFILES = [f"https://w3id.org/ro/wfrun/{name}/0.5" for name in ("process", "workflow")]
_PROFILES.append("https://w3id.org/workflowhub/workflow-ro-crate/1.0")
_WORKFLOW = ("workflow", "scripts", "src", "locks")
_BESIDE = ("README.md", "LICENSE", "CITATION.cff", "pyproject.toml", "environment.yml")
_RESULTS = ("report.html", "atlas.html", "metrics.json", "tables/*", "figures/*")
_CODE = {".py", ".smk", ".yaml", ".txt", ".rst", ".html", ".css", ".js", ".md", ""}


def write_crate(experiment: str, out: Path, author: str = "", licence: str = "") -> None:
    """Write the crate of an experiment. Raises UserError for one that has not ended.

    `author` made the results, under a `licence` of SPDX. The default is what CITATION.cff says.
    """
    package = optional_package("rocrate.rocrate", "RO-Crates", install("crate"))
    title = load_experiment(experiment, Path("config")).title
    results = Path("results") / experiment
    made = sorted(chain.from_iterable(map(results.glob, _RESULTS)))
    if results / "report.html" not in made:
        raise UserError(
            f"{results}/report.html: expected a finished experiment, found none; "
            f"run: snakemake --cores all --config experiment={experiment}"
        )
    crate = package.ROCrate(version="1.1")
    cited = yaml.safe_load(Path("CITATION.cff").read_text(encoding="utf-8"))
    _describe(crate, title, experiment, cited)
    workflow, *code = _add_workflow(crate)
    _add_rights(crate, [workflow, *code], cited, author, licence)
    settings = crate.get(f"config/{experiment}.yaml")
    outputs = [_add(crate, file) for file in made]
    _add_run(crate, workflow, settings, outputs, results / "benchmarks")
    with whole_file(out) as part:
        crate.write_zip(part)


def _describe(crate: Any, title: str, experiment: str, cited: dict[str, Any]) -> None:
    """Give the crate name, description and profiles."""
    crate.name = f"{title} (experiment {experiment} of headcount {cited['version']})"
    crate.description = f"Settings and results of the experiment {experiment}. {cited['title']}."
    profiles = [_entity(crate, url, "CreativeWork", url) for url in _PROFILES]
    crate.root_dataset["conformsTo"] = profiles


def _add_rights(
    crate: Any, code: list[Any], cited: dict[str, Any], author: str, licence: str
) -> None:
    """Name authors and licence, of the code by CITATION.cff and of the results."""
    (developers,) = cited["authors"]
    theirs = _entity(crate, "#developers", "Organization", developers["name"])
    for file in code:
        file["author"], file["license"] = theirs, _licence(crate, cited["license"])
    crate.license = _licence(crate, licence or cited["license"])
    crate.creator = _entity(crate, "#author", "Person", author) if author else theirs
    crate.publisher = crate.root_dataset["author"] = crate.creator


def _licence(crate: Any, name: str) -> Any:
    if not re.fullmatch(r"[A-Za-z0-9.+-]+", name):
        raise UserError(f"--license: expected an SPDX name such as CC-BY-4.0, found {name}")
    return _entity(crate, f"https://spdx.org/licenses/{name}", "CreativeWork", name)


def _entity(crate: Any, identifier: str, kind: str, name: str) -> Any:
    return crate.add_or_update_jsonld({"@id": identifier, "@type": kind, "name": name})


def _add(crate: Any, file: Path) -> Any:
    kind = guess_type(file)[0] or "text/plain"
    properties = {"name": file.name, "encodingFormat": kind}
    return crate.add_file(file, file.as_posix(), properties=properties)


def _add_workflow(crate: Any) -> list[Any]:
    """Return the Snakefile, the crate's main workflow, and all code; settings are added beside."""
    facts = {"name": "headcount", "version": version("headcount"), "encodingFormat": "text/plain"}
    workflow = crate.add_workflow(
        SNAKEFILE, SNAKEFILE, main=True, lang="snakemake", properties=facts
    )
    for file in _files(("config",)):
        _add(crate, file)
    code = chain(map(Path, _BESIDE), _files(_WORKFLOW))
    return [workflow, *(_add(crate, file) for file in code if file.as_posix() != SNAKEFILE)]


def _files(folders: tuple[str, ...]) -> Iterator[Path]:
    """Yield the files of code and settings in these folders."""
    for folder in folders:
        files = (file for file in Path(folder).rglob("*") if file.suffix in _CODE)
        yield from sorted(
            file for file in files if file.is_file() and "__pycache__" not in file.parts
        )


def _add_run(
    crate: Any, workflow: Any, settings: Any, outputs: list[Any], benchmarks: Path
) -> None:
    """Add the run: what it read and made, and when, by the records of its jobs."""
    jobs = list(benchmarks.rglob("*.tsv"))
    ends = [file.stat().st_mtime for file in jobs]
    starts = [end - _seconds(file) for file, end in zip(jobs, ends, strict=True)]
    properties = {
        "name": f"Run of {benchmarks.parent.name}",
        "description": f"snakemake --cores all --config experiment={benchmarks.parent.name}",
    }
    if jobs:
        moments = {"startTime": min(starts), "endTime": max(ends)}
        properties |= {
            name: datetime.fromtimestamp(second, UTC).isoformat(timespec="seconds")
            for name, second in moments.items()
        }
    action = crate.add_action(workflow, object=settings, result=outputs, properties=properties)
    action["agent"] = crate.creator
    crate.root_dataset["mentions"] = action


def _seconds(file: Path) -> float:
    """Return how long a job took."""
    with file.open(encoding="utf-8") as lines:
        return sum(float(row["s"]) for row in csv.DictReader(lines, delimiter="\t"))


def main() -> None:
    """Read the flags, and write the crate."""
    flags = parser(
        __doc__.partition("\n")[0],
        flag("experiment", "name of a file in config/ without its ending"),
        path("[--out]", "ZIP to write; default: results/<experiment>.crate.zip"),
        flag("--author", "who made the results; default: as CITATION.cff says", default=""),
        flag("--license", "licence of the results by SPDX; default: as CITATION.cff", default=""),
    ).parse_args()
    out = flags.out or Path(f"results/{flags.experiment}.crate.zip")
    write_crate(flags.experiment, out, flags.author, flags.license)


if __name__ == "__main__":
    run(main)

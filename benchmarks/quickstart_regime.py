"""Which settings of the quickstart show most of the papers' headline results, and in what time?

A trial is a line of a YAML file: `name: {key: value}` with dotted keys of an experiment file, and
`corpus.<key>` for the settings of the generated corpus. Each runs as a whole workflow:

    python -m benchmarks.quickstart_regime trials.yaml --folder /tmp/trials --cores 2
"""

from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from benchmarks.planning import ROOT, project_with
from benchmarks.results.child import python
from benchmarks.results.timings import markdown
from headcount.base import command
from headcount.base.errors import UserError

EXPERIMENT = "quickstart"


def changed(content: dict[str, Any], keys: dict[str, Any]) -> dict[str, Any]:
    """The content of a YAML file with other values at dotted keys."""
    for dotted, value in keys.items():
        *sections, last = dotted.split(".")
        section = content
        for name in sections:
            section = section.setdefault(name, {})
        section[last] = value
    return content


def prepare(folder: Path, keys: dict[str, Any]) -> None:
    """Make a project whose quickstart has other settings. `keys` are those of a trial."""
    folder.mkdir(parents=True)
    settings = yaml.safe_load((ROOT / f"config/{EXPERIMENT}.yaml").read_text(encoding="utf-8"))
    own = {key: value for key, value in keys.items() if not key.startswith("corpus.")}
    project_with(folder, EXPERIMENT, **changed(settings, own))
    corpora = yaml.safe_load((ROOT / "config/corpora.yaml").read_text(encoding="utf-8"))
    corpus = settings["pairs"][0].partition(".")[0]
    of_corpus = {key.removeprefix("corpus."): keys[key] for key in keys.keys() - own.keys()}
    changed(corpora[corpus]["settings"], of_corpus)
    (folder / "config/corpora.yaml").unlink()
    (folder / "config/corpora.yaml").write_text(yaml.safe_dump(corpora), encoding="utf-8")


def trial(folder: Path, keys: dict[str, Any], cores: int) -> tuple[pd.DataFrame, float]:
    """The table of headline results under a trial's settings, and seconds of its workflow.

    Raises UserError with Snakemake's words if it fails. A folder that is there is gone on with.
    """
    if not folder.exists():
        prepare(folder, keys)
    flags = ["--cores", str(cores), "--config", f"experiment={EXPERIMENT}", "--quiet", "all"]
    ended = python(["-m", "snakemake", *flags], folder)
    if ended.code:
        raise UserError(f"{folder}: the workflow failed:\n{ended.printed[-2000:]}")
    return pd.read_csv(folder / f"results/{EXPERIMENT}/tables/phenomena.csv"), ended.wall


def cells(table: pd.DataFrame) -> dict[str, str]:
    """The number of each result with its interval, and whether it holds."""
    return {
        row.phenomenon: f"{row.ours:.2f} ({row.low:.2f} to {row.high:.2f}) {row.holds}"
        for row in table.itertuples()
    }


def main() -> None:
    """Run the trials of a file and print their results, a row for each trial."""
    parser = command.parser(__doc__)
    parser.add_argument("trials", type=Path, help="YAML file with the settings of each trial")
    parser.add_argument("--folder", type=Path, required=True, help="folder of all trials")
    parser.add_argument("--cores", type=int, default=2, help="cores of a workflow")
    args = parser.parse_args()
    for name, keys in yaml.safe_load(args.trials.read_text(encoding="utf-8")).items():
        table, seconds = trial(args.folder / name, keys or {}, args.cores)
        holding = int((table["holds"] == "holds").sum())
        rows = [(name, f"{holding} hold in {seconds:.0f} s"), *cells(table).items()]
        print(markdown(["trial", "found"], rows, texts=2), flush=True)


if __name__ == "__main__":
    command.run(main)

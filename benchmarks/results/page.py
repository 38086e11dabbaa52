"""The page of what benchmarks measured, made of records alone."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from benchmarks import memory, planning, processes
from benchmarks.results.record import Record, joined, read
from benchmarks.results.timings import Timed, table
from headcount.base.files import write_text

TITLES = {
    "training": "Training",
    "decoding": "Beam search",
    "importance": "Importance of heads",
    "headmask_cost": "Training with masked heads",
    "ablation": "BLEU without each head",
    "attention": "Attention of one layer",
    "memory": "Memory",
    "processes": "One training on several processes",
    "planning": "Planning",
}
TABLES = {"memory": memory.table, "planning": planning.table, "processes": processes.table}

HEAD = """# Speed, measured

*Made from the files of results by `python -m benchmarks.results`. docs/guides/speed.md explains how
to measure, and what may be compared.*

Ratio: the contender's seconds by ours in the same number format (int8's by ours in fp32), round by
round, as median and range; above 1 ours is faster.
"""


def write_page(files: Sequence[Path], out: Path) -> None:
    """Write the page of files of results."""
    write_text(out, page([read(file) for file in files]))


def page(files: Sequence[Sequence[Record]]) -> str:
    """The whole page: a chapter for each file, which holds what one machine measured."""
    return "\n".join([HEAD, *(line for records in files for line in _chapter(records))])


def _chapter(records: Sequence[Record]) -> Iterator[str]:
    """Machine, and a section for each benchmark, in the order of `TITLES`."""
    order = list(TITLES)
    records = sorted(records, key=lambda record: order.index(record["benchmark"]))
    yield f"## {machine(records)}\n"
    yield f"{_facts(records)}\n"
    for name, group in groupby(records, key=lambda record: record["benchmark"]):
        yield f"### {TITLES[name]}\n"
        for record in group:
            yield f"{_section(record)}\n"


def machine(records: Sequence[Record]) -> str:
    """The GPU that records are of, or the processor with its number of threads."""
    gpu = joined([record["where"]["gpu"] for record in records])
    where = records[0]["where"]
    return gpu or f"{where['processor']}, {where['cpus']} threads"


def _facts(records: Sequence[Record]) -> str:
    all_of = {
        name: joined([str(record["where"][name]) for record in records])
        for name in ("processor", "cpus", "date", "commit", "torch", "python")
    }
    rows = [
        ["processor", f"{all_of['processor']}, {all_of['cpus']} threads"],
        ["date", all_of["date"]],
        ["commit", all_of["commit"]],
        ["peers", _peers(records[0]["where"]["peers"])],
        ["versions", f"torch {all_of['torch']}, Python {all_of['python']}"],
    ]
    return _left(["", ""], rows)


def _peers(versions: Mapping[str, str]) -> str:
    """Versions of the packages that are there, and which are not."""
    there = [f"{name} {version}" for name, version in versions.items() if version]
    lacking = [name for name, version in versions.items() if not version]
    return "; ".join([", ".join(there), *(f"{name} is not installed" for name in lacking)])


def _section(record: Record) -> str:
    title = f"**{record['title']}**"
    if "failed" in record:
        return f"{title} Not measured: {record['failed']}"
    if "rows" in record:
        return f"{title}\n\n{TABLES[record['benchmark']](record['rows'])}"
    where, flags = record["where"], record["flags"]
    clock = "processor time" if flags["clock"] == "cpu" else "time on the wall"
    ceilings = ", ".join(f"{rate:,.0f} {name}" for name, rate in where["ceiling"].items())
    threads = f"{where['threads']} thread{'s' * (where['threads'] > 1)}"
    facts = f"{threads}, {clock}, load {where['load']:.1f} at the start, ceiling "
    facts += f"{ceilings} GFLOP/s."
    timed = [Timed.of(cells) for cells in record["timed"]]
    return f"{title} {facts}\n\n{table(timed, where['ceiling'])}"


def _left(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of text."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)

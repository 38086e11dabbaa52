"""The answer of `headcount heads`: heads that matter, heads that may go, and files."""

import os
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from headcount.analysis.frames import RUN
from headcount.analysis.tables.general.removal import MOST, heads_to_remove
from headcount.base.errors import EnvironmentFault
from headcount.base.files import sha256
from headcount.data.lines import clean_lines, write_lines
from headcount.data.word_links.silver import predict_links
from headcount.heads.alignment import best_heads
from headcount.library.heads_run import HeadsRun
from headcount.library.measured import Measured

_SHOWN, _NAMED = 5, 20  # most important heads, and heads that may go


def measure_heads(
    model: Measured,
    texts: tuple[list[str], list[str]],
    paths: tuple[Path, Path],
    out: Path,
    links: Sequence[str] | None,
    sentences: int,
    name: str,
) -> None:
    """Measure heads, write the report, and print the answer. The time is printed first.

    `name`: of the model, for the title.
    """
    kind = "given" if links is not None else "silver"
    without = ""
    try:
        links = links if links is not None else _predicted(paths, out)
    except EnvironmentFault as fault:
        without = f"\nAlignment is left out without --links. {fault}"
    run = HeadsRun(model, texts, out, links, sentences, kind)
    print(f"{_time(run)}{without}", flush=True)
    run.measure()
    print("Writing the report ...", flush=True)
    page = run.write_pages(f"Heads of {name}")
    print(answer(run, model, out), f"Report: {page}", f"Atlas: {out / 'atlas.html'}", sep="\n")


def answer(run: HeadsRun, model: Measured, out: Path) -> str:
    """Return the heads that matter and those that may go, as text."""
    importance = pd.Series(run.importance["importance"], model.heads)
    lines = ["Most important heads (nats per sentence):"]
    lines += [f"  {name:<14} {value:.3g}" for name, value in importance.nlargest(_SHOWN).items()]
    if (out / "alignment.csv").exists():
        best = best_heads(pd.read_csv(out / "alignment.csv"), 2)
        lines.append(f"Heads that align best: {', '.join(head.name() for head in best)}")
    steps = heads_to_remove(run.removal().assign(**dict.fromkeys(RUN, 1)))
    least, step = f"{MOST:g} nats per token", steps[steps["may_go"] == "yes"].iloc[-1]
    change = f"{step['loss_rise']:+.3f} ({step['low']:+.3f} to {step['high']:+.3f})"
    if step["percent"]:
        lines += [
            f"Heads that may go, with a rise in loss below {least}: "
            f"{step['heads_masked']} of {len(importance)}, {step['percent']} %, {change}",
            f"  {_first(step['heads'].split())}",
            f"Remove them: headcount prune {model.path} --importance {out / 'importance.csv'} "
            f"--share {step['percent']} --out smaller",
        ]
    else:
        lines.append(f"No step of removal costs less than {least}.")
    return "\n".join([*lines, f"Tables: {out / 'importance.csv'}, {out / 'removal.csv'}"])


def _first(names: list[str]) -> str:
    """Return some names, and how many there are more."""
    more = len(names) - _NAMED
    return " ".join(names[:_NAMED]) + f" and {more} more" * (more > 0)


def _time(run: HeadsRun) -> str:
    """Return a sentence on the time that the run takes."""
    seconds = run.estimate()
    parts = ", ".join(f"{kind} {time:.0f} s" for kind, time in seconds.items())
    size = f"{run.grid.size} heads, {len(run.text)} sentence pairs"
    if not seconds:
        return f"{size}: all is measured; only the pages are written again"
    total = sum(seconds.values())
    words = f"{total:.0f} s" if total < 90 else f"{total / 60:.1f} minutes"
    return f"{size}: about {words} ({parts}), then the pages"


def _predicted(paths: tuple[Path, Path], out: Path) -> list[str]:
    """Return links by eflomal, which is random, from an earlier start on this text if possible."""
    path, nothing = out / f"silver-{sha256(*paths)[:8]}.links", (Path(os.devnull),) * 2
    if not path.exists():
        write_lines(path, predict_links(nothing, paths, 1, 1)[0])
    return list(clean_lines(path))

"""Small hand-made files of pruned runs, as pruning, removal and timing leave them."""

import json
from dataclasses import fields
from pathlib import Path

from headcount.base.head_values import write_head_values
from headcount.base.settings.model import ModelSettings
from headcount.findings.voita_figures import FigureFiles
from headcount.findings.voita_tables import TableFiles

Run = tuple[str, str, int]  # pair, run, seed

REMOVAL = (
    "test_set,order,as_run,draw,heads_masked,heads,bleu,delta,delta_low,delta_high,p,signature"
)
SPEED = "model,heads_left,parameters,file_bytes,phase,batch_size,repeat,sentences,seconds"


class VoitaFiles:
    """Files below one folder, listed by the flags that take them."""

    def __init__(self, folder: Path, model: ModelSettings):
        self.folder, self.grid = folder, model.grid
        names = {field.name for kind in (TableFiles, FigureFiles) for field in fields(kind)}
        self.listed: dict[str, list[Path]] = {name: [] for name in sorted(names)}

    def reference(self, pair: str, test: str, lines: list[str]) -> None:
        """One test set."""
        self._add("references", f"text/{pair}/{test}.tgt", "".join(f"{line}\n" for line in lines))

    def scores(self, phase: str, run: Run, found: dict[str, tuple[float, list[str]]]) -> None:
        """By test set: BLEU and the translations, which a run that was not pruned need not have."""
        place = f"{phase}/{run[0]}/{run[1]}/seed{run[2]}"
        rows = [
            {"test_set": test, "metric": "bleu", "score": bleu, "signature": "sig"}
            | {"beam": 3, "length_penalty": 0.6}
            for test, (bleu, _) in found.items()
        ]
        head = dict(zip(("pair", "run", "seed"), run, strict=True))
        self._add("scores", f"{place}/bleu.json", json.dumps(head | {"scores": rows}))
        for test, (_, lines) in found.items():
            if phase == "prune":
                text = "".join(f"{line}\n" for line in lines)
                self._add("translations", f"{place}/translations/{test}.txt", text)

    def heads(self, run: Run, kept: list[float], p_zero: list[float] | None = None) -> None:
        """Test-time gate of every head in flat order; for a gates run P(0), and P(1) is the rest."""
        path = self.folder / f"prune/{run[0]}/{run[1]}/seed{run[2]}/heads.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        values = {"gate": kept}
        if p_zero:
            values |= {"p_zero": p_zero, "p_one": [1 - chance for chance in p_zero]}
        write_head_values(path, self.grid, values)
        self.listed["heads"].append(path)

    def gates(self, run: Run, steps: dict[int, list[float]]) -> None:
        """P(0) of every head, by update; a gate is 0 at test time where that is above 0.5."""
        rows = [
            f"{step},{','.join(map(str, head))},0,{chance},{1 - chance},{int(chance <= 0.5)}"
            for step, chances in steps.items()
            for head, chance in zip(self.grid.heads(), chances, strict=True)
        ]
        head = "step,kind,layer,head,log_alpha,p_zero,p_one,gate"
        place = f"prune/{run[0]}/{run[1]}/seed{run[2]}/gates.csv"
        self._add("gates", place, "\n".join([head, *rows]) + "\n")

    def removal(self, pair: str, seed: int, rows: list[str], sentences: int = 7) -> None:
        """Rows of removal.csv without `heads` and signature: order to p."""
        lines = []
        for row in rows:
            test, order, as_run, draw, masked, *judged = row.split(",")
            lines.append(",".join([test, order, as_run, draw, masked, "a b", *judged, "s"]))
        place = f"masking/{pair}/baseline/seed{seed}/removal"
        self._add("removal", f"{place}.csv", "\n".join([REMOVAL, *lines]) + "\n")
        facts = {"sentences": {"test": sentences}, "beam": 3, "length_penalty": 0.6}
        self._add("facts", f"{place}.json", json.dumps(facts))

    def speed(self, pair: str, seed: int, rows: list[str]) -> None:
        """Rows of speed.csv."""
        place = f"prune/{pair}/speed/seed{seed}/speed.csv"
        self._add("speed", place, "\n".join([SPEED, *rows]) + "\n")

    def for_tables(self) -> TableFiles:
        return TableFiles(**{field.name: self.listed[field.name] for field in fields(TableFiles)})

    def for_figures(self) -> FigureFiles:
        return FigureFiles(**{field.name: self.listed[field.name] for field in fields(FigureFiles)})

    def _add(self, name: str, place: str, text: str) -> None:
        path = self.folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.listed[name].append(path)

"""Small hand-made files of pruned runs, as pruning, masking and timing leave them."""

import json
from collections.abc import Sequence
from pathlib import Path

from chapters import chapter_of, list_run

from headcount.base.head_values import write_head_values
from headcount.base.settings.flags import as_flags
from headcount.base.settings.pretrained import ExperimentModel
from headcount.base.settings.run_file import write_run
from headcount.base.settings.runs import PrunedSettings, label
from headcount.base.settings.train import GatesSettings
from headcount.base.settings.training_runs import BASELINE
from headcount.findings.inputs import file_flag

Run = tuple[str, str, int]  # pair, run, seed

_OF = {
    "train": {"scores": "start_scores", "curves": "start_curves"},
    "prune": {"scores": "pruned_scores", "curves": "pruned_curves"},
}
UNTUNED = (
    "test_set,order,as_run,draw,heads_masked,heads,bleu,delta,delta_low,delta_high,p,signature"
)
SPEED = "model,heads_left,parameters,file_bytes,phase,batch_size,repeat,sentences,steps,seconds"


class VoitaFiles:
    """Files below one folder, listed by their kinds."""

    def __init__(self, folder: Path, model: ExperimentModel):
        self.folder, self.grid = folder, model.grid
        kinds = chapter_of("voita_pruning").kinds
        self.listed: dict[str, list[Path]] = {kind: [] for kind in kinds}

    def reference(self, pair: str, test: str, lines: list[str]) -> None:
        """One test set."""
        self._add("references", f"text/{pair}/{test}.tgt", "".join(f"{line}\n" for line in lines))

    def scores(self, phase: str, run: Run, found: dict[str, tuple[float, list[str]]]) -> None:
        """By test set: BLEU and the translations."""
        place = f"{phase}/{run[0]}/{run[1]}/seed{run[2]}"
        rows = [
            {"test_set": test, "metric": "bleu", "score": bleu, "signature": "sig"}
            | {"engine": "headcount", "beam": 3, "length_penalty": 0.6}
            for test, (bleu, _) in found.items()
        ]
        head = dict(zip(("pair", "run", "seed"), run, strict=True))
        self._add(_OF[phase]["scores"], f"{place}/bleu.json", json.dumps(head | {"scores": rows}))
        for test, (_, lines) in found.items() if phase == "prune" else ():
            text = "".join(f"{line}\n" for line in lines)
            self._add("pruned_translations", f"{place}/translations/{test}.txt", text)

    def heads(self, run: Run, kept: list[float], p_zero: list[float] | None = None) -> None:
        """Test-time gate of every head; for a gates run P(0), and P(1) is the rest."""
        path = self.folder / f"prune/{run[0]}/{run[1]}/seed{run[2]}/heads.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        values = {"gate": kept}
        if p_zero:
            values |= {"p_zero": p_zero, "p_one": [1 - chance for chance in p_zero]}
        write_head_values(path, self.grid, values)
        self.listed["kept"].append(path)
        pruned = PrunedSettings.model_validate(run[1])
        write_run(path.parent, pruned)
        self.listed["pruned_runs"].append(path.with_name("run.json"))
        begun = BASELINE if pruned.from_none else pruned.init_from
        list_run(self.listed, self.folder, (run[0], label(begun), run[2]))

    def curve(self, phase: str, run: Run, *steps: int) -> None:
        """A curve with a validation at each of these updates."""
        rows = "".join(f"{step},2.5,2.25,{step / 10}\n" for step in steps)
        place = f"{phase}/{run[0]}/{run[1]}/seed{run[2]}/curves.csv"
        self._add(_OF[phase]["curves"], place, f"step,train_loss,dev_loss,seconds\n{rows}")

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

    def untuned(self, pair: str, seed: int, rows: list[str], sentences: int = 7) -> None:
        """Rows of untuned_masking.csv without `heads` and signature: order to p."""
        lines = []
        for row in rows:
            test, order, as_run, draw, masked, *judged = row.split(",")
            lines.append(",".join([test, order, as_run, draw, masked, "a b", *judged, "s"]))
        place = f"masking/{pair}/baseline/seed{seed}/untuned_masking"
        self._add("untuned", f"{place}.csv", "\n".join([UNTUNED, *lines]) + "\n")
        facts = {"sentences": {"test": sentences}, "beam": 3, "length_penalty": 0.6}
        self._add("untuned_facts", f"{place}.json", json.dumps(facts))

    def speed(self, pair: str, seed: int, rows: list[str]) -> None:
        """Rows of speed.csv."""
        place = f"prune/{pair}/speed/seed{seed}/speed.csv"
        self._add("pruned_speed", place, "\n".join([SPEED, *rows]) + "\n")

    def flags(self, gates: GatesSettings, out: Path) -> list[str]:
        """Arguments of the script that takes these files."""
        arguments = ["voita_pruning"]
        for kind, paths in self.listed.items():
            arguments += [file_flag(kind), *map(str, paths)]
        return [*arguments, "--out", str(out), *as_flags(MODEL), *as_flags(gates)]

    def _add(self, name: str, place: str, text: str) -> None:
        path = self.folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.listed[name].append(path)


PAIR = "multi.en-de"
LINES = [f"this is line {n}" for n in range(200)]
# Six heads, other numbers of them in every layer and kind.
MODEL = ExperimentModel(
    encoder_layers=2,
    decoder_layers=1,
    d_model=8,
    d_ff=16,
    d_head=4,
    heads={"enc_self": [2, 1], "dec_self": [1], "dec_enc": [2]},
)
TRAINED = {"baseline": (2, 2), "random-1": (4, 4)}  # wrong lines of each seed
# Test-time gates in flat order (3 encoder, 1 decoder, 2 decoder-encoder), and wrong lines.
PRUNED = {
    "gates-all-l0": ([1, 1, 1, 1, 1, 1], (0, 0)),
    "gates-all-l0.1": ([0, 0, 1, 1, 1, 1], (1, 3)),
    "gates-all-l0.5": ([0, 0, 0, 0, 0, 0], (200, 200)),
    "scratch-gates-all-l0.1": ([0, 0, 1, 1, 1, 1], (5, 7)),
    "ranked-gates-all-l0.1": ([1, 0, 0, 1, 1, 1], (3, 3)),
    "drawn-gates-all-l0.1": ([1, 1, 1, 1, 0, 0], (9, 9)),
    "gates-enc_self-l0": ([1, 1, 1, 1, 1, 1], (0, 0)),
    "gates-enc_self-l0.2": ([0, 1, 0, 1, 1, 1], (0, 0)),
    "gates-all-l0-from-random-1": ([1, 1, 1, 1, 1, 1], (1, 1)),
    "gates-all-l0.1-from-random-1": ([1, 0, 1, 1, 1, 1], (2, 2)),
}
FROM_NONE = {
    "gates-all-l0-from-none": ([1, 1, 1, 1, 1, 1], (6, 6)),
    "gates-all-l0.1-from-none": ([0, 1, 0, 1, 1, 0], (10, 14)),
    "scratch-gates-all-l0.1-from-none": ([0, 1, 0, 1, 1, 0], (4, 4)),
    "gates-enc_self-l0-from-none": ([1, 1, 1, 1, 1, 1], (1, 2)),
    "gates-enc_self-l0.2-from-none": ([0, 0, 1, 1, 1, 1], (2, 8)),
}
SUBSETS = {
    "subset-all-k4": ([1, 0, 1, 0, 1, 1], (1, 5)),
    "subset-all-k2": ([1, 0, 0, 0, 1, 0], (20, 20)),
    "subset-enc_self-k1": ([0, 0, 1, 1, 1, 1], (3, 3)),
}
CHANCES = {  # P(0); of the heads that are not gated 0.5, which counts for nothing
    "gates-all-l0.1": [0.95, 0.85, 0.05, 0.05, 0.2, 0.3],
    "gates-enc_self-l0.2": [0.95, 0.05, 0.85, 0.5, 0.5, 0.5],
}
CUTS = [
    "test,gates,gates-all-l0,,0,99,0,0,0,1",
    "test,gates,gates-all-l0.1,,2,96,-3,-4,-2,0.01",
    "test,ranked,gates-all-l0.1,,2,98,-1,-2,0.5,0.2",
    "test,drawn,gates-all-l0.1,1,2,95,-4,-5,-3,0.01",
    "test,drawn,gates-all-l0.1,2,2,93,-6,-7,-5,0.01",
]


def translated(wrong: int) -> tuple[float, list[str]]:
    """BLEU and lines with so many wrong ones.

    All lines have four words, so that of 200 every n-gram precision is the share of right lines.
    """
    bad = ["a b c d"] * wrong
    return 100 * (1 - wrong / 200), bad + LINES[wrong:]


def pruned_runs(
    folder: Path, runs: Sequence[str] = tuple(PRUNED), seeds: Sequence[int] = (1, 2)
) -> VoitaFiles:
    """Files of the trained runs above, and of some or all of the pruned ones."""
    made = VoitaFiles(folder, MODEL)
    made.reference(PAIR, "test", LINES)
    for seed in seeds:
        for run, wrong in TRAINED.items():
            made.scores("train", (PAIR, run, seed), {"test": translated(wrong[seed - 1])})
            made.curve("train", (PAIR, run, seed), 600, 1200)
        for run in runs:
            kept, wrong = (PRUNED | FROM_NONE | SUBSETS)[run]
            key = (PAIR, run, seed)
            chances = CHANCES.get(run, [1.0 - gate for gate in kept])
            gated = run.startswith("gates")
            made.scores("prune", key, {"test": translated(wrong[seed - 1])})
            made.heads(key, kept, chances if gated else None)
            anew = run.startswith("scratch") or run.endswith("from-none")
            made.curve("prune", key, *((1300,) if anew else (50, 100)))
            if gated:
                made.gates(key, {0: [0.25] * 6, 10: chances})
        made.untuned(PAIR, seed, CUTS)
        made.speed(PAIR, seed, timings())
    return made


def timings() -> list[str]:
    """The baseline and one pruned model; the last repeat of the baseline was disturbed."""
    rows = []
    for run, left, parameters, searched, seconds in (
        ("baseline", 6, 1000, 1000, (2.0, 2.2, 9.0)),
        ("gates-all-l0.1", 4, 900, 1500, (1.0, 1.1, 1.2)),
    ):
        for phase, share, steps in (("encode", 0.1, 100), ("decode", 1, searched)):
            head = f"{run},{left},{parameters},{4 * parameters},{phase}"
            rows += [
                f"{head},{size},{repeat},100,{steps},{time * share}"
                for size in (1, 16)
                for repeat, time in enumerate(seconds, start=1)
            ]
    return rows

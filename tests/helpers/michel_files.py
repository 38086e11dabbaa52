"""Small hand-made files of ablated runs, as ablation, pruning and timing leave them."""

import csv
import json
from pathlib import Path

from chapters import chapter_of, list_run

from headcount.ablation.ablation import COLUMNS as ABLATION
from headcount.ablation.pruning_profile import AREA_COLUMNS
from headcount.ablation.pruning_profile import COLUMNS as PROFILE
from headcount.ablation.pruning_profile import TRAINING_COLUMNS as TRAINING
from headcount.base.head_values import COLUMNS as HEAD_VALUES
from headcount.base.head_values import head_rows
from headcount.base.settings.flags import as_flags
from headcount.base.settings.pretrained import ExperimentModel
from headcount.deployment.importance_speed import COLUMNS as IMPORTANCE_SPEED
from headcount.deployment.speed import COLUMNS as SPEED
from headcount.findings.inputs import file_flag
from headcount.heads.measures_files import RANKED

# Six heads, other numbers of them in every layer and kind.
HEADS = {"enc_self": [2, 1], "dec_self": [1], "dec_enc": [2]}
MODEL = ExperimentModel(
    encoder_layers=2, decoder_layers=1, d_model=8, d_ff=16, d_head=4, heads=HEADS, norm="post"
)
GRID = MODEL.grid
Run = tuple[str, str, int]  # pair, run, seed
SCORES = ("heads_masked", "bleu", "delta", "delta_low", "delta_high", "p")


class MichelFiles:
    """Files below one folder, listed by their kind."""

    def __init__(self, folder: Path):
        self.folder = folder
        kinds = chapter_of("michel").kinds
        self.listed: dict[str, list[Path]] = {kind: [] for kind in kinds}

    def ablation(self, run: Run, single: dict[str, list], all_but_one: dict[str, dict]) -> None:
        """By test set: (delta, p) of each of the six heads; and by place of the head that stays.

        Whole BLEU is 50; intervals reach 1 to either side.
        """
        rows = []
        for test in single:
            rows.append({"test_set": test, "order": "none", "index": 0, "bleu": 50.0})
            for place, (delta, p) in enumerate(single[test]):
                rows.append(self._point(test, "single", place, delta, p, 1))
            for place, (delta, p, masked) in all_but_one.get(test, {}).items():
                rows.append(self._point(test, "all_but_one", place, delta, p, masked))
        self._write("ablation", run, "ablation", ABLATION, rows)
        facts = {"sentences": dict.fromkeys(single, 7), "beam": 3, "length_penalty": 0.6}
        path = self.listed["ablation"][-1].with_suffix(".json")
        path.write_text(json.dumps(facts))
        self.listed["ablation_facts"].append(path)

    def _point(self, test: str, order: str, place: int, delta: float, p: float, masked: int):
        head = {"test_set": test, "order": order, "index": place + 1}
        return head | GRID.heads()[place]._asdict() | _scores(masked, 50.0, delta, p)

    def heads(self, run: Run, importance: list[float], changes: list[tuple]) -> None:
        """Importance of the six heads; by head, size and rise of the loss without it."""
        size, rise = zip(*changes, strict=True)
        statistics = {
            "importance": {"importance": importance},
            "loss_change": {"loss_change": size, "loss_rise": rise},
        }
        for kind, by_name in statistics.items():
            cells = head_rows(GRID.heads(), by_name)
            rows = [dict(zip(HEAD_VALUES, row, strict=True)) for row in cells]
            self._write(kind, run, kind, HEAD_VALUES, rows)

    def more_measures(self, run: Run, values: dict[str, list[float]]) -> None:
        """Statistics of the six heads, by name."""
        rows = [dict(zip(HEAD_VALUES, row, strict=True)) for row in head_rows(GRID.heads(), values)]
        self._write("more_measures", run, "measures", HEAD_VALUES, rows)

    def profile(self, run: Run, curves: list[tuple], first: list[int]) -> None:
        """Scope, order, draw, and (heads masked, delta, p) of every step.

        `first`: places of heads in the order in which they go by importance.
        """
        names = [GRID.heads()[place].name() for place in first]
        rows = [
            {"test_set": "test", "scope": scope, "order": order, "index": index, "draw": draw}
            | {"heads": " ".join(names[:masked])}
            | _scores(masked, 50.0, delta, p)
            for scope, order, draw, steps in curves
            for index, (masked, delta, p) in enumerate(steps)
        ]
        self._write("profiles", run, "pruning_profile", PROFILE, rows)

    def areas(self, run: Run, rows: list[tuple]) -> None:
        """Cells from scope on."""
        named = [dict(zip(AREA_COLUMNS, ("test", *row), strict=True)) for row in rows]
        self._write("areas", run, "pruning_profile_areas", AREA_COLUMNS, named)

    def training(self, run: Run, bleu: dict[int, list], importance: dict[int, list]) -> None:
        """By update: BLEU of every step; importance of the six heads."""
        rows = [
            {"update": update, "test_set": "test", "order": "importance", "index": index}
            | _scores(2 * index, values[0], value - values[0], 0.5)
            for update, values in bleu.items()
            for index, value in enumerate(values)
        ]
        self._write("training", run, "training_profile", TRAINING, rows)
        heads = [
            {"update": update, **head._asdict(), "statistic": "importance", "value": value}
            for update, values in importance.items()
            for head, value in zip(GRID.heads(), values, strict=True)
        ]
        columns = ("update", "kind", "layer", "head", "statistic", "value")
        self._write("training_heads", run, "training_profile_heads", columns, heads)

    def speed(self, run: Run, seconds: dict[tuple, list[float]]) -> None:
        """By percentage, phase and batch size: seconds of every repeat, for 8 sentences.

        All heads take 10 steps a sentence, a model without some of them 15.
        """
        rows = [
            {"model": percent, "heads_left": 6 - 6 * percent // 100, "parameters": 1000 - percent}
            | {"phase": phase, "batch_size": size, "repeat": repeat, "sentences": 8}
            | {"seconds": value, "file_bytes": 4000, "steps": 120 if percent else 80}
            for (percent, phase, size), values in seconds.items()
            for repeat, value in enumerate(values, start=1)
        ]
        self._write("share_speed", run, "share_speed", SPEED, rows)
        about = {"beam": 3, "threads": 1, "device": "cpu", "sentences": 8}
        self.listed["share_speed"][-1].with_suffix(".json").write_text(json.dumps(about))

    def importance_speed(self, run: Run, seconds: dict[str, list[float]]) -> None:
        """Seconds of every repeat of `importance` and `training`, for 8 sentences."""
        rows = [
            {"work": work, "repeat": repeat, "sentences": 8, "seconds": value}
            for work, values in seconds.items()
            for repeat, value in enumerate(values, start=1)
        ]
        self._write("importance_speed", run, "importance_speed", IMPORTANCE_SPEED, rows)

    def flags(self, out: Path) -> list[str]:
        """Arguments of `scripts/findings.py michel`."""
        given = {kind: map(str, files) for kind, files in self.listed.items()}
        files = [word for kind, paths in given.items() for word in (file_flag(kind), *paths)]
        return ["michel", *files, "--out", str(out), *as_flags(MODEL)]

    def _write(self, kind: str, run: Run, name: str, columns: tuple, rows: list[dict]) -> None:
        path = self.folder / f"masking/{run[0]}/{run[1]}/seed{run[2]}/{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as file:
            writer = csv.DictWriter(file, columns, restval="")
            writer.writeheader()
            writer.writerows(rows)
        self.listed[kind].append(path)
        list_run(self.listed, self.folder, run)


def _scores(masked: int, whole: float, delta: float, p: float) -> dict:
    low, high = (delta - 1, delta + 1) if delta else (0.0, 0.0)
    values = (masked, whole + delta, delta, low, high, p)
    return dict(zip(SCORES, values, strict=True)) | {"signature": "sig"}


def one_model(folder: Path) -> MichelFiles:
    """A model with two test sets, pruned in four steps, at two updates, and timed."""
    made, run = MichelFiles(folder), ("a.x-y", "baseline", 3)
    test = [(-8.0, 0.0005), (1.0, 0.002), (0.0, 1.0), (-0.5, 0.3), (-4.0, 0.009), (2.0, 0.4)]
    dev = [(-6.0, 0.001), (0.5, 0.2), (0.5, 0.6), (-1.0, 0.2), (-3.0, 0.02), (1.0, 0.3)]
    other = [(-4.0, 0.001), (1.5, 0.2), (1.0, 0.6), (-1.5, 0.2), (-5.0, 0.02), (1.0, 0.3)]
    lone_dev = {0: (-1.0, 0.2, 1), 1: (-6.0, 0.001, 1), 4: (1.0, 0.3, 1), 5: (-9.0, 0.001, 1)}
    all_but_one = {
        "dev": lone_dev,
        "test": {0: (1.0, 0.002, 1), 4: (-2.0, 0.004, 1)},
        "other": {0: (0.0, 1.0, 1), 4: (-2.0, 0.04, 1)},
    }
    made.ablation(run, {"dev": dev, "test": test, "other": other}, all_but_one)
    none, end = (0, 0.0, 1.0), (6, -45, 0.001)
    gain = [none, (2, 1.0, 0.02), (3, -0.5, 0.2), (5, -9, 0.001), end]
    few = [none, (1, -0.1, 0.6), (2, -0.2, 0.5), (3, -3.0, 0.06), (3, -3.0, 0.06)]
    one = [none, (2, -5, 0.01), (3, -9, 0.001), (5, -40, 0.001), end]
    two = [none, (2, -1, 0.2), (3, -8, 0.001), (5, -40, 0.001), end]
    curves = [("all", "importance", "", gain), ("enc_self", "importance", "", few)]
    curves += [("all", "random", 1, one), ("all", "random", 2, two)]
    curves.append(("all", "one_per_layer", "", [(2, -11.0, 0.001)]))
    made.profile(run, curves, [5, 0, 4, 1, 3, 2])
    changes = [(0.5, -0.25), (1.0, 1.0), (2.0, 2.0), (3.0, 3.0), (4.0, 4.0), (0.25, 0.125)]
    made.heads(run, [3.0, 4.0, 2.0, 5.0, 8.0, 6.0], changes)
    made.areas(
        run,
        [
            ("all", "importance", 30.0, 28.0, 32.0, "", "", "", "", ""),
            ("all", "random", 20.0, 18.0, 21.0, "all/importance", -10.0, -12.0, -7.0, 0.001),
        ],
    )
    made.training(
        run,
        {10: [1.5, 1.0, 0.5, 0.0], 20: [40.0, 30.0, 10.0, 0.0], 90: [50.0, 49.0, 1.0, 0.0]},
        {10: [1, 2, 3, 4, 5, 6], 20: [1, 1, 1, 1, 1, 3], 90: [6, 5, 4, 3, 2, 1]},
    )
    made.speed(
        run,
        {
            (0, "decode", 1): [2.0, 4.0],
            (50, "decode", 1): [1.0, 2.0],
            (0, "decode", 16): [1.0, 1.0],
            (50, "decode", 16): [1.0, 1.0],
        },
    )
    made.importance_speed(run, {"importance": [1.0, 4.0], "training": [2.0, 2.0]})
    return made


def measured_model(folder: Path) -> MichelFiles:
    """The same model, measured in more ways: pruned by each of them, and with means for zeros."""
    made, run = one_model(folder), ("a.x-y", "baseline", 3)
    (path,) = made.listed["profiles"]
    before = path.read_text()
    none, end = (0, 0.0, 1.0), (6, -45, 0.001)
    curves = [("all", "shapley", "", [none, (2, 2.0, 0.02), (3, -1.0, 0.2), (5, -9, 0.001), end])]
    curves.append(("all", "importance_mean", "", [none, (2, -4, 0.01), (3, -5, 0.01), end]))
    for place, order in enumerate((*RANKED, "fisher_rearranged")):
        if order != "shapley":
            curves.append(("all", order, "", [none, (3, -10 - place, 0.01), end]))
    made.profile(run, curves, [5, 0, 4, 1, 3, 2])
    path.write_text(before + path.read_text().partition("\n")[2])
    made.listed["profiles"] = [path]
    made.more_measures(run, {"shapley": [1.0, 2.0, 3.0, -4.0, 5.0, 6.0]})
    return made

"""Small hand-made files of runs, as training, importance and masking leave them."""

import json
from pathlib import Path

from headcount.base.settings.pretrained import ExperimentModel
from headcount.base.settings.run_file import write_run
from headcount.base.settings.training_runs import RunSettings

# Six heads, other numbers of them in every layer and kind.
HEADS = {"enc_self": [2, 1], "dec_self": [1], "dec_enc": [2]}
ADDRESSES = [
    (kind, layer, head)
    for kind, layers in HEADS.items()
    for layer, count in enumerate(layers)
    for head in range(count)
]
MODEL = ExperimentModel(
    encoder_layers=2, decoder_layers=1, d_model=8, d_ff=16, d_head=4, heads=HEADS, norm="post"
)


class HeadmaskFiles:
    """Files below one folder; a run is (pair, run, seed)."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.runs: list[tuple[str, str, int]] = []
        self.tests: dict[str, list[str]] = {}

    def text(self, pair: str, train: int, dev: int, tests: dict[str, list[str]]) -> None:
        """Counts of each split, and the references of test sets."""
        self.tests[pair] = list(tests)
        sizes = {"train": train, "dev": dev} | {test: len(lines) for test, lines in tests.items()}
        for split, size in sizes.items():
            self._write(f"text/{pair}/{split}.json", json.dumps({"pairs_kept": size}))
        for test, lines in tests.items():
            self._write(f"text/{pair}/{test}.tgt", "".join(line + "\n" for line in lines))

    def scores(self, run: tuple, bleu: dict[str, float], translations: dict) -> None:
        """BLEU by test set, and the translations of each."""
        self.runs.append(run)
        rows = [
            {"test_set": test, "metric": metric, "score": score, "signature": f"sig {metric}"}
            | {"engine": "headcount", "beam": 3, "length_penalty": 0.6}
            for test, value in bleu.items()
            for metric, score in (("bleu", value), ("chrf", value + 20))
        ]
        head = dict(zip(("pair", "run", "seed"), run, strict=True))
        self._write(self._name("train", run, "bleu.json"), json.dumps(head | {"scores": rows}))
        for test, lines in translations.items():
            name = self._name("train", run, f"translations/{test}.txt")
            self._write(name, "".join(line + "\n" for line in lines))

    def importance(self, run: tuple, values: list[float], first=None, second=None) -> None:
        """Importance of the six heads, and of the halves of the data."""
        named = {"importance": values, "importance_first_half": first or values}
        named["importance_second_half"] = second or values
        rows = [
            f"{','.join(map(str, head))},{name},{value}"
            for name, found in named.items()
            for head, value in zip(ADDRESSES, found, strict=True)
        ]
        self._csv(
            self._name("heads", run, "importance.csv"), "kind,layer,head,statistic,value", rows
        )

    def masks(self, run: tuple, intervals: dict[int, list[float]]) -> None:
        """By last update of an interval: shares of the six heads. No interval: a baseline."""
        rows = [
            f"{step},{','.join(map(str, head))},{share}"
            for step, shares in intervals.items()
            for head, share in zip(ADDRESSES, shares, strict=True)
        ]
        self._csv(self._name("train", run, "masks.csv"), "step,kind,layer,head,masked", rows)

    def slopes(self, run: tuple, intervals: dict[int, list[tuple[float, float, float]]]) -> None:
        """By last update of an interval: mean, deviation and importance of the six heads."""
        rows = [
            f"{step},{','.join(map(str, head))},{','.join(map(str, found))}"
            for step, of_heads in intervals.items()
            for head, found in zip(ADDRESSES, of_heads, strict=True)
        ]
        head = "step,kind,layer,head,slope_mean,slope_sd,importance"
        self._csv(self._name("train", run, "slopes.csv"), head, rows)

    def curves(self, run: tuple, rows: dict[int, tuple[float, float | str]]) -> None:
        """By update: training loss, and that of the first pass (empty if there is none)."""
        lines = [
            f"{step},0,{loss},1,0.1,100,{step},{first}" for step, (loss, first) in rows.items()
        ]
        head = "step,epoch,train_loss,dev_loss,lr,tokens_per_s,seconds,first_pass_loss"
        self._csv(self._name("train", run, "curves.csv"), head, lines)

    def masking(self, run: tuple, rows: list[tuple], test: str = "test") -> None:
        """Rows of ranking, order, index, draw, heads_masked, bleu, delta, low, high."""
        lines = [
            f"{test},{ranking},{order},{index},{draw},{count},a b,{bleu},{delta},{low},{high},1,s"
            for ranking, order, index, draw, count, bleu, delta, low, high in rows
        ]
        head = "test_set,ranking,order,index,draw,heads_masked,heads"
        head += ",bleu,delta,delta_low,delta_high,p,signature"
        self._csv(self._name("masking", run, "headmask.csv"), head, lines)
        facts = {"sentences": {test: 7}, "beam": 3, "length_penalty": 0.6}
        self._write(self._name("masking", run, "headmask.json"), json.dumps(facts))

    def of_runs(self, phase: str, name: str) -> list[Path]:
        """The file of every run, in the order of `scores`."""
        return [self.folder / self._name(phase, run, name) for run in self.runs]

    def lists(self) -> dict[str, list[Path]]:
        """Files by kind of `INPUTS`, as far as there are any."""
        text = self.folder / "text"
        for run, path in zip(self.runs, self.of_runs("train", "run.json"), strict=True):
            write_run(path.parent, RunSettings.model_validate(run[1]))
        splits = [(pair, split) for pair, tests in self.tests.items() for split in tests]
        both = [(pair, split) for pair in self.tests for split in ("train", "dev")]
        translations = [
            path.parent / "translations" / f"{test}.txt"
            for run, path in zip(self.runs, self.of_runs("train", "bleu.json"), strict=True)
            for test in self.tests.get(run[0], [])
        ]
        found = {
            "counts": [text / pair / f"{split}.json" for pair, split in both + splits],
            "references": [text / pair / f"{test}.tgt" for pair, test in splits],
            "trained_runs": self.of_runs("train", "run.json"),
            "scores": self.of_runs("train", "bleu.json"),
            "translations": translations,
            "curves": self.of_runs("train", "curves.csv"),
            "masks": self.of_runs("train", "masks.csv"),
            "slopes": self.of_runs("train", "slopes.csv"),
            "importance": self.of_runs("heads", "importance.csv"),
            "masking": self.of_runs("masking", "headmask.csv"),
            "masking_facts": self.of_runs("masking", "headmask.json"),
        }
        return {kind: [path for path in files if path.exists()] for kind, files in found.items()}

    @staticmethod
    def _name(phase: str, run: tuple, name: str) -> str:
        pair, variant, seed = run
        return f"{phase}/{pair}/{variant}/seed{seed}/{name}"

    def _csv(self, name: str, head: str, rows: list[str]) -> None:
        self._write(name, "\n".join([head, *rows]) + "\n")

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def masking_rows(unmasked: float, groups: tuple[float, float], draws: list[float]) -> list[tuple]:
    """Masking of six heads in two groups of three: intervals reach 1 below and 2 above a delta."""

    def row(order, index, draw, count, bleu):
        delta = bleu - unmasked
        around = (delta - 1, delta + 2) if count else (0, 0)
        return ("own", order, index, draw, count, bleu, delta, *around)

    rows = [row("none", 0, "", 0, unmasked)]
    rows += [row("group", place, "", 3, bleu) for place, bleu in enumerate(groups, start=1)]
    orders = {"ascending": groups[1], "descending": groups[0]}
    for order, bleu in orders.items():
        curve = (unmasked, bleu, 0.5)
        rows += [row(order, place, "", 3 * place, bleu) for place, bleu in enumerate(curve)]
    for draw, bleu in enumerate(draws, start=1):
        rows.append(row("random_group", 1, draw, 3, bleu))
        rows.append(row("random_group", 2, draw, 3, bleu + 1))
        curve = (unmasked, bleu, 0.5)
        places = enumerate(curve)
        rows += [row("random_cumulative", place, draw, 3 * place, value) for place, value in places]
    return rows

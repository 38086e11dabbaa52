"""Small hand-made files of what heads do, as the jobs leave them."""

import json
import math
from pathlib import Path

from chapters import chapter_of, list_run

from headcount.base.head_values import write_head_values
from headcount.base.settings.flags import as_flags
from headcount.base.settings.importance import LrpSettings
from headcount.base.settings.pretrained import ExperimentModel
from headcount.base.settings.roles import RolesSettings
from headcount.base.settings.run_file import write_run
from headcount.base.settings.runs import PrunedSettings
from headcount.findings.inputs import file_flag

Run = tuple[str, str, int]  # pair, run, seed

# Two encoder layers of two heads, one decoder layer of one head each.
HEADS = {"enc_self": [2, 2], "dec_self": [1], "dec_enc": [1]}
MODEL = ExperimentModel(
    preset="tiny", encoder_layers=2, decoder_layers=1, d_model=6, d_head=3, heads=HEADS
)
POSITIONS = "kind,layer,head,statistic,value,offset,hits,trials"
SYNTAX = (
    "kind,layer,head,statistic,value,treebank,relation,direction,offset,trials,hits,"
    "baseline_hits,head_only,baseline_only,half_trials,half_hits"
)

PAIR = "toy.en-xx"
BASE, OTHER = (PAIR, "baseline", 1), (PAIR, "random-1", 1)
PRUNED = (PAIR, "gates-enc_self-l0.2", 1)
EMPTY = (PAIR, "gates-enc_self-l0.9", 1)
ONLY_DECODER = {"confidence": [math.nan] * 4 + [0.5, 0.4]}
SENTENCE = {"source": ["a", "b"], "target": ["<s>", "c"]}
SENTENCE |= {"weights": {"enc_self.0.1": [[1.0, 0.0], [0.5, 0.5]], "dec_enc.0.0": [[0.2, 0.8]] * 2}}
DOWN, UP = "to_dependent", "to_governor"


class RolesCollection:
    """Files below one folder, listed by their kinds."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.listed: dict[str, list[Path]] = {kind: [] for kind in chapter_of("voita_roles").kinds}

    def flags(self, *sections) -> list[str]:
        """They and the sections as a command line has them."""
        found = ["voita_roles"]
        for kind, paths in self.listed.items():
            found += [file_flag(kind), *map(str, paths)]
        given = sections or (MODEL, RolesSettings(), LrpSettings())
        return found + [flag for section in given for flag in as_flags(section)]

    def text(self, field: str, place: str, text: str) -> None:
        """A file of any kind."""
        path = self.folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.listed.setdefault(field, []).append(path)

    def attention(self, run: Run, values: dict[str, list[float]], pruned: bool = False) -> None:
        """Statistics by name, each with a value per head in flat order."""
        path = self.folder / f"{_place(run, pruned)}/attention.csv"
        write_head_values(path, MODEL.grid, values)
        if pruned:
            self.listed["pruned_attention"].append(path)
            self._pruned(run)
        else:
            self._measured("attention", run, path)
            masks = f"train/{run[0]}/{run[1]}/seed{run[2]}/masks.csv"
            self.text("masks", masks, "step,kind,layer,head,masked\n")

    def values(self, field: str, run: Run, values: dict[str, list[float]]) -> None:
        """The same of relevance and importance."""
        path = self.folder / f"{_place(run, False)}/{field}.csv"
        write_head_values(path, MODEL.grid, values)
        self._measured(field, run, path)

    def _measured(self, field: str, run: Run, path: Path) -> None:
        for kind in (field, "measures"):
            self.listed[kind].append(path)
        list_run(self.listed, self.folder, run)

    def positions(self, run: Run, rows: list[tuple], pruned: bool = False) -> None:
        """Rows: layer, head, offset, hits, trials of encoder heads."""
        lines = [f"enc_self,{la},{h},share,{n / t},{o},{n},{t}" for la, h, o, n, t in rows]
        field = "pruned_positions" if pruned else "positions"
        self.text(field, f"{_place(run, pruned)}/positions.csv", "\n".join([POSITIONS, *lines]))

    def syntax(self, run: Run, rows: list[tuple], pruned: bool = False) -> None:
        """Rows: layer, head, treebank, relation, direction, hits, baseline hits; of 100 trials.

        Of the trials that one of the two hits, as few as possible are hit by both. A half of the
        trials has as many hits as it can.
        """
        lines = []
        for layer, head, treebank, relation, direction, hits, baseline in rows:
            both = max(0, hits + baseline - 100)
            counts = (-1, 100, hits, baseline, hits - both, baseline - both)
            cells = ("enc_self", layer, head, "accuracy", hits / 100, treebank, relation, direction)
            half = (50, min(hits, 50))
            lines.append(",".join(map(str, (*cells, *counts, *half))))
        field = "pruned_syntax" if pruned else "syntax"
        self.text(field, f"{_place(run, pruned)}/syntax.csv", "\n".join([SYNTAX, *lines]))

    def kept(self, run: Run, gates: list[float]) -> None:
        """Test-time gate of every head."""
        path = self.folder / f"{_place(run, True)}/heads.csv"
        write_head_values(path, MODEL.grid, {"gate": gates})
        self.listed["kept"].append(path)
        self._pruned(run)

    def _pruned(self, run: Run) -> None:
        """The run.json of a pruned run, once."""
        folder = self.folder / _place(run, True)
        if folder / "run.json" not in self.listed["pruned_runs"]:
            write_run(folder, PrunedSettings.model_validate(run[1]))
            self.listed["pruned_runs"].append(folder / "run.json")

    def sentences(self, run: Run, sentences: list[dict]) -> None:
        """Attention of some heads on sentences."""
        text = "".join(f"{json.dumps(sentence)}\n" for sentence in sentences)
        self.text("sentence_maps", f"{_place(run, False)}/sentences.jsonl", text)

    def trees(self, pair: str, treebank: str, rows: list[str]) -> None:
        """Rows: relation,offset,count."""
        text = "\n".join(["relation,offset,count", *rows])
        self.text("trees", f"bpe/{pair}/trees/{treebank}.csv", text)


def collection(folder) -> RolesCollection:
    """Baseline: head 1.1 positional and syntactic, 1.2 rare, 2.1 syntactic, 2.2 nothing."""
    made = RolesCollection(folder)
    for run in (BASE, OTHER):
        made.attention(
            run,
            {
                "confidence": [0.9, 0.3, 0.6, 0.2, 0.5, 0.4],
                "entropy": [0.1, 2.0, 1.0, 3.0, 1.0, 1.0],
                "rare_rarest": [0.1, 0.4, 0.2, 0.1, math.nan, math.nan],
                "rare_two_rarest": [0.2, 0.5, 0.49, 0.3, math.nan, math.nan],
                "rare_two_rarest_chance": [0.25] * 4 + [math.nan] * 2,
            },
        )
        # Head 2.1 points at −9 whenever it can, but mostly at 0; head 2.2 nowhere.
        made.positions(
            run, [(0, 0, -1, 90, 100), (0, 0, 1, 8, 100), (0, 1, 0, 40, 120), (1, 0, 0, 89, 100),
                  (1, 0, -9, 1, 1)]
        )  # fmt: skip
        rows = [(0, 0, "t.first", "obj", UP, 55, 45), (0, 1, "t.first", "obj", UP, 54, 45)]
        rows += [(1, 0, "t.first", "nsubj", DOWN, 80, 40), (1, 0, "t.first", "obj", UP, 10, 45)]
        rows += [
            (1, 1, "t.first", "nsubj", DOWN, 20, 40),
            (1, 1, "t.second", "nsubj", DOWN, 99, 40),
        ]
        made.syntax(run, rows)
        relevance = [0.3, 0.7, 0.6, 0.4, 1.0, 1.0]
        bounds = {"relevance_low": [0.0] * 6, "relevance_high": [1.0] * 6}
        ratio = {"relevance_ratio": [-0.5, 0.1, 0.2, -0.3, 1.0, 1.0]}
        made.values("relevance", run, {"relevance": relevance} | bounds | ratio)
        made.values("importance", run, {"importance": [3.0, 1.0, 2.0, 4.0, 5.0, 6.0]})
        made.sentences(run, [SENTENCE])
    losses = (("enc_self", 0, 0, -1), ("enc_self", 0, 1, -4), ("enc_self", 1, 0, 2))
    losses += (("enc_self", 1, 1, -3),)
    lines = [f"test,single,{','.join(map(str, loss))},{loss[3] - 1},2" for loss in losses]
    text = "\n".join(["test_set,order,kind,layer,head,delta,delta_low,delta_high", *lines])
    made.text("ablation", f"masking/{PAIR}/baseline/seed1/ablation.csv", text)
    facts = (("ablation", {"dev": 40, "test": 60}), ("importance", 12))
    for name, sizes in facts:
        about = json.dumps({"sentences": sizes, "data": "dev"})
        made.text(f"{name}_facts", f"masking/{PAIR}/baseline/seed1/{name}.json", about)
    made.kept((PAIR, "gates-enc_self-l0", 1), [1.0] * 6)
    made.kept(PRUNED, [1, 0, 0, 0, 1, 1])
    made.kept((PAIR, "gates-all-l0.1", 1), [1, 0, 1, 0, 1, 0])
    made.attention(PRUNED, {"confidence": [0.9] + [math.nan] * 5}, pruned=True)
    made.positions(PRUNED, [(0, 0, 1, 95, 100)], pruned=True)
    made.syntax(PRUNED, [(0, 0, "t.first", "obj", UP, 50, 45)], pruned=True)
    made.attention(EMPTY, ONLY_DECODER, pruned=True)
    made.positions(EMPTY, [], pruned=True)
    made.syntax(EMPTY, [], pruned=True)
    made.trees(PAIR, "t.first", ["nsubj,-1,3", "nsubj,2,1", "obj,1,5", "case,-1,9"])
    return made


def _place(run: Run, pruned: bool) -> str:
    return f"{'prune' if pruned else 'heads'}/{run[0]}/{run[1]}/seed{run[2]}"

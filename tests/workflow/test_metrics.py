"""An experiment with another metric, which an outside command computes, and one with its files."""

import csv
import shutil
from pathlib import Path
from statistics import fmean

import pytest
from letter_overlap import overlap
from project_copy import ROOT, ProjectCopy
from shared_results import leave_figures_empty
from workflow_modules import load

from headcount.base.errors import UserError
from headcount.base.files import read_json, sha256

EXPERIMENT = """
pairs: [synthetic_tiny.en-art]
runs: [baseline, {method: random, heads: 2}]
pruned: [{method: gates, lambda: [0, 0.3]}, {method: importance, lambda: 0.3}]
bpe: {merges: 150}
model: {preset: tiny, encoder_layers: 1, decoder_layers: 1, d_model: 48, d_ff: 64, heads: 3}
train: {updates: 60, batch_tokens: 400, peak_lr: 1e-2, warmup_updates: 20, dev_interval: 30,
  keep_updates: [60]}
gates: {updates: 20, warmup_updates: 5, dev_interval: 10}
decode: {beam: 2, max_length_factor: 1.5, max_length_extra: 5}
masking: {groups: 3, draws: 1, sentences: 10}
ablation: {runs: [baseline], sentences: 8, steps: 3, draws: 1, updates: [60]}
importance: {sentences: 50}
metrics:
  letters: {command: "python letter_overlap.py {translations} {references} {scores}", scale: 100}
"""
CHAPTERS = [f"{name}_by_letters" for name in ("general", "headmask", "voita_pruning", "michel")]
PAIR = "synthetic_tiny.en-art"


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@pytest.mark.slow
def test_all_tables_and_figures_of_scores_are_made_for_another_metric(tmp_path):
    copy = ProjectCopy(tmp_path / "copy")
    leave_figures_empty(copy)
    shutil.copy(ROOT / "tests/helpers/letter_overlap.py", copy.folder)
    (copy.folder / "config/own.yaml").write_text(EXPERIMENT)
    made = copy.shell(
        f"snakemake --cores 2 --config experiment=own -- {' '.join(CHAPTERS)} general"
    )
    results = copy.folder / "results/own"
    gold = lines(copy.folder / f"data/text/own/{PAIR}/test.tgt")
    expected = {}
    for run in sorted(results.glob(f"*/{PAIR}/*/seed1/translations/test.txt")):
        scores = [100 * overlap(*both) for both in zip(lines(run), gold, strict=True)]
        expected[run.parts[-4]] = scores
    known = {row["run"]: row for row in rows(results / "tables/bleu_letters.csv")}
    assert set(known) == set(expected) and len(known) == 5, made
    for run, scores in expected.items():
        assert float(known[run]["score"]) == pytest.approx(fmean(scores))
    both = {row["metric"] for row in rows(results / "tables/bleu.csv")}
    assert both == {"bleu", "chrf", "bleu_tok_lc", "letters"}
    assert read_json(results / "metrics.json")[PAIR]["baseline"]["test"]["letters"] > 0

    table = rows(results / "tables/voita_pruning_letters.csv")
    (pruned,) = (row for row in table if row["run"] == "gates-all-l0.3")
    delta = fmean(expected["gates-all-l0.3"]) - fmean(expected["gates-all-l0"])
    assert float(pruned["delta"]) == pytest.approx(delta) and pruned["metric"] == "letters"

    # The same search translates the first sentences again, without a mask.
    masking = results / f"masking/{PAIR}/baseline/seed1"
    for name, count in (("ablation", 8), ("headmask", 10), ("training_profile", 8)):
        row = next(
            row for row in rows(masking / f"{name}.letters.csv") if row["test_set"] == "test"
        )
        assert float(row["letters"]) == pytest.approx(fmean(expected["baseline"][:count]))
        assert float(row["delta"]) == 0 and "bleu" not in row
        ours, others = (rows(masking / f"{name}{end}.csv") for end in ("", ".letters"))
        assert [row["heads"] for row in ours] == [row["heads"] for row in others]
    curves = rows(results / "figures/michel_pruning_letters.csv")
    assert {row["metric"] for row in curves} == {"letters"}
    assert {row["source"] for row in curves} == {"ours"}
    untuned = rows(results / "tables/voita_comparison_letters.csv")
    assert {row["comparison"] for row in untuned} == {"tuned", "untuned"}


FILES = "pairs: [synthetic_tiny.en-art]\nmetrics: {mine: {files: 'own/{run}.{seed}.{test}.csv'}}\n"


def test_files_of_scores_must_exist_and_their_content_is_a_flag(tmp_path, monkeypatch):
    module = load(monkeypatch, "plan.plan")
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "config", tmp_path / "config")
    (tmp_path / "config/x.yaml").write_text(FILES)
    with pytest.raises(UserError, match="own/baseline.1.test.csv: expected a file of your own"):
        module.Plan("x")
    w = {"pair": PAIR, "run": "baseline", "seed": "1", "test": "test", "metric": "mine"}
    flags = ["--scores", "own/baseline.1.test.csv", "--sha256", "", "--scale", "1.0"]
    assert module.Plan("x", dry=True).metrics.flags(w) == flags
    path = tmp_path / "own/baseline.1.test.csv"
    path.parent.mkdir()
    path.write_text("sentence,score\n1,1\n")
    metrics = module.Plan("x").metrics
    assert metrics.flags(w)[3] == sha256(path) and metrics.masked("ablation") == []

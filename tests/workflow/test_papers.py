"""The papers' own experiments: their values, and that they are planned with nothing on disk."""

import re
import sys

import pytest
from project_copy import ROOT, ProjectCopy, link_project, planned
from workflow_modules import load

from headcount.base.settings.experiment import load_experiment
from headcount.base.settings.runs import labels
from headcount.training.optimiser import ADAM

CONFIG = ROOT / "config"
HEADMASK = ["headmask_ro", "headmask_tr", "headmask_vi", "headmask_zh"]
VOITA = ["voita_opensubtitles", "voita_wmt_de", "voita_wmt_fr", "voita_wmt_ru"]
MICHEL = ["michel_iwslt14", "michel_wmt"]
BERT = "michel_bert"


def settings(name: str):
    return load_experiment(name, CONFIG)


def test_the_page_lists_every_paper_with_its_numbers():
    page = (ROOT / "docs/reference/papers.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| (.+) \|$", page, re.M))
    assert list(rows) == sorted([*HEADMASK, *VOITA, *MICHEL, BERT])
    for name in [*HEADMASK, *VOITA, *MICHEL]:
        found = settings(name)
        counts = map(len, (found.seeds, found.runs, found.pruned))
        assert rows[name] == " | ".join([", ".join(found.pairs), *map(str, counts)])


@pytest.mark.parametrize("name", HEADMASK)
def test_headmask_has_the_values_of_the_paper(name):
    """144 heads, of which 18 and 36 are masked, in 8 groups; the rate is 512^-½ · 4000^-½."""
    found = settings(name)
    assert labels(found.runs) == ["baseline", "random-18", "random-36", "impt-18", "impt-36"]
    assert found.model.grid.size == 144 and found.masking.groups == 8
    train = found.train
    assert ADAM == {"betas": (0.9, 0.98), "eps": 1e-9}
    assert train.peak_lr == pytest.approx(512**-0.5 * 4000**-0.5, rel=1e-3)
    assert train.warmup_updates == 4000 and train.schedule == "inverse_sqrt"
    assert train.label_smoothing == found.model.dropout == 0.1 and train.clip_norm == 0


@pytest.mark.parametrize("name", VOITA)
def test_voita_has_the_values_of_the_paper(name):
    """Scale 4 and 16,000 updates of warm-up: 4 · 512^-½ · 16000^-½; 4 batches of 4,000 tokens."""
    found = settings(name)
    assert found.model.grid.size == 144 and found.model.d_ff == 2048
    for section in (found.train, found.gates):
        assert section.peak_lr == pytest.approx(4 * 512**-0.5 * 16000**-0.5, rel=3e-3)
        assert section.warmup_updates == 16000
    assert found.train.batch_tokens * found.train.accumulate == 16000
    assert found.bpe.merges == 32000 and not found.bpe.joint
    # Section 1 on 8 heads and one of the same size; its source had it of English to German.
    fewer = ["baseline-h4", "baseline-h2", "baseline-h1"] if name == "voita_wmt_de" else []
    assert labels(found.runs) == ["baseline", *fewer]
    for scope in ("enc_self", "all"):
        of_scope = [run for run in found.pruned if run.scope == scope]
        gates = [run.lambda_ for run in of_scope if run.method == "gates"]
        scratch = [run.lambda_ for run in of_scope if run.method == "scratch"]
        assert len(gates) == 13 and scratch == gates[1:]  # every pruned model has its scratch


def test_michel_has_the_values_of_the_paper():
    """18 layers of 16 heads; 18 of 8 with a feed-forward width of 1,024, pruned as it trains."""
    big, small = map(settings, reversed(MICHEL))
    assert big.model.grid.size == 288 and big.ablation.test_sets == ["newstest2013", "mtnt"]
    assert small.model.grid.size == 144 and small.model.d_ff == 1024
    assert small.train.keep_updates == small.ablation.updates
    assert small.ablation.updates[:10] == [1000 * epoch for epoch in range(1, 11)]


def test_bert_has_the_values_of_the_paper_and_of_devlin_et_al():
    """Table 6: 5,000 training pairs choose. Fine-tuning: batches of 32, 3 epochs, 2e-5."""
    found = settings(BERT)
    assert not found.pairs and found.classifiers.dev_pairs == 5000
    (model,) = found.classifiers.models.values()
    assert model.hub == "google-bert/bert-base-uncased" and len(model.revision) == 40
    tuning = found.fine_tuning
    assert (tuning.batch, tuning.epochs, tuning.peak_lr, tuning.warmup) == (32, 3, 2e-5, 0.1)


JOBS = {
    "headmask_zh": [15, 0, 0, 15],
    "voita_wmt_de": [4, 26, 24, 1],
}
"""5 runs, 3 seeds; 4 runs, and 2 scopes of 13 λ, 12 with scratch."""


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_a_paper_is_planned_with_nothing_on_disk(name, tmp_path):
    """As are all others: test_engines.py plans every experiment."""
    link_project(tmp_path)
    printed = ProjectCopy.of(tmp_path).shell(f"snakemake -n --config experiment={name}")
    note = "note: own/nist/train.zh: expected a file of your own, found none"
    assert name != "headmask_zh" or note in printed
    jobs = planned(printed)
    rules = ("train", "gates", "scratch", "masking")
    assert [jobs.get(rule, 0) for rule in rules] == JOBS[name] and jobs["report"] == 1


@pytest.mark.parametrize(
    ("line", "nothing"),
    [
        ("snakemake -n", True),
        ("snakemake -nq rules", True),
        ("snakemake --dry-run --cores 2", True),
        ("workflow/estimate.py headmask_zh", True),
        ("snakemake --cores 2 --nolock", False),
    ],
)
def test_only_commands_that_make_nothing_plan_without_text_of_ones_own(monkeypatch, line, nothing):
    monkeypatch.setattr(sys, "argv", line.split())
    assert load(monkeypatch, "console").makes_nothing() is nothing

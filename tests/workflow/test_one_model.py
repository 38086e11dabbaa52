"""One model for two pairs, from generated text through the rules to results of each pair."""

from pathlib import Path

import pandas as pd
import pytest
from project_copy import ProjectCopy, ran

PAIRS = ("synthetic_pairs.en-art", "synthetic_pairs.en-qaa")
OF_ALL = (
    *("train/{}/baseline/seed1/bleu.json", "train/{}/impt-3/seed1/translations/test.txt"),
    *("heads/{}/baseline/seed1/importance.csv", "heads/{}/baseline/seed1/alignment.csv"),
)
OF_FIRST = (
    "heads/{}/baseline/seed1/syntax.csv",
    *("prune/{}/gates-all-l0.3/seed1/bleu.json", "masking/{}/baseline/seed1/ablation.csv"),
)
JOBS = {"synthetic": 1, "text": 6, "shared_bpe": 1, "train": 2, "pair_run": 4, "translate": 5}
JOBS |= {"bleu": 3, "importance": 4, "alignment": 2, "links": 2, "trees": 1, "roles": 1}
JOBS |= {"gates": 1, "ablation": 1, "pair_transfer": 4, "pairs": 1}
TABLE = "results/tiny_pairs/tables/pair_transfer.csv"


@pytest.fixture
def copy(tmp_path) -> ProjectCopy:
    return ProjectCopy(tmp_path / "copy")


def targets(names: tuple[str, ...], *pairs: str) -> list[str]:
    return [f"results/tiny_pairs/{name.format(pair)}" for pair in pairs for name in names]


@pytest.mark.slow
def test_one_model_is_trained_and_measured_for_every_pair(copy):
    copy.call("python", "workflow/bridge.py", "plan", "tiny_pairs")
    asked = [*targets(OF_ALL, *PAIRS), *targets(OF_FIRST, PAIRS[0]), TABLE]
    experiment = ("--config", "experiment=tiny_pairs")
    code, output = copy.run(*asked, *experiment)
    assert code == 0 and ran(output) == JOBS, output
    results, bpe = (copy.folder / name / "tiny_pairs" for name in ("results", "data/bpe"))
    for run in ("baseline", "impt-3"):
        for name in ("model/weights.safetensors", "model/model.json", "run.json", "curves.csv"):
            one = same(results / "train", ("shared", *PAIRS), f"{run}/seed1/{name}")
            assert one, name
    for name in ("src.vocab", "tgt.vocab", "src.codes", "tgt.codes"):
        assert same(bpe, ("shared", *PAIRS), name)
    for pair, mark in zip(PAIRS, ("<2art>", "<2qaa>"), strict=True):
        assert (bpe / pair / "dev.src").read_text().startswith(f"{mark} ")
    # Both pairs have the same test sources. The mark alone decides the language.
    assert same(copy.folder / "data/text/tiny_pairs", PAIRS, "test.src")
    ours = [read(results, pair) for pair in PAIRS]
    assert ours[0] != ours[1] and all(len(lines.splitlines()) == 20 for lines in ours)
    table = pd.read_csv(copy.folder / TABLE)
    rankings = {*PAIRS, "mean", "random"}
    wanted = {(ranking, pair) for ranking in rankings for pair in PAIRS}
    assert wanted <= {*zip(table["pruned_on"], table["scored_on"], strict=True)}
    assert not same(results / "heads", PAIRS, "baseline/seed1/importance.csv")
    copy.change("config/tiny_pairs.yaml", "{beam: 1", "{engine: ctranslate2, beam: 1")
    code, output = copy.run(*targets(OF_ALL[:1], *PAIRS), *experiment)
    assert code == 0 and ran(output) == {"translate": 2, "bleu": 2}, output
    theirs = [read(results, pair) for pair in PAIRS]
    assert theirs[0] != theirs[1]
    for one, other in zip(ours, theirs, strict=True):  # near ties may be decided otherwise
        pairs = zip(one.splitlines(), other.splitlines(), strict=True)
        assert sum(a == b for a, b in pairs) >= 18


def same(folder: Path, places: tuple[str, ...], name: str) -> bool:
    """True if a file is the same in all these folders."""
    return len({(folder / place / name).read_bytes() for place in places}) == 1


def read(results: Path, pair: str) -> str:
    return (results / f"train/{pair}/baseline/seed1/translations/test.txt").read_text()

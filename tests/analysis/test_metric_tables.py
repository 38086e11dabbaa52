"""Tables of another metric than BLEU: their declarations, files and differences."""

import numpy as np
import pandas as pd
import pytest

from headcount.analysis.frames import Data, with_paper
from headcount.analysis.inputs import INPUTS
from headcount.analysis.outputs import chapters
from headcount.analysis.scores import with_baseline
from headcount.base.files import write_json

RUN = "train/a.en-xx/{}/seed1/metrics/COMET/test"
SCORES = {"baseline": [50.0, 70, 90], "random-2": [60.0, 70, 50]}


@pytest.fixture
def files(tmp_path):
    """Scores of three sentences by two runs."""
    found = {"scores": [], "translations": [], "references": [tmp_path / "text/a.en-xx/test.tgt"]}
    found["references"][0].parent.mkdir(parents=True)
    found["references"][0].write_text("x\n" * 3)
    for run, scores in SCORES.items():
        path = tmp_path / f"{RUN.format(run)}.csv"
        path.parent.mkdir(parents=True)
        path.write_text("sentence,score\n" + "".join(f"{n},{s}\n" for n, s in enumerate(scores, 1)))
        row = {"test_set": "test", "metric": "COMET", "score": sum(scores) / 3, "signature": "s"}
        write_json(path.with_suffix(".json"), {"scores": [row]})
        found["translations"].append(path)
        found["scores"].append(path.with_suffix(".json"))
    return found


def test_differences_are_means_of_the_same_resamples(files):
    table = Data(files, {}, "COMET").call(with_baseline)
    base, other = table.to_dict("records")
    assert (base["score"], other["score"], other["delta"]) == (70, 60, -10)
    drawn = np.random.default_rng(12345).choice(3, size=(1000, 3), replace=True)
    deltas = np.sort(np.array([10, 0, -40])[drawn].mean(axis=1))
    assert other["delta_low"] == pytest.approx(deltas[25])
    assert other["delta_high"] == pytest.approx(deltas[-26])
    assert other["test_signature"] == "COMET|mean|bs:1000|seed:12345"
    assert set(table["metric"]) == {"COMET"} and np.isnan(base["delta"])


def test_outputs_that_name_the_metric_are_made_for_every_metric():
    named = {item.name: item for chapter in chapters("COMET") for item in chapter.outputs}
    bleus = {item.name: item for chapter in chapters() for item in chapter.outputs}
    assert {name.removesuffix("_COMET") for name in named} < set(bleus)
    tables = {"bleu", "headmask_table2", "voita_comparison", "michel_areas", "headmask_fig5"}
    assert tables <= {name.removesuffix("_COMET") for name in named}
    others = {"curves", "headmask_table5", "michel_speed", "michel_classifier_pruning", "claims"}
    assert not others & {name.removesuffix("_COMET") for name in named}
    for item in named.values():
        text = item.model_dump_json()
        assert "{metric}" not in text and item.metric == "COMET" and "COMET" in item.title
        assert "bleu" not in item.csv.values() and not [n for n in item.notes if "paper" in n]
    assert bleus["headmask_table2"].title == "Table 2: BLEU of the first pair"
    assert bleus["michel_classifier_ablation"].metric == "accuracy"
    assert {chapter.rule for chapter in chapters("COMET")} >= {"headmask_by_COMET"}


def test_files_of_a_metric_stand_in_the_place_of_bleus():
    masked = INPUTS["ablation"].of("COMET")
    assert masked.names == ("ablation.COMET.csv",) and masked.metric == "COMET"
    assert "COMET" in masked.columns and "bleu" not in masked.columns
    assert INPUTS["curves"].of("COMET") == INPUTS["curves"]
    assert INPUTS["scores"].of("bleu").names == ("bleu.json",)
    assert INPUTS["classifier_ablation"].of("COMET").names == ()


def test_no_row_of_a_paper_stands_beside_another_metric():
    ours, paper = pd.DataFrame({"score": [1.0]}), pd.DataFrame({"score": [2.0]})
    assert with_paper(ours, paper)["source"].tolist() == ["ours", "paper"]
    assert with_paper(ours, paper, "COMET")["source"].tolist() == ["ours"]
    assert with_paper(ours[:0], paper, "COMET").columns.tolist() == ["score", "source"]

"""Scores of sentences from files and commands of other metrics, and differences by them."""

import json
import sys

import numpy as np
import pytest
from letter_overlap import COMMAND
from script_runner import run_script

from headcount.base.errors import UserError
from headcount.base.files import read_json, sha256, write_json
from headcount.base.settings.metrics import MetricSettings, read_metrics
from headcount.scoring.bleu import SEARCH
from headcount.scoring.segments import compare_by_metrics, read_segments, run_metric

LINES = ["one", "two", "three"]


def write(tmp_path, text):
    path = tmp_path / "scores"
    path.write_text(text)
    return path


def comet(lines, first=0.5):
    """A system as COMET writes it, whose scores are `first`, twice that, and so on."""
    return [{"mt": f"{line} ", "COMET": first * n} for n, line in enumerate(lines, start=1)]


@pytest.mark.parametrize("first", [0, 1])
def test_a_csv_has_sentences_in_any_order_from_0_or_1(tmp_path, first):
    rows = f'score,note,sentence\n.25,x,{first + 2}\n1,"a\n,b",{first}\n-3,y,{first + 1}\n'
    assert read_segments(write(tmp_path, rows), LINES) == [1, -3, 0.25]


def test_of_comets_systems_the_one_with_these_translations_counts(tmp_path):
    systems = {"b.txt": comet(["other", "two", "three"]), "a.txt": comet(LINES, 0.25)}
    assert read_segments(write(tmp_path, json.dumps(systems)), LINES) == [0.25, 0.5, 0.75]
    only = [{"score": 1}, {"score": 2}, {"score": 3}]  # without texts
    assert read_segments(write(tmp_path, json.dumps(only)), LINES) == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sentence,value\n1,1\n", "scores:1: .* none named score"),
        ("sentence,score\n1,1\n2,nan\n3,1\n", "scores:3: expected a finite score, found 'nan'"),
        ("sentence,score\n1,1\n2\n3,1\n", "scores:3: expected a finite score, found None"),
        ("sentence,score\n1,1\n1,2\n3,1\n", "scores:3: .* another sentence, found '1'"),
        ("sentence,score\n1,1\n3,2\n4,1\n", "scores: expected a score of sentence 2"),
        ("sentence,score\n2,1\n3,2\n4,1\n", "scores: expected a score of sentence 1"),
        ("sentence,score\n1,1\n2,2\n", "scores: expected 3 scores, .* found 2"),
        ("", "scores: expected CSV or JSON"),
        ("[1, 2]", "scores: expected lists of segments"),
        (json.dumps({"a": comet(["x", *LINES[1:]])}), "scores of these translations"),
        (json.dumps([{"mt": "one"}, *comet(LINES)[1:]]), "segment 1: expected a finite score"),
    ],
)
def test_faults_name_file_and_line(tmp_path, text, message):
    with pytest.raises(UserError, match=message):
        read_segments(write(tmp_path, text), LINES)


def test_a_command_scores_texts_and_its_faults_are_told():
    """`abc` has the pairs ab, bc. `abd` shares one of two: F1 is 2 · 1 ÷ 4."""
    texts = {"translations": ["abc", "abc"], "references": ["abd", "abc"]}
    assert run_metric(COMMAND, texts) == [0.5, 1]
    for command, message in (
        (
            f"{sys.executable} -c 'print(1); raise SystemExit(\"no GPU\")'",
            "failed with 1:\n1\nno GPU",
        ),
        (f"{sys.executable} -c pass", "expected it to write {scores}"),
        ("no-such-program {scores}", "cannot run no-such-program"),
    ):
        with pytest.raises(UserError, match=message):
            run_metric(command, texts)


def test_differences_have_the_resamples_of_bleu():
    targets = ["abc", "abcd\tx", "bcd"]
    systems = [["abc", "abcd", "x"], ["abd", "abcd", "bcd"]]
    metrics = {"letters": MetricSettings(command=COMMAND, scale=100)}
    same, other = compare_by_metrics(metrics, LINES, systems, targets, 40)
    assert same["letters"].delta == 0 and same["letters"].p_value == 1
    scores = np.array([[100, 100, 0], [50, 100, 100]])  # by hand
    assert other["letters"].score == pytest.approx(250 / 3)
    assert other["letters"].delta == pytest.approx(50 / 3)
    drawn = np.random.default_rng(12345).choice(3, size=(40, 3), replace=True)
    deltas = sorted(scores[1][drawn].mean(axis=1) - scores[0][drawn].mean(axis=1))
    assert (other["letters"].low, other["letters"].high) == pytest.approx((deltas[1], deltas[-2]))


@pytest.mark.parametrize(
    "metric",
    ['{"command": "x {scores}"}', '{"command": "x {translations} {scores} {other}"}',
     '{"command": "x {translations} {scores", "scale": 1}', '{"scale": 0}', "1"],
)  # fmt: skip
def test_settings_of_a_metric_are_checked(metric):
    with pytest.raises(UserError, match="--metrics"):
        read_metrics(f'{{"letters": {metric}}}')


def test_the_script_scores_a_run_from_a_file(tmp_path, capsys):
    texts = {"source": ["s"] * 3, "reference": ["r\tother"] * 3, "translations": LINES}
    files = {name: tmp_path / f"{name}.txt" for name in texts}
    for name, path in files.items():
        path.write_text("".join(f"{line}\n" for line in texts[name]))
    facts = dict.fromkeys(SEARCH, 1) | {"engine": "e", "sha256": sha256(files["translations"])}
    files |= {
        "facts": tmp_path / "facts.json",
        "scores": tmp_path / "scores",
        "out": tmp_path / "m.csv",
    }
    write_json(files["facts"], facts)
    write(tmp_path, json.dumps({"any": comet(LINES, 0.25)}))
    known = {
        "pair": "a.en-xx",
        "run": "baseline",
        "seed": 2,
        "test": "t",
        "metric": "COMET",
        **files,
    }
    flags = [word for name, value in known.items() for word in (f"--{name}", value)]
    assert run_script("metric", [*flags, "--scale", 100, "--sha256", sha256(files["scores"])]) == 0
    assert files["out"].read_text() == "sentence,score\n1,25.0\n2,50.0\n3,75.0\n"
    made = read_json(tmp_path / "m.json")
    (row,) = made["scores"]
    assert (made["seed"], row["metric"], row["test_set"], row["score"]) == (2, "COMET", "t", 50)
    assert row["signature"] == "COMET|mean|scale:100" and row["beam"] == 1
    assert str(files["scores"]) in made["provenance"]["inputs"]
    assert run_script("metric", [*flags, "--sha256", "0" * 64]) == 2
    assert run_script("metric", [*flags, "--command", COMMAND]) == 2
    assert "changed since the job was planned" in capsys.readouterr().err

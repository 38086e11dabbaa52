"""Score tables and curves, from small files made here."""

import json
import resource
from argparse import ArgumentParser

import pandas as pd
import pytest
from captions import check_caption
from matplotlib.figure import Figure
from written import write_figure

from headcount.base.errors import UserError
from headcount.base.files import NoRoom
from headcount.findings.chapters import chapters
from headcount.findings.figures import use_style
from headcount.findings.general.curves import draw_curves
from headcount.findings.general.scores import bleu, mean_scores, score_table, summary
from headcount.findings.make import add_chapter_flags
from headcount.findings.results import Results, curve_table
from headcount.findings.scores import Scores, describe_search

ORIGIN = {"command": ["x.py", "--a"], "code": {"digest": "0"}, "versions": {"python": "3"}}


def score_file(folder, seed, bleu, chrf):
    row = {"test_set": "test", "signature": "s", "beam": 4, "length_penalty": 0.6}
    row |= {"engine": "headcount"}
    row |= {"sentences": 2, "truncated": 0, "capped": 0}
    scores = [row | {"metric": "bleu", "score": bleu}, row | {"metric": "chrf", "score": chrf}]
    path = folder / f"bleu{seed}.json"
    path.write_text(
        json.dumps({"pair": "c.en-de", "run": "baseline", "seed": seed, "scores": scores})
    )
    return path


def test_scores_of_two_seeds(tmp_path):
    table = score_table([score_file(tmp_path, 1, 30.0, 50.0), score_file(tmp_path, 2, 32.0, 51.0)])
    assert list(table.columns[:7]) == [
        *("pair", "run", "seed", "test_set", "metric", "score", "signature")
    ]
    assert table["score"].tolist() == [30.0, 50.0, 32.0, 51.0]
    (row,) = summary(table).to_dict("records")
    assert (row["BLEU"], row["chrF"], row["seeds"]) == (31.0, 50.5, 2)
    # Two values one apart from their mean: variance (1 + 1) / (2 - 1) = 2.
    assert row["BLEU ± (seeds)"] == pytest.approx(2**0.5)
    found = mean_scores(table)
    assert found == {"c.en-de": {"baseline": {"test": {"bleu": 31.0, "chrf": 50.5}}}}


def test_a_run_of_one_seed_leaves_others_their_deviation(tmp_path):
    table = score_table([score_file(tmp_path, 1, 30.0, 50.0), score_file(tmp_path, 2, 32.0, 51.0)])
    alone = score_table([score_file(tmp_path, 3, 40.0, 60.0)]).assign(run="random-2")
    shown = summary(pd.concat([table, alone])).set_index("run")["BLEU ± (seeds)"]
    assert shown["baseline"] == pytest.approx(2**0.5) and shown["random-2"] == "–"


def test_one_seed_has_no_deviation(tmp_path):
    shown = summary(score_table([score_file(tmp_path, 1, 30.0, 50.0)]))
    assert list(shown.columns) == ["pair", "run", "test_set", "BLEU", "chrF", "seeds"]


def test_scores_that_name_no_engine_are_refused(tmp_path):
    path = score_file(tmp_path, 1, 30.0, 50.0)
    older = json.loads(path.read_text())
    del older["scores"][0]["engine"]
    path.write_text(json.dumps(older))
    for reader in (score_table, describe_search, lambda paths: Scores(paths, [], [])):
        with pytest.raises(UserError, match=r"expected the engine of every score.*run the exper"):
            reader([path])


def test_sentences_and_translations_that_were_cut_are_warned_of(tmp_path):
    files = [score_file(tmp_path, seed, 30.0, 50.0) for seed in (1, 2)]
    none = dict.fromkeys(("pruned_scores", "trained_runs", "masks", "curves"), [])
    assert not bleu(Results({"scores": files, **none}, {})).warnings
    files[1].write_text(files[1].read_text().replace('"capped": 0', '"capped": 1'))
    table = bleu(Results({"scores": files, **none}, {}))
    (warning,) = table.warnings
    assert warning == (
        "baseline, seed 2, test of c.en-de: sentences cut before they were translated: 0 of 2; "
        "translations at the limit on their length: 1."
    )
    check_caption("bleu", table.caption)


def test_warnings_of_the_baselines_scores_stand_in_the_report(tmp_path):
    path = score_file(tmp_path, 1, 0.1, 9.0)
    found = json.loads(path.read_text()) | {"warnings": ["test: BLEU is 0.10, under 1"]}
    none = dict.fromkeys(("pruned_scores", "trained_runs", "masks", "curves"), [])
    for run, expected in (("baseline", 1), ("random-2", 0)):
        path.write_text(json.dumps(found | {"run": run}))
        assert len(bleu(Results({"scores": [path], **none}, {})).warnings) == expected


def curve_file(folder, seed, losses):
    path = folder / "c.en-de" / "baseline" / f"seed{seed}" / "curves.csv"
    path.parent.mkdir(parents=True)
    rows = [f"{10 * i},0,{loss + 1},{loss},0.1,100,{60 * i}" for i, loss in enumerate(losses, 1)]
    head = "step,epoch,train_loss,dev_loss,lr,tokens_per_s,seconds"
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


def test_curves_are_drawn_from_all_runs(tmp_path):
    table = curve_table([curve_file(tmp_path, 1, [3.0, 2.0]), curve_file(tmp_path, 2, [4.0, 1.0])])
    assert table["seed"].tolist() == [1, 1, 2, 2]
    assert table["dev_loss"].tolist() == [3.0, 2.0, 4.0, 1.0]
    figure = draw_curves(table, {})
    by_update, by_minute, train, _ = figure.axes
    (line,) = by_update.get_lines()  # the mean of two seeds: of 3 and 4, of 2 and 1
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([10, 20], [3.5, 1.5])
    assert list(train.get_lines()[0].get_ydata()) == [4.5, 2.5]  # 1 above
    band = by_update.collections[0].get_paths()[0].get_extents()
    assert (band.ymin, band.ymax) == (1, 4)
    assert list(by_minute.get_lines()[0].get_xdata()) == [1.0, 2.0]  # 60 s, 120 s
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["baseline"]


def test_a_curve_ends_with_the_first_of_its_seeds(tmp_path):
    """The second seed is slower, and has patience for one validation less."""
    first = curve_table([curve_file(tmp_path, 1, [3.0, 2.0, 1.5])])
    second = curve_table([curve_file(tmp_path, 2, [4.0, 1.0])])
    second["seconds"] *= 5
    by_update, by_minute, *_ = draw_curves(pd.concat([first, second]), {}).axes
    assert list(by_update.get_lines()[0].get_xdata()) == [10, 20]
    assert list(by_minute.get_lines()[0].get_xdata()) == [3.0, 6.0]  # of 1 and 5, of 2 and 10


def test_every_run_is_drawn_in_a_way_of_its_own(tmp_path):
    table = curve_table([curve_file(tmp_path, 1, [3.0, 2.0])])
    runs = [table.assign(run=f"run{number}") for number in range(9)]  # the palette has seven
    dev = draw_curves(pd.concat(runs), {}).axes[::4]
    lines = [panel.get_lines() for panel in dev]
    assert [len(found) for found in lines] == [5, 5]  # the first run is in both
    assert [len({line.get_color() for line in found}) for found in lines] == [5, 5]
    ways = {(line.get_color(), line.get_marker()) for found in lines for line in found}
    assert len(ways) == 9


def test_a_curve_without_rows_is_refused(tmp_path):
    with pytest.raises(UserError, match="expected a row per validation"):
        curve_table([curve_file(tmp_path, 1, [])])


@pytest.mark.slow
def test_f51_figures_are_the_same_bytes_twice(tmp_path):
    use_style()
    table = curve_table([curve_file(tmp_path, 1, [3.0, 2.0])])
    for name in ("first", "second"):
        write_figure(draw_curves(table, {}), table, tmp_path / name / "f", "A caption", ORIGIN)
    for kind in ("pdf", "svg", "png", "csv", "json"):
        first, second = ((tmp_path / name / f"f.{kind}") for name in ("first", "second"))
        assert first.read_bytes() == second.read_bytes()


def test_f32_a_figure_that_does_not_fit_is_told_as_any_other_file(tmp_path):
    """A limit on file size stands in for the full disk; the PDF comes first."""
    use_style()
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limit[1]))
    try:
        with pytest.raises(NoRoom, match=r"it needs \d,\d{3} bytes") as told:
            write_figure(
                Figure(figsize=(1, 1)), pd.DataFrame(), tmp_path / "f", "A caption", ORIGIN
            )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert told.value.filename == str(tmp_path / "f.pdf") and not list(tmp_path.iterdir())


@pytest.mark.parametrize("chapter", chapters(), ids=lambda chapter: chapter.name)
def test_files_and_settings_of_a_chapter_share_no_flag(chapter):
    parser = ArgumentParser()
    add_chapter_flags(parser, chapter)  # argparse refuses a flag that is declared twice
    if "model" in chapter.sections:
        assert "--trained-runs" in parser.format_help()

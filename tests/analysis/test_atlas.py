"""The head atlas: its content from frames, and the page in a browser."""

import csv
import io
import json
import re
import shutil
from pathlib import Path

import named_runs
import pandas as pd
import pytest

from headcount.analysis.atlas.page import write_page
from headcount.analysis.frames import HEAD, RUN
from headcount.analysis.tables.general.atlas import content, histories, sentences
from headcount.base.settings.heads import ImportanceSettings
from headcount.base.settings.pretrained import ExperimentModel
from headcount.base.settings.training_runs import RunSettings

CHROMIUM = shutil.which("chromium")
browsing = pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: install it")
ORIGIN = {"command": ["x.py", "--a"], "code": {"digest": "0"}, "versions": {"python": "3"}}
GRID = {"enc_self": [2], "dec_self": [1], "dec_enc": [1]}
SIZES = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 6, "d_head": 3, "heads": GRID}
SETTINGS = {"model": ExperimentModel(preset="tiny", **SIZES), "importance": ImportanceSettings()}
BASE, PRUNED = ("a.x-y", "baseline", 1), ("a.x-y", "gates-enc_self-l0.2", 1)
HEADS = [("enc_self", 0, 0), ("enc_self", 0, 1), ("dec_self", 0, 0), ("dec_enc", 0, 0)]
RUNS = {"baseline": RunSettings(method="baseline")}
GATES = {PRUNED[1]: named_runs.RUNS[PRUNED[1]]}
CELL = '#maps [aria-label^="encoder self-attention layer 0 head {}, {}:"]'
LINE = {"source": ["a", "b"], "target": ["<s>", "c"]}
LINE |= {
    "weights": {"enc_self.0.1": [[1000, 0], [500, 500]], "dec_enc.0.0": [[900, 100], [0, 1000]]}
}
LINE |= {"links": [[0, 1]]}


def rows(model, values, **more):
    """A row for each head with a value: `values` maps numbers of heads to values."""
    return [
        dict(zip([*RUN, *HEAD], (*model, *HEADS[n]), strict=True)) | {"value": v} | more
        for n, v in values.items()
    ]


def planted(source=("a", "b")) -> dict:
    confidence = {"measure": "confidence"}
    measures = pd.DataFrame(
        rows(PRUNED, {0: 0.25}, **confidence)
        + rows(BASE, {0: 0.9, 1: 0.6, 2: 0.5}, **confidence)
        + rows(BASE, {0: 3.0, 1: 1.00004, 2: 2, 3: 6}, measure="importance")
        + rows(BASE, {0: -2.0}, measure="bleu_lost", note="95 %: -2 to 5")
        + rows(BASE, {0: 10.0}, measure="syntax", of="obj o→v", note="accuracy 55 %"),
        columns=[*RUN, *HEAD, "measure", "of", "value", "note"],
    )
    roles = pd.DataFrame(rows(BASE, {0: "-1, o→v", 1: None})).rename(columns={"value": "function"})
    history = pd.DataFrame(rows(BASE, {0: 0.5}, step=9, what="importance", of="training"))
    lines = {BASE: [LINE | {"source": list(source)}]}
    return content(measures, roles, history, lines, SETTINGS, RUNS)


def test_lists_have_an_entry_for_each_head_and_trained_models_come_first():
    made = planted()
    assert [head["name"] for head in made["heads"]] == [".".join(map(str, head)) for head in HEADS]
    base, pruned = made["models"]
    assert [(base["name"], base["id"]), pruned["name"]] == [
        ("baseline", "a.x-y/baseline/1"),
        PRUNED[1],
    ]
    assert base["values"]["importance"] == [3, 1, 2, 6] and pruned["roles"] is None
    assert pruned["values"] == {"confidence": [0.25, None, None, None]} and pruned["notes"] == {}
    assert base["notes"]["bleu_lost"] == ["95 %: -2 to 5", None, None, None]
    assert base["roles"]["function"] == ["-1, o→v", "", None, None]
    assert base["roles"]["class"] == ["several", "none", None, None]
    (history,) = base["histories"]
    assert history["steps"] == [9] and history["values"] == [[0.5], [None], [None], [None]]
    known = {measure["id"]: measure for measure in made["measures"]}
    assert list(known)[0] == "importance" and known["importance"]["unit"] == "nats per sentence"
    assert known["syntax/obj o→v"]["short"] == "obj o→v" and known["bleu_lost"]["around_zero"]


def test_a_run_with_more_heads_gives_them_places_and_seeds_and_pairs_make_names():
    runs = RUNS | {"baseline-h3": named_runs.RUNS["baseline-h3"]}
    model = ExperimentModel(preset="tiny", encoder_layers=1, decoder_layers=1, heads=2, d_model=6)
    keys = [("a.x-y", "baseline", 1), ("b.x-y", "baseline-h3", 2)]
    measures = [row for key in keys for row in rows(key, {0: 1.0}, measure="entropy")]
    measures = pd.DataFrame(measures).assign(of=None, note=None)
    none = pd.DataFrame(columns=[*RUN, "what", "of"])
    made = content(measures, none, none, {}, SETTINGS | {"model": model}, runs)
    names = ["a.x-y, baseline, seed 1", "b.x-y, baseline-h3, seed 2"]
    assert [item["name"] for item in made["models"]] == names and len(made["heads"]) == 9


def test_masks_gates_and_importance_over_updates():
    """The gates of the encoder alone, for the pruned model and for the model at its start."""
    masks = pd.DataFrame(rows(BASE, {0: 1}, step=10, masked=0.25))
    gates = pd.DataFrame(rows(PRUNED, {0: 1, 3: 1}, step=5, p_zero=0.75))
    heads = pd.DataFrame(rows(BASE, {1: 7.0}, update=3, statistic="importance"))
    made = histories(masks, gates, heads, GATES)
    shown = made[["run", "kind", "head", "step", "value", "of"]].to_records(index=False).tolist()
    assert shown == [
        ("baseline", "enc_self", 0, 10, 0.25, "training"),
        (PRUNED[1], "enc_self", 0, 5, 0.25, PRUNED[1]),
        ("baseline", "enc_self", 0, 5, 0.25, PRUNED[1]),
        ("baseline", "enc_self", 1, 3, 7.0, "training"),
    ]


def test_links_between_words_are_links_between_their_subwords(tmp_path):
    """`do g` is a word of two subwords and stands for `ko`, `the` for nothing."""
    sentence = {"source": ["the", "do@@", "g", "</s>"], "target": ["<s>", "ko", "."]}
    other = {"source": ["the", "</s>"], "target": ["<s>", "."]}
    for run in ("baseline", "random-1"):
        folder = tmp_path / "heads" / "p" / run / "seed1"
        folder.mkdir(parents=True)
        lines = [
            json.dumps(line | {"weights": {"dec_enc.0.0": [[0.25]]}}) for line in (sentence, other)
        ]
        (folder / "sentences.jsonl").write_text("\n".join(lines) + "\n")
    linked = {"source": [["the"], ["do@@", "g"]], "target": [["ko"], ["."]], "sure": [[1, 0]]}
    path = tmp_path / "bpe" / "p" / "links" / "dev.gold.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(linked | {"possible": [[1, 0], [1, 1]]}) + "\n")
    maps = [tmp_path / f"heads/p/{run}/seed1/sentences.jsonl" for run in ("baseline", "random-1")]
    made = sentences(maps[:1], maps[1:], [path])
    assert list(made) == [("p", "baseline", 1), ("p", "random-1", 1)]
    for first, second in made.values():
        # The query 0, which reads <s>, predicts ko, and the query 1 the stop.
        assert first["links"] == [(0, 1), (0, 2), (1, 1), (1, 2)] and "links" not in second
        assert first["weights"] == {"dec_enc.0.0": [[250]]}
    assert "links" not in sentences(maps, [], [])["p", "baseline", 1][0]


def test_f54_names_end_no_element_and_the_page_asks_no_network():
    made = write_page(planted(["</script><b>", "</s>"]), ORIGIN)
    assert "</script><b>" not in made and made.count("<script") == made.count("</script>") == 3
    data = json.loads(re.search(r'id="data">(.*?)</script>', made)[1])
    assert data["models"][0]["sentences"][0]["source"][0] == "</script><b>"
    assert not re.search(r"""(src|href)\s*=\s*["']?https?:""", made)
    assert "default-src 'none'" in made
    empty = write_page({"models": []}, ORIGIN)
    assert "<script" not in empty and "nothing to show" in empty


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("atlas") / "atlas.html"
    path.write_text(write_page(planted(), ORIGIN), encoding="utf-8")
    return path


@pytest.fixture
def visit(written):
    """Open the atlas at an address, in a window of some width; no request may leave the page."""
    api = pytest.importorskip("playwright.sync_api", reason="pip install -e '.[test]'")
    asked, faults = [], []
    with api.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])

        def opened(fragment="", width=1400):
            page = browser.new_page(viewport={"width": width, "height": 900})
            page.on("request", lambda request: asked.append(request.url.partition("#")[0]))
            page.on("pageerror", lambda fault: faults.append(str(fault)))
            page.goto(f"{written.as_uri()}{fragment}")
            return settle(page)

        yield opened
    own = (written.as_uri(), "blob:", "data:")
    assert faults == [] and all(address.startswith(own) for address in asked)


def settle(page):
    page.wait_for_selector(f'body[data-drawn="{page.evaluate("location.hash")}"]')
    return page


def saved(page, name: str) -> str:
    with page.expect_download() as download:
        page.get_by_role("button", name=name).click()
    return Path(download.value.path()).read_text()


@browsing
@pytest.mark.slow
def test_views_follow_the_choice_which_is_in_the_address_and_can_be_saved(visit):
    page = visit()
    # Without an address, the head with the largest importance.
    assert page.locator("#head-title").inner_text() == "encoder–decoder attention layer 0 head 0"
    page.locator(CELL.format(0, "baseline")).click(force=True)
    settle(page).locator(CELL.format(1, "baseline")).click(force=True, modifiers=["Shift"])
    settle(page)
    assert page.locator("#chosen button").all_inner_texts() == ["enc_self.0.1", "enc_self.0.0"]
    assert saved(page, "mask.txt") == "enc_self.0.1\nenc_self.0.0\n"
    points = list(csv.DictReader(io.StringIO(saved(page, "Save attention as CSV"))))
    assert [point["weight"] for point in points] == ["1", "0", "0.5", "0.5"]
    page.get_by_label("Head", exact=True).select_option("dec_enc.0.0")
    points = list(csv.DictReader(io.StringIO(saved(settle(page), "Save attention as CSV"))))
    assert [(p["from"], p["to"], p["link"]) for p in points] == [
        ("<s> › c", "a", "0"), ("<s> › c", "b", "1"),
        ("c › </s>", "a", "0"), ("c › </s>", "b", "0"),
    ]  # fmt: skip
    assert page.locator('#attention path[stroke="#D55E00"][stroke-opacity="1"]').count() == 1
    page.get_by_label("Head", exact=True).select_option("enc_self.0.1")
    settle(page).get_by_label("Colour of the maps").select_option("role")
    address = settle(page).evaluate("location.hash")
    again = visit(address)
    assert again.get_by_label("Colour of the maps").input_value() == "role"
    assert again.locator("#head-title").inner_text() == "encoder self-attention layer 0 head 1"
    again.get_by_role("combobox", name="Head", exact=True).focus()
    again.keyboard.press("ArrowDown")
    assert settle(again).locator("#head-title").inner_text().startswith("decoder self-attention")

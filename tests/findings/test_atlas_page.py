"""The atlas in a browser: choosing, linking, saving; that it asks no network; who can read it."""

import csv
import io
import json
import re
import shutil
from pathlib import Path

import pytest
from chapters import gather_results
from roles_files import BASE, MODEL, PAIR, SENTENCE, RolesCollection, collection

from headcount.base.settings.importance import ImportanceSettings
from headcount.base.settings.roles import RolesSettings
from headcount.findings.atlas.data import atlas_data
from headcount.findings.atlas.page import write_page

CHROMIUM = shutil.which("chromium")
playwright = pytest.importorskip(
    "playwright.sync_api", reason="no playwright here: pip install -e '.[test]' to test the atlas"
)
pytestmark = pytest.mark.slow  # a browser
browsing = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium here: install it to test the atlas"
)

SETTINGS = {"model": MODEL, "importance": ImportanceSettings(), "roles": RolesSettings()}
ORIGIN = {"command": ["x.py", "--a"], "code": {"digest": "0"}, "versions": {"python": "3"}}
CELL = '#maps [aria-label^="encoder self-attention layer {} head {}, {}:"]'
FIGURES = ("Heads by kind and layer", "Two measures", "Attention of the head")
BESIDE = f"#model={PAIR}/baseline/1&beside={PAIR}/random-1/1"
CONTRASTS = """() => {
  const shade = text => {
    const parts = text.match(/[\\d.]+/g).map(Number);
    const linear = parts.slice(0, 3).map(part => part / 255)
      .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return parts[3] === 0 ? null : 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const behind = element => element === null ? 1
    : shade(getComputedStyle(element).backgroundColor) ?? behind(element.parentElement);
  const texts = [...document.querySelectorAll("body *:not(svg *)")].filter(element =>
    [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim()));
  return texts.filter(element => element.checkVisibility()).map(element => {
    const both = [shade(getComputedStyle(element).color), behind(element)].sort((a, b) => b - a);
    return [element.textContent.trim().slice(0, 40), (both[0] + 0.05) / (both[1] + 0.05)];
  });
}"""


def page_of(made: RolesCollection) -> str:
    return write_page(atlas_data(gather_results("atlas", made.listed, SETTINGS)), ORIGIN)


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("atlas")
    path = folder / "atlas.html"
    path.write_text(page_of(collection(folder)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        yield started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@pytest.fixture
def visit(browser, written):
    """Opens the atlas at an address, in a window of some width; no request may leave the page."""
    asked, faults = [], []

    def opened(fragment="", width=1400):
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda fault: faults.append(str(fault)))
        page.goto(f"{written.as_uri()}{fragment}")
        settle(page)
        return page

    yield opened
    own = written.as_uri()
    assert {url.partition("#")[0] for url in asked if not url.startswith(("blob:", "data:"))} == {
        own
    }
    assert faults == []


def settle(page) -> None:
    """Wait until everything is drawn that the address asks for."""
    fragment = page.evaluate("location.hash")
    page.wait_for_selector(f'body[data-drawn="{fragment}"]')


def saved(page, name: str) -> bytes:
    with page.expect_download() as download:
        page.get_by_role("button", name=name).click()
    return Path(download.value.path()).read_bytes()


def rows(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode())))


def cells(page) -> dict[str, list[str]]:
    """The table of a head, by the words of each line."""
    lines = page.locator("#ranks tbody tr:has(td)").all()
    told = ([cell.inner_text().strip() for cell in line.locator("th, td").all()] for line in lines)
    return {name.partition(" ")[0]: found for name, *found in told}


def test_the_page_is_one_file_without_addresses_of_others(written):
    page = written.read_text()
    assert not re.search(r"""(src|href)\s*=\s*["']?https?:""", page)
    assert "default-src 'none'" in page and len(page) < 2e6
    assert page.count("<script") == 3 and "x.py --a" in page


def test_f54_names_end_no_element(tmp_path):
    made = RolesCollection(tmp_path)
    made.values("importance", BASE, {"importance": [1.0] * 6})
    made.sentences(BASE, [SENTENCE | {"source": ["</script><b>", "</s>"]}])
    page = page_of(made)
    assert "</script><b>" not in page and page.count("<script") == page.count("</script>") == 3
    data = re.search(r'id="data">(.*?)</script>', page)[1]
    assert json.loads(data)["models"][0]["sentences"][0]["source"][0] == "</script><b>"


def test_an_atlas_of_no_head_says_so(tmp_path):
    page = page_of(RolesCollection(tmp_path))
    assert "measures no heads of its own models" in page and "<script" not in page


@browsing
def test_what_is_chosen_is_shown_and_stands_in_the_address(visit):
    page = visit()
    # Without an address the head of the largest importance, 6.
    assert page.locator("#head-title").inner_text() == "encoder–decoder attention layer 0 head 0"
    page.locator(CELL.format(1, 1, "baseline")).click(force=True)
    settle(page)
    assert page.locator("#head-title").inner_text() == "encoder self-attention layer 1 head 1"
    # Importance 3, 1, 2, 4, 5, 6: third of all, first in its layer. 2.2 has no label.
    assert cells(page)["importance"] == ["4", "3 of 6", "1 of 2"]
    assert cells(page)["BLEU"] == ["3 95\u00a0%: −2 to 4", "2 of 4", "1 of 2"]
    assert page.locator("#role").inner_text() == "baseline: no label"
    page.get_by_label("Colour of the maps").select_option("role")
    settle(page)
    address = page.evaluate("location.hash")
    assert "heads=enc_self.1.1" in address and "colour=role" in address
    again = visit(address)  # the link, in another window
    assert again.locator("#head-title").inner_text() == "encoder self-attention layer 1 head 1"
    assert again.get_by_label("Colour of the maps").input_value() == "role"
    assert again.locator(CELL.format(0, 1, "baseline")).get_attribute("aria-label").endswith("rare")


@browsing
def test_heads_are_added_boxed_and_chosen_by_keyboard(visit):
    page = visit("#heads=enc_self.0.0&x=importance&y=confidence")
    page.locator(CELL.format(1, 1, "baseline")).click(force=True, modifiers=["Shift"])
    settle(page)
    assert page.locator("#chosen button").all_inner_texts() == ["enc_self.1.1", "enc_self.0.0"]
    page.locator(CELL.format(1, 1, "baseline")).click(force=True, modifiers=["Shift"])
    settle(page)
    assert page.locator("#chosen button").count() == 0
    # Confidence .9 .3 .6 .2 .5 .4 over importance 3 1 2 4 5 6: the box around the point at (2, .6)
    # and that at (3, .9), from left below the one to right above the other.
    low, high = (
        page.locator(f'#scatter [aria-label^="encoder self-attention layer {address}"]')
        for address in ("1 head 0", "0 head 0")
    )
    (left, below), (right, above) = ((box["x"], box["y"]) for box in map(bounds, (low, high)))
    page.mouse.move(left - 8, below + 20)
    page.mouse.down()
    page.mouse.move(right + 20, above - 4, steps=8)
    page.mouse.up()
    page.wait_for_selector("#chosen button")
    settle(page)
    assert page.locator("#chosen button").all_inner_texts() == ["enc_self.0.0", "enc_self.1.0"]
    page.get_by_role("combobox", name="Head", exact=True).focus()
    page.keyboard.press("ArrowDown")
    settle(page)
    assert page.locator("#head-title").inner_text() == "encoder self-attention layer 0 head 1"


def bounds(found) -> dict[str, float]:
    found.scroll_into_view_if_needed()
    return found.bounding_box()


@browsing
def test_two_models_stand_side_by_side(visit):
    page = visit(f"{BESIDE}&heads=enc_self.0.1&colour=confidence")
    for model in ("baseline", "random-1"):
        assert page.locator(CELL.format(0, 1, model)).count() == 1
    assert page.locator("#ranks thead tr").first.inner_text().split() == ["baseline", "random-1"]
    # Of the other model no head was masked alone.
    assert cells(page)["BLEU"] == ["4 95\u00a0%: −2 to 5", "1 of 4", "1 of 2", "–"]
    found = rows(saved(page, "Save attention as CSV"))
    assert [row["weight"] for row in found] == ["1", "0", "0.5", "0.5"] * 2
    assert (found[2]["model"], found[2]["from"], found[2]["to"]) == ("baseline", "b", "a")


@browsing
def test_attention_is_never_shown_on_the_words_of_another_model(browser, tmp_path):
    """The second model's source is cut otherwise: a model of another pair, or of other merges."""
    made = collection(tmp_path)
    (other,) = (path for path in made.listed["sentence_maps"] if "random-1" in str(path))
    other.write_text(f"{json.dumps(SENTENCE | {'source': ['a@@', 'b']})}\n")
    (tmp_path / "atlas.html").write_text(page_of(made), encoding="utf-8")
    page = browser.new_page()
    page.goto(f"{(tmp_path / 'atlas.html').as_uri()}{BESIDE}&heads=enc_self.0.1")
    settle(page)
    found = rows(saved(page, "Save attention as CSV"))
    assert [(row["model"], row["from"], row["to"]) for row in found] == [
        ("baseline", one, two) for one in "ab" for two in "ab"
    ]
    told = page.locator("#attention-caption").inner_text()
    assert told.endswith("random-1 reads other subwords here: show it by itself.")


@browsing
def test_drawings_and_numbers_are_saved(visit):
    page = visit("#colour=bleu_lost")
    (point, *_) = rows(saved(page, "Save scatter as CSV"))
    assert {"importance", "confidence"} <= point.keys() and not {"x", "y"} & point.keys()
    assert saved(page, "Save maps as PNG").startswith(b"\x89PNG")
    drawing = saved(page, "Save scatter as SVG").decode()
    assert drawing.startswith("<svg") and "confidence" in drawing
    values = [row["value"] for row in rows(saved(page, "Save maps as CSV"))]
    assert sorted(values) == ["", "", "-2", "1", "3", "4"]  # not measured, which is not 0
    every = rows(saved(page, "Save ranks as CSV of all heads"))
    (row,) = (
        row
        for row in every
        if (row["kind"], row["layer"], row["head"], row["measure"])
        == ("enc_self", "0", "1", "importance")
    )
    assert (row["value"], row["unit"]) == ("1", "nats per sentence")


@browsing
def test_an_address_of_what_is_not_there_is_told(visit):
    page = visit("#heads=enc_self.7.0&colour=masked")
    told = page.get_by_role("status").inner_text()
    assert told == "The address names what is not here: colour masked; head enc_self.7.0."
    assert page.get_by_label("Colour of the maps").input_value() == "importance"


@browsing
@pytest.mark.parametrize("width", [1400, 400])
def test_everyone_can_read_and_reach_it(visit, width):
    """Contrast of all text, names of all controls, nothing that runs out of the window."""
    page = visit(f"{BESIDE}&heads=enc_self.0.1,enc_self.0.0", width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    faint = [text for text, ratio in page.evaluate(CONTRASTS) if ratio < 4.5]
    assert faint == [] and len(page.evaluate(CONTRASTS)) > 40
    for control in page.locator("select, button, [tabindex]").all():
        assert re.search(r'^- \w+ "[^"]+"', control.aria_snapshot()), control.inner_text()
    drawn = page.locator("[role=graphics-document]").all()
    assert tuple(each.get_attribute("aria-label") for each in drawn) == FIGURES

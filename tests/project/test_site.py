"""The site of the documents: it builds strictly, all links lead somewhere, it asks no network."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from project_copy import ROOT, ProjectCopy

pytest.importorskip("mkdocs", reason="no mkdocs here: pip install -e '.[docs]' to build the site")
pytestmark = pytest.mark.slow


class Page(HTMLParser):
    """What a page links to, what it loads, and where a link into it may lead."""

    def __init__(self, text: str):
        """Reads a whole page."""
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors = {""}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """Sorts the addresses in one tag."""
        given = dict(attrs)
        self.anchors.add(given.get("id") or "")
        if tag == "a":
            self.links.append(given.get("href") or "")
        elif tag == "link" and given.get("rel") not in ("canonical", "next", "prev"):
            self.loaded.append(given["href"])
        self.loaded += [given[key] for key in ("src", "srcset", "data", "poster") if given.get(key)]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    said = ProjectCopy.of(ROOT).shell(f"mkdocs build --site-dir {folder}")
    assert "Documentation built" in said and not re.search(r"^(WARNING|ERROR)", said, re.MULTILINE)
    return folder


@pytest.fixture(scope="module")
def pages(site) -> dict[Path, Page]:
    found = {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    assert len(found) > 10
    return found


def test_what_a_page_loads_and_where_it_leads():
    page = Page('<a href="b.html#c"><img src="https://x/y.png"><link rel=icon href=d><p id=e>')
    assert (page.links, page.loaded) == (["b.html#c"], ["https://x/y.png", "d"])
    assert page.anchors == {"", "e"}


def test_every_page_of_the_documents_is_in_the_site(site):
    written = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    printed = ProjectCopy.of(ROOT).shell("python scripts/reference.py --list").split()
    written |= {Path(f"reference/{name}.md") for name in printed}
    assert len(printed) > 5 and {site / path.with_suffix(".html") for path in written} <= set(
        site.rglob("*.html")
    )


def test_every_link_leads_to_a_page_and_a_place_in_it(pages):
    broken = []
    for path, page in pages.items():
        if path.name == "404.html":  # its addresses begin at the host's root
            continue
        for link in page.links + page.loaded:
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            inside = target in pages and unquote(parts.fragment) not in pages[target].anchors
            if not parts.scheme and (not target.exists() or inside):
                broken.append(f"{path.name}: {link}")
    assert broken == []


def test_no_page_and_no_style_loads_anything_from_elsewhere(site, pages):
    loaded = {link for page in pages.values() for link in page.loaded}
    assert len(loaded) > 5
    styles = [path.read_text(encoding="utf-8") for path in site.rglob("*.css")]
    loaded |= {link for style in styles for link in re.findall(r"url\([\"']?([^)\"']+)", style)}
    assert [link for link in loaded if re.match(r"(https?:)?//", link)] == []

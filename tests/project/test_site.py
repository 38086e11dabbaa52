"""The site of the documents builds strictly, with all links and anchors, and asks no network."""

import re
from pathlib import Path

import pytest
from project_copy import ROOT, ProjectCopy

pytest.importorskip("mkdocs", reason="no mkdocs here: pip install -e '.[docs]' to build the site")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site; mkdocs.yml makes a fault of every link that leads nowhere."""
    folder = tmp_path_factory.mktemp("site")
    printed = ProjectCopy.of(ROOT).shell(f"mkdocs build --site-dir {folder}")
    assert "Documentation built" in printed
    assert not re.search(r"^(WARNING|ERROR)", printed, re.MULTILINE)
    return folder


def test_every_page_of_the_documents_is_in_the_site(site):
    pages = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    made = ProjectCopy.of(ROOT).shell("python scripts/reference.py --list").split()
    pages |= {Path(f"reference/{name}.md") for name in made}
    assert len(made) == 5 and {site / page.with_suffix(".html") for page in pages} <= set(
        site.rglob("*.html")
    )


def test_no_page_and_no_style_loads_anything_from_elsewhere(site):
    loads = r"<(?:script|img|iframe|source|link(?![^>]*rel=\"?(?:canonical|next|prev)))\b[^>]*?"
    loads += r"(?:src|href|srcset)=[\"']?([^\"' >]+)"
    loaded = [link for page in site.rglob("*.html") for link in re.findall(loads, page.read_text())]
    assert len(loaded) > 100
    for style in site.rglob("*.css"):
        loaded += re.findall(r"url\([\"']?([^)\"']+)", style.read_text(encoding="utf-8"))
    assert [link for link in loaded if re.match(r"(https?:)?//", link)] == []

"""Fingerprints of code: what computes counts, how it is written does not."""

import pytest

from headcount.base import fingerprint
from headcount.base.errors import EnvironmentFault

SCRIPT = "scripts/run.py"
FILES = {
    SCRIPT: "from pack import first\n\nfirst.go()\n",
    "src/pack/__init__.py": "",
    "src/pack/first.py": (
        '"""A module."""\n\n\ndef go():\n    """Go."""\n'
        "    from pack.deep import second  # inside a function\n    return second.VALUE + 1\n"
    ),
    "src/pack/deep/__init__.py": "",
    "src/pack/deep/second.py": "import math\n\nVALUE = 3 + math.pi\n",
    "src/pack/deep/second.yaml": "rules: 1\n",
    "src/pack/unused.py": "VALUE = 1\n",
}


def forget():
    """Look at the files again: within one run of the workflow they are read once."""
    for cached in (fingerprint.code, fingerprint._parsed, fingerprint._files_of):
        cached.cache_clear()


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A small project; `change` rewrites a file, `code` fingerprints the script anew."""
    monkeypatch.setattr(fingerprint, "_ROOT", tmp_path)
    monkeypatch.setattr(fingerprint, "_SOURCE", tmp_path / "src")
    monkeypatch.setattr(fingerprint, "_PACKAGES", {"pack"})
    monkeypatch.setattr(fingerprint.sys, "dont_write_bytecode", False)

    class Project:
        def change(self, name, text):
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

        def code(self):
            forget()
            return fingerprint.code(SCRIPT)

    built = Project()
    for name, text in FILES.items():
        built.change(name, text)
    yield built
    forget()


def test_imports_are_followed_and_others_left_out(project):
    assert list(project.code()) == [
        "scripts/run.py",
        "src/pack/__init__.py",
        "src/pack/deep/__init__.py",
        "src/pack/deep/second.py",
        "src/pack/deep/second.yaml",
        "src/pack/first.py",
    ]


FIRST = "src/pack/first.py"


@pytest.mark.parametrize(
    "text",
    [
        FILES[FIRST].replace("# inside a function", "# of no consequence"),
        FILES[FIRST].replace('"""Go."""', '"""Go,\n\n    and come back.\n    """'),
        FILES[FIRST].replace('    """Go."""\n', ""),
        FILES[FIRST].replace('"""A module."""', "# no docstring"),
        FILES[FIRST].replace("    return", '    """What an attribute means."""\n    return'),
        FILES[FIRST].replace("second.VALUE + 1", "(\n        second.VALUE\n        + 0x1\n    )"),
    ],
)
def test_comments_docstrings_and_layout_do_not_count(project, text):
    assert text != FILES[FIRST]
    before = project.code()
    project.change(FIRST, text)
    assert project.code() == before


@pytest.mark.parametrize(
    "text",
    [
        FILES[FIRST].replace("+ 1", "+ 2"),
        FILES[FIRST].replace("+ 1", "+ 1.0"),
        FILES[FIRST].replace("+ 1", "+ True"),
        FILES[FIRST].replace("+ 1", "- 1"),
        FILES[FIRST].replace("def go():", "def go(n=None):"),
        FILES[FIRST] + '\nNAME = """A module."""\n',
    ],
)
def test_what_computes_counts(project, text):
    before = project.code()
    project.change(FIRST, text)
    after = project.code()
    assert [name for name in before if before[name] != after[name]] == [FIRST]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("src/pack/deep/second.py", "import math\n\nVALUE = 4 + math.pi\n"),
        ("src/pack/deep/second.yaml", "rules: 2\n"),
        ("src/pack/first.html", "<p>\n"),  # beside a module of its name
    ],
)
def test_a_module_far_away_and_data_of_a_module_count(project, name, text):
    before = project.code()
    project.change(name, text)
    after = project.code()
    assert {name for name in after if before.get(name) != after[name]} == {name}


def test_packages_beside_an_installed_one_do_not_count(project):
    project.change("src/math/__init__.py", "from . import relative\n")
    assert "src/math/__init__.py" not in project.code()


def test_a_circle_of_imports_ends(project):
    project.change("src/pack/deep/second.py", "from pack import first\n\nVALUE = 1\n")
    assert len(project.code()) == 6


@pytest.mark.parametrize("line", ["from . import second", "from .second import VALUE"])
def test_a_relative_import_is_refused_with_its_line(project, line):
    project.change("src/pack/first.py", f"X = 1\n\n{line}\n")
    with pytest.raises(ValueError, match=r"first\.py:3: "):
        project.code()


def test_digest_ignores_the_order_of_keys_only():
    one = fingerprint.digest({"a": 1, "b": [1, 2]})
    assert len(one) == 12
    assert fingerprint.digest({"b": [1, 2], "a": 1}) == one
    assert fingerprint.digest({"b": [2, 1], "a": 1}) != one
    assert fingerprint.digest({"b": [1, 2], "a": 1.5}) != one


def test_training_follows_its_own_code():
    fingerprint.code.cache_clear()
    found = fingerprint.code("scripts/train.py")
    for name in ("model/attention", "training/optimiser", "data/batches", "base/addresses"):
        assert f"src/headcount/{name}.py" in found
    assert "src/headcount_hf/pretrained/weights.py" in found  # the package beside it
    assert "src/headcount/search/beam_search.py" not in found  # training never translates


def test_what_was_found_is_kept_for_the_very_same_text(project, tmp_path, monkeypatch):
    first = project.code()
    kept = tmp_path / "src/pack/__pycache__/first.fingerprint.json"
    assert kept.is_file()
    with monkeypatch.context() as context:  # nothing is parsed again
        context.setattr(fingerprint.ast, "parse", None)
        assert project.code() == first
    project.change(FIRST, FILES[FIRST].replace("+ 1", "+ 2"))
    assert project.code()[FIRST] != first[FIRST]
    project.change(FIRST, FILES[FIRST])
    kept.write_text("{")  # damaged
    assert project.code() == first


def test_another_way_of_looking_forgets_what_was_kept(project, monkeypatch):
    first = project.code()
    monkeypatch.setattr(fingerprint, "_OWN_TEXT", "another module")
    monkeypatch.setattr(fingerprint, "_canonical", lambda tree: "all the same")
    assert project.code()[FIRST] != first[FIRST]


def test_the_package_of_another_checkout_is_refused(tmp_path):
    """Not where no package lies beside, nor for a link to the one that is imported."""
    imported, other = fingerprint._SOURCE / "headcount", tmp_path / "other"
    (other / "src" / "headcount").mkdir(parents=True)
    with pytest.raises(EnvironmentFault, match=f"{other}.*{imported}.*PYTHONPATH"):
        fingerprint.require_own_package(other)
    (tmp_path / "src").symlink_to(fingerprint._SOURCE)
    for root in (tmp_path, tmp_path / "empty", imported.parents[1]):
        fingerprint.require_own_package(root)

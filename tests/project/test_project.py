"""What the project promises to newcomers, held against its files."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from printed_commands import documents
from workflow_modules import load

from headcount.analysis.outputs import chapters
from headcount.base import fingerprint

ROOT = Path(__file__).resolve().parents[2]
PACKAGE, BESIDE = (ROOT / "src" / name for name in ("headcount", "headcount_hf"))
OVERVIEW = ROOT / "docs/reference/code.md"


def code_blocks() -> list[str]:
    return re.findall(r"^```\w*\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)


def test_f56_the_readme_begins_with_two_lines_that_install_from_the_locks():
    """All but torch by hash, and the project without fetching what builds it."""
    locked = "pip install --require-hashes -r locks/run.txt"
    run, test = (block.rstrip().split(" && ") for block in code_blocks()[:2])
    assert run[0] == test[0] == "python3 -m venv .venv"
    assert run[2:4] == [
        locked,
        "pip install --no-build-isolation -c locks/versions.txt -e '.[workflow]'",
    ]
    assert test[2:4] == [
        f"{locked} -r locks/test.txt",
        "pip install --no-build-isolation -c locks/versions.txt -e '.[test]'",
    ]
    assert (run[-1], test[-1]) == ("snakemake --cores all", "python -m pytest -n 2 --dist loadfile")


def test_one_version_everywhere():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    first = re.search(r"^## ([0-9.]+) \(([0-9-]+)\)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert first.groups() == (version, str(cited["date-released"])) == (cited["version"], first[2])


def test_git_follows_no_result():
    """Or a run would change the clone; a team that shares through DVC adds its own numbers."""
    command = ["git", "ls-files", "results", "data"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    assert found.split() == ["data/README.md", "results/README.md"]


def test_every_corpus_has_a_line_on_its_licence():
    corpora = yaml.safe_load((ROOT / "config/corpora.yaml").read_text())
    text = (ROOT / "docs/reference/data.md").read_text().partition("\n## Licences\n")[2]
    named = " ".join(line.split("|")[1] for line in text.splitlines() if line.startswith("| "))
    assert corpora and {name for name in corpora if f"`{name}`" not in named} == set()


@pytest.fixture
def reference(monkeypatch):
    return load(monkeypatch, "pages")


def test_links_between_documents_lead_somewhere(reference):
    """The site has pages that Git does not have: only documents in docs/ may link to those."""
    made = {ROOT / f"docs/reference/{name}.md" for name in reference.PAGES}
    for page in documents(ROOT):
        known = made if page.is_relative_to(ROOT / "docs") else ()
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            path = (page.parent / target).resolve()
            assert path.exists() or path in known, f"{page}: {target}"


def test_the_overview_names_every_room_and_only_files_that_exist():
    rows = re.findall(r"^\| `([^`]+)` \|[^|]*\|([^|]*)\|$", OVERVIEW.read_text(), re.M)
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    rooms |= {f"headcount_hf/{path.parent.name}" for path in BESIDE.glob("*/__init__.py")}
    assert rooms <= {room for room, _ in rows} and len(rooms) > 10
    for room, files in rows:
        folder = (PACKAGE.parent if room.startswith("headcount_hf") else PACKAGE) / room
        assert all((folder / name).exists() for name in re.findall(r"`([^`]+)`", files))


@pytest.mark.parametrize("package", [PACKAGE, BESIDE], ids=lambda package: package.name)
def test_every_module_imports_from_rooms_to_its_left(package):
    first = {"headcount": "base │", "headcount_hf": "pretrained →"}[package.name]
    order = re.split(" → | │ ", re.search(rf"^{first} .+$", OVERVIEW.read_text(), re.M)[0])
    for path in package.glob("*/**/*.py"):
        own = path.relative_to(package).parts[0]
        for room in re.findall(rf"^from {package.name}\.(\w+)", path.read_text(), re.M):
            assert order.index(room) <= order.index(own), f"{path} imports from {room}"


def test_the_core_does_without_the_package_beside_it():
    """But for names that are looked up when somebody asks for them."""
    named = {path for path in PACKAGE.rglob("*.py") if "headcount_hf." in path.read_text()}
    assert named == {PACKAGE / "__init__.py", PACKAGE / "library/model.py"}
    code = "import sys, headcount.library.model; sys.exit('headcount_hf' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_tables_figures_and_data_steps_do_without_torch():
    for name in ("download", "synthetic", "text", "bpe", "bleu", "report"):
        assert not imports_torch(name)
    for chapter in chapters():
        assert not imports_torch("analysis", *chapter.modules)
    for name in ("trees", "attention_map"):
        assert not imports_torch(name)
    assert imports_torch("train")  # or the check could not fail


def imports_torch(script: str, *modules: str) -> bool:
    files = [ROOT / name for name in fingerprint.code(f"scripts/{script}.py", *modules)]
    return any(re.search(r"^(import|from) torch\b", file.read_text(), re.M) for file in files)

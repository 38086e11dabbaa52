"""What the project promises to newcomers, held against its files."""

import re
import shutil
import subprocess
import sys
import tomllib
from functools import partial
from pathlib import Path

import pytest
import yaml
from printed_commands import documents
from script_runner import run_script
from workflow_modules import load

from headcount.analysis.inputs import INPUTS
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
    assert run[2:4] == [locked, "pip install --no-build-isolation -e ."]
    assert test[2:4] == [
        f"{locked} -r locks/test.txt",
        "pip install --no-build-isolation -e '.[test]'",
    ]
    assert (run[-1], test[-1]) == (
        "snakemake --cores all",
        "python -m pytest -n 2 --dist loadfile",
    )


def test_the_public_host_installs_tests_and_builds_as_the_readme_does():
    checks = yaml.safe_load((ROOT / ".github" / "workflows" / "checks.yml").read_text())
    jobs = {
        name: [step["run"] for step in job["steps"] if "run" in step]
        for name, job in checks["jobs"].items()
    }
    for name in ("fast-tests", "tiny"):
        assert jobs[name][0].startswith("pip install --require-hashes -r locks/run.txt")
    assert jobs["fast-tests"][-1].startswith("python -m pytest -m 'not slow'")
    assert jobs["tiny"][-1] == "snakemake --cores 2 --config experiment=tiny"
    assert "python .ci/locks.py check" in jobs["lint"]
    assert jobs["container"][0] == "docker build -f Containerfile -t headcount ."
    weekly = (ROOT / ".github" / "workflows" / "dependencies.yml").read_text()
    for name in ("run", "test", "extras", "torch"):
        assert (ROOT / "locks" / f"{name}.txt").exists() and f"-r locks/{name}.txt" in weekly
    assert "python .ci/locks.py age" in weekly and "cron:" in weekly


def test_one_version_everywhere():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == version
    first = re.search(r"^## \[([0-9.]+)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert first[1] == version


def test_versions_stand_in_pyproject_and_nowhere_else():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    named = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    extras = project["project"]["optional-dependencies"]
    named += [entry for extra in extras.values() for entry in extra]
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9.]+(post\d+)?", entry) for entry in named)
    peers = (ROOT / "benchmarks" / "requirements.txt").read_text().splitlines()
    for extra in ("export", "bert"):
        assert extras[extra][0] in peers and extras[extra][0] in extras["test"]
    conda = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    assert conda == ["python=3.11", "pip", {"pip": ["-e ."]}]


def test_git_follows_no_result():
    """Or a run would change the clone; a team that shares through DVC adds its own numbers."""
    command = ["git", "ls-files", "results", "data"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    assert found.split() == ["data/README.md", "results/README.md"]


def test_pip_alone_installs_and_the_rules_and_the_catalogue_say_so():
    catalogue = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text())
    assert catalogue["usage"]["software-stack-deployment"] == {"conda": False}
    for file in [ROOT / "workflow" / "Snakefile", *(ROOT / "workflow" / "rules").glob("*.smk")]:
        assert not re.search(r"^ *(conda|container|envmodules):", file.read_text(), re.MULTILINE)


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


def test_no_two_modules_are_imported_by_one_name():
    """Those outside packages: the second one would get the first one's file."""
    folders = (ROOT / "workflow", ROOT / "tests" / "helpers")
    named = [path.stem for folder in folders for path in folder.iterdir() if _is_module(path)]
    assert "engines" in named and "waits" in named  # of each folder one
    assert sorted(set(named)) == sorted(named)
    for folder in {path.parent for path in (ROOT / "workflow").rglob("*.py")}:
        assert len(list(folder.glob("*.py"))) <= 16


def _is_module(path: Path) -> bool:
    return path.suffix == ".py" or any(path.glob("*.py"))


def test_the_reference_has_every_output_rule_and_kind_of_files(reference):
    pages = {name: make() for name, make in reference.PAGES.items()}
    for output in (output for chapter in chapters() for output in chapter.outputs):
        assert f"| `{output.name}` | {output.form} | {output.title} |" in pages["outputs"]
    written = "".join(file.read_text() for file in (ROOT / "workflow/rules").glob("*.smk"))
    named = re.findall(r"^rule (\w+):|^use rule \w+ as (\w+) with:", written, re.M)
    named += [(chapter.name, "") for chapter in chapters()]
    assert len(named) > 20
    assert all(f"| `{one or other}` |" in pages["rules"] for one, other in named)
    assert all(f"| `{kind}` |" in pages["files"] for kind in INPUTS)


def test_one_command_prints_a_page_or_all_names(reference, capsys):
    assert run_script("reference", ["--list"]) == 0
    assert capsys.readouterr().out.split() == list(reference.PAGES)
    assert run_script("reference", ["outputs"]) == 0
    assert capsys.readouterr().out == reference.outputs_page()
    assert run_script("reference", []) == 2


@pytest.fixture
def copy(monkeypatch, tmp_path):
    """A copy of the sources, whose fingerprints are taken in place of our own."""
    compiled = shutil.ignore_patterns("*.pyc")  # what was found in the same text before may come
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=compiled)
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    monkeypatch.setattr(fingerprint, "_ROOT", tmp_path)
    monkeypatch.setattr(fingerprint, "_SOURCE", tmp_path / "src")
    monkeypatch.setattr(fingerprint.sys, "dont_write_bytecode", False)  # so that it keeps them
    yield tmp_path / "src"
    forget_fingerprints()


def test_a_chapter_is_made_again_when_its_declarations_or_functions_change(copy):
    """No import shows the modules of a chapter, which declarations name."""
    before = codes()
    for chapter in chapters():
        for module in chapter.modules:
            path = copy / f"{module.replace('.', '/')}.yaml"
            text = path.read_text()
            path.write_text(f"{text}# A remark.\n")
            changed = codes()
            path.write_text(text)
            readers = [other.name for other in chapters() if module in other.modules]
            assert [c for c in changed if changed[c] != before[c]] == readers, module
            assert f"src/{module.replace('.', '/')}.py" in before[chapter.name]


def codes() -> dict[str, dict[str, str]]:
    """Fingerprints of the code that makes each chapter, found anew."""
    forget_fingerprints()
    code = partial(fingerprint.code, "scripts/analysis.py")
    return {chapter.name: code(*chapter.modules) for chapter in chapters()}


def forget_fingerprints() -> None:
    for kept in (fingerprint.code, fingerprint._files_of, fingerprint._parsed):
        kept.cache_clear()


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

"""Every command that README and docs print is run as printed, or shown here with why it is not."""

import argparse
import itertools
import json
import re
import runpy
import shlex
import shutil
import sys
import tomllib

import pytest
from dvc.cli.parser import get_main_parser
from printed_commands import commands_of, printed_commands
from project_copy import ROOT, ProjectCopy
from shared_results import own_copy
from small_bert import pairs, save_bert
from snakemake.cli import get_argument_parser
from test_tutorial import STEPS

from headcount.data.word_links.silver import COMMAND

MINE, TABLES = "results/mine/multinli/bert/seed1", "results/mine/tables"
TABLE = "results/quickstart/tables/silver_agreement"
SAME = "translations are the same"
PRINTED = printed_commands(ROOT)
REMOVE = "python scripts/remove.py --model results/quickstart/train/synthetic_near.en-art/"
REMOVE += "baseline/seed1/model --importance results"
RUN = [
    ("snakemake -n", "Nothing to be done", None),
    ("python workflow/estimate.py", "at a time (coarse)", None),
    ("snakemake -n --config experiment=headmask_ro", "wmt16_ro_en.ro-en", None),
    ("snakemake --cores all raw", "Nothing to be done", None),
    ("snakemake --cores all --until train", "Nothing to be done", None),
    ("dvc status", "up to date", None),
    ("dvc repro", "up to date", None),
    ("dvc repro -f -s plan@quickstart", "Running stage 'plan@quickstart'", None),
    ("dvc push", "up to date", None),
    ("DVC_SITE_CACHE_DIR=$(mktemp -d) dvc push", "up to date", None),
    ("dvc pull", "up to date", None),
    ("dvc checkout", "", None),
    ("snakemake --cores all results/quickstart/tables/bleu.csv", "Nothing to be done", None),
    ("dvc checkout --force results/quickstart/tables/bleu.csv", "", None),
    ("dvc checkout --force", "", None),
    ("snakemake --touch --forceall --cores 1", "done    report", None),
    ("dvc metrics show", "synthetic_near.en-art.baseline.test.bleu", None),
    ("dvc plots show", "index.html", "dvc_plots/index.html"),
    ("dvc data status --granular --not-in-remote", "No changes.", None),
    ("cp -an --parents .snakemake", "", "../lab/results/quickstart/report.html"),
    ("python scripts/train.py --help", "--dev-interval", None),
    ("python scripts/reference.py settings", "| `beam` |", None),
    ("python scripts/corpora.py", "to fetch:", None),
    ("python scripts/corpora.py --experiment multi30k", "to fetch:", None),
    ("python scripts/report.py --results results/quickstart --out page.html", "", "page.html"),
    ("python scripts/reference.py files", "| `curves` |", None),
    ("python scripts/reference.py --list", "claims_list", None),
    ("snakemake --cores all headmask", "Nothing to be done", None),
    ("snakemake --report report.zip", "", "report.zip"),
    ("python scripts/analysis.py claims --outputs", "", "claims/tables/claims.md"),
    ("python scripts/attention.py", "", "map.json"),
    ("python scripts/attention_map.py", "", "map.svg"),
    ("python scripts/export.py --model results/quickstart/prune", SAME, "exported/model.bin"),
    ("python scripts/export.py --model results/quickstart/train", "", "aligned/model.bin"),
    ("python scripts/export.py --to huggingface --model res", SAME, "as_pegasus/model.safetensors"),
    (
        "python scripts/export.py --to headcount --model res",
        "none of them",
        "translator/model.json",
    ),
    ("python scripts/classifier_ablation.py", "", f"{MINE}/classifier_ablation.csv"),
    ("python scripts/analysis.py michel_cl", "", f"{TABLES}/michel_classifier_ablation.md"),
    ("python scripts/synthetic.py", "", "data/raw/synthetic/manifest.json"),
    (REMOVE, "", "smaller/model/weights.safetensors"),
    ("python scripts/importance.py --units", "", "units.csv"),
    ("python scripts/remove.py --scope ffn", "", "narrow/model/weights.safetensors"),
    ("python scripts/translate.py --model smaller/model", "", "smaller/test.txt"),
    ("python -m sacrebleu", "BLEU", None),
    ("snakemake --cores all results/quickstart/tables/al", "Nothing to be done", None),
    ("cat results/quickstart/heads", '"best"', None),
    ("python scripts/links.py", "", "own/test.jsonl"),
    ("python scripts/alignment.py", "", "own/aligned/alignment.json"),
    ("snakemake --cores all silver_agreement", "done    silver_agreement", f"{TABLE}.json"),
    ("cat results/quickstart/tables/silver", "best by silver", None),
    ("rm -r results/quickstart/state", "", None),
    ("dvc remote modify shared url ssh://host/path", "", None),
]
"""In this order, where quickstart is built: beginning of a command, words, a file that it makes."""


def printed(beginning: str) -> str:
    """Return the command of the documents, or the only one that begins so."""
    if beginning in PRINTED:
        return beginning
    (command,) = (command for command in PRINTED if command.startswith(beginning))
    return command


def matching(pattern: str) -> list[str]:
    """Return the printed commands that match a pattern."""
    return [command for command in PRINTED if re.match(pattern, command)]


AS_PRINTED = [(printed(beginning), words, made) for beginning, words, made in RUN]
DRY = matching(r"snakemake --cores all (-F|--config experiment=(?!my_first))")
"""Run as a dry run. The whole commands take a download, a model, or hours."""
PARSED = matching(r"python (?!.* --help)(scripts/|workflow/|-m benchmarks|-m tests\.golden|\.ci/)")
"""Read by their own parser of flags."""
INSTALLS = matching("(python -m )?pip (install|wheel)")
"""Gigabytes. The gate's line installs in the same way, so here only the names are tried."""
CLUSTER = matching("sbatch|snakemake --workflow-profile")
"""Read by Snakemake's parser; test_slurm.py has a cluster of its own."""
DVC = matching("dvc exp (run -n|apply)|dvc remote modify --local")
"""Read by DVC's parser. Tests of two engines run them with other values."""
GATE = [
    "python3 -m venv .venv",
    ". .venv/bin/activate",
    "pip install --require-hashes -r locks/run.txt -r locks/test.txt",
    "pip install --no-build-isolation -c locks/versions.txt -e '.[test]'",
    "python -m pytest -n 2 --dist loadfile",
]
"""What brought this test here: .ci/run runs the README's second line."""
HERE = [
    "python docs/results/summary.py",
    "ruff check .",
    "ruff format --check .",
    "snakefmt --check workflow",
    "python .ci/locks.py check",
]
"""Run as printed in the project itself, which they do not change."""
TUTORIAL = [command for _, language, block in STEPS if language == "bash"
            for command in commands_of(f"```bash\n{block}```")]  # fmt: skip
ALONE = [
    "tail -f results/quickstart/logs/train/*.log",
    "python -m pytest -m 'not slow' -n 2 --dist loadfile",
]
"""Each has a test of its own below."""
OWN = matching("headcount ")
"""Run in their order by tests/door/test_door_command.py."""
COMET = matching(r"python3 -m venv ~/comet|~/comet/bin/")
"""Gigabytes of another project. tests/workflow/test_metrics.py has a small metric in its place."""
KNOWN = {command for command, _, _ in AS_PRINTED}.union(
    DRY, PARSED, GATE, INSTALLS, HERE, CLUSTER, DVC, ALONE, TUTORIAL, OWN, COMET
)
ELSEWHERE = [command for command in PRINTED if command not in KNOWN]
"""Run as printed by another test, which has more to say about them."""


@pytest.fixture(scope="module")
def project(origin, tmp_path_factory) -> ProjectCopy:
    """The origin's twin, with the reader's own files that the documents speak of."""
    copy = own_copy(origin, tmp_path_factory.mktemp("reader"))
    write = {name: copy.folder / name for name in ("sentences.txt", "own/dev.en")}
    for path in write.values():
        path.parent.mkdir(exist_ok=True)
        path.write_text("the man sees a dog .\n")
    (text,) = copy.folder.glob("data/text/quickstart/*/test.src")
    (copy.folder / "own/test.links").write_text("0-0 1p1\n" * len(text.read_text().splitlines()))
    (copy.folder / "results/quickstart/state/unfinished").mkdir(parents=True, exist_ok=True)
    (copy.folder.parent / "lab").mkdir()
    model = copy.folder / "FOLDER"
    model.mkdir()
    save_bert(model)
    for seed, name in enumerate(("dev.jsonl", "dev_matched.tsv", "dev_mismatched.tsv")):
        _write_entailment(copy.folder / name, seed)
    return copy


def _write_entailment(path, seed: int) -> None:
    rows = [("sentence1", "sentence2", "gold_label"), *pairs(20, seed)]
    if path.suffix == ".tsv":
        lines = ["\t".join(row) for row in rows]
    else:
        lines = [json.dumps(dict(zip(rows[0], row, strict=True))) for row in rows[1:]]
    path.write_text("\n".join(lines) + "\n")


def test_every_command_that_is_tried_is_printed():
    assert set(KNOWN) - set(PRINTED) == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "words", "made"), AS_PRINTED, ids=[command[:50] for command, _, _ in AS_PRINTED]
)
def test_as_printed(project, command, words, made):
    if "silver" in command and not shutil.which(COMMAND):
        pytest.skip("eflomal, of the extra `align`, is not installed")
    if made:
        (project.folder / made).unlink(missing_ok=True)
    # The small model has 32 heads and 192 feed-forward units.
    command = command.replace("--keep 384", "--keep 96").replace("--keep 38 ", "--keep 20 ")
    assert words in project.shell(command)
    assert made is None or (project.folder / made).stat().st_size > 0


@pytest.mark.slow
@pytest.mark.parametrize("command", DRY)
def test_as_a_dry_run(project, command):
    output = project.shell(command.replace("snakemake", "snakemake -n", 1))
    assert "This was a dry-run" in output and re.search(r"^total +\d+$", output, re.MULTILINE)


@pytest.mark.parametrize("command", PARSED)
def test_flags_are_known(command, monkeypatch):
    class Parsed(Exception):
        """The command's own parser took its flags; the work would begin."""

    def parse_args(parser, **options):
        parse(parser, **options)
        raise Parsed

    parse = argparse.ArgumentParser.parse_args
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_args)
    _, *words = shlex.split(command.partition(" < ")[0])
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(Parsed):
        if words[0] == "-m":
            sys.argv = words[1:]
            runpy.run_module(words[1], run_name="__main__")
        else:
            monkeypatch.syspath_prepend(str((ROOT / words[0]).parent))  # as Python does
            runpy.run_path(str(ROOT / words[0]), run_name="__main__")


@pytest.mark.parametrize("command", INSTALLS)
def test_what_is_installed_exists(command):
    words = shlex.split(command)
    for before, name in itertools.pairwise(words):
        if before in ("-r", "-c"):
            assert (ROOT / name).stat().st_size > 0
        elif before == "-e" and name != ".":
            project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
            assert re.fullmatch(r"\.\[(\w+)\]", name)[1] in project["optional-dependencies"]


@pytest.mark.slow
@pytest.mark.parametrize("command", HERE)
def test_the_project_is_in_order(command):
    ProjectCopy.of(ROOT).shell(command)


@pytest.mark.parametrize("command", ELSEWHERE)
def test_another_test_runs_it(command):
    files = (ROOT / "tests").rglob("*.py")
    shell = re.compile(rf"""shell\(\s*f?["'](?:[^"']*; )?{re.escape(command)}[ "']""")
    assert any(shell.search(path.read_text()) for path in files), PRINTED[command]


@pytest.mark.parametrize("command", CLUSTER)
def test_snakemake_knows_the_flags_for_a_cluster(command):
    words = shlex.split(shlex.split(command)[-1] if "--wrap" in command else command)
    read = vars(get_argument_parser().parse_args(words[1:]))
    if "--wrap" in command:
        assert (read["cores"], read["resources"]) == (16, {"gpu": 4, "mem_mb": 60000})
    else:
        assert (ROOT / read["workflow_profile"] / "profile.yaml").exists()


@pytest.mark.parametrize("command", DVC)
def test_dvc_knows_the_flags(command):
    assert get_main_parser().parse_args(command.split()[1:]).func


@pytest.mark.slow
def test_a_training_can_be_watched(project):
    process = project.start_command("bash", "-c", ALONE[0])
    seen = []
    while not any("dev" in line for line in seen[-1:]):
        seen.append(process.stdout.readline())
    assert process.poll() is None  # it waits for more
    process.terminate()
    process.communicate(timeout=10)
    assert re.match(r"update \d+/60", seen[-1])


@pytest.mark.slow
@pytest.mark.parametrize("command", ALONE[1:])
def test_the_fast_tests_are_those_that_are_not_slow(command):
    """Listed in this file alone: all of them, and run, they are the gate itself."""
    listed = ProjectCopy.of(ROOT).shell(f"{command} --collect-only {shlex.quote(__file__)}")
    assert "test_flags_are_known" in listed and "test_as_printed" not in listed

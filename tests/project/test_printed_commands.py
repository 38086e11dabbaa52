"""Every command that README and docs print is run as printed, or shown here with why it is not."""

import argparse
import itertools
import json
import re
import runpy
import shlex
import sys
import tomllib

import pytest
from printed_commands import commands_of, printed_commands
from project_copy import ROOT, ProjectCopy
from shared_results import own_copy
from small_bert import pairs, save_bert
from snakemake.cli import get_argument_parser
from test_tutorial import STEPS

PRINTED = printed_commands(ROOT)

WORDS = "data/bpe/quickstart/synthetic.en-art"
TRAINED = "results/quickstart/train/synthetic.en-art"
RANKED = "results/quickstart/heads/synthetic.en-art"
TEST = "data/text/quickstart/synthetic.en-art/test"
MINE = "results/mine/multinli/bert/seed1"
BENCH = "results/bench/train/multi30k.en-de/baseline/seed1/model"

AS_PRINTED = [
    ("snakemake -n", "Nothing to be done", None),
    ("python workflow/estimate.py quickstart", "at a time (coarse)", None),
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
    ("dvc metrics show", "synthetic.en-art.baseline.test.bleu", None),
    ("dvc plots show", "index.html", "dvc_plots/index.html"),
    ("dvc data status --granular --not-in-remote", "No changes.", None),
    (
        "cp -an --parents .snakemake/contents .snakemake/metadata data results/quickstart ../lab",
        "",
        "../lab/results/quickstart/report.html",
    ),
    ("python scripts/train.py --help", "--dev-interval", None),
    ("python scripts/reference.py settings", "| `decode.beam` |", None),
    ("python scripts/corpora.py", "to fetch:", None),
    ("python scripts/corpora.py --experiment multi30k", "to fetch:", None),
    (
        "python scripts/report.py --results results/quickstart --out page.html",
        "",
        "page.html",
    ),
    ("python scripts/reference.py files", "| `curves` |", None),
    ("python scripts/reference.py --list", "exit_codes", None),
    ("snakemake --cores all headmask", "Nothing to be done", None),
    (
        "python scripts/claims.py --results results/quickstart --out claims",
        "",
        "claims/claims.md",
    ),
    (
        "python scripts/attention.py --model"
        " results/quickstart/train/synthetic.en-art/baseline/seed1/model"
        f" --bpe {WORDS} --layer 0 --head 6 --source sentences.txt --out map.json",
        "",
        "map.json",
    ),
    ("python scripts/attention_map.py --weights map.json --out map.svg", "", "map.svg"),
    (
        "python scripts/export.py --model"
        " results/quickstart/prune/synthetic.en-art/gates-all-l0.03/seed1/model"
        f" --bpe {WORDS} --out exported --check data/text/quickstart/synthetic.en-art/test.src",
        "translations are the same",
        "exported/model.bin",
    ),
    (
        "python scripts/export.py --to huggingface --model"
        " results/quickstart/prune/synthetic.en-art/gates-all-l0.03/seed1/model"
        f" --bpe {WORDS} --out as_pegasus --check data/text/quickstart/synthetic.en-art/test.src",
        "translations are the same",
        "as_pegasus/model.safetensors",
    ),
    (
        f"python scripts/export.py --to headcount --model {TRAINED}/baseline/seed1/model"
        f" --bpe {WORDS} --out translator",
        "none of them silent",
        "translator/model.json",
    ),
    (
        "python scripts/classifier_ablation.py --model FOLDER_OR_HUB_NAME --dev dev.jsonl"
        " --matched dev_matched.tsv --mismatched dev_mismatched.tsv"
        f" --out {MINE}",
        "",
        f"{MINE}/classifier_ablation.csv",
    ),
    (
        "python scripts/analysis.py michel_classifiers --out results/mine"
        f" --classifier-ablation {MINE}/classifier_ablation.csv"
        f" --classifier-facts {MINE}/classifier_ablation.json"
        f" --classifier-profiles {MINE}/classifier_profile.csv"
        f" --classifier-areas {MINE}/classifier_profile_areas.csv",
        "",
        "results/mine/tables/michel_classifier_ablation.md",
    ),
    (
        "python scripts/synthetic.py --seed 1 --train-pairs 20000 --dev-pairs 1000"
        " --test-pairs 1000 --corpus synthetic --out data/raw/synthetic/manifest.json",
        "",
        "data/raw/synthetic/manifest.json",
    ),
    (
        f"python scripts/remove.py --model {TRAINED}/baseline/seed1/model --importance"
        f" {RANKED}/baseline/seed1/importance.csv --keep 43 --out smaller",
        "",
        "smaller/model/weights.safetensors",
    ),
    (
        f"python scripts/translate.py --model smaller/model --bpe {WORDS} --source {TEST}.src"
        " --out smaller/test.txt --facts smaller/test.json",
        "",
        "smaller/test.txt",
    ),
    (
        f"python -m sacrebleu {TEST}.tgt --paired-bs --format text"
        f" -i {TRAINED}/baseline/seed1/translations/test.txt smaller/test.txt",
        "BLEU",
        None,
    ),
    ("rm -r results/quickstart/state", "", None),
    ("dvc remote modify shared url ssh://host/path", "", None),
]
"""In this order, where quickstart is built: the command, words that it prints, a file it makes."""

DRY = {
    "snakemake --cores all -F": "another build; test_workflow.py forces a training",
    "snakemake --cores all --config experiment=multi30k_short": "a download, hours of training",
    "snakemake --cores all --config experiment=multi30k": "a download, days of training",
    "snakemake --cores all --config experiment=multi30k_seeds": "a download, days of training",
    "snakemake --cores all --config experiment=michel_bert": "a download, hours on a GPU",
    "snakemake --cores all --config experiment=imported": "a model; test_imported.py has one",
    "snakemake --cores all --config experiment=bench"
    " -- data/bpe/bench/multi30k.en-de/segmentation.json": "a download",
    f"snakemake --cores all --config experiment=bench -- {BENCH}/weights.safetensors": "a download",
}
"""Run as a dry run, and what the whole command would take."""

PARSED = {
    "python workflow/compare.py OTHER results/quickstart": "two folders; test_compare.py",
    "python -m benchmarks.training": "named in a table",
    "python scripts/remove.py --model MODEL --list heads.txt --means measures_means.csv"
    " --out smaller": "quickstart has no measures; test_pruning_profile.py",
    "python -m benchmarks.training --preset small": "minutes",
    "python -m benchmarks.training --device cuda --preset base --batch-tokens 25000"
    " --precision bf16 --compile": "a GPU",
    "python -m benchmarks.decoding --model FOLDER": "named in a table",
    f"python -m benchmarks.decoding --model {BENCH}": "a model of multi30k",
    "python -m benchmarks.importance": "named in a table",
    "python -m benchmarks.memory": "named in a table",
    "python -m benchmarks.results": "results of benchmarks; test_benchmark_results.py makes a page",
    "python -m benchmarks": "25 minutes; test_benchmark_results.py runs it, small",
    "python -m benchmarks.headmask_cost": "named in a table",
    "python -m benchmarks.ablation --model FOLDER --source TEXT": "named in a table",
    "python -m benchmarks.processes": "named in a table",
    "python scripts/describe_model.py --pretrained models/own_en_de": "a model; test_imports.py",
    "python scripts/segment.py --pretrained models/opus-mt-en-de --src-lang en --tgt-lang de"
    " --train-src train.en --train-tgt train.de --dev-src dev.en --dev-tgt dev.de"
    " --out-folder pieces": "a model; test_marian.py has one",
    "python scripts/segment.py --pretrained models/nllb --src-lang en --tgt-lang de"
    " --src-code eng_Latn --tgt-code deu_Latn --train-src train.en --train-tgt train.de"
    " --dev-src dev.en --dev-tgt dev.de --out-folder pieces": "a model; test_first_word.py has one",
    "python scripts/import_model.py --pretrained models/opus-mt-en-de --bpe pieces"
    " --out model": "a model; test_marian.py has one",
    "python scripts/importance.py --model model --bpe pieces"
    " --out importance.csv": "a model; test_marian.py has one",
    "python scripts/export.py --to headcount --model model --bpe pieces --mask enc_self.0.3"
    " dec_enc.0.1 --out smaller": "a model; test_out_again.py has one",
    "python scripts/export.py --to ctranslate2 --model smaller --out fast"
    " --check dev.en": "the same",
    "python scripts/export.py --to huggingface --model smaller --pretrained models/opus-mt-en-de"
    " --out back --check dev.en": "the same",
    "python scripts/translate.py --model smaller < dev.en": "the same",
    "python scripts/measure.py --models smaller fast back --source dev.en --reference dev.de"
    " --out measured.csv": "the same",
    f"python scripts/measure.py --models translator exported as_pegasus --source {TEST}.src"
    f" --reference {TEST}.tgt --out measured.csv": "minutes; test_measured.py has a smaller text",
    "python scripts/importance.py --model models/t5-small --text text"
    ' --prefix "translate English to German: " --out importance.csv': "a model;"
    " test_hooked_folder.py has one",
    "python scripts/masking.py --model models/t5-small --text text --src-lang en"
    ' --tgt-lang de --prefix "translate English to German: " --seed 1 --own importance.csv'
    " --test-sets '[\"test\"]' --out masking.csv": "a model; test_hooked_folder.py has one",
    "python -m benchmarks.pretrained": "a minute; test_benchmark_pretrained.py runs parts of it",
    "python -m benchmarks.attention": "named in a table",
    "python -m benchmarks.depth": "test_benchmark_depth.py runs it",
    "python -m benchmarks.planning": "test_planning.py runs it, small",
    "python -m tests.golden": "hours, with the archives",
    "python .ci/locks.py write": "uv, and the package index",
}
"""Read by their own parser of flags, and what the whole command would take.

test_benchmarks.py and test_locks.py run what they call: small, and on an index of
their own.
"""

GATE = [
    "python3 -m venv .venv",
    ". .venv/bin/activate",
    "pip install --require-hashes -r locks/run.txt -r locks/test.txt",
    "pip install --no-build-isolation -e '.[test]'",
    "python -m pytest -n 2 --dist loadfile",
]
"""What brought this test here: .ci/run runs the README's second line."""

INSTALLS = [
    "pip install --require-hashes -r locks/run.txt",
    "pip install --no-build-isolation -e .",
    "pip install -e '.[bert]'",
    "pip install -e '.[docs]'",
    "pip install -e '.[export]'",
    "pip install -e '.[ja]'",
    "pip install -e '.[parse]'",
    "pip install -e '.[pretrained]'",
    "pip install -e '.[zh]'",
    "pip install -e '.[ssh]'",
    "pip install -e '.[slurm]'",
    "pip install uv",
    "pip install",
    "python -m pip install -r benchmarks/requirements.txt",
]
"""Gigabytes; the gate's line installs in the same way, so here only the names are tried."""

HERE = [
    "python docs/results/summary.py",
    "ruff check .",
    "ruff format --check .",
    "snakefmt --check workflow",
    "python .ci/locks.py check",
]
"""Run as printed in the project itself, which they do not change."""

ENGINES = "tests/workflow/test_engines.py"
ELSEWHERE = {
    "snakemake --cores all": "tests/helpers/shared_results.py",
    'git add -A && git commit -m "Results" && dvc push': "tests/helpers/shared_results.py",
    "dvc config --local core.no_scm true": "tests/workflow/test_engines.py",
    "dvc remote modify --local shared url": "tests/workflow/test_engines.py",
    "dvc exp run -n wider -S config/quickstart.yaml:+decode.beam=8": ENGINES,
    "git pull": ENGINES,
    "git push": ENGINES,
    "dvc repro -f": "tests/workflow/test_engine_faults.py",
    "dvc exp run": ENGINES,
    "dvc exp show": ENGINES,
    "dvc exp apply wider": ENGINES,
    "dvc exp run --queue": ENGINES,
    "dvc params diff": ENGINES,
    "dvc metrics diff": ENGINES,
    "dvc plots": ENGINES,
    "snakemake --report report.zip": ENGINES,
    "mkdocs build": "tests/project/test_site.py",
}
"""Run as printed by another test, which has more to say about them."""

CLUSTER = [
    "sbatch --cpus-per-task 16 --mem 64G --gpus 4 --time 24:00:00"
    ' --wrap "snakemake --cores 16 --resources gpu=4 mem_mb=60000"',
    "snakemake --workflow-profile workflow/profiles/slurm --config experiment=multi30k",
]
"""Snakemake's parser reads them; test_slurm.py has a cluster of its own."""

PIPED = [
    "python scripts/translate.py --model translator < sentences.txt",
    "python scripts/translate.py --model translator --mask enc_self.0.3 dec_enc.0.1"
    " < sentences.txt",
    "python scripts/translate.py --model translator --engine ctranslate2-int8 < sentences.txt",
]
"""A test below compares what they print with a translation from file to file."""

TUTORIAL = [command for _, language, block in STEPS if language == "bash"
            for command in commands_of(f"```bash\n{block}```")]  # fmt: skip
"""test_tutorial.py runs them in their order, and more than once where the tutorial does."""

ALONE = [
    "tail -f results/quickstart/logs/train/*.log",
    "python scripts/parse.py --source own/dev.en --language en --out own/dev.conllu",
    "python -m pytest -m 'not slow' -n 2 --dist loadfile",
]
"""Each has a test of its own below."""


@pytest.fixture(scope="module")
def project(origin, tmp_path_factory) -> ProjectCopy:
    """The origin's twin, with the reader's own files that the documents speak of."""
    copy = own_copy(origin, tmp_path_factory.mktemp("reader"))
    write = {name: copy.folder / name for name in ("sentences.txt", "own/dev.en")}
    for path in write.values():
        path.parent.mkdir(exist_ok=True)
        path.write_text("the man sees a dog .\n")
    (copy.folder / "results/quickstart/state/unfinished").mkdir(parents=True, exist_ok=True)
    (copy.folder.parent / "lab").mkdir()
    model = copy.folder / "FOLDER_OR_HUB_NAME"
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


def test_commands_of_a_page():
    page = """
Text: `snakemake -n`, the program `snakemake`, a file `a.md`; `dvc  exp
show`.

```bash
cd x && pip install -e .

python a.py --one 1 \\
    --two 2
oops
```

```
words
python b.py
```
"""
    assert list(commands_of(page)) == [
        "cd x",
        "pip install -e .",
        "python a.py --one 1 --two 2",
        "oops",
        "python b.py",
        "snakemake -n",
        "dvc exp show",
    ]


def test_every_printed_command_is_tried_here_and_none_that_is_not_printed():
    tried = [command for command, _, _ in AS_PRINTED]
    tried += [*DRY, *PARSED, *GATE, *INSTALLS, *HERE, *ELSEWHERE, *CLUSTER, *PIPED, *ALONE]
    tried += set(TUTORIAL).difference(tried)
    assert len(tried) == len(set(tried))
    assert {c: pages for c, pages in PRINTED.items() if c not in tried} == {}
    assert set(tried) - set(PRINTED) == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "words", "made"), AS_PRINTED, ids=[command[:50] for command, _, _ in AS_PRINTED]
)
def test_as_printed(project, command, words, made):
    if made:
        (project.folder / made).unlink(missing_ok=True)
    command = command.replace("--keep 43", "--keep 20")  # the small model has 32 heads
    assert words in project.shell(command)
    assert made is None or (project.folder / made).stat().st_size > 0


@pytest.mark.slow
@pytest.mark.parametrize("command", PIPED)
def test_standard_input_is_translated_as_a_file_is(project, command):
    project.shell(
        f"python scripts/export.py --to headcount --model {TRAINED}/baseline/seed1/model"
        f" --bpe {WORDS} --out translator"
    )
    flags = "--source sentences.txt --out whole.txt --facts whole.json"
    project.shell(command.replace("< sentences.txt", flags))
    whole = (project.folder / "whole.txt").read_text()
    assert whole.strip() and project.shell(f"{command} 2> /dev/null") == whole


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
            runpy.run_path(str(ROOT / words[0]), run_name="__main__")


def test_the_gate_runs_the_second_line():
    blocks = re.findall(r"^```bash\n(.*?)\n```", (ROOT / "README.md").read_text(), re.M | re.S)
    assert blocks[1].split(" && ") == GATE
    assert "block == 3" in (ROOT / ".ci" / "run").read_text()  # fences are counted, not blocks


@pytest.mark.parametrize("command", INSTALLS)
def test_what_is_installed_exists(command):
    words = shlex.split(command)
    for before, name in itertools.pairwise(words):
        if before == "-r":
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
    """There a study of the reader's own is quickstart, the one that is built."""
    words = re.escape(command.replace("my_study", "quickstart")) + r"[ \"']"
    assert re.search(rf"""shell\(\s*f?["']{words}""", (ROOT / ELSEWHERE[command]).read_text())


@pytest.mark.parametrize("command", CLUSTER)
def test_snakemake_knows_the_flags_for_a_cluster(command):
    words = shlex.split(shlex.split(command)[-1] if "--wrap" in command else command)
    read = vars(get_argument_parser().parse_args(words[1:]))
    if "--wrap" in command:
        assert (read["cores"], read["resources"]) == (16, {"gpu": 4, "mem_mb": 60000})
    else:
        assert (ROOT / read["workflow_profile"] / "config.yaml").exists()


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
def test_trees_without_stanza_name_what_to_install(project):
    """The gate has no stanza, whose models come from the network; nor has this project then."""
    (project.folder / "src" / "stanza.py").write_text("raise ModuleNotFoundError(name='stanza')\n")
    told = project.shell(ALONE[1], fails=True)
    assert "package stanza, found it not installed; run: pip install -e '.[parse]'" in told


@pytest.mark.slow
@pytest.mark.parametrize("command", ALONE[2:])
def test_the_fast_tests_are_those_that_are_not_slow(command):
    """Listed in this file alone: all of them, and run, they are the gate itself."""
    listed = ProjectCopy.of(ROOT).shell(f"{command} --collect-only {shlex.quote(__file__)}")
    assert "test_flags_are_known" in listed and "test_as_printed" not in listed

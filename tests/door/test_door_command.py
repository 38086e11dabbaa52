"""The command `headcount`, in this process and from a wheel."""

import os
import shlex
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pandas as pd
import pytest
from imported_marian import import_marian
from printed_commands import printed_commands
from project_copy import ROOT
from small_hooked import save_t5

import headcount
from headcount.library.heads_run import HeadsRun
from headcount_hf.door import command
from headcount_hf.door.command import COMMANDS, main

OWN = [line for line in printed_commands(ROOT) if line.startswith("headcount ")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of OPUS-MT, our model of it with its subwords, a T5, and text."""
    root = import_marian(tmp_path_factory.mktemp("door"))
    headcount.load(root / "model", root / "bpe", "cpu").save(root / "ours")
    lines = {
        side: (root / f"text/train.{side}").read_text().splitlines() for side in ("src", "tgt")
    }
    for side, kept in lines.items():
        (root / f"few.{side}").write_text("".join(f"{line}\n" for line in kept[:12]))
    (root / "one").write_text("one\n")
    save_t5(root / "t5", sorted({*" ".join(lines["src"][:12]).split()}))
    return root


def call(monkeypatch, *words) -> int:
    """Exit code of the command."""
    monkeypatch.setattr(sys, "argv", ["headcount", *map(str, words)])
    try:
        main()
    except SystemExit as end:
        return end.code or 0
    return 0


def test_translate_align_and_prune_are_those_of_python(folder, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(folder)
    model, lines = headcount.load("ours"), Path("few.src").read_text().splitlines()
    heads = ["enc_self.0.1", "dec_enc.1.2"]
    call(monkeypatch, "translate", "ours", "--source", "few.src", "--mask", *heads)
    assert capsys.readouterr().out.splitlines() == model.translate(lines, heads)
    call(monkeypatch, "align", "ours", "--source", "few.src", "--target", "few.tgt",
         "--heads", "dec_enc.0.1", "--out", tmp_path / "links")  # fmt: skip
    links = model.align(lines, Path("few.tgt").read_text().splitlines(), ["dec_enc.0.1"])
    written = (tmp_path / "links").read_text().splitlines()
    assert written == [" ".join(f"{s}-{t}" for s, t in pair) for pair in links]
    importance = model.importance(lines, lines)
    importance.to_csv(tmp_path / "importance.csv", index=False)
    assert call(monkeypatch, "prune", "ours", "--importance", tmp_path / "importance.csv",
                "--share", 25, "--out", tmp_path / "smaller") == 0  # fmt: skip
    left = headcount.load(tmp_path / "smaller").first_heads
    gone = importance.nsmallest(6, "value")  # 25 % of 24 heads
    assert set(left) == set(model.heads) - {
        f"{r.kind}.{r.layer}.{r.head}" for r in gone.itertuples()
    }


def test_prune_removes_the_heads_that_were_measured(folder, monkeypatch, tmp_path):
    """5 % of 24 heads are 1.2, rounded up in both commands."""
    monkeypatch.chdir(folder)
    model = headcount.load("ours")
    texts = [Path(f"few.{side}").read_text().splitlines() for side in ("src", "tgt")]
    run = HeadsRun(model, texts, tmp_path / "out", sentences=4)
    run.measure()
    step = run.removal().query("percent == 5").iloc[0]
    path = tmp_path / "out/importance.csv"
    call(monkeypatch, "prune", "ours", "--importance", path, "--share", 5, "--out", tmp_path / "s")
    left = headcount.load(tmp_path / "s").first_heads
    assert step.heads_masked == 2 and {*model.heads} - {*left} == {*step.heads.split()}


def test_translate_searches_a_file_by_the_named_program(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    searched = []
    monkeypatch.setattr(command, "open_search", lambda *given: searched.append(given[-1].engine))
    with pytest.raises(AttributeError):
        call(monkeypatch, "translate", "ours", "--source", "few.src", "--engine", "ctranslate2")
    assert searched == ["ctranslate2"]


def test_models_of_hugging_face_are_imported_or_hooked(folder, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(folder)
    languages = ["--src-lang", "en", "--tgt-lang", "de"]
    opus = ["opus", "--src-lang", "en", "--tgt-lang", "art"]
    call(monkeypatch, "translate", *opus, "--source", "few.src")
    ours = headcount.load("ours").translate(Path("few.src").read_text().splitlines())
    assert capsys.readouterr().out.splitlines() == ours
    assert (
        call(monkeypatch, "export", *opus, "--to", "huggingface", "--out", tmp_path / "back") == 0
    )
    assert "back: a marian" in capsys.readouterr().out
    assert call(monkeypatch, "prune", "t5", *languages, "--mask", "enc_self.0.1",
                "--out", tmp_path / "t5") == 0  # fmt: skip
    pruned, whole = (headcount.hook(path, "en", "de") for path in (tmp_path / "t5", "t5"))
    pair = (["one two"], ["three"])
    assert pruned.loss(*pair) == pytest.approx(whole.loss(*pair, mask="enc_self.0.1"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["translate", "opus", "--source", "few.src"], "--src-lang: expected a language"),
        (["translate", "nothing", "--source", "few.src"], "nothing: expected a folder with model"),
        (["heads", "ours", "--source", "few.src", "--reference", "one", "--out", "x"],
         "as many sources as targets and at least one, found 12 and 1"),
        (["translate", "t5", "--source", "few.src", "--src-lang", "en", "--tgt-lang", "de",
          "--max-source", "9"], "--max-source: not for a model that stays"),
        (["prune", "ours", "--out", "x"], "expected --mask, or --importance with --share"),
        (["align", "t5", "--source", "few.src", "--src-lang", "en", "--tgt-lang", "de"],
         "expected a model that can be imported"),
        (["prune", "ours", "--mask", "enc_self.0.1", "--out", "ours"], "ours"),
        (["roast", "ours"], "invalid choice: 'roast'"),
    ],
)  # fmt: skip
def test_faults_have_a_message_and_exit_code_2(folder, monkeypatch, capsys, words, message):
    monkeypatch.chdir(folder)
    assert call(monkeypatch, *words) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_heads_says_the_time_and_what_may_go(folder, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(folder)
    text = ["--source", "few.src", "--reference", "few.tgt", "--out", tmp_path / "out"]
    links = tmp_path / "links"
    links.write_text("0-0\n" * 12)
    words = ["heads", "ours", *text, "--links", links, "--threads", "1"]
    assert call(monkeypatch, *words) == 0
    said = capsys.readouterr().out
    first, *lines = said.splitlines()
    assert first.startswith("24 heads, 12 sentence pairs: about ")
    importance = pd.read_csv(tmp_path / "out/importance.csv").query("statistic == 'importance'")
    best = importance.nlargest(1, "value").iloc[0]
    assert lines[2].split()[0] == f"{best.kind}.{best.layer}.{best['head']}"
    assert "<title>Heads of ours" in (tmp_path / "out/report.html").read_text()
    assert "Heads that align best: dec_enc" in said
    assert call(monkeypatch, *words) == 0
    again = capsys.readouterr().out.splitlines()
    assert "all is measured" in again[0] and again[1:] == lines
    path = tmp_path / "out/importance.csv"
    given = ["--importance", path, "--share", "10", "--out", tmp_path / "smaller"]
    assert call(monkeypatch, "prune", "ours", *given) == 0


@pytest.mark.slow
def test_a_wheel_works_where_the_repository_is_not(folder, tmp_path):
    """With the packages of this environment, and nothing of this checkout."""
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    copy = tmp_path / "copy"
    files = subprocess.run(["git", "ls-files", "src", "pyproject.toml", "README.md"], cwd=ROOT,
                           capture_output=True, text=True, check=True).stdout.split()  # fmt: skip
    for name in files:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes((ROOT / name).read_bytes())
    subprocess.run([*build, "-w", tmp_path, copy], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    venv.create(tmp_path / "env")
    python = tmp_path / "env/bin/python"
    site = next((tmp_path / "env").glob("lib/*/site-packages"))
    install = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", wheel]
    subprocess.run(install, check=True)
    others = [path for path in sys.path if path.endswith("site-packages")]
    (site / "others.pth").write_text("\n".join(others))
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    where = tmp_path / "elsewhere"
    where.mkdir()
    text = ["--source", folder / "few.src", "--reference", folder / "few.tgt", "--out", "out"]
    run = [tmp_path / "env/bin/headcount", "heads", folder / "ours", *text]
    done = subprocess.run(run, cwd=where, env=clean, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (where / "out/report.html").exists()
    shown = [python, "-c", "import headcount; print(headcount.__file__)"]
    found = subprocess.run(shown, cwd=where, env=clean, capture_output=True, text=True, check=True)
    assert str(site) in found.stdout


@pytest.mark.slow
def test_the_guide_runs_as_printed(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(folder / "ours", "translator")
    shutil.copytree(folder / "opus", "opus-mt-en-de")
    for side, language in (("src", "en"), ("tgt", "de")):
        for end in (side, language):
            shutil.copy(folder / f"few.{side}", f"dev.{end}")
    said = {line: call(monkeypatch, *shlex.split(line)[1:]) for line in OWN}
    assert set(said.values()) == {0}
    assert {line.split()[1] for line in OWN} == {*COMMANDS}
    assert Path("fast/model.bin").exists() and len(Path("dev.links").read_text().splitlines()) == 12

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
import torch
from imported_marian import import_marian
from printed_commands import printed_commands
from project_copy import ROOT
from small_hooked import save_t5

import headcount
from headcount.data.batches import ParallelText
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
    (root / "empty").write_text("")
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


def test_export_cuts_the_vocabulary_to_pieces_of_texts(folder, monkeypatch, tmp_path):
    """The same scores of fewer pieces, which are those of the texts and the special ones."""
    monkeypatch.chdir(folder)
    lines, few = Path("few.src").read_text().splitlines()[:4], tmp_path / "text"
    few.write_text("".join(f"{line}\n" for line in lines))
    given = ["--cut-vocabulary", few, "--mask", "enc_self.0.1", "--to", "headcount"]
    smaller = headcount.load("ours").without("enc_self.0.1")
    for model in (["ours"], ["opus", "--src-lang", "en", "--tgt-lang", "art"]):
        out = tmp_path / model[0]
        assert call(monkeypatch, "export", *model, *given, "--out", out) == 0
        cut = headcount.load(out)
        scores, names = [], []
        for one in (cut, smaller):
            src, tgt = one.pair.segmenters()
            names.append(tgt.vocabulary.pieces(range(len(tgt.vocabulary))))
            batch = ParallelText([src.encode(lines[0])], [tgt.encode(lines[1])]).batch([0])
            states = one.module.decode(batch.tgt_in, one.module.encode(batch.src))
            scores.append(one.module.logits(states))
        used = {piece for side in (src, tgt) for line in lines for piece in side.pieces(line)}
        assert {*names[0]} == {*names[1][:4], *(used | src.special | tgt.special) & {*names[1]}}
        assert len(names[0]) < len(names[1])
        places = [names[1].index(name) for name in names[0]]
        torch.testing.assert_close(scores[0], scores[1][..., places])


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
        (["export", "opus", "--src-lang", "en", "--tgt-lang", "art", "--to", "huggingface",
          "--cut-vocabulary", "few.src", "--out", "x"], "expected --to ctranslate2 or headcount"),
        (["export", "ours", "--cut-vocabulary", "empty", "--to", "headcount", "--out", "x"],
         "empty: expected text with pieces of this model, found none"),
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

"""Plans on text of one's own: what is refused before any job, and what a plan alone needs."""

import json
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from project_copy import ROOT
from workflow_modules import load

from headcount.base.errors import EnvironmentFault, UserError

LANGUAGES = ("en", "ja", "ko", "zh")
OWN = "mine:\n  licence: private\n  citation: none\n  splits:\n" + "".join(
    f"    {split}:\n"
    + "".join(f"      {each}: {{path: own/{split}.{each}}}\n" for each in LANGUAGES)
    for split in ("train", "dev", "test")
) + "  trees: {gold: {language: ja, path: own/trees.conllu}}\n"  # fmt: skip
JIEBA = "bpe: {unsegmented_scripts: jieba}\n"
TREES = "roles: {trees: [mine.gold]}\n"
A, B = (  # SHA-256 of "a\n" and "b\n" by coreutils
    "87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7",
    "0263829989b6fd954f72baaf2fc64bc2e2f01d692d4de72986ea808f6e99813f",
)


@pytest.fixture
def own(monkeypatch, tmp_path):
    """Plans an experiment on text of one's own, with settings to add; its files are there."""
    module = load(monkeypatch, "plan.plan")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config").mkdir()
    (tmp_path / "own").mkdir()
    (tmp_path / "config" / "corpora.yaml").write_text(OWN)
    for split in ("train", "dev", "test"):
        for language in LANGUAGES:
            (tmp_path / "own" / f"{split}.{language}").write_text("a\n")
    (tmp_path / "own" / "trees.conllu").write_text("")

    def planned(pair="mine.ja-en", more="", dry=False):
        (tmp_path / "config" / "x.yaml").write_text(f"pairs: [{pair}]\n{more}")
        return module.Plan("x", dry)

    return planned


def make(*paths: str) -> None:
    for path in map(Path, paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def test_a_folder_of_raw_text_is_a_corpus_or_one_of_its_treebanks(own):
    plan = own(more=TREES)
    corpus, trees = plan.raw.of("mine"), plan.raw.of_tree("mine.gold")
    assert corpus == plan.raw.of("mine.ja-en") and len(corpus.own) == 12
    assert trees.own == ["own/trees.conllu"] and trees.manifest != corpus.manifest
    for source in (corpus, trees):
        assert plan.raw.at({"corpus": "mine", "recipe": source.recipe}) == source


def test_a_plan_alone_needs_no_file_of_ones_own(own, capsys, tmp_path):
    (tmp_path / "own" / "dev.ja").unlink()
    plan = own(dry=True)
    printed = capsys.readouterr().err
    assert "note: own/dev.ja: expected a file of your own, found none" in printed
    assert printed.endswith("without it there is only this plan\n")
    source = plan.raw.of("mine.ja-en")
    w = {"corpus": "mine", "recipe": source.recipe}
    assert plan.own_files(w) == [path for path in source.own if path != "own/dev.ja"]


def test_x11_a_missing_file_of_ones_own_is_refused_unless_nothing_needs_it(own, capsys, tmp_path):
    plan = own()
    (tmp_path / "own/train.ja").rename(tmp_path / "own/trian.ja")
    message = "own/train.ja: expected a file of your own, found none; "
    message += "correct the path in config/corpora.yaml, or put the file there"
    with pytest.raises(UserError, match=message):
        own()
    manifest = plan.raw.of("mine.ja-en").manifest
    make(manifest)  # copied before
    own()
    Path(manifest).unlink()
    text = [f"data/text/x/mine.ja-en/{split}.src" for split in ("train", "dev", "test")]
    make(*text[:2])
    with pytest.raises(UserError):
        own()
    make(text[2])  # pulled without the text itself
    own()
    assert f"{text[0]} and the like stay as they are" in capsys.readouterr().err


def test_x11_a_missing_treebank_of_ones_own_is_refused(own, tmp_path):
    (tmp_path / "own" / "trees.conllu").unlink()
    own()
    with pytest.raises(UserError, match="own/trees.conllu: expected a file of your own"):
        own(more=TREES)
    own("mine.ko-en", TREES)  # no treebank in the source language


def test_x11_dvc_removes_no_text_that_nobody_could_make_again(monkeypatch):
    phases = load(monkeypatch, "engines.phases")
    text = {"rule": "text", "input": ["data/raw/mine/0/manifest.json"]}
    text |= {"output": ["data/text/x/mine.ja-en/train.src"]}
    bpe = {"rule": "bpe", "input": text["output"], "output": ["data/bpe/x/mine.ja-en/src.codes"]}
    assert phases.assign("x", [text, bpe])["data"] == [bpe, text]
    with pytest.raises(UserError, match="train.src: rule bpe reads it, and no job can make it"):
        phases.assign("x", [bpe])


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (
            {"input": [], "output": ["results/x/page.html"]},
            r"one stage with the out .*, found \[\]",
        ),
        (
            {"input": [], "output": ["results/x/train/a", "results/x/heads/a"]},
            r"found \['train', 'heads'\]",
        ),
        (
            {"input": ["results/x/masking/a"], "output": ["results/x/train/a"]},
            "stage train: no dep contains results/x/masking/a, which r reads",
        ),
    ],
)
def test_a_rule_that_dvc_yaml_does_not_fit_is_refused(monkeypatch, job, message):
    phases = load(monkeypatch, "engines.phases")
    with pytest.raises(UserError, match=message):
        phases.assign("x", [{"rule": "r"} | job])


def test_f53_scoring_a_target_language_is_tried_before_any_job(own, monkeypatch):
    own("mine.en-ja")
    from sacrebleu.tokenizers import tokenizer_ko_mecab

    monkeypatch.setattr(tokenizer_ko_mecab, "MeCab", None)  # as where the extra is not installed
    with pytest.raises(EnvironmentFault, match=r"run: pip install -e '\.\[ko\]'"):
        own("mine.en-ko")
    monkeypatch.setitem(sys.modules, "headcount.scoring.bleu", None)  # its import would fail
    own("mine.ko-en")  # nobody else waits for it


@pytest.mark.parametrize("pair", ["mine.en-zh", "mine.zh-en"])
def test_f53_a_missing_jieba_is_refused_before_any_job_and_not_in_a_dry_run(own, monkeypatch, pair):
    monkeypatch.setitem(sys.modules, "jieba", None)  # as where the extra is not installed
    own("mine.ko-en", JIEBA)
    own(pair)
    own(pair, JIEBA, dry=True)
    with pytest.raises(EnvironmentFault, match=r"bpe\.unsegmented_scripts: jieba"):
        own(pair, JIEBA)
    Path("config/corpora.yaml").write_text(f"{OWN}  pretokenised: true\n")
    own(pair, JIEBA)  # words stand between spaces


def test_a_file_that_comes_with_an_older_time_is_newer_than_its_copy(own, tmp_path):
    """As `mv`, `cp -p` and `tar x` bring it: Snakemake looks into newer files alone."""
    manifest = tmp_path / own().raw.of("mine").manifest
    make(str(manifest))
    soon = time.time() + 60  # no file was put here since
    os.utime(manifest, (soon, soon))
    own()
    assert manifest.stat().st_mtime == pytest.approx(soon)
    other, dev = tmp_path / "other", tmp_path / "own/dev.ja"
    manifest.touch()
    other.write_text("b\n")
    os.utime(other, (1000, 1000))
    time.sleep(0.02)
    other.rename(dev)
    own()
    assert manifest.stat().st_mtime < dev.stat().st_mtime == 1000


@pytest.mark.parametrize("changed", ["own/dev.ja", "own/trees.conllu"])
def test_a_pinned_file_that_has_changed_ends_every_plan(own, tmp_path, changed):
    """Even with an earlier copy here, and in a dry run."""
    (tmp_path / "own/trees.conllu").write_text("a\n")
    text = OWN
    for path in ("own/dev.ja", "own/trees.conllu"):
        text = text.replace(f"path: {path}", f"path: {path}, sha256: {A}")
    (tmp_path / "config" / "corpora.yaml").write_text(text)
    plan = own(more=TREES)
    make(plan.raw.of("mine").manifest, plan.raw.of_tree("mine.gold").manifest)
    (tmp_path / changed).write_text("b\n")
    for dry in (True, False):
        with pytest.raises(UserError, match=f"{changed}: expected SHA-256 {A}, .*found {B}"):
            own(more=TREES, dry=dry)
    (tmp_path / changed).write_text("a\n")
    own(more=TREES)


@pytest.fixture
def bridge(monkeypatch, tmp_path):
    """The module, in a folder with the project's dvc.yaml."""
    module = load(monkeypatch, "bridge")
    (tmp_path / "dvc.yaml").write_text((ROOT / "dvc.yaml").read_text())
    monkeypatch.chdir(tmp_path)
    return module


def test_what_a_phase_starts_does_not_take_dvc_for_its_parent(bridge, monkeypatch):
    variables = {}

    def run(command, **given):
        variables.update(given["env"])
        return SimpleNamespace(returncode=0)

    bridge.write_json(bridge.plan_file("mine", "data"), [{"output": ["data/text/mine/a"]}])
    monkeypatch.setattr(bridge.subprocess, "run", run)
    monkeypatch.setenv("HEADCOUNT_JOB", "1")
    bridge.run("mine", "data")
    assert "HEADCOUNT_JOB" not in variables and variables["PATH"] == os.environ["PATH"]


def test_dvc_sees_the_contents_of_ones_own_files_in_the_jobs_that_read_copies(
    bridge, monkeypatch, tmp_path
):
    manifest, text = "data/raw/mine/0a/manifest.json", "data/text/quickstart/mine.ja-en/dev.src"
    jobs = [
        {"rule": "download", "input": ["own/dev.ja", "own/gone.ja"], "output": [manifest]},
        {"rule": "text", "input": [manifest], "output": [text]},
        {"rule": "bpe", "input": [text], "output": ["data/bpe/quickstart/mine.ja-en/a"]},
    ]
    monkeypatch.setattr(bridge, "planned_jobs", lambda experiment: jobs)
    (tmp_path / "own").mkdir()
    for content, checksum in (("a\n", A), ("b\n", B)):
        (tmp_path / "own/dev.ja").write_text(content)
        bridge.plan("quickstart")
        plan = json.loads((tmp_path / "results/quickstart/plan/data.json").read_text())
        own = {job["rule"]: job.get("own") for job in plan}
        assert own == {"text": {"own/dev.ja": checksum}, "bpe": None}


def test_a_file_that_no_job_wrote_is_not_removed_by_a_phase(bridge):
    made = Path("data/text/mine/gone.src")
    make(str(made))
    bridge.write_json(bridge.plan_file("mine", "data"), [])
    (thesis := made.with_name("thesis.txt")).write_text("mine")
    with pytest.raises(UserError, match=r"(?s)no job wrote:\n  data/text/mine/gone\.src\n"):
        bridge.run("mine", "data")
    sys.modules["engines.records"].note(str(made))
    with pytest.raises(UserError, match=r"(?s)no job wrote:\n  data/text/mine/thesis\.txt\n"):
        bridge.run("mine", "data")
    assert thesis.read_text() == "mine" and made.exists()
    thesis.unlink()
    bridge.run("mine", "data")
    assert not made.exists()

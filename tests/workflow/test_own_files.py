"""Plans on text of one's own: what is told before any job, and what a plan alone needs."""

import json
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from project_copy import ROOT
from workflow_modules import load

from headcount.base.errors import UserError
from headcount.data.fetching.checksums import record

LANGUAGES = ("en", "ja", "ko", "zh")
OWN = "mine:\n  licence: private\n  citation: none\n  splits:\n" + "".join(
    f"    {split}:\n"
    + "".join(f"      {each}: {{path: own/{split}.{each}}}\n" for each in LANGUAGES)
    for split in ("train", "dev", "test")
) + "  trees: {gold: {language: ja, path: own/trees.conllu}}\n"  # fmt: skip
JIEBA = "bpe: {unspaced: jieba}\n"


@pytest.fixture
def own(monkeypatch, tmp_path):
    """Plans an experiment on text of one's own, with settings to add; its files are there."""
    module = load(monkeypatch, "plan")
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
        return module.Plan({"experiment": "x"}, [], dry)

    return planned


def refused(own, capsys, *arguments) -> tuple[int, str]:
    """Exit code and message of an experiment that cannot be planned."""
    with pytest.raises(SystemExit) as end:
        own(*arguments)
    return end.value.code, capsys.readouterr().err


def test_a_folder_of_raw_text_is_a_corpus_or_one_of_its_treebanks(own):
    plan = own(more="roles: {trees: [mine.gold]}\n")
    corpus, trees = plan.raw.of("mine"), plan.raw.of_tree("mine.gold")
    assert corpus == plan.raw.of("mine.ja-en") and len(corpus.own) == 12
    assert trees.own == ["own/trees.conllu"] and trees.manifest != corpus.manifest
    for source in (corpus, trees):
        assert plan.raw.at({"corpus": "mine", "recipe": source.recipe}) == source


def test_a_plan_alone_needs_no_file_of_ones_own(own, capsys, tmp_path):
    (tmp_path / "own" / "dev.ja").unlink()
    plan = own("mine.ja-en", dry=True)
    told = capsys.readouterr().err
    assert "note: own/dev.ja: expected a file of your own, found none" in told
    assert told.endswith("without it there is only this plan\n")
    source = plan.raw.of("mine.ja-en")
    w = {"corpus": "mine", "recipe": source.recipe}
    assert plan.own_files(w) == [path for path in source.own if path != "own/dev.ja"]


def test_files_that_were_fetched_first_are_named_at_the_end(own, capsys, tmp_path):
    lock = tmp_path / "config" / "corpora.lock.yaml"
    record(lock, "https://a.org/known.gz", "0" * 64, 1)
    plan = own("mine.en-ja")
    plan.say_recorded()
    assert capsys.readouterr().err == ""
    record(lock, "https://a.org/new.gz", "1" * 64, 1)
    plan.say_recorded()
    told = capsys.readouterr().err
    assert "first time: https://a.org/new.gz. Their checksums are recorded in config" in told
    lock.write_text("x: 1\n")
    code, told = refused(own, capsys)
    assert code == 2 and "corpora.lock.yaml:1: x" in told


def test_x11_a_missing_file_of_ones_own_is_told_before_any_job(own, capsys, tmp_path):
    plan = own()
    train = tmp_path / "own" / "train.ja"
    train.rename(train.with_name("trian.ja"))
    told = "error: own/train.ja: expected a file of your own, found none; nearest: own/trian.ja; "
    told += "correct the path in config/corpora.yaml, or put the file there\n"
    assert refused(own, capsys) == (2, told)
    train.symlink_to("train.ja")
    code, message = refused(own, capsys)
    assert code == 2 and "found a link to train.ja that leads to no file; nearest: own/t" in message
    train.unlink()
    train.mkdir()
    assert "own/train.ja: expected a file of your own, found a folder" in refused(own, capsys)[1]
    train.rmdir()
    (tmp_path / "own").rename(tmp_path / "won")
    assert "found none; nearest: won; correct" in refused(own, capsys)[1]
    # Copied before, or pulled without the text itself: no job needs the file.
    for made in (
        plan.raw.of("mine.ja-en").manifest,
        *plan.layout.texts("mine.ja-en", ["train"], "src", "tgt"),
    ):
        Path(made).parent.mkdir(parents=True, exist_ok=True)
        Path(made).touch()
    own()
    Path(plan.raw.of("mine.ja-en").manifest).unlink()
    assert refused(own, capsys)[0] == 2  # dev and test are lacking
    for made in plan.layout.texts("mine.ja-en", ["dev", "test"], "src", "tgt"):
        Path(made).touch()
    own()
    told = capsys.readouterr().err
    assert "note: own/train.en: expected a file of your own, found none" in told
    assert "data/text/x/mine.ja-en/train.src and the like stay as they are" in told


def test_x11_dvc_removes_no_text_that_nobody_could_make_again(monkeypatch):
    phases = load(monkeypatch, "phases")
    declared = phases.declared("x")
    text = {"rule": "text", "input": ["data/raw/mine/0/manifest.json"]}
    text |= {"output": ["data/text/x/mine.ja-en/train.src"]}
    bpe = {"rule": "bpe", "input": text["output"], "output": ["data/bpe/x/mine.ja-en/src.codes"]}
    phases.check_made([text, bpe], declared)
    told = (
        "data/text/x/mine.ja-en/train.src: rule bpe reads it, and no job can make it here; put your"
    )
    with pytest.raises(UserError, match=told):
        phases.check_made([bpe], declared)


def test_x11_a_missing_treebank_of_ones_own_is_told_before_any_job(own, capsys, tmp_path):
    (tmp_path / "own" / "trees.conllu").unlink()
    own()
    trees = "roles: {trees: [mine.gold]}\n"
    code, message = refused(own, capsys, "mine.ja-en", trees)
    assert code == 2 and "own/trees.conllu: expected a file of your own, found none" in message
    own("mine.ko-en", trees)  # no treebank in the source language


def test_f53_scoring_a_target_language_is_tried_before_any_job(own, capsys, monkeypatch):
    own("mine.en-ja")
    from sacrebleu.tokenizers import tokenizer_ko_mecab

    monkeypatch.setattr(tokenizer_ko_mecab, "MeCab", None)  # as where the extra is not installed
    own("mine.ko-en")
    code, message = refused(own, capsys, "mine.en-ko")
    assert code == 3 and "run: pip install -e '.[ko]'" in message
    monkeypatch.setitem(sys.modules, "headcount.scoring.bleu", None)  # its import would fail
    own("mine.ko-en")  # nobody else waits for it


@pytest.mark.parametrize("pair", ["mine.en-zh", "mine.zh-en"])
def test_f53_a_missing_jieba_is_told_before_any_job_and_not_in_a_dry_run(
    own, capsys, monkeypatch, pair
):
    monkeypatch.setitem(sys.modules, "jieba", None)  # as where the extra is not installed
    own("mine.ko-en", JIEBA)
    own(pair)
    own(pair, JIEBA, dry=True)
    code, message = refused(own, capsys, pair, JIEBA)
    assert code == 3 and "error: bpe.unspaced: jieba finds the words of Chinese and " in message
    corpora = Path("config/corpora.yaml")
    corpora.write_text(f"{OWN}  pretokenised: true\n")
    own(pair, JIEBA)  # words stand between spaces


def test_a_file_that_comes_with_an_older_time_is_newer_than_its_copy(own, tmp_path):
    """As `mv`, `cp -p` and `tar x` bring it: Snakemake looks into newer files alone."""
    manifest = tmp_path / own().raw.of("mine").manifest
    manifest.parent.mkdir(parents=True)
    manifest.touch()
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


def test_what_a_phase_starts_does_not_take_dvc_for_its_parent(monkeypatch, tmp_path):
    bridge, told = load(monkeypatch, "bridge"), {}

    def run(command, **given):
        told.update(given["env"])
        return SimpleNamespace(returncode=0)

    monkeypatch.chdir(tmp_path)
    plan = Path("results/mine/plan/data.json")
    plan.parent.mkdir(parents=True)
    plan.write_text('[{"output": ["data/text/mine/a"]}]')
    for name in ("freshen", "_check_swept", "_sweep", "pack"):
        monkeypatch.setattr(bridge, name, lambda *_: None)
    monkeypatch.setattr(bridge.subprocess, "run", run)
    monkeypatch.setenv("HEADCOUNT_JOB", "1")
    bridge.run("mine", "data")
    assert "HEADCOUNT_JOB" not in told and told["PATH"] == os.environ["PATH"]


def test_what_dvc_compares_has_the_contents_of_ones_own_files(monkeypatch, tmp_path):
    """In the plan of what reads their copies, of which DVC knows nothing; SHA-256 by coreutils."""
    bridge = load(monkeypatch, "bridge")
    stages = (ROOT / "dvc.yaml").read_text()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dvc.yaml").write_text(stages)
    (tmp_path / "own").mkdir()
    manifest, text = "data/raw/mine/0a/manifest.json", "data/text/quickstart/mine.ja-en/dev.src"
    jobs = [
        {"rule": "download", "input": ["own/dev.ja", "own/gone.ja"], "output": [manifest]},
        {"rule": "text", "input": [manifest], "output": [text]},
        {"rule": "bpe", "input": [text], "output": ["data/bpe/quickstart/mine.ja-en/a"]},
    ]
    monkeypatch.setattr(bridge, "planned_jobs", lambda experiment: jobs)
    for content, digest in (
        ("a\n", "87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7"),
        ("b\n", "0263829989b6fd954f72baaf2fc64bc2e2f01d692d4de72986ea808f6e99813f"),
    ):
        (tmp_path / "own/dev.ja").write_text(content)
        bridge.plan("quickstart")
        found = json.loads((tmp_path / "results/quickstart/plan/data.json").read_text())
        assert {job["rule"]: job.get("own") for job in found} == {
            "text": {"own/dev.ja": digest}, "bpe": None}  # fmt: skip


@pytest.mark.parametrize("changed", ["own/dev.ja", "own/trees.conllu"])
def test_a_pinned_file_that_has_changed_ends_every_plan(own, capsys, tmp_path, changed):
    """Even with an earlier copy here, and in a dry run; SHA-256 by coreutils."""
    pins = {
        "own/dev.ja": "87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7",
        "own/trees.conllu": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    }
    text = OWN
    for path, pin in pins.items():
        text = text.replace(f"path: {path}", f"path: {path}, sha256: {pin}")
    (tmp_path / "config" / "corpora.yaml").write_text(text)
    plan = own(more=(trees := "roles: {trees: [mine.gold]}\n"))
    for source in (plan.raw.of("mine"), plan.raw.of_tree("mine.gold")):
        Path(source.manifest).parent.mkdir(parents=True)
        Path(source.manifest).touch()
    (tmp_path / changed).write_text("b\n")
    for dry in (True, False):
        code, told = refused(own, capsys, "mine.ja-en", trees, dry)
        assert code == 2 and f"{changed}: expected SHA-256 {pins[changed]}, as config" in told
        assert "found 0263829989b6fd954f72baaf2fc64bc2e2f01d692d4de72986ea808f6e99813f" in told
    (tmp_path / changed).write_text("a\n" if changed == "own/dev.ja" else "")
    own(more=trees)


def test_a_pinned_file_is_read_again_only_if_it_may_have_changed(own, monkeypatch, tmp_path):
    contents, read = load(monkeypatch, "contents"), []
    monkeypatch.chdir(tmp_path)
    whole = contents.sha256
    monkeypatch.setattr(contents, "sha256", lambda path: read.append(path.name) or whole(path))
    first = contents.own_content("own/dev.ja")
    assert contents.own_content("own/dev.ja") == first and read == ["dev.ja"]
    times = os.stat("own/dev.ja")
    Path("own/dev.ja").write_text("b\n")  # as long as before, and with its time
    os.utime("own/dev.ja", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert contents.own_content("own/dev.ja") != first and read == ["dev.ja"] * 2


def test_a_file_that_no_job_wrote_is_not_removed_by_a_phase(monkeypatch, tmp_path):
    bridge = load(monkeypatch, "bridge")
    stages, made = (ROOT / "dvc.yaml").read_text(), Path("data/text/mine/gone.src")
    monkeypatch.chdir(tmp_path)
    Path("dvc.yaml").write_text(stages)
    made.parent.mkdir(parents=True)
    made.write_text("of a job")
    bridge.contents.record(str(made))
    plan = Path("results/mine/plan/data.json")
    plan.parent.mkdir(parents=True)
    plan.write_text("[]")
    (thesis := made.with_name("thesis.txt")).write_text("mine")
    with pytest.raises(UserError, match=r"(?s)no job wrote:\n  data/text/mine/thesis\.txt\n"):
        bridge.run("mine", "data")
    assert thesis.read_text() == "mine" and made.exists()
    thesis.unlink()
    bridge.run("mine", "data")
    assert not made.exists()

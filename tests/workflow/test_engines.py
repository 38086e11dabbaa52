"""Two engines, one graph: Snakemake, DVC, real clones, a real remote."""

import json
import os
import re
import shutil

import pytest
from project_copy import ProjectCopy, planned, ran
from shared_results import (
    MEASURING,
    QUIET,
    REDRAWN,
    ROLES,
    RUN,
    TRAINED,
    bare_clone,
    both_quiet,
    fresh_clone,
)

from headcount.base.settings.corpora import load_corpora
from headcount.base.settings.experiment import experiment_names
from headcount.base.settings.pretrained import load_models

pytestmark = pytest.mark.slow

OPUS_MT = {
    **{"model_type": "marian", "activation_function": "swish", "scale_embedding": True},
    **{"d_model": 512, "encoder_layers": 6, "decoder_layers": 6, "max_position_embeddings": 512},
    **{"encoder_attention_heads": 8, "decoder_attention_heads": 8, "encoder_ffn_dim": 2048},
    **{"decoder_ffn_dim": 2048, "vocab_size": 9, "pad_token_id": 8, "eos_token_id": 0},
    "decoder_start_token_id": 8,
}
"""Sizes that config/imported.yaml names."""
GENERAL = "src/headcount/analysis/tables/general/scores.yaml"
MODEL = f"{RUN}/seed1/model/weights.safetensors"
NOTE = f"""
import sys
sys.path.insert(0, "workflow")
from engines import records
records.note({MODEL!r})
"""
"""Notes the model as its job would."""


def test_dvc_adopts_what_snakemake_built_and_git_has_nothing_to_say(origin):
    assert origin.untidy == ""
    for name in ("results/tiny/metrics.json", "data/text/tiny/train.src"):
        origin.call("git", "check-ignore", name)
    assert ran(origin.adopted) == {} and QUIET in origin.adopted
    both_quiet(origin)


def test_f45_f49_clone_and_pull_and_both_rightly_have_nothing_to_do(origin, tmp_path):
    clone = fresh_clone(origin, f"{tmp_path.name}-cloned")
    both_quiet(clone)
    assert "up to date" in clone.call("dvc", "repro")
    for folder in ("data", "results"):
        for path in (clone.folder / folder).rglob("*"):
            os.utime(path)  # a time alone is no change
    both_quiet(clone)
    assert not (clone.folder / "data" / "raw").exists()


def test_files_of_another_machine_are_copied_with_their_records(origin, tmp_path):
    """By the command that the guide prints, in two parts; then into a folder with another model."""
    here = bare_clone(origin, f"{tmp_path.name}-here")
    there = ProjectCopy.of(tmp_path / "there")
    shutil.copytree(origin.folder, there.folder, symlinks=True)
    copied = ".snakemake/contents .snakemake/metadata data results/quickstart"
    copy = f"cp -an --parents {copied} '{here.folder}'"
    masking = there.folder / "results/quickstart/masking"
    masking.rename(tmp_path / "masking")
    there.shell(copy)
    jobs = planned(here.run("-n")[1])
    assert {"masking": 1, "untuned_masking": 1}.items() <= jobs.items() and "train" not in jobs
    (tmp_path / "masking").rename(masking)
    there.shell(copy)
    assert QUIET in here.run("-n")[1]
    # The measures that come are of the other machine's model, and are made again.
    shutil.rmtree(here.folder / "results/quickstart/heads")
    (here.folder / MODEL).write_bytes((here.folder / MODEL).read_bytes() + b" ")
    os.utime(here.folder / MODEL, (1000, 1000))
    here.call("python", "-c", NOTE)
    there.shell(copy)
    assert {"importance": 1, "relevance": 1}.items() <= planned(here.run("-n")[1]).items()


def test_without_git_dvc_works_with_its_setting(clone):
    shutil.rmtree(clone.folder / ".git")
    assert "is not a git repository" in clone.call("dvc", "pull", fails=True)
    clone.shell("dvc config --local core.no_scm true")
    shutil.rmtree(clone.folder / "results")
    clone.call("dvc", "pull")
    both_quiet(clone)
    assert "up to date" in clone.call("dvc", "repro")


def test_f47_no_job_writes_through_a_link_into_the_cache(clone):
    """DVC runs the jobs that Snakemake plans; files that it linked into the folder stay as are."""
    clone.call("dvc", "config", "--local", "cache.type", "symlink")
    clone.call("dvc", "checkout", "--relink")
    objects = {path: path.read_bytes() for path in (clone.folder / ".dvc/cache").rglob("*/??/*")}
    assert len(objects) > 20
    clone.change("config/quickstart.yaml", "groups: 5", "groups: 4")
    expected = planned(clone.run("-n")[1])
    assert expected["masking"] == 1 and not expected.keys() & TRAINED.keys()
    assert ran(clone.call("dvc", "repro")) == expected
    assert all(path.read_bytes() == content for path, content in objects.items())
    both_quiet(clone)


def test_code_committed_but_not_run_is_noticed_in_a_clone(origin, clone):
    """The script is older than the results that are pulled after it; its time says nothing."""
    clone.change(GENERAL, "Loss by updates", "Losses by updates")
    clone.commit()
    again = fresh_clone(clone, f"{clone.folder.name}-again")
    again.shell("git pull")
    again.shell("git push")
    again.call("git", "remote", "set-url", "origin", str(origin.folder))
    assert planned(again.run("-n")[1]) == REDRAWN
    assert ran(again.call("dvc", "repro")) == REDRAWN
    both_quiet(again)


def test_a_seed_more_and_less_and_another_experiment_untouched(clone):
    """An experiment of one training, beside the origin's."""
    text = (clone.folder / "config" / "quickstart.yaml").read_text()
    text = re.sub(r"pruned:\n(  - .*\n)+|ablation:\n(  .*\n)+", "", text)
    (clone.folder / "config" / "other.yaml").write_text(text.replace("seeds: [1]", "seeds: [7]"))
    code, output = clone.run("--config", "experiment=other")
    assert code == 0, output
    untouched = sorted((clone.folder / "results" / "quickstart").rglob("*.*"))
    written = [path.stat().st_mtime_ns for path in untouched]
    clone.change("dvc.yaml", "experiments: [quickstart]", "experiments: [other]")
    clone.change("config/other.yaml", "seeds: [7]", "seeds: [7, 3]")
    jobs = {"train": 1, "translate": 1, "bleu": 1, "masking": 1} | dict.fromkeys(MEASURING, 1)
    shown = REDRAWN | ROLES | {"headmask": 1}
    assert ran(clone.call("dvc", "repro")) == jobs | shown
    clone.change("config/other.yaml", "seeds: [7, 3]", "seeds: [3]")
    output = clone.call("dvc", "repro")
    assert ran(output) == shown
    assert "seed7/curves.csv, which no job makes any more" in output
    run = clone.folder / RUN.replace("quickstart", "other")
    assert not list((run / "seed7").rglob("*.*"))
    assert sorted((clone.folder / "results" / "quickstart").rglob("*.*")) == untouched
    assert [path.stat().st_mtime_ns for path in untouched] == written


def test_an_experiment_of_dvc_runs_its_own_jobs_and_can_be_compared_and_applied(clone):
    # DVC's queue copies the Git settings in ASCII; the origin's path is not.
    clone.call("git", "remote", "remove", "origin")
    clone.shell("dvc exp run --queue -n named -S config/quickstart.yaml:title=Another")
    clone.call("dvc", "exp", "run", "--run-all")
    assert "named" in clone.shell("dvc exp show")
    clone.call("dvc", "exp", "apply", "named")
    assert "<h1>Another</h1>" in (clone.folder / "results/quickstart/report.html").read_text()
    assert "Another" in clone.shell("dvc params diff")
    both_quiet(clone)
    clone.change("results/quickstart/metrics.json", '"chrf": ', '"chrf": 1')
    assert "baseline.test.chrf" in clone.shell("dvc metrics diff")
    plots = clone.shell("dvc plots diff HEAD -o page")
    assert "index.html" in plots and "dev_loss" in (clone.folder / "page/index.html").read_text()


def test_f10_a_title_reaches_the_page_as_it_is(clone):
    title = "-n {input} {a} $(touch x); 'quoted' <b>"
    path = clone.folder / "config/quickstart.yaml"
    path.write_text(re.sub("(?m)^title: .*$", f"title: {json.dumps(title)}", path.read_text()))
    code, output = clone.run()
    assert code == 0 and ran(output) == {"report": 1}, output
    page = (clone.folder / "results/quickstart/report.html").read_text()
    assert "<h1>-n {input} {a} $(touch x); &#39;quoted&#39; &lt;b&gt;</h1>" in page
    assert not (clone.folder / "x").exists()


@pytest.mark.skipif(os.cpu_count() < 2, reason="one core runs one job at a time anyway")
def test_nothing_runs_beside_what_is_timed(origin):
    line = r"^ *\d+/\d+ (started|done) +([^,\n]+)"
    events = re.findall(line, origin.built, re.MULTILINE)
    timed = {job for _, job in events if "speed" in job.split()[0]}
    running: set[str] = set()
    beside = []
    for what, job in events:
        running = running | {job} if what == "started" else running - {job}
        beside += [running - timed] if running & timed else []
    assert len(timed) == 3 and not any(beside) and len(events) > 50


def test_dvc_yaml_fits_the_rules_of_every_experiment(clone):
    for corpus in load_corpora(clone.folder / "config" / "corpora.yaml").values():
        for path in filter(None, (file.path for file in corpus.files())):
            (clone.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (clone.folder / path).touch()  # text of one's own, which a plan asks to be there
    # Nor is jieba here, which a plan asks for as well.
    clone.change(
        "config/headmask_zh.yaml", "unsegmented_scripts: jieba", "unsegmented_scripts: characters"
    )
    for model in load_models(clone.folder / "config" / "models.yaml").values():
        if model.path:
            (clone.folder / model.path).mkdir(parents=True, exist_ok=True)
            (clone.folder / model.path / "model.safetensors").touch()
            (clone.folder / model.path / "config.json").write_text(json.dumps(OPUS_MT))
    for path in (clone.folder / "config").glob("*.yaml"):
        # More seeds are more jobs of the same rules.
        path.write_text(re.sub(r"(?m)^seeds: \[(\d+),.*", r"seeds: [\1]", path.read_text()))
    for name in experiment_names(clone.folder / "config"):
        clone.call("python", "workflow/bridge.py", "plan", name)

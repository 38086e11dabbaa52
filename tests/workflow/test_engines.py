"""Two engines, one graph: Snakemake, DVC, real clones, a real remote."""

import json
import os
import re
import shutil
import zipfile
from pathlib import Path

import pytest
from project_copy import ProjectCopy, planned, ran
from shared_results import (
    GATHERED,
    QUIET,
    ROLES,
    RUN,
    TRAINED,
    TRANSLATED,
    both_quiet,
    fresh_clone,
    weights,
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


def test_the_first_run_leaves_git_with_nothing_to_say(origin):
    assert origin.untidy == ""
    assert (origin.folder / "results/quickstart/metrics.json").exists()
    for name in ("results/tiny/metrics.json", "data/text/tiny/train.src"):
        origin.call("git", "check-ignore", name)


def test_dvc_adopts_what_snakemake_built(origin):
    assert ran(origin.adopted) == {}
    assert QUIET in origin.adopted
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


def test_a_clone_compares_its_numbers_with_those_of_an_earlier_commit(origin, clone):
    """DVC takes a remote's relative path in an earlier commit from the root of the disk."""
    clone.call("git", "commit", "-q", "--allow-empty", "-m", "later")
    remote = origin.folder.parent / "headcount-remote"
    clone.shell(f"dvc remote modify --local shared url {remote}")
    shutil.rmtree(clone.folder / ".dvc" / "cache")
    clone.change("results/quickstart/metrics.json", '"chrf": ', '"chrf": 1')
    changed = clone.call("dvc", "metrics", "diff", "HEAD~1")
    assert "baseline.test.chrf" in changed and "failed" not in changed


def test_without_git_dvc_works_once_it_is_told_so(clone):
    shutil.rmtree(clone.folder / ".git")
    assert "is not a git repository" in clone.call("dvc", "pull", fails=True)
    told = clone.shell("python workflow/part.py give quickstart parts/lab")
    assert "dvc config --local core.no_scm true" in told
    clone.shell("dvc config --local core.no_scm true")
    shutil.rmtree(clone.folder / "results")
    clone.call("dvc", "pull")
    both_quiet(clone)
    assert "up to date" in clone.call("dvc", "repro")


def test_f55_what_is_shared_names_no_folder_of_this_machine(origin):
    """All that Git and DVC carry: what is committed, DVC's lists, and every object pushed."""
    committed = [origin.folder / name for name in origin.call("git", "ls-files").splitlines()]
    remote = origin.folder.parent / "headcount-remote"
    pushed = [path for path in remote.rglob("*") if path.is_file()]
    assert len(committed) > 200 and len(pushed) > 100
    for hidden in (f"{Path.home()}/", str(origin.folder.parent)):
        named = [path for path in committed + pushed if hidden.encode() in path.read_bytes()]
        assert named == []


@pytest.mark.parametrize("link", ["hardlink", "symlink"])
def test_f11_f47_one_setting_reruns_the_same_jobs_and_none_writes_through_a_link(clone, link):
    """In either engine; files of the cache that are linked into the folder stay as they are."""
    clone.call("dvc", "config", "--local", "cache.type", link)
    clone.call("dvc", "checkout", "--relink")
    objects = {path: path.read_bytes() for path in (clone.folder / ".dvc/cache").rglob("*/??/*")}
    assert len(objects) > 20
    clone.change("config/quickstart.yaml", "max_length_extra: 5", "max_length_extra: 6")
    expected = TRANSLATED | {"general": 1} | GATHERED
    assert planned(clone.run("-n")[1]) == expected
    assert ran(clone.call("dvc", "repro")) == expected
    assert all(path.read_bytes() == content for path, content in objects.items())
    both_quiet(clone)


def test_f11_two_settings_that_trade_values_are_two_changes(clone):
    clone.change("config/quickstart.yaml", "warmup_updates: 20", "warmup_updates: 50")
    clone.change("config/quickstart.yaml", "dev_interval: 50", "dev_interval: 20")
    clone.change("config/quickstart.yaml", "updates: 60", "updates: 100")
    assert planned(clone.run("-n")[1])["train"] == 1


def test_code_committed_but_not_run_is_noticed_in_a_clone(origin, clone):
    """The script is older than the results that are pulled after it; its time says nothing."""
    clone.change(
        "src/headcount/analysis/tables/general.yaml", "Loss by updates", "Losses by updates"
    )
    clone.commit()
    again = fresh_clone(clone, f"{clone.folder.name}-again")
    again.call("git", "remote", "set-url", "origin", str(origin.folder))
    expected = {"general": 1, "claims": 1, "cost": 1, "report": 1}
    assert planned(again.run("-n")[1]) == expected
    assert ran(again.call("dvc", "repro")) == expected
    both_quiet(again)


def test_a_comment_or_docstring_reruns_nothing(clone):
    path = clone.folder / "src" / "headcount" / "training" / "train.py"
    path.write_text(path.read_text() + "\n# A remark.\n")
    clone.change(
        "src/headcount/training/train.py", '"""The training loop:', '"""Training, in a loop:'
    )
    assert QUIET in clone.run("-n")[1]
    assert ran(clone.call("dvc", "repro")) == {}
    both_quiet(clone)


def test_a_seed_more_and_less_and_another_experiment_untouched(clone):
    text = (clone.folder / "config" / "quickstart.yaml").read_text()
    without = re.sub(r"pruned:\n(  - .*\n)+", "", text)
    (clone.folder / "config" / "other.yaml").write_text(without.replace("seeds: [1]", "seeds: [7]"))
    code, output = clone.run("--config", "experiment=other")
    assert code == 0, output
    other = sorted((clone.folder / "results" / "other").rglob("*.*"))
    written = [path.stat().st_mtime_ns for path in other]
    clone.change("config/quickstart.yaml", "seeds: [1]", "seeds: [1, 3]")
    gathered = GATHERED | ROLES
    assert ran(clone.call("dvc", "repro")) == TRAINED | TRANSLATED | gathered
    clone.change("config/quickstart.yaml", "seeds: [1, 3]", "seeds: [3]")
    output = clone.call("dvc", "repro")
    assert ran(output) == gathered
    assert "seed1/curves.csv, which no job makes any more" in output
    assert not list((clone.folder / RUN / "seed1").rglob("*.*"))
    assert sorted((clone.folder / "results" / "other").rglob("*.*")) == other
    assert [path.stat().st_mtime_ns for path in other] == written
    clone.change("dvc.yaml", "experiments: [quickstart]", "experiments: [quickstart, other]")
    assert ran(clone.call("dvc", "repro")) == {}
    both_quiet(clone)
    assert QUIET in clone.run("-n", "--config", "experiment=other")[1]


def test_a_rule_that_no_stage_covers_is_refused(clone):
    rules = clone.folder / "workflow" / "rules" / "analysis.smk"
    rules.write_text(rules.read_text().replace('"<results>/report.html"', '"<results>/page.html"'))
    output = clone.call("python", "workflow/bridge.py", "plan", "quickstart", fails=True)
    assert "rule report: no stage's outs cover results/quickstart/page.html" in output
    assert "Traceback" not in output


def test_metrics_params_plots_and_experiments(clone):
    before = metrics(clone)
    clone.shell("dvc exp run -n wider -S config/quickstart.yaml:+decode.beam=8")
    after = metrics(clone)
    assert "decode.beam" in clone.shell("dvc params diff")
    (line,) = re.findall(r".*baseline\.test\.chrf .*", clone.shell("dvc metrics diff"))
    old, new, change = map(float, line.split()[-3:])
    assert (old, new) == pytest.approx((before, after)) and change == pytest.approx(new - old)
    plots = clone.shell("dvc plots diff HEAD -o page")
    assert "index.html" in plots and "dev_loss" in (clone.folder / "page/index.html").read_text()
    both_quiet(clone)
    clone.shell("git checkout -q . && dvc checkout -q")
    both_quiet(clone)
    assert "wider" in clone.shell("dvc exp show")
    clone.shell("dvc exp apply wider")
    assert metrics(clone) == after
    both_quiet(clone)


def test_a_queued_experiment_runs_its_own_jobs_and_can_be_applied(clone):
    # DVC's queue copies the Git settings in ASCII; the origin's path is not.
    clone.call("git", "remote", "remove", "origin")
    clone.shell("dvc exp run --queue -n named -S config/quickstart.yaml:title=Another")
    clone.call("dvc", "exp", "run", "--run-all")
    assert "named" in clone.call("dvc", "exp", "show", "--csv")
    clone.call("dvc", "exp", "apply", "named")
    assert "title: Another" in (clone.folder / "config" / "quickstart.yaml").read_text()
    assert "<h1>Another</h1>" in (clone.folder / "results/quickstart/report.html").read_text()
    both_quiet(clone)


def metrics(copy: ProjectCopy) -> float:
    found = json.loads((copy.folder / "results" / "quickstart" / "metrics.json").read_text())
    return found["synthetic.en-art"]["baseline"]["test"]["chrf"]


def test_a_pair_more_runs_its_own_jobs_and_its_removal_sweeps_them(origin, clone):
    first = "synthetic.en-art"
    clone.change("config/quickstart.yaml", f"[{first}]", f"[{first}, synthetic.art-en]")
    assert ran(clone.run("raw")[1]) == {"synthetic": 1}  # a clone has no raw data
    per_pair = {"text": 3, "bpe": 1} | TRAINED | TRANSLATED
    gathered = GATHERED | ROLES
    assert planned(clone.run("-n")[1]) == per_pair | gathered
    assert ran(clone.call("dvc", "repro")) == per_pair | gathered
    both_quiet(clone)
    assert weights(clone) == weights(origin)
    clone.change("config/quickstart.yaml", ", synthetic.art-en]", "]")
    assert ran(clone.call("dvc", "repro")) == gathered
    assert not list((clone.folder / "results/quickstart/train").glob("*art-en/**/*.*"))
    both_quiet(clone)


def test_snakemake_reports_with_titles_and_opens_offline(clone):
    clone.shell("snakemake --report report.zip")
    with zipfile.ZipFile(clone.folder / "report.zip") as archive:
        names = archive.namelist()
        page = archive.read("report/report.html").decode()
    for name in ("bleu.csv", "corpus.csv", "curves.svg", "report.html", "headmask_fig2.svg"):
        assert any(path.endswith(name) for path in names)
    assert "Figure 2: the baseline with more and more heads masked" in page
    assert not re.search(r"<(script|link)[^>]+(src|href)=.https?:", page)


@pytest.mark.skipif(os.cpu_count() < 2, reason="one core runs one job at a time anyway")
def test_nothing_runs_beside_what_is_timed(origin):
    line = r"^ *\d+/\d+ (started|done) +([^,\n]+)"
    events = re.findall(line, origin.built, re.MULTILINE)
    timed = {job for _, job in events if job.split()[0] in ("speed", "share_speed")}
    running: set[str] = set()
    beside = []
    for what, job in events:
        running = running | {job} if what == "started" else running - {job}
        beside += [running - timed] if running & timed else []
    assert beside == [set()] and len(events) > 50


def test_f42_the_number_of_cores_changes_no_command(origin):
    """A dry run of everything, which changes nothing in the origin."""
    one, seven = (
        sorted(re.findall("Shell command: .*", origin.shell(f"snakemake -nF -p --cores {cores}")))
        for cores in (1, 7)
    )
    assert one == seven and len(one) > 25


def test_dvc_yaml_fits_the_rules_of_every_experiment(clone):
    for corpus in load_corpora(clone.folder / "config" / "corpora.yaml").values():
        for path in filter(None, (file.path for file in corpus.files())):
            (clone.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (clone.folder / path).touch()  # text of one's own, which a plan asks to be there
    # Nor is jieba here, which a plan asks for as well.
    clone.change("config/headmask_zh.yaml", "unspaced: jieba", "unspaced: characters")
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

"""Two engines, one graph: Snakemake, DVC, real clones, a real remote, real kills."""

import json
import os
import re
import shlex
import signal
import tempfile
import time
import zipfile
from pathlib import Path

import pytest
import yaml
from project_copy import ProjectCopy, planned, ran, saved_states, training_of

pytestmark = pytest.mark.slow

TINY = ("--config", "experiment=tiny")
QUIET = "Nothing to be done"
REVERSED_LISTINGS = """
import os
from contextlib import nullcontext
listed, scanned = os.listdir, os.scandir
os.listdir = lambda *path: sorted(listed(*path), reverse=True)


class Reversed(nullcontext):
    def __init__(self, *path):
        with scanned(*path) as entries:
            self.entries = iter(sorted(entries, key=lambda entry: entry.name, reverse=True))

    def __enter__(self):
        return self

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.entries)

    def close(self):
        pass


os.scandir = Reversed
"""
RUN = "results/tiny/train/synthetic_tiny.en-art/baseline"
HEADMASK = {"headmask_tables": 1, "headmask_figures": 1}


@pytest.fixture(scope="module")
def origin(tmp_path_factory) -> ProjectCopy:
    """A repository whose experiment Snakemake built, DVC adopted, and both committed and pushed."""
    copy = ProjectCopy(tmp_path_factory.mktemp("engines") / "-the team's $HOME; 🙂 שלום")
    copy.change("dvc.yaml", "experiments: [quickstart]", "experiments: [tiny]")
    copy.change(".dvc/config", "../../headcount-remote", "../../remote")
    copy.change("config/tiny.yaml", "updates: 300", "updates: 60")
    copy.change("config/tiny.yaml", "seeds: [1]", "seeds: [1, 2]")
    rule = "workflow/rules/train.smk"
    copy.change(rule, "--state ", "--save-seconds 0 --state ")
    copy.call("git", "init", "-q", "-b", "main")
    copy.commit()
    code, output = copy.run(*TINY)
    assert code == 0, output
    copy.adopted = copy.call("dvc", "repro")
    copy.call("dvc", "push")
    copy.commit()
    return copy


@pytest.fixture
def clone(origin, tmp_path) -> ProjectCopy:
    """A fresh clone beside the origin, with everything pulled."""
    return fresh_clone(origin, tmp_path.name)


def fresh_clone(origin: ProjectCopy, name: str) -> ProjectCopy:
    folder = origin.folder.parent / name
    origin.call("git", "clone", "-q", str(origin.folder), str(folder))
    copy = object.__new__(ProjectCopy)
    copy.folder = folder
    copy.call("dvc", "pull", "-q")
    return copy


def both_quiet(copy: ProjectCopy) -> None:
    assert "up to date" in copy.call("dvc", "status")
    code, output = copy.run("-n", *TINY)
    assert code == 0 and QUIET in output, output


def weights(copy: ProjectCopy, seed: int = 1) -> str:
    model = copy.folder / RUN / f"seed{seed}" / "model" / "model.json"
    return json.loads(model.read_text())["sha256"]["weights.safetensors"]


def test_dvc_adopts_what_snakemake_built(origin):
    assert ran(origin.adopted) == {}
    assert QUIET in origin.adopted
    both_quiet(origin)


def test_f45_f49_clone_and_pull_and_both_rightly_have_nothing_to_do(origin, clone):
    both_quiet(clone)
    assert "up to date" in clone.call("dvc", "repro")
    os.utime(clone.folder / RUN / "seed1" / "model" / "model.json")  # a time alone is no change
    assert QUIET in clone.run("-n", *TINY)[1]
    assert not (clone.folder / "data" / "raw").exists()


def test_f11_one_setting_reruns_the_same_jobs_in_either_engine(clone):
    clone.change("config/tiny.yaml", "beam: 2", "beam: 3")
    expected = {"translate": 2, "bleu": 2, "masking": 2, "bleu_table": 1, "report": 1} | HEADMASK
    assert planned(clone.run("-n", *TINY)[1]) == expected
    assert ran(clone.call("dvc", "repro")) == expected
    both_quiet(clone)


def test_f11_two_settings_that_trade_values_are_two_changes(clone):
    clone.change("config/tiny.yaml", "warmup_updates: 20", "warmup_updates: 100")
    clone.change("config/tiny.yaml", "dev_interval: 100", "dev_interval: 20")
    clone.change("config/tiny.yaml", "updates: 60", "updates: 100")
    assert planned(clone.run("-n", *TINY)[1])["train"] == 2


def test_code_committed_but_not_run_is_noticed_in_a_clone(origin, clone):
    """The script is older than the results that are pulled after it; its time says nothing."""
    clone.change("src/headcount/findings/curves.py", '"minutes of training"', '"minutes"')
    clone.commit()
    again = fresh_clone(clone, f"{clone.folder.name}-again")
    again.call("git", "remote", "set-url", "origin", str(origin.folder))
    expected = {"curves_figure": 1, "report": 1}
    assert planned(again.run("-n", *TINY)[1]) == expected
    assert ran(again.call("dvc", "repro")) == expected
    both_quiet(again)


def test_a_comment_or_docstring_reruns_nothing(clone):
    path = clone.folder / "src" / "headcount" / "runs" / "train.py"
    path.write_text(path.read_text() + "\n# A remark.\n")
    clone.change("src/headcount/runs/train.py", '"""The training loop:', '"""Training, in a loop:')
    assert QUIET in clone.run("-n", *TINY)[1]
    assert ran(clone.call("dvc", "repro")) == {}
    both_quiet(clone)


def test_a_seed_more_and_less_and_another_experiment_untouched(clone):
    text = (clone.folder / "config" / "tiny.yaml").read_text()
    (clone.folder / "config" / "other.yaml").write_text(text.replace("[1, 2]", "[7]"))
    code, output = clone.run("--config", "experiment=other")
    assert code == 0, output
    other = sorted((clone.folder / "results" / "other").rglob("*.*"))
    times = [path.stat().st_mtime_ns for path in other]
    clone.change("config/tiny.yaml", "seeds: [1, 2]", "seeds: [1, 2, 3]")
    per_run = {"train": 1, "translate": 1, "bleu": 1, "importance": 1, "masking": 1}
    gathered = {"bleu_table": 1, "curves_figure": 1, "report": 1} | HEADMASK
    assert ran(clone.call("dvc", "repro")) == per_run | gathered
    clone.change("config/tiny.yaml", "seeds: [1, 2, 3]", "seeds: [1, 3]")
    output = clone.call("dvc", "repro")
    assert ran(output) == gathered
    assert "seed2/curves.csv, which no job makes any more" in output
    assert not list((clone.folder / RUN / "seed2").rglob("*.*"))
    assert sorted((clone.folder / "results" / "other").rglob("*.*")) == other
    assert [path.stat().st_mtime_ns for path in other] == times
    clone.change("dvc.yaml", "experiments: [tiny]", "experiments: [tiny, other]")
    assert ran(clone.call("dvc", "repro")) == {}
    both_quiet(clone)
    assert QUIET in clone.run("-n", "--config", "experiment=other")[1]


def test_f31_f44_dvc_killed_in_a_training_leaves_no_orphan_and_finishes(origin, clone):
    clone.change("config/tiny.yaml", "peak_lr: 1e-2", "peak_lr: 9e-3")
    clone.change("config/tiny.yaml", "updates: 60", "updates: 400")
    process = clone.start_command("dvc", "repro")
    while not saved_states(clone.folder):
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.01)
    training = training_of(clone.folder)
    process.send_signal(signal.SIGKILL)
    process.wait()
    end = time.monotonic() + 5
    while Path(f"/proc/{training}/cwd").exists() and time.monotonic() < end:
        time.sleep(0.01)
    assert not Path(f"/proc/{training}/cwd").exists()
    clone.call("dvc", "repro")
    logs = (clone.folder / "results/tiny/logs/train").glob("*.log")
    assert any("going on from update" in path.read_text() for path in logs)
    both_quiet(clone)
    assert weights(clone) != weights(origin)


def test_f43_snakemake_beside_dvc_names_the_holder_and_leaves_with_3(clone):
    clone.change("config/tiny.yaml", "updates: 60", "updates: 900")
    process = clone.start_command("dvc", "repro")
    while not saved_states(clone.folder):
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.01)
    code, output = clone.run(*TINY)
    second = clone.call("dvc", "repro", fails=True)
    process.kill()
    process.wait()
    assert code == 3 and "is running this workflow" in output
    assert f"(PID {process.pid})" in second  # DVC names it too, with an exit code of its own


def test_f43_dvc_beside_snakemake_names_the_holder(clone):
    clone.change("config/tiny.yaml", "updates: 60", "updates: 900")
    process = clone.start(*TINY)
    while not saved_states(clone.folder):
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.01)
    output = clone.call("dvc", "repro", fails=True)
    process.kill()
    process.wait()
    assert f"process {process.pid} is running this workflow" in output


def test_f46_a_corrupted_object_in_the_remote_is_refused_by_name(origin, tmp_path):
    remote = origin.folder.parent / "remote"
    whole = (origin.folder / RUN / "seed1" / "model" / "weights.safetensors").read_bytes()
    (damaged,) = [
        path for path in remote.rglob("*") if path.is_file() and path.read_bytes() == whole
    ]
    damaged.chmod(0o644)
    damaged.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    folder = origin.folder.parent / f"{tmp_path.name}-clone"
    origin.call("git", "clone", "-q", str(origin.folder), str(folder))
    copy = object.__new__(ProjectCopy)
    copy.folder = folder
    copy.call("dvc", "pull", fails=True)
    assert not (folder / RUN).exists()  # nothing of the damaged phase is taken for whole
    told = copy.call("python", "workflow/verify.py", fails=True)
    pattern = r"seed1/model/weights\.safetensors: not here; fetched from (\S+) and (\S+\.dir)$"
    objects = re.search(pattern, told, re.MULTILINE).groups()
    assert remote / objects[0] == damaged
    for name in objects:  # the repair that the message names
        (remote / name).unlink()
    origin.call("dvc", "push")
    copy.call("dvc", "pull")
    assert "every file is what dvc.lock says" in copy.call("python", "workflow/verify.py")
    both_quiet(copy)


def test_f48_a_result_edited_by_hand_is_not_taken_for_ours(clone):
    path = clone.folder / RUN / "seed1" / "bleu.json"
    path.write_text(path.read_text().replace('"score": ', '"score": 9'))
    assert "results/tiny/train" in clone.call("dvc", "status")
    told = clone.call("python", "workflow/verify.py", fails=True)
    assert f"{RUN}/seed1/bleu.json: changed here" in told and "dvc checkout --force" in told
    code, output = clone.run("-n", *TINY)
    assert code == 0
    assert planned(output) == {"bleu_table": 1, "headmask_tables": 1, "report": 1}


def test_a_rule_that_no_stage_covers_is_refused(clone):
    rules = clone.folder / "workflow" / "rules" / "report.smk"
    rules.write_text(rules.read_text().replace('"<results>/report.html"', '"<results>/page.html"'))
    output = clone.call("python", "workflow/bridge.py", "plan", "tiny", fails=True)
    assert "rule report: no stage's outs cover results/tiny/page.html" in output
    assert "Traceback" not in output


def test_metrics_params_and_experiments(clone):
    before = metrics(clone)
    clone.call("dvc", "exp", "run", "-q", "-S", "config/tiny.yaml:decode.beam=1")
    assert "decode.beam" in clone.call("dvc", "params", "diff", "--targets", "config/tiny.yaml")
    shown = clone.call("dvc", "metrics", "diff", "--json", "--all")
    changes = json.loads(shown)["results/tiny/metrics.json"]
    chrf = changes["synthetic_tiny.en-art.baseline.test.chrf"]
    after = metrics(clone)
    assert (chrf["old"], chrf["new"]) == (before, after)
    both_quiet(clone)
    plots = clone.call("dvc", "plots", "diff", "HEAD", "-o", str(clone.folder / "page"))
    assert "index.html" in plots and "dev_loss" in (clone.folder / "page/index.html").read_text()


def test_a_queued_experiment_runs_its_own_jobs_and_can_be_applied(clone):
    # DVC's queue copies the Git settings in ASCII; the origin's path is not (docs/engines.md).
    clone.call("git", "remote", "remove", "origin")
    clone.call(
        "dvc", "exp", "run", "--queue", "-n", "wider", "-S", "config/tiny.yaml:decode.beam=4"
    )
    clone.call("dvc", "exp", "run", "--run-all")
    assert "wider" in clone.call("dvc", "exp", "show", "--csv")
    clone.call("dvc", "exp", "apply", "wider")
    assert "beam: 4" in (clone.folder / "config" / "tiny.yaml").read_text()
    both_quiet(clone)


def metrics(copy: ProjectCopy) -> float:
    found = json.loads((copy.folder / "results" / "tiny" / "metrics.json").read_text())
    return found["synthetic_tiny.en-art"]["baseline"]["test"]["chrf"]


@pytest.mark.parametrize("link", ["hardlink", "symlink"])
def test_f47_no_step_writes_through_a_link_into_the_cache(origin, tmp_path, link):
    copy = fresh_clone(origin, f"{tmp_path.name}-{link}")
    copy.call("dvc", "config", "--local", "cache.type", link)
    copy.call("dvc", "checkout", "--relink")
    objects = {path: path.read_bytes() for path in (copy.folder / ".dvc/cache").rglob("*/??/*")}
    assert len(objects) > 20
    copy.change("config/tiny.yaml", "beam: 2", "beam: 3")
    assert ran(copy.call("dvc", "repro"))["translate"] == 2
    assert all(path.read_bytes() == content for path, content in objects.items())
    both_quiet(copy)


def test_f47_a_cache_on_another_device_serves_by_copies(origin, tmp_path):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as cache:
        assert os.stat(cache).st_dev != os.stat(tmp_path).st_dev
        folder = origin.folder.parent / f"{tmp_path.name}-device"
        origin.call("git", "clone", "-q", str(origin.folder), str(folder))
        copy = object.__new__(ProjectCopy)
        copy.folder = folder
        copy.call("dvc", "cache", "dir", "--local", cache)
        copy.call("dvc", "config", "--local", "cache.type", "reflink,hardlink,copy")
        copy.call("dvc", "pull", "-q")
        copy.change("config/tiny.yaml", "beam: 2", "beam: 3")
        assert ran(copy.call("dvc", "repro"))["translate"] == 2
        both_quiet(copy)


def test_f47_a_read_only_checkout_is_refused(clone):
    here = shlex.quote(str(clone.folder))
    read_only = f"mount --bind {here} {here} && mount -o remount,ro,bind {here} && cd {here} && "
    if clone.start_command("unshare", "-m", "sh", "-c", read_only + "true").wait():
        pytest.skip("a read-only mount needs root and mount namespaces")
    command = read_only + "snakemake -n --config experiment=tiny"
    process = clone.start_command("unshare", "-m", "sh", "-c", command)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 3, output
    assert "is read-only" in output and "Traceback" not in output
    both_quiet(clone)


def test_a_pair_more_runs_its_own_jobs_and_its_removal_sweeps_them(origin, clone):
    first = "synthetic_tiny.en-art"
    clone.change("config/tiny.yaml", f"[{first}]", f"[{first}, synthetic_tiny.art-en]")
    assert ran(clone.run("raw", *TINY)[1]) == {"synthetic": 1}  # a clone has no raw data
    per_pair = {"text": 3, "bpe": 1, "train": 2, "translate": 2, "bleu": 2}
    per_pair |= {"importance": 2, "masking": 2}
    gathered = {"corpus_table": 1, "bleu_table": 1, "curves_figure": 1, "report": 1} | HEADMASK
    assert planned(clone.run("-n", *TINY)[1]) == per_pair | gathered
    assert ran(clone.call("dvc", "repro")) == per_pair | gathered
    both_quiet(clone)
    assert weights(clone) == weights(origin)
    clone.change("config/tiny.yaml", ", synthetic_tiny.art-en]", "]")
    assert ran(clone.call("dvc", "repro")) == gathered
    assert not list((clone.folder / "results/tiny/train").glob("*art-en/**/*.*"))
    both_quiet(clone)


def test_f51_another_hash_seed_and_order_of_folders_give_the_same_data_and_weights(
    origin, tmp_path
):
    folder = origin.folder.parent / f"{tmp_path.name}-seeded"
    origin.call("git", "clone", "-q", str(origin.folder), str(folder))
    copy = object.__new__(ProjectCopy)
    copy.folder = folder
    (folder / "src" / "sitecustomize.py").write_text(REVERSED_LISTINGS)
    lock = yaml.safe_load((folder / "dvc.lock").read_text())["stages"]["data@tiny"]["outs"]
    code, output = copy.run(*TINY, PYTHONHASHSEED="7", TZ="Asia/Tokyo")
    assert code == 0, output
    assert weights(copy) == weights(origin) and weights(copy, 2) == weights(origin, 2)
    copy.call("dvc", "repro")
    again = yaml.safe_load((folder / "dvc.lock").read_text())["stages"]["data@tiny"]["outs"]
    assert [out["md5"] for out in again[:2]] == [out["md5"] for out in lock[:2]]


def test_snakemake_reports_with_captions_and_opens_offline(clone):
    code, output = clone.run("--report", "report.zip", *TINY)
    assert code == 0, output
    with zipfile.ZipFile(clone.folder / "report.zip") as archive:
        names = archive.namelist()
        page = archive.read("report/report.html").decode()
    for name in ("bleu.csv", "corpus.csv", "curves.svg", "report.html", "headmask_fig2.svg"):
        assert any(path.endswith(name) for path in names)
    assert "sacreBLEU" in page  # a caption
    assert not re.search(r"<(script|link)[^>]+(src|href)=.https?:", page)


def test_dvc_yaml_fits_the_rules_of_every_experiment(clone):
    for path in (clone.folder / "config").glob("*.yaml"):
        if path.stem != "corpora":
            clone.call("python", "workflow/bridge.py", "plan", path.stem)

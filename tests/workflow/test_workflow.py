"""Every rule on real engines: its files, what a change runs again, faults, kills."""

import base64
import csv
import gzip
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from project_copy import ROOT, ProjectCopy, planned, ran, saved_states, training_of, wait_until
from shared_results import DECODED, GATHERED, QUIET, REDRAWN, ROLES, RUN, SECRET, copied_clone

from headcount.analysis.outputs import ON_REQUEST, chapters
from headcount.data.fetching.transfer import read_lock

pytestmark = pytest.mark.slow

RULE = r"(?m)^(?:use rule \w+ as|rule) (\w+)(?: with)?:"
ELSEWHERE = {"all", "raw", "prepare", "download", "michel_classifiers", "metric", "savings"}
ELSEWHERE |= {"pair_transfer", "pairs"}
"""Rules that need other settings; those of classifiers and imported models have tests as well."""
PARTLY = {"pruned_roles", "alignment", "pruned_alignment", "cost"}
"""Jobs for several folders, each of whose files records what is its own."""
RESULTS = "results/quickstart"
CONFIG = "config/quickstart.yaml"
GENERAL = "src/headcount/analysis/tables/general/scores"


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def project(origin, tmp_path_factory) -> ProjectCopy:
    """A clone with all results. Tests put back what they change."""
    return copied_clone(origin, tmp_path_factory.mktemp("project").name)


@pytest.fixture
def plan_with(project):
    """Return a function that plans with other text in a file, which is put back after the test."""
    before: dict[Path, str] = {}

    def plan(file: str, *changes: tuple[str, str]) -> tuple[int, str]:
        path = project.folder / file
        before[path] = text = path.read_text()
        for pattern, new in changes:
            text, count = re.subn(pattern, new, text)
            assert count, pattern
        path.write_text(text)
        return project.run("-n")

    yield plan
    for path, text in before.items():
        path.write_text(text)


def test_every_rule_runs_and_leaves_what_the_design_names(origin):
    files = [ROOT / "workflow" / "Snakefile", *(ROOT / "workflow" / "rules").glob("*.smk")]
    named = {file.stem: set(re.findall(RULE, file.read_text())) for file in files}
    others = ELSEWHERE | ON_REQUEST
    for elsewhere in ("classifiers", "pretrained", "silver", "pairs"):
        others |= named.pop(elsewhere)
    rules = set().union(*named.values(), {chapter.name for chapter in chapters()})
    assert rules - others == set(ran(origin.built)) and len(rules) > 30
    results = origin.folder / RESULTS
    run = origin.folder / RUN / "seed1"
    for name in ("model/weights.safetensors", "model/model.json", "updates/30.safetensors"):
        assert (run / name).stat().st_size > 0
    curve = rows(run / "curves.csv")
    assert [row["step"] for row in curve] == ["50", "60"]
    assert float(curve[1]["dev_loss"]) < float(curve[0]["dev_loss"])
    points = rows(results / "masking" / run.relative_to(results / "train") / "headmask.csv")
    assert {row["heads_masked"] for row in points if row["order"] == "group"} == {"6", "7"}  # of 32
    page, atlas = ((results / name).read_text() for name in ("report.html", "atlas.html"))
    assert '"id":"synthetic_near.en-art/baseline/1"' in atlas and len(atlas) < 6e6
    assert not re.search(r"(src|href)=.https?:", page + atlas)  # they open offline
    for name in ("voita_table2", "voita_pruning", "voita_fig7", "voita_gates", "voita_speedup"):
        assert f'-{name}">' in page
    for name in ("ablation", "transfer", "pruning", "speed", "training"):
        assert f'-michel_{name}">' in page
    for path in [*results.glob("tables/*.json"), *results.glob("figures/*.json")]:
        caption = json.loads(path.read_text())["caption"]
        assert 1 <= len(re.findall(r"[.?!](?= |$)", caption)) <= 3, path.name
    assert not list(results.glob("state/*")) and not list(origin.folder.rglob(".part-*"))


def test_jobs_record_exactly_the_files_that_their_rules_list(origin):
    """Or a file that shapes a result would go unwatched; a folder's job records what is its own."""
    records = _records(origin.folder)
    compared = set()
    for path in (origin.folder / RESULTS).rglob("*.json"):
        facts = json.loads(path.read_text())
        job = records.get(path.relative_to(origin.folder).as_posix())
        if job and isinstance(facts, dict) and "provenance" in facts:
            listed, recorded = set(job["input"]), set(facts["provenance"]["inputs"])
            assert recorded <= listed, path
            if job["rule"] not in PARTLY:
                assert recorded == listed, path
                compared.add(job["rule"])
    assert {"train", "gates", "translate", "relevance", "roles", "masking", "speed"} <= compared
    assert {"ablation", "voita_roles"} <= compared


def _records(folder: Path) -> dict[str, dict]:
    """Return what Snakemake records of the job that made each output, by the output's path."""
    stored = folder / ".snakemake" / "metadata"
    records = {}
    for path in stored.rglob("*"):
        if path.is_file():  # long names are cut into folders that begin with @
            name = "".join(part.removeprefix("@") for part in path.relative_to(stored).parts)
            records[base64.urlsafe_b64decode(name).decode()] = json.loads(path.read_text())
    return records


def test_scores_in_the_table_are_those_of_the_translations(origin):
    """The table's chrF, recomputed with sacreBLEU's command from the files that people see."""
    translations = origin.folder / RUN / "seed1/translations/test.txt"
    reference = origin.folder / "data/text/quickstart/synthetic_near.en-art/test.tgt"
    command = ["sacrebleu", reference, "-i", translations, "-m", "chrf", "-b", "-w", "4"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    scores = {(r["run"], r["metric"]): r for r in rows(origin.folder / RESULTS / "tables/bleu.csv")}
    score = float(scores["baseline", "chrf"]["score"])
    assert float(printed) == pytest.approx(score, abs=1e-3) and score > 0


def test_pruned_models_from_real_runs(origin):
    """The heads of each model are those of its list, and controls have as many."""
    pruned = origin.folder / RESULTS / "prune/synthetic_near.en-art"
    kept = {}
    gates, subset = "gates-all-l0.015", "subset-all-k6"
    for run in (gates, f"scratch-{gates}", f"ranked-{gates}", subset):
        folder = pruned / run / "seed1"
        heads = rows(folder / "heads.csv")
        kept[run] = [float(row["value"]) != 0 for row in heads if row["statistic"] == "gate"]
        shape = json.loads((folder / "model" / "model.json").read_text())["model"]["heads"]
        assert sum(map(sum, shape.values())) == sum(kept[run])
        assert len((folder / "translations" / "test.txt").read_text().splitlines()) == 200
    assert kept[f"scratch-{gates}"] == kept[gates]
    assert sum(kept[f"ranked-{gates}"]) == sum(kept[gates]) < 32
    assert sum(kept[subset]) == 6
    masking = origin.folder / RESULTS / "masking/synthetic_near.en-art/baseline/seed1"
    assert {
        (row["order"], row["matched_run"]) for row in rows(masking / "untuned_masking.csv")
    } == {(order, run) for order in ("gates", "ranked", "drawn") for run in ("gates-all-l0", gates)}
    timed = {row["model"] for row in rows(pruned / "speed/seed1/speed.csv")}
    assert timed == {"baseline", gates, f"{gates}-from-none", f"ranked-{gates}", subset}
    scored = {row["run"] for row in rows(origin.folder / RESULTS / "tables/bleu.csv")}
    anew = {"gates-all-l0-from-none", f"{gates}-from-none"}
    assert scored == {"baseline", "gates-all-l0", *anew, *kept}


def test_ablation_from_real_runs(origin):
    """Four layers of eight heads: every head alone, and steps at the end and before."""
    folder = origin.folder / RESULTS / "masking/synthetic_near.en-art/baseline/seed1"
    masks = rows(folder / "ablation.csv")
    single = [row["test_set"] for row in masks if row["order"] == "single"]
    assert (single.count("dev"), single.count("test")) == (32, 32)
    # Each head of a layer is tried on dev, the best one on test.
    alone = [row["test_set"] for row in masks if row["order"] == "all_but_one"]
    assert (alone.count("dev"), alone.count("test")) == (32, 4)
    steps = rows(folder / "training_profile.csv")
    assert {row["update"] for row in steps} == {"30", "60"}
    assert [steps[0]["heads_masked"], steps[-1]["heads_masked"]] == ["0", "32"]
    timed = rows(folder / "share_speed.csv")
    assert {(row["model"], row["heads_left"]) for row in timed} == {("0", "32"), ("50", "16")}


def test_f42_cores_change_no_command(project):
    """What runs, with which flags: `threads` among them is a setting."""
    printed = (project.run("-n", "-F", "-p", "--cores", cores)[1] for cores in ("1", "7"))
    one, seven = ({line for line in text.splitlines() if "scripts/" in line} for text in printed)
    assert one == seven and any("--threads" in line for line in one)


LAMBDA = ("gates", "translate", "bleu", "untuned_masking", "speed", "pruned_roles")
LAMBDA += ("pruned_alignment",)
PRUNED = (r"pruned:\n(  - .*\n)+", "")
MORE = (r"lambda: \[0, 0.015\]\}", "lambda: [0, 0.015, 0.2]}")
TRADED = (("updates: 60", "updates: 70"), ("dev_interval: 50", "dev_interval: 20"))
TRADED += (("warmup_updates: 20", "warmup_updates: 50"),)


@pytest.mark.parametrize(
    ("file", "changes", "jobs"),
    [
        # The BLEU lost without a head stands beside what it does.
        (CONFIG, [("max_length_extra: 5", "max_length_extra: 6")], DECODED | GATHERED | ROLES),
        (CONFIG, [MORE], dict.fromkeys(LAMBDA, 1) | REDRAWN | {"voita_pruning": 1} | ROLES),
        # Learnt masks are drawn among the orders of pruning.
        (CONFIG, [PRUNED], REDRAWN | ROLES | {"michel": 1}),
        (f"{GENERAL}.yaml", [("Loss by updates", "Losses by updates")], REDRAWN),
        (f"{GENERAL}.py", [(r"\Z", "\n# A remark.\n")], {}),
    ],
    ids=["search", "lambda", "pruned", "caption", "comment"],
)
def test_f11_a_change_runs_again_what_it_touches_and_no_more(plan_with, file, changes, jobs):
    code, output = plan_with(file, *changes)
    assert code == 0 and planned(output) == jobs


def test_f11_two_settings_that_trade_values_are_two_changes(plan_with):
    assert planned(plan_with(CONFIG, *TRADED)[1])["train"] == 1


def test_f07_f09_a_pruned_run_that_cannot_be_is_refused_before_any_job(project):
    text = "pairs: [synthetic_tiny.en-art]\npruned: [{method: gates, lambda: 0.1}]\n"  # no control
    (project.folder / "config" / "wrong.yaml").write_text(text)
    code, output = project.run("--config", "experiment=wrong")
    assert code == 2 and "config/wrong.yaml:2: pruned" in output and "gates-all-l0'" in output
    assert "Traceback" not in output and not (project.folder / "results" / "wrong").exists()


PUBLISHED = """
published:
  licence: made by the test
  citation: none
  base_url: https://example.invalid/data
  splits:
"""


def test_f13_a_jobs_exit_code_and_words_are_the_workflows(project, tmp_path):
    """A file that the mirror lacks is the machine's fault: 3. The words come again at the end.

    A first fetch records the checksum of a file that has none.
    """
    mirror = tmp_path / "mirror" / "published"
    mirror.mkdir(parents=True)
    entry, data = PUBLISHED, gzip.compress(b"a b c\n")
    for split in ("train", "dev", "test"):
        entry += f"    {split}:\n"
        for language in ("en", "de"):
            checksum = f", sha256: {hashlib.sha256(data).hexdigest()}" * (split != "train")
            entry += f"      {language}: {{file: {split}.{language}.gz{checksum}}}\n"
            (mirror / f"{split}.{language}.gz").write_bytes(data)
    with (project.folder / "config" / "corpora.yaml").open("a") as file:
        file.write(entry)
    (project.folder / "config" / "mine.yaml").write_text("pairs: [published.de-en]\n")
    arguments = ("raw", "--config", "experiment=mine")
    (mirror / "train.en.gz").rename(tmp_path / "train.en.gz")
    code, output = project.run(*arguments, HEADCOUNT_MIRROR=str(mirror.parent))
    assert code == 3 and "Traceback" not in output, output
    message, place = output.splitlines()[-2:]
    assert message.startswith(f"error: {mirror}/train.en.gz: not in the mirror HEADCOUNT_")
    assert re.fullmatch(r"\(results/mine/logs/download/published\..*\.log\)", place)
    (tmp_path / "train.en.gz").rename(mirror / "train.en.gz")
    code, output = project.run(*arguments, HEADCOUNT_MIRROR=str(mirror.parent))
    assert code == 0 and ran(output) == {"download": 1}, output
    lock = read_lock(project.folder / "config" / "corpora.lock.yaml")
    assert {address.rpartition("/")[2] for address in lock} == {"train.de.gz", "train.en.gz"}


def test_f49_a_checkout_behind_a_link_has_nothing_to_do_either(origin, tmp_path):
    link = tmp_path / "a link"
    link.symlink_to(origin.folder)
    code, output = ProjectCopy.of(link).run("-n")
    assert code == 0 and QUIET in output


def test_f52_a_home_that_cannot_be_written_is_not_needed(project):
    """Neither for jobs, nor for the plan that DVC asks for."""
    home = "/proc/1/none"  # a folder that not even root can make
    nowhere = {"HOME": home, "XDG_CACHE_HOME": f"{home}/.cache"}
    code, output = project.run("-n", **nowhere)
    assert code == 0 and QUIET in output
    assert "Error" not in project.call("python", "workflow/bridge.py", "plan", "tiny", **nowhere)
    assert (project.folder / "results" / "tiny" / "plan" / "train.json").exists()


def test_f55_x28_neither_secrets_nor_folders_of_this_machine_are_written_down(origin):
    """In data, results, logs, Snakemake's records, all that Git has and every object pushed."""
    remote = origin.folder.parent / "headcount-remote"
    files = [path for path in [*origin.folder.rglob("*"), *remote.rglob("*")] if path.is_file()]
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []
    shared = {origin.folder / name for name in origin.call("git", "ls-files").splitlines()}
    shared |= {path for path in files if path.is_relative_to(remote)}
    shared |= {path for path in files if path.is_relative_to(origin.folder / RESULTS)}
    assert len(shared) > 500
    for hidden in (f"{Path.home()}/", str(origin.folder.parent)):
        assert [path for path in shared if hidden.encode() in path.read_bytes()] == []


KILL_ENGINE = """.finish(model, args.out, start)
    import os
    if "KILL_ENGINE" in os.environ:
        os.kill(os.getppid(), 9)
    if "KILL_JOB" in os.environ:
        os.kill(os.getpid(), 9)
"""
"""A training that ends and takes the engine with it, before the engine can record its outputs; or
that is killed when its outputs are in their places."""
MODEL = f"{RUN}/seed1/model/weights.safetensors"


@pytest.fixture
def killable(clone) -> ProjectCopy:
    """A clone whose training lasts some seconds."""
    clone.change(CONFIG, "updates: 60", "updates: 200")
    clone.change("scripts/train.py", ".finish(model, args.out, start)\n", KILL_ENGINE)
    return clone


def _until_saved(copy: ProjectCopy, process: subprocess.Popen) -> int:
    """Wait for a state that was not there before; return the process id of the training."""
    before = saved_states(copy.folder)
    wait_until(lambda: saved_states(copy.folder)[-1:] > before[-1:] or process.poll() is not None)
    assert process.poll() is None, process.stdout.read()
    return training_of(copy.folder)


def test_f31_f38_killed_failed_and_stopped_the_same_command_finishes(killable):
    """Snakemake killed, its job killed, Ctrl-C, Snakemake killed once the job was done.

    At last the weights of an uninterrupted run.
    """
    log = killable.folder / RESULTS / "logs/train/synthetic_near.en-art.baseline.seed1.log"
    for kill in ("snakemake", "job", "interrupt"):
        process = killable.start(MODEL)
        training = _until_saved(killable, process)
        if kill == "snakemake":
            process.kill()
        elif kill == "job":
            os.kill(training, signal.SIGKILL)
        else:
            process.send_signal(signal.SIGINT)
            os.kill(training, signal.SIGINT)  # a terminal sends it to both
        output, _ = process.communicate(timeout=60)
        assert process.returncode != 0
        if kill == "job":
            assert process.returncode == 3, output
            assert "error: a job was killed from outside (signal 9)" in output
        # No job outlives its run.
        wait_until(lambda training=training: not Path(f"/proc/{training}/cwd").exists(), 1)
    forced = ("--forcerun", "train", "--", MODEL)
    code, output = killable.run(*forced, KILL_ENGINE="yes")
    assert code == -signal.SIGKILL, output
    assert "going on from update" in log.read_text()  # -F of an unfinished one goes on, too
    resumed = (killable.folder / MODEL).read_bytes()
    code, output = killable.run(MODEL)
    assert code == 0 and ran(output)["train"] == 1, output  # Snakemake did not know it was made
    assert log.read_text().startswith("trained before; outputs taken from results/quickstart/state")
    assert "dev" not in log.read_text() and (killable.folder / MODEL).read_bytes() == resumed
    assert not list((killable.folder / RESULTS / "state").iterdir())
    code, output = killable.run(*forced, KILL_JOB="yes")
    assert code == 3 and "update 200/200" in log.read_text(), output
    assert "going on from update" not in log.read_text()  # -F of what is on record: from zero
    code, output = killable.run(MODEL)
    assert code == 0 and log.read_text().startswith("trained before; outputs taken from"), output
    assert (killable.folder / MODEL).read_bytes() == resumed


def test_f43_a_second_run_in_the_folder_names_the_first_and_leaves_with_3(killable):
    """Also where someone deletes .snakemake meanwhile, in the hope that a lock goes with it."""
    first = killable.start(MODEL)
    training = _until_saved(killable, first)
    os.kill(training, signal.SIGSTOP)  # it does not end before the others are refused
    code, output = killable.run(MODEL)
    assert code == 3
    assert f"process {first.pid} is running this workflow" in output
    for folder in (".snakemake", f"{RESULTS}/provenance"):  # the packs that DVC brought, too
        shutil.rmtree(killable.folder / folder)
    vouch = ("--touch", "--forceall", MODEL)
    code, output = killable.run(*vouch)
    assert code == 3 and f"process {first.pid} is running this workflow" in output
    os.kill(training, signal.SIGCONT)
    assert first.communicate(timeout=120) and first.returncode == 0
    code, output = killable.run("-n", MODEL)
    codes = "data/bpe/quickstart/synthetic_near.en-art/src.codes"
    assert code == 2 and f"{codes}: no record says what made it" in output
    assert "Was .snakemake lost, and are the files right? Then snakemake --touch" in output
    assert "baseline/seed1/model/weights.safetensors: no record" not in output  # made after that
    assert killable.run("--touch", "--forceall")[0] == 0
    code, output = killable.run("-n", MODEL)
    assert code == 0 and planned(output) == {}

"""The whole workflow, on real engines: every rule, nothing to do afterwards, killed and resumed."""

import base64
import csv
import gzip
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from project_copy import ROOT, ProjectCopy, planned, ran, saved_states, training_of
from shared_results import GATHERED, ROLES, SMALLER, leave_figures_empty, times

from headcount.analysis.outputs import chapters
from headcount.data.fetching.checksums import read_lock
from headcount.data.synthetic.corpus import generate_splits

pytestmark = pytest.mark.slow

CURVE_COLUMNS = ("step", "epoch", "train_loss", "dev_loss", "lr", "tokens_per_s", "seconds")
CURVE_COLUMNS += ("first_pass_loss",)

DECODED = {"translate": 9, "bleu": 9, "masking": 1, "untuned_masking": 1, "speed": 1}
DECODED |= {"ablation": 1, "pruning_profile": 1, "training_profile": 1, "share_speed": 1}
"""Jobs that decode, for each pair: two training runs and seven pruned ones, or one training run."""

RULE = r"(?m)^(?:use rule \w+ as|rule) (\w+)(?: with)?:"
PARTLY = {"pruned_roles", "cost"}
"""Jobs for several folders, each of whose files records what is its own."""
SECRET = "hunter2-of-the-month"
OURS = ("data", "results")
"""Folders that are shared; in .snakemake stand paths of this machine."""

PUBLISHED = """
published:
  licence: made by the test
  citation: none
  base_url: https://example.invalid/data
  pretokenised: true
  splits:
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> ProjectCopy:
    """A copy in a folder whose name a careless rule would trip over, its results in place."""
    copy = ProjectCopy(tmp_path_factory.mktemp("work") / "a folder's $HOME")
    mirror = copy.folder / "mirror"
    _publish(copy, mirror)
    experiment = (copy.folder / "config" / "tiny.yaml").read_text()
    pairs = "pairs: [synthetic_tiny.en-art, published.art-en]"
    experiment = experiment.replace("pairs: [synthetic_tiny.en-art]", pairs)
    experiment = experiment.replace("keep_updates: [30", "keep_updates: [10, 30")
    anew = "  - {method: gates, lambda: [0, 0.3], from: none}\n\nbpe:"
    experiment = experiment.replace("\nbpe:", anew)
    (copy.folder / "config" / "every_rule.yaml").write_text(experiment)
    variables = f"HEADCOUNT_MIRROR={shlex.quote(str(mirror))} ACCESS_TOKEN={SECRET}"
    copy.first = copy.shell(f"{variables} snakemake --cores 2 --config experiment=every_rule")
    return copy


def _publish(copy: ProjectCopy, mirror: Path) -> None:
    """A second corpus, gzipped, as a person would add one.

    Its dev and test sets have two references in English; one file has no checksum.
    """
    entry = PUBLISHED
    (mirror / "published").mkdir(parents=True)
    for split, sentences in generate_splits(5, 300, 30, 30).items():
        entry += f"    {split}:\n"
        for language, side in (("en", "source"), ("art", "target")):
            lines = "".join(" ".join(getattr(pair, side)) + "\n" for pair in sentences)
            data = gzip.compress(lines.encode())
            (mirror / "published" / f"{split}.{language}.gz").write_bytes(data)
            checksum = hashlib.sha256(data).hexdigest()
            file = f"{{file: {split}.{language}.gz, sha256: {checksum}}}"
            if (split, language) == ("train", "art"):
                file = "{file: train.art.gz}"
            elif split != "train" and language == "en":
                file = f"{{references: [{file}, {{file: {split}.2.gz}}]}}"
                other = gzip.compress(lines.replace("the ", "a ").encode())
                (mirror / "published" / f"{split}.2.gz").write_bytes(other)
            entry += f"      {language}: {file}\n"
    with (copy.folder / "config" / "corpora.yaml").open("a") as file:
        file.write(entry)


def test_every_rule_runs_and_leaves_what_the_design_names(project):
    files = [ROOT / "workflow" / "Snakefile", *(ROOT / "workflow" / "rules").glob("*.smk")]
    rules = [name for file in files for name in re.findall(RULE, file.read_text())]
    rules += [chapter.name for chapter in chapters()]  # one rule each, made in a loop
    assert {"download", "synthetic", "train", "report", "all"} <= set(rules)
    # test_classifiers and test_imported run them.
    others = [ROOT / "workflow" / "rules" / f"{name}.smk" for name in ("classifiers", "pretrained")]
    elsewhere = {name for file in others for name in re.findall(RULE, file.read_text())}
    elsewhere.add("michel_classifiers")
    assert {"fetch_classifier", "classifier_ablation", "fetch_pretrained", "segment"} <= elsewhere
    # raw: only where asked for
    assert set(rules) - {"all", "raw", "prepare"} - elsewhere == set(ran(project.first))
    results = project.folder / "results" / "every_rule"
    run = results / "train" / "published.art-en" / "baseline" / "seed1"
    for name in ("model/weights.safetensors", "model/model.json", "updates/10.safetensors"):
        assert (run / name).stat().st_size > 0
    curve = list(csv.DictReader((run / "curves.csv").open()))
    assert tuple(curve[0]) == CURVE_COLUMNS
    assert [row["step"] for row in curve] == ["50", "100", "150"]
    assert float(curve[2]["dev_loss"]) < float(curve[0]["dev_loss"])
    assert len((run / "translations" / "test.txt").read_text().splitlines()) == 30
    masked = results / "masking" / "published.art-en" / "baseline" / "seed1" / "headmask.csv"
    points = list(csv.DictReader(masked.open()))
    # None, 5 groups, 0 to 5 groups both ways; one random draw of 5 groups and of 0 2 3 4 6 8 9 10
    # and 12 heads: as many as groups of 3, 3, 2, 2 and 2 have from either end.
    assert len(points) == 1 + 5 + 2 * 6 + 5 + 9
    assert {r["heads_masked"] for r in points if r["order"] == "group"} == {"3", "2"}  # of 12
    rows = list(csv.DictReader((results / "tables" / "bleu.csv").open()))
    assert list(rows[0])[:7] == ["pair", "run", "seed", "test_set", "metric", "score", "signature"]
    assert {(row["pair"], row["metric"]) for row in rows} == {
        (pair, metric)
        for pair in ("synthetic_tiny.en-art", "published.art-en")
        for metric in ("bleu", "chrf", "bleu_tok_lc")
    }
    counts = {(row["pair"], row["signature"].split("|")[0]) for row in rows}
    assert counts == {("synthetic_tiny.en-art", "nrefs:1"), ("published.art-en", "nrefs:2")}
    masked = (row["signature"].split("|")[0] for row in points)
    assert set(masked) == {"nrefs:2"}
    for kind in ("pdf", "svg", "png"):
        assert (results / "figures" / f"curves.{kind}").stat().st_size > 2000
    page = (results / "report.html").read_text()
    assert "published.art-en" in page and "<svg" in page
    assert not re.search(r"(src|href)=.https?:", page)  # opens offline
    for path in [*results.glob("tables/*.json"), *results.glob("figures/*.json")]:
        caption = json.loads(path.read_text())["caption"]
        assert 1 <= len(re.findall(r"[.?!](?= |$)", caption)) <= 3, path.name
    atlas = (results / "atlas.html").read_text()
    assert '"id":"published.art-en/baseline/1"' in atlas and len(atlas) < 6e6
    assert not re.search(r"(src|href)=.https?:", atlas)


def test_checksums_of_first_fetches_are_recorded(project):
    lock = read_lock(project.folder / "config" / "corpora.lock.yaml")
    names = {address.rpartition("/")[2] for address in lock}
    assert names == {"train.art.gz", "dev.2.gz", "test.2.gz"}


def test_jobs_record_exactly_the_files_that_their_rules_list(project):
    """Or a file that shapes a result would go unwatched; a folder's job records what is its own."""
    records = _records(project.folder)
    compared = set()
    for path in (project.folder / "results").rglob("*.json"):
        facts = json.loads(path.read_text())
        job = records.get(path.relative_to(project.folder).as_posix())
        if job and isinstance(facts, dict) and "provenance" in facts:
            listed, recorded = set(job["input"]), set(facts["provenance"]["inputs"])
            assert recorded <= listed, path
            if job["rule"] not in PARTLY:
                assert recorded == listed, path
                compared.add(job["rule"])
    assert {"train", "gates", "translate", "relevance", "roles", "masking", "speed"} <= compared
    assert {"ablation", "voita_roles"} <= compared


def _records(folder: Path) -> dict[str, dict]:
    """What Snakemake notes of the job that made each output, by its path."""
    kept = folder / ".snakemake" / "metadata"
    found = {}
    for path in kept.rglob("*"):
        if path.is_file():  # long names are cut into folders that begin with @
            name = "".join(part.removeprefix("@") for part in path.relative_to(kept).parts)
            found[base64.urlsafe_b64decode(name).decode()] = json.loads(path.read_text())
    return found


def test_scores_in_the_table_are_those_of_the_translations(project):
    """The table's BLEU, recomputed with sacreBLEU's command from the files that people see."""
    results = project.folder / "results" / "every_rule"
    pair = "synthetic_tiny.en-art"
    translations = results / "train" / pair / "baseline" / "seed1" / "translations" / "test.txt"
    reference = project.folder / "data" / "text" / "every_rule" / pair / "test.tgt"
    command = ["sacrebleu", reference, "-i", translations, "-m", "chrf", "-b", "-w", "4"]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = list(csv.DictReader((results / "tables" / "bleu.csv").open()))
    mine = {"pair": pair, "run": "baseline", "metric": "chrf"}
    (row,) = [row for row in rows if mine.items() <= row.items()]
    assert float(found.stdout) == pytest.approx(float(row["score"]), abs=1e-3)
    assert float(row["score"]) > 0


def test_f42_cores_change_no_command(project):
    """What runs, with which flags: `threads` among them is a setting."""
    commands = []
    for cores in ("1", "7"):
        _, output = project.run(
            "-n", "-F", "-p", "--cores", cores, "--config", "experiment=every_rule"
        )
        commands.append({line.strip() for line in output.splitlines() if "scripts/" in line})
    assert commands[0] == commands[1] and any("--threads" in line for line in commands[0])


def test_nothing_to_do_afterwards_and_no_undeclared_files(project):
    code, output = project.run("-n", "--config", "experiment=every_rule")
    assert code == 0 and "Nothing to be done" in output
    assert not list((project.folder / "results" / "every_rule" / "state").glob("*"))
    assert not list(project.folder.rglob(".part-*"))


def test_f11_a_changed_setting_reruns_only_what_it_touches(project):
    path = project.folder / "config" / "every_rule.yaml"
    plain = path.read_text()
    path.write_text(plain.replace("beam: 2", "beam: 3"))
    code, output = project.run("-n", "--config", "experiment=every_rule")
    path.write_text(plain)
    assert code == 0
    # The BLEU lost without a head stands beside what it does.
    gathered = {"michel": 1} | GATHERED | ROLES
    assert planned(output) == times(2, DECODED) | gathered


def test_one_lambda_more_runs_its_own_jobs_and_none_without_pruned_runs(project):
    """Two pairs, one seed; what is gathered over all pruned runs is made again, no more."""
    path = project.folder / "config" / "every_rule.yaml"
    plain = path.read_text()
    path.write_text(plain.replace("lambda: [0, 0.3]}", "lambda: [0, 0.3, 0.2]}"))
    code, output = project.run("-n", "--config", "experiment=every_rule")
    own = {
        "gates": 2,
        "translate": 2,
        "bleu": 2,
        "untuned_masking": 2,
        "speed": 2,
        "pruned_roles": 2,
    }
    assert code == 0
    shown = {"general": 1, "voita_pruning": 1, "claims": 1, "cost": 1, "report": 1}
    assert planned(output) == own | shown | ROLES
    path.write_text(re.sub(r"pruned:\n(  - .*\n)+", "", plain))
    code, output = project.run("-n", "--config", "experiment=every_rule")
    path.write_text(plain)
    assert code == 0
    assert planned(output) == {"general": 1, "claims": 1, "cost": 1, "report": 1} | ROLES


def test_pruned_models_from_real_runs(project):
    """What each pruned run leaves, and that the tables and the page know it."""
    results = project.folder / "results" / "every_rule"
    pruned = results / "prune" / "published.art-en"
    kept = {}
    gates, subset = "gates-all-l0.3", "subset-all-k6"
    for run in (gates, f"scratch-{gates}", f"ranked-{gates}", subset):
        folder = pruned / run / "seed1"
        rows = csv.DictReader((folder / "heads.csv").open())
        kept[run] = [float(row["value"]) != 0 for row in rows if row["statistic"] == "gate"]
        shape = json.loads((folder / "model" / "model.json").read_text())["model"]["heads"]
        assert sum(map(sum, shape.values())) == sum(kept[run])
        assert len((folder / "translations" / "test.txt").read_text().splitlines()) == 30
    assert kept["scratch-gates-all-l0.3"] == kept["gates-all-l0.3"]
    assert sum(kept["ranked-gates-all-l0.3"]) == sum(kept["gates-all-l0.3"]) < 12
    assert sum(kept[subset]) == 6
    masking = results / "masking" / "published.art-en" / "baseline" / "seed1"
    rows = list(csv.DictReader((masking / "untuned_masking.csv").open()))
    assert {(row["order"], row["as_run"]) for row in rows} == {
        (order, run)
        for order in ("gates", "ranked", "drawn")
        for run in ("gates-all-l0", "gates-all-l0.3")
    }
    timed = list(csv.DictReader((pruned / "speed" / "seed1" / "speed.csv").open()))
    assert {row["model"] for row in timed} == {
        "baseline",
        "gates-all-l0.3",
        "gates-all-l0.3-from-none",
        "ranked-gates-all-l0.3",
        subset,
    }
    scored = {row["run"] for row in csv.DictReader((results / "tables" / "bleu.csv").open())}
    trained = {"baseline", "baseline-h1"}
    anew = {"gates-all-l0-from-none", "gates-all-l0.3-from-none"}
    assert scored == {*trained, "gates-all-l0", *anew, *kept}
    page = (results / "report.html").read_text()
    for name in ("voita_table2", "voita_pruning", "voita_fig7", "voita_gates", "voita_speed"):
        assert f'-{name}">' in page


def test_ablation_from_real_runs(project):
    """Two pairs, the baseline: every head alone, steps at the end and before, and the page."""
    results = project.folder / "results" / "every_rule"
    folder = results / "masking" / "published.art-en" / "baseline" / "seed1"
    rows = list(csv.DictReader((folder / "ablation.csv").open()))
    single = [row for row in rows if row["order"] == "single"]
    assert {row["test_set"] for row in single} == {"dev", "test"} and len(single) == 2 * 12
    # Four layers of three heads: each of them tried on dev, the best one on test.
    alone = [row["test_set"] for row in rows if row["order"] == "all_but_one"]
    assert (alone.count("dev"), alone.count("test")) == (12, 4)
    steps = list(csv.DictReader((folder / "training_profile.csv").open()))
    assert [row["heads_masked"] for row in steps] == ["0", "4", "8", "12"] * 2
    assert {row["update"] for row in steps} == {"30", "60"}
    timed = list(csv.DictReader((folder / "share_speed.csv").open()))
    assert {(row["model"], row["heads_left"]) for row in timed} == {("0", "12"), ("50", "6")}
    page = (results / "report.html").read_text()
    for name in ("ablation", "transfer", "pruning", "speed", "training"):
        assert f'-michel_{name}">' in page


@pytest.mark.parametrize(
    ("pruned", "told"),
    [
        ("[gates-all-l-1]", "lambda: expected a number, 0 or more"),
        ("[gates-encoder-l1]", "scope: expected enc_self or all, found 'encoder'"),
        ("[gates-all-l0-from-impt-6]", "starts from the run 'impt-6', which is not among `runs`"),
        ("[gates-all-l0.1]", "needs its control 'gates-all-l0'"),
    ],
)
def test_f07_f09_pruned_runs_that_cannot_be_are_refused_before_any_job(project, pruned, told):
    text = f"pairs: [synthetic_tiny.en-art]\npruned: {pruned}\n"
    (project.folder / "config" / "wrong.yaml").write_text(text)
    code, output = project.run("--config", "experiment=wrong")
    assert code == 2 and "config/wrong.yaml:2: pruned" in output and told in output
    assert "Traceback" not in output and not (project.folder / "results" / "wrong").exists()


def test_a_changed_module_reruns_its_readers_and_a_comment_none(project):
    path = project.folder / "src/headcount/analysis/tables/general/scores.py"
    plain = path.read_text()
    path.write_text(plain + "\n# A remark.\n")
    assert "Nothing to be done" in project.run("-n", "--config", "experiment=every_rule")[1]
    path.write_text(plain)
    path = path.with_suffix(".yaml")
    plain = path.read_text()
    path.write_text(plain.replace("Loss by updates", "Losses by updates"))
    _, output = project.run("-n", "--config", "experiment=every_rule")
    path.write_text(plain)
    assert planned(output) == {"general": 1, "claims": 1, "cost": 1, "report": 1}


def test_f13_a_jobs_exit_code_and_words_are_the_workflows(tmp_path):
    """A file that the mirror lacks is the machine's fault: 3. The words come again at the end."""
    copy = ProjectCopy(tmp_path / "copy")
    _publish(copy, tmp_path / "mirror")
    (tmp_path / "mirror" / "published" / "train.en.gz").unlink()
    (copy.folder / "config" / "mine.yaml").write_text("pairs: [published.art-en]\n")
    arguments = ("raw", "--config", "experiment=mine")
    code, output = copy.run(*arguments, HEADCOUNT_MIRROR=str(tmp_path / "mirror"))
    assert code == 3, output
    missing = f"error: {tmp_path}/mirror/published/train.en.gz: not in the mirror that HEADCOUNT_"
    message, place = output.splitlines()[-2:]
    assert message.startswith(missing) and re.fullmatch(
        r"\(results/mine/logs/download/published\..*\.log\)", place
    )
    assert "Traceback" not in output
    code, output = copy.run(*arguments, HEADCOUNT_MIRROR=str(tmp_path / "gone"))
    assert code == 3 and "gone/published/" in output.splitlines()[-2]  # not the log of before


def test_f49_a_checkout_behind_a_link_has_nothing_to_do_either(project, tmp_path):
    link = tmp_path / "a link"
    link.symlink_to(project.folder)
    code, output = ProjectCopy.of(link).run("-n", "--config", "experiment=every_rule")
    assert code == 0 and "Nothing to be done" in output


def test_f52_a_home_that_cannot_be_written_is_not_needed(project):
    """Neither for jobs, nor for the plan that DVC asks for."""
    home = "/proc/1/none"  # a folder that not even root can make
    nowhere = {"HOME": home, "XDG_CACHE_HOME": f"{home}/.cache"}
    code, output = project.run("-n", "--config", "experiment=every_rule", **nowhere)
    assert code == 0 and "Nothing to be done" in output
    assert "Error" not in project.call("python", "workflow/bridge.py", "plan", "tiny", **nowhere)
    assert (project.folder / "results" / "tiny" / "plan" / "train.json").exists()


def test_f55_x28_no_secret_of_the_surroundings_is_written_down(project):
    """Not in data, results, logs, or Snakemake's own records of what ran."""
    home, hidden = f"{Path.home()}/".encode(), SECRET.encode()
    files = [path for path in project.folder.rglob("*") if path.is_file()]
    own = [path for path in files if path.relative_to(project.folder).parts[0] in OURS]
    assert len(own) > 200
    assert [path for path in files if hidden in path.read_bytes()] == []
    assert [path for path in own if home in path.read_bytes()] == []


KILL_ENGINE = """.finish(model, args.out, start)
    import os
    if "KILL_ENGINE" in os.environ:
        os.kill(os.getppid(), 9)
    if "KILL_JOB" in os.environ:
        os.kill(os.getpid(), 9)
"""
"""A training that ends and takes the engine with it, before the engine can record its outputs; or
that is killed when its outputs are in their places."""


@pytest.fixture
def killable(project, tmp_path) -> ProjectCopy:
    """A copy whose training lasts some seconds and saves its state at every chance."""
    copy = ProjectCopy(tmp_path / "copy")
    for old, new in SMALLER:
        copy.change("config/tiny.yaml", old, new)
    path = copy.folder / "config" / "tiny.yaml"
    path.write_text(re.sub(r"pruned:\n(  - .*\n)+", "", path.read_text()))
    copy.change("config/tiny.yaml", "updates: 60", "updates: 200")
    rule = copy.folder / "workflow" / "rules" / "train.smk"
    rule.write_text(rule.read_text().replace("--state ", "--save-seconds 0 --state "))
    copy.change("scripts/train.py", ".finish(model, args.out, start)", KILL_ENGINE)
    leave_figures_empty(copy)
    shutil.copytree(project.folder / "data" / "raw", copy.folder / "data" / "raw")
    return copy


def _until_saved(copy: ProjectCopy, process: subprocess.Popen) -> int:
    """Wait for a state that was not there before; returns the process id of the training."""
    before = saved_states(copy.folder, "tiny")
    while saved_states(copy.folder, "tiny")[-1:] <= before[-1:]:
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.01)
    return training_of(copy.folder)


def _model(copy: ProjectCopy) -> dict[str, bytes]:
    model = copy.folder / "results/tiny/train/synthetic_tiny.en-art/baseline/seed1/model"
    return {path.name: path.read_bytes() for path in model.iterdir()}


def test_f31_f38_killed_failed_and_stopped_the_same_command_finishes(killable, tmp_path):
    """Snakemake killed, its job killed, Ctrl-C, Snakemake killed once the job was done.

    At last the weights of an uninterrupted run.
    """
    arguments = ("--config", "experiment=tiny")
    log = killable.folder / "results/tiny/logs/train/synthetic_tiny.en-art.baseline.seed1.log"
    for kill in ("snakemake", "job", "interrupt"):
        process = killable.start(*arguments)
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
            told = (
                "error: a job was killed from outside (signal 9), as the kernel does where memory"
            )
            assert told in output
        time.sleep(0.2)
        assert not Path(f"/proc/{training}/cwd").exists()  # no job outlives its run
    forced = ("--forcerun", "train", "--until", "train", *arguments)
    code, output = killable.run(*forced, KILL_ENGINE="yes")
    assert code == -signal.SIGKILL, output
    assert "going on from update" in log.read_text()  # -F of an unfinished one goes on, too
    resumed = _model(killable)
    code, output = killable.run(*arguments)
    assert code == 0 and ran(output)["train"] == 1, output  # Snakemake did not know it was made
    assert log.read_text().startswith("trained before; outputs taken from results/tiny/state/")
    assert "dev" not in log.read_text() and _model(killable) == resumed
    assert not list((killable.folder / "results/tiny/state").iterdir())
    code, output = killable.run(*forced, KILL_JOB="yes")
    assert code == 3 and "update 200/200" in log.read_text(), output
    assert "going on from update" not in log.read_text()  # -F of what is on record: from zero
    code, output = killable.run(*arguments)
    assert code == 0 and log.read_text().startswith("trained before; outputs taken from"), output
    assert _model(killable)["weights.safetensors"] == resumed["weights.safetensors"]


def test_f43_a_second_run_in_the_folder_names_the_first_and_leaves_with_3(killable):
    """Also where someone deletes .snakemake meanwhile, in the hope that a lock goes with it."""
    tiny = ("--config", "experiment=tiny")
    first = killable.start("--until", "train", *tiny)
    training = _until_saved(killable, first)
    os.kill(training, signal.SIGSTOP)  # it does not end before the others are refused
    code, output = killable.run(*tiny)
    assert code == 3
    assert f"process {first.pid} is running this workflow" in output
    shutil.rmtree(killable.folder / ".snakemake")
    vouch = ("--touch", "--forceall", "--until", "train", *tiny)
    code, output = killable.run(*vouch)
    assert code == 3 and f"process {first.pid} is running this workflow" in output
    os.kill(training, signal.SIGCONT)
    assert first.communicate(timeout=120) and first.returncode == 0
    code, output = killable.run("-n", "--until", "train", *tiny)
    codes = "data/bpe/tiny/synthetic_tiny.en-art/src.codes"
    assert code == 2 and f"{codes}: no record says what made it" in output
    assert "Was .snakemake lost, and are the files right? Then snakemake --touch" in output
    assert "weights.safetensors: no record" not in output  # made after the deletion
    assert killable.run(*vouch)[0] == 0
    code, output = killable.run("-n", "--until", "train", *tiny)
    assert code == 0 and planned(output) == {}

"""Files that are not what a job left: edited, forged, damaged on the way, of another version."""

import json
import os
import re
import shutil

import pytest
from project_copy import planned, ran
from shared_results import QUIET, RUN, both_quiet

pytestmark = pytest.mark.slow

TRANSLATION = f"{RUN}/seed1/translations/test.txt"
CODES = "data/bpe/quickstart/synthetic.en-art/src.codes"
TABLE = "results/quickstart/tables/bleu.csv"
MAKERS = {TRANSLATION: "translate", CODES: "bpe", TABLE: "general"}
TRAIN_PACK = "results/quickstart/provenance/train.json"


def test_f48_edited_files_stop_both_engines_by_name_and_come_back(clone):
    """Also one as large as before whose time was set back; a time alone stops nothing."""
    before = {path: (clone.folder / path).read_bytes() for path in MAKERS}
    for path, content in before.items():
        times = os.stat(clone.folder / path)
        (clone.folder / path).write_bytes(bytes([content[0] ^ 1]) + content[1:])
        os.utime(clone.folder / path, ns=(times.st_atime_ns, times.st_mtime_ns))
    lock = (clone.folder / "dvc.lock").read_bytes()
    code, output = clone.run()
    under_dvc = clone.call("dvc", "repro", fails=True)
    verified = clone.call("python", "workflow/verify.py", fails=True)
    assert code == 2 and "Traceback" not in output
    for path, rule in MAKERS.items():
        assert f"{path}: changed since rule {rule} wrote it" in output
        assert f"{path}: changed since rule {rule} wrote it" in under_dvc
        assert f"{path}: changed here; recorded as files/md5/" in verified
    assert "Delete a file, and the same command makes it again" in output
    assert "Keep a version of your own under another name" in output
    assert ran(output) == ran(under_dvc) == {}
    assert (clone.folder / "dvc.lock").read_bytes() == lock  # never committed as ours
    (clone.folder / TABLE).unlink()
    assert "changed since rule general" not in clone.run("-n")[1]
    for path in (TRANSLATION, CODES):
        clone.call("dvc", "checkout", "--force", path)
        os.utime(clone.folder / path)
    assert planned(clone.run("-n")[1]) == {"general": 1, "claims": 1, "cost": 1, "report": 1}
    code, output = clone.run(TABLE)
    assert ran(output) == {"general": 1}
    assert {path: (clone.folder / path).read_bytes() for path in MAKERS} == before
    both_quiet(clone)


def test_f48_without_dvc_and_with_every_file_gone_all_of_them_are_made_again(clone):
    """What is recorded is all asked for, whether something reads it or not; foreign files are not
    taken for ours, and `verify.py` needs no dvc.lock."""
    (clone.folder / "dvc.lock").unlink()
    assert QUIET in clone.run("-n")[1]
    packs = clone.folder / "results/quickstart/provenance"
    recorded = {path for pack in packs.iterdir() for path in json.loads(pack.read_text())}
    for folder in (packs, clone.folder / ".snakemake/contents"):  # as an earlier version leaves it
        shutil.rmtree(folder)
    assert QUIET in clone.run("-n")[1]
    assert "every file is what its job wrote" in clone.call("python", "workflow/verify.py")
    with (clone.folder / TABLE).open("a") as table:
        table.write("ours,too\n")
    told = clone.call("python", "workflow/verify.py", fails=True)
    assert f"{TABLE}: changed since its job wrote it" in told
    shutil.rmtree(clone.folder / "data")
    for phase in ("train", "heads", "prune", "masking", "tables", "figures"):
        shutil.rmtree(clone.folder / "results/quickstart" / phase)
    for path in ("report.html", "atlas.html", "metrics.json"):
        (clone.folder / "results/quickstart" / path).unlink()
    code, output = clone.run("-n")
    asked = re.search(r"^rule all:\n +input: (.*)$", output, re.MULTILINE)[1].split(", ")
    assert code == 0 and set(asked) == recorded and len(recorded) > 200
    shutil.rmtree(clone.folder / ".snakemake")
    (clone.folder / TABLE).parent.mkdir(parents=True)
    (clone.folder / TABLE).write_text("by,hand\n")
    code, output = clone.run("-n")
    assert code == 2 and f"{TABLE}: nothing records what made it" in output
    assert "snakemake --touch --forceall --cores 1 --config experiment=quickstart" in output
    (clone.folder / TABLE).unlink()
    assert clone.run("-n")[0] == 0


def test_x09_a_damaged_pack_of_records_is_named_with_its_repair(clone):
    """Cut short, of another version, or no records at all; and what says which packs are known."""
    pack = clone.folder / TRAIN_PACK
    whole = pack.read_text()
    older = whole.replace('"record_format_version": 6', '"record_format_version": 5')
    assert older != whole
    for text in (whole[:-100], older, "[]", "[" * 100_000):
        pack.write_text(text)
        code, output = clone.run("-n")
        assert code == 2 and "Traceback" not in output and "Snakefile, line" not in output
        assert f"error: {TRAIN_PACK}: expected the records of a phase, found: " in output
        assert f"dvc checkout --force {TRAIN_PACK} brings back" in output
    clone.call("dvc", "checkout", "--force", TRAIN_PACK)
    both_quiet(clone)
    unpacked = clone.folder / ".snakemake/unpacked.json"
    unpacked.write_text(unpacked.read_text()[:-9])
    code, output = clone.run("-n")
    assert code == 2 and "error: .snakemake/unpacked.json: damaged" in output
    assert "delete it, nothing is lost" in output
    unpacked.unlink()
    both_quiet(clone)


def test_x10_records_that_came_are_held_to_the_files_of_their_phase(clone, tmp_path):
    victim = tmp_path / "victim.txt"
    victim.write_text("not the project's\n")
    os.utime(victim, (1000, 1000))
    folder = "results/quickstart/train"
    climbing = f"{folder}/{os.path.relpath(victim, clone.folder / folder)}"
    pack = clone.folder / TRAIN_PACK
    whole = json.loads(pack.read_text())
    record = whole[TRANSLATION] | {"endtime": 2000.0}
    reader = record | {"input_checksums": {str(victim): "sha256:0"}}
    for forged, told in (
        ({str(victim): record}, f"{victim} is no file of phase train"),
        ({climbing: record}, f"{climbing} is no file of phase train"),
        ({"config/quickstart.yaml": record}, "config/quickstart.yaml is no file of phase train"),
        ({TRANSLATION: reader}, f"{victim} is no file that phase train reads"),
    ):
        pack.write_text(json.dumps(whole | forged))
        code, output = clone.run("-n")
        assert code == 2 and "Traceback" not in output
        assert f"error: {TRAIN_PACK}: expected the records of a phase, found: {told}" in output
        assert os.stat(victim).st_mtime == 1000


def test_a_rerun_that_fails_is_undone_by_dvc_checkout(clone):
    """Snakemake removes the files of a job before it runs; DVC has those it adopted."""
    clone.change("config/quickstart.yaml", "peak_lr: 1e-2", "peak_lr: 1e30")
    code, output = clone.run()
    assert code == 2 and "expected a finite number" in output
    assert not (clone.folder / RUN / "seed1/model/weights.safetensors").exists()
    clone.call("dvc", "checkout", "--force")
    assert planned(clone.run("-n")[1])["train"] == 1  # not taken for what failed
    clone.call("git", "checkout", "config/quickstart.yaml")
    both_quiet(clone)


def test_f10_a_title_reaches_the_page_as_it_is(clone):
    title = "-n {input} {a} $(touch x); 'quoted' <b>"
    text = (clone.folder / "config/quickstart.yaml").read_text()
    quoted = json.dumps(title)
    (clone.folder / "config/quickstart.yaml").write_text(
        re.sub("(?m)^title: .*$", f"title: {quoted}", text)
    )
    code, output = clone.run()
    assert code == 0 and ran(output) == {"report": 1}, output
    page = (clone.folder / "results/quickstart/report.html").read_text()
    assert "<h1>-n {input} {a} $(touch x); &#39;quoted&#39; &lt;b&gt;</h1>" in page
    assert not (clone.folder / "x").exists()

"""Records and notes of outputs without an engine: edits are seen, times alone are not."""

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from project_copy import ROOT
from snakemake.io import IOFile
from snakemake.persistence import PersistenceBase
from snakemake.persistence.file import FilePersistence
from workflow_modules import load

from headcount.base.errors import EnvironmentFault, UserError

RECORD = {"rule": "bleu", "shellcmd": "a", "endtime": 1000.0, "record_format_version": 6}
RECORD |= {"input_checksums": {}}
MADE = "results/mine/train/a.json"


@pytest.fixture
def records(monkeypatch, tmp_path):
    """The module, in a folder with one output that is noted and on record."""
    module = load(monkeypatch, "engines.records")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dvc.yaml").write_text((ROOT / "dvc.yaml").read_text())
    Path(MADE).parent.mkdir(parents=True)
    Path(MADE).write_text("a,b\n1,2\n")
    module.note(MADE)
    assert module.take({MADE: RECORD | {"sha256": module.noted(MADE)}}) == {MADE}
    return module


def test_the_parts_of_snakemake_that_are_not_public_are_there(monkeypatch, records):
    """With the version that is pinned; another one is refused."""
    assert {"_write_record", "_filter_incomplete_keys"} <= vars(FilePersistence).keys()
    assert asyncio.iscoroutinefunction(PersistenceBase.finished)
    store = FilePersistence(nolock=True)
    assert store.metadata(IOFile(MADE)).rule == "bleu" and records.unfinished([MADE]) == set()
    store.started(SimpleNamespace(output=[IOFile(MADE)]))
    assert records.unfinished([MADE]) == {MADE} and not records.finished([MADE])
    monkeypatch.setattr(records, "version", lambda name: "9.28.0")
    with pytest.raises(EnvironmentFault, match=r"pip install snakemake==9\.27\.1"):
        records.check_version()


def test_a_file_is_as_noted_until_a_byte_differs_whatever_its_times_say(records):
    os.utime(MADE, (0, 0))
    assert records.is_as_noted(MADE)
    times = os.stat(MADE)
    Path(MADE).write_text("a,b\n1,3\n")  # as long as before
    os.utime(MADE, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert not records.is_as_noted(MADE)
    Path(MADE).write_text("a,b\n1,2\n")
    assert records.is_as_noted(MADE)


def test_a_torn_note_counts_as_none(records):
    known, place = records.noted(MADE), records.NOTES / MADE
    place.write_text(place.read_text()[:20])
    assert records.noted(MADE) is None and not records.is_as_noted(MADE)
    records.note(MADE)
    assert records.noted(MADE) == known


def test_a_job_that_failed_leaves_neither_record_nor_note(records, monkeypatch):
    """Snakemake records it like one that is done: settings that fail would count as made."""
    recorded = []

    async def plain(store, job):
        recorded.append([records.noted(output) for output in job.output])

    monkeypatch.setattr(FilePersistence, "finished", plain)
    records.note_when_finished()
    job, store = SimpleNamespace(output=[IOFile(MADE)]), FilePersistence(nolock=True)
    checksum = records.noted(MADE)
    asyncio.run(FilePersistence.finished(store, job))
    assert recorded == [[checksum]] and records.finished([MADE])  # noted first
    Path(MADE).unlink()
    asyncio.run(FilePersistence.finished(store, job))
    assert records.noted(MADE) is None and records.records_of([MADE]) == {}


def test_a_pack_takes_records_to_another_folder(records, monkeypatch, tmp_path):
    pack = records.pack_file("mine", "train")
    records.write_pack(pack, [MADE])
    for name in ("content", "pack"):
        (tmp_path / name).write_bytes(Path(MADE if name == "content" else pack).read_bytes())
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    for source, target in (("content", MADE), ("pack", pack)):
        Path(target).parent.mkdir(parents=True)
        Path(target).write_bytes((tmp_path / source).read_bytes())
    records.settle("mine", [MADE], trusted=False)
    assert records.finished([MADE]) and os.stat(MADE).st_mtime == 1000
    Path(MADE).write_text("other\n")
    with pytest.raises(UserError, match=f"{MADE}: changed since rule bleu wrote it"):
        records.settle("mine", [MADE], trusted=True)
    Path(MADE).write_bytes((tmp_path / "content").read_bytes())  # as `dvc checkout` brings it
    records.settle("mine", [MADE], trusted=False)


def test_a_file_without_a_record_is_refused_unless_a_person_trusts_it(records):
    other = "results/mine/train/b.json"
    Path(other).write_text("{}")
    with pytest.raises(UserError, match=f"(?s){other}: no record says .*snakemake --touch"):
        records.settle("mine", [MADE, other], trusted=False)
    records.settle("mine", [MADE, other], trusted=True)


def test_x09_a_damaged_pack_is_refused_by_name_and_a_half_written_one_is_none(records):
    pack = records.pack_file("mine", "train")
    records.write_pack(pack, [MADE])
    whole = pack.read_text()
    pack.with_name(f".part-{pack.name}").write_text("{")  # of a writer that was killed
    records.settle("mine", [MADE], trusted=False)
    older = whole.replace('"record_format_version": 6', '"record_format_version": 5')
    for text in (whole[:-100], older, "[]", "[" * 100_000):
        pack.write_text(text)
        with pytest.raises(UserError, match=f"(?s){pack}: damaged, .*checkout --force {pack}"):
            records.settle("mine", [MADE], trusted=False)


def test_x10_a_pack_changes_no_file_that_the_experiment_does_not_have(records, tmp_path):
    victim = tmp_path / "victim.txt"
    victim.write_text("not the project's\n")
    pack = records.pack_file("mine", "train")
    forged = RECORD | {"sha256": records.content(str(victim))}
    climbing = f"results/mine/train/{os.path.relpath(victim, 'results/mine/train')}"
    records.write_json(pack, {str(victim): forged, climbing: forged})
    records.settle("mine", [MADE], trusted=False)
    assert os.stat(victim).st_mtime > 1000 and records.noted(str(victim)) is None


def test_an_input_with_other_content_than_recorded_looks_new(records, tmp_path):
    """Snakemake compares contents only of inputs that are newer than outputs."""
    text = tmp_path / "text"
    text.write_text("a\n")
    same = f"sha256:{records.content(str(text))}"
    for checksum, touched in ((same, False), ("sha256:0", True)):
        reads = {"input_checksums": {str(text): checksum}, "sha256": records.noted(MADE)}
        records.take({MADE: RECORD | reads})
        os.utime(text, (500, 500))
        records.freshen([MADE])
        assert (os.stat(text).st_mtime > 500) == touched

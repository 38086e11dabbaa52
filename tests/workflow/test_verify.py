"""What verify.py says of a lock or a list that is damaged itself."""

import hashlib

import pytest
import yaml
from workflow_modules import load

from headcount.base.errors import UserError


@pytest.fixture
def verify(monkeypatch, tmp_path):
    module = load(monkeypatch, "verify")
    monkeypatch.chdir(tmp_path)
    return module


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"stages:\n",
        b"<<<<<<< HEAD\nstages: {}\n=======\n",
        b"\xff",
        b"stages: {a: {outs: [{path: b}]}}",
    ],
)
def test_a_lock_that_is_not_as_dvc_writes_it_is_refused(verify, tmp_path, content):
    (tmp_path / "dvc.lock").write_bytes(content)
    told = r"(?s)dvc\.lock: expected stages .* git checkout dvc\.lock"
    with pytest.raises(UserError, match=told):
        verify.faults()


def test_a_list_of_a_folder_that_is_damaged_is_named(verify, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.txt").write_text("a")
    entries = b'[{"md5": "%s", "relpath": "a.txt"}]' % hashlib.md5(b"a").hexdigest().encode()
    name = hashlib.md5(entries).hexdigest()
    stages = {"data": {"outs": [{"path": "data", "md5": f"{name}.dir"}]}}
    (tmp_path / "dvc.lock").write_text(yaml.safe_dump({"stages": stages}))
    cached = tmp_path / ".dvc/cache/files/md5" / name[:2] / f"{name[2:]}.dir"
    cached.parent.mkdir(parents=True)
    cached.write_bytes(entries)
    assert verify.faults() == []
    cached.write_bytes(entries[:-5])
    (told,) = verify.faults()
    assert told.endswith(f"{cached.relative_to(tmp_path)} is damaged: delete it, then dvc pull")

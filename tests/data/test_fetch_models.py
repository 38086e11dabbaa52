"""Models of the hub, from a server on this machine and from a mirror."""

import hashlib
import json
from types import SimpleNamespace

import pytest
from published import served
from script_runner import run_script

from headcount.base.errors import EnvironmentFault, UserError
from headcount.data.fetching import models, transfer
from headcount.data.fetching.models import check_record, fetch_commit, fetch_model

COMMIT = "0123456789" * 4
FILES = {
    "config.json": b'{"model_type": "marian"}\n',
    "model.safetensors": bytes(range(256)) * 1024,
}
SHA256 = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}
ENTRY = {"hub": "some/model", "revision": COMMIT, "files": SHA256}
PLACE = f"some/model/resolve/{COMMIT}/"
LISTING = f"api/models/some/model/revision/{COMMIT}"


@pytest.fixture
def hub(monkeypatch):
    """A server of `FILES`. Its list of files also has pickles and code, which it does not serve."""
    listed, asked = ["modeling.py", "onnx/config.json", "pytorch_model.bin", *FILES], []

    def content(path):
        asked.append(path.rpartition("/")[2])
        if path == LISTING:
            return json.dumps({"siblings": [{"rfilename": name} for name in listed]}).encode()
        return FILES.get(path.removeprefix(PLACE))

    monkeypatch.delenv("HEADCOUNT_MIRROR", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(transfer, "WAITS", (0,))
    with served(content) as address:
        monkeypatch.setattr(models, "HUB", address)
        yield SimpleNamespace(asked=asked, listed=listed)


def test_files_of_one_commit_and_their_record(hub, tmp_path):
    out = tmp_path / "raw" / "manifest.json"
    flags = ["--corpus", "pretrained.opus", "--entry", json.dumps(ENTRY), "--out", out]
    for _ in range(2):  # the second time all are there, with the right checksums
        assert run_script("download", flags) == 0
        assert hub.asked == list(FILES)
    assert {name: (out.parent / name).read_bytes() for name in FILES} == FILES
    expected = {"model": "some/model", "revision": COMMIT, "files": SHA256}
    assert json.loads(out.read_text()) == expected
    check_record(out.parent)
    (out.parent / "config.json").write_text("{}")
    with pytest.raises(UserError, match=r"config\.json: changed since it was fetched"):
        check_record(out.parent)


def test_a_mirror_replaces_the_hub(hub, tmp_path, monkeypatch):
    mirror = tmp_path / "mirror"
    (mirror / "pretrained.opus").mkdir(parents=True)
    monkeypatch.setenv("HEADCOUNT_MIRROR", str(mirror))
    with pytest.raises(EnvironmentFault, match=r"pretrained\.opus/config\.json: not in the mirror"):
        fetch_model("pretrained.opus", ENTRY, tmp_path / "raw")
    for name, content in FILES.items():
        (mirror / "pretrained.opus" / name).write_bytes(content)
    fetch_model("pretrained.opus", ENTRY, tmp_path / "raw")
    assert (tmp_path / "raw" / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert hub.asked == []


def test_x24_a_commit_is_fetched_before_its_checksums_are_known(hub, tmp_path):
    unpinned = {key: ENTRY[key] for key in ("hub", "revision")}
    fetch_model("model.bert", unpinned, tmp_path / "model")
    check_record(tmp_path / "model")
    found = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    assert found.items() >= FILES.items()  # neither code nor pickles of the hub
    assert found.keys() - FILES.keys() == {".fetched", "manifest.json"}
    hub.listed.remove("model.safetensors")
    for revision, words in (
        (COMMIT, r"expected weights as model\.safetensors"),
        ("main", "--revision: .*found 'main'"),
        (None, "expected hub and revision, or path"),
    ):
        with pytest.raises(UserError, match=words):
            fetch_commit("some/model", revision, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_x24_without_network_the_environment_is_at_fault(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("HEADCOUNT_MIRROR", raising=False)
    monkeypatch.setattr(transfer, "WAITS", ())
    monkeypatch.setattr(models, "HUB", "http://127.0.0.1:9")  # nobody listens there
    entry = json.dumps({"hub": "some/model", "revision": COMMIT})
    flags = ["--corpus", "model.bert", "--entry", entry, "--out", tmp_path / "manifest.json"]
    assert run_script("download", flags) == 3
    assert "127.0.0.1" in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_an_own_folder_is_copied_without_pickles_and_code(tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    for name in ("pytorch_model.bin", "modeling.py", "config.json", "source.spm"):
        (own / name).write_bytes(name.encode())
    with pytest.raises(UserError, match=r"own: expected weights as model\.safetensors, found conf"):
        fetch_model("mine", {"path": str(own)}, tmp_path / "raw")
    (own / "model.safetensors").write_bytes(b"weights")
    files = {".fetched", "config.json", "manifest.json", "model.safetensors", "source.spm"}
    fetch_model("mine", {"path": str(own)}, tmp_path / "raw")
    assert {path.name for path in (tmp_path / "raw").iterdir()} == files
    (own / "source.spm").unlink()  # a reader would still find the copy of before
    (tmp_path / "raw" / "manifest.json").unlink()  # as Snakemake does with a job's outputs
    fetch_model("mine", {"path": str(own)}, tmp_path / "raw")
    assert {path.name for path in (tmp_path / "raw").iterdir()} == files - {"source.spm"}
    pinned = {"path": str(own), "files": {"model.safetensors": SHA256["model.safetensors"]}}
    with pytest.raises(UserError, match=r"wrong content.* Expected SHA-256"):
        fetch_model("mine", pinned, tmp_path / "again")


def test_a_pinned_folder_of_ones_own_is_compared_at_every_fetch(tmp_path, capsys):
    """An earlier copy does not hide that the folder has changed; none is copied into itself."""
    own, out = tmp_path / "own", tmp_path / "raw" / "manifest.json"
    own.mkdir()
    for name, content in FILES.items():
        (own / name).write_bytes(content)
    entry = json.dumps({"path": str(own), "files": SHA256})
    flags = ["--corpus", "model.mine", "--entry", entry, "--out"]
    assert run_script("download", [*flags, out]) == 0
    (own / "model.safetensors").write_bytes(b"other")
    assert run_script("download", [*flags, out]) == 2
    assert f"{own}/model.safetensors: wrong content" in capsys.readouterr().err
    assert (out.parent / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert run_script("download", [*flags, own / "manifest.json"]) == 2
    assert {path.name for path in own.iterdir()} == FILES.keys()

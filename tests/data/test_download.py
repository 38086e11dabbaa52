"""Downloads against a server on this machine that misbehaves in every way it can."""

import hashlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from script_runner import run_script

from headcount.base.errors import EnvironmentFault, UserError
from headcount.data import download
from headcount.data.download import fetch_corpus

GOOD = b"one line\nanother line\n"
GOOD_HASH = hashlib.sha256(GOOD).hexdigest()
PAGE = b"<!DOCTYPE html><title>Please log in</title>"


class Handler(BaseHTTPRequestHandler):
    """Serves by file name: good.txt, page.txt, cut.txt, loop.txt, slow.txt, late.txt; else 404."""

    def do_GET(self):
        name = self.path.rsplit("/", 1)[-1]
        self.server.asked.append(name)
        if name == "loop.txt":
            self.send_response(302)
            self.send_header("Location", self.path)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if name == "slow.txt":
            time.sleep(0.6)
        if name == "late.txt" and len(self.server.asked) == 1:
            self.send_error(503)
            return
        body = {"page.txt": PAGE, "other.txt": b"other"}.get(name, GOOD)
        if name == "missing.txt":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:5] if name == "cut.txt" else body)

    def log_message(self, format, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.delenv("HEADCOUNT_MIRROR", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(download, "WAITS", (0,))
    monkeypatch.setattr(download, "TIMEOUT", 0.3)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda request, address: None  # a client that hung up
    server.asked = []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def entry(server, name, sha256=GOOD_HASH):
    url = f"http://127.0.0.1:{server.server_address[1]}/corpus/"
    return {"base_url": url, "splits": {"train": {"en": {"file": name, "sha256": sha256}}}}


def test_files_and_manifest(server, tmp_path):
    given = entry(server, "good.txt")
    given["splits"]["dev"] = {"en": {"file": "good.txt", "sha256": GOOD_HASH, "member": None}}
    out = tmp_path / "raw" / "manifest.json"
    code = run_script("download", ["--corpus", "c", "--entry", json.dumps(given), "--out", out])
    assert code == 0
    assert (out.parent / "good.txt").read_bytes() == GOOD
    row = {"file": "good.txt", "sha256": GOOD_HASH, "bytes": 22}
    manifest = json.loads(out.read_text())
    assert manifest["splits"] == {"train": {"en": row}, "dev": {"en": row}}
    assert str(tmp_path) not in out.read_text()
    assert server.asked == ["good.txt"]  # once, though two splits name it

    fetch_corpus("c", given, out.parent)
    assert server.asked == ["good.txt"]  # there already, with the right checksum


def test_a_second_attempt_succeeds(server, tmp_path):
    fetch_corpus("c", entry(server, "late.txt"), tmp_path)
    assert server.asked == ["late.txt", "late.txt"]
    assert (tmp_path / "late.txt").read_bytes() == GOOD


def test_f12_wrong_checksum(server, tmp_path, capsys):
    (tmp_path / "other.txt").write_bytes(b"an earlier good copy")
    (tmp_path / "manifest.json").write_text("{}")
    given = json.dumps(entry(server, "other.txt"))
    code = run_script(
        "download", ["--corpus", "c", "--entry", given, "--out", tmp_path / "manifest.json"]
    )
    assert code == 3
    message = capsys.readouterr().err
    assert GOOD_HASH in message and hashlib.sha256(b"other").hexdigest() in message
    assert "/corpus/other.txt" in message and "5 bytes" in message
    assert (tmp_path / "other.txt").read_bytes() == b"an earlier good copy"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["manifest.json", "other.txt"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing.txt", "404"),
        ("cut.txt", "5 bytes read"),
        ("loop.txt", "30 redirects"),
        ("slow.txt", "timed out"),
        ("page.txt", "an HTML page"),
    ],
)
def test_f13_network_faults_leave_nothing(server, tmp_path, name, words):
    with pytest.raises(EnvironmentFault, match=words):
        fetch_corpus("c", entry(server, name), tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert len(server.asked) == (62 if name == "loop.txt" else 2)  # 31 requests an attempt


def test_f13_no_server(server, tmp_path):
    given = entry(server, "good.txt") | {"base_url": "http://127.0.0.1:9/"}
    with pytest.raises(EnvironmentFault, match="HEADCOUNT_MIRROR"):
        fetch_corpus("c", given, tmp_path)


def test_mirror_replaces_the_network(server, tmp_path, monkeypatch):
    monkeypatch.setenv("HEADCOUNT_MIRROR", str(tmp_path / "mirror"))
    folder = tmp_path / "raw"
    with pytest.raises(EnvironmentFault, match="not in the mirror"):
        fetch_corpus("c", entry(server, "good.txt"), folder)
    mirrored = tmp_path / "mirror" / "c" / "good.txt"
    mirrored.parent.mkdir(parents=True)
    mirrored.write_bytes(b"tampered")
    with pytest.raises(EnvironmentFault, match="wrong content"):
        fetch_corpus("c", entry(server, "good.txt"), folder)
    mirrored.write_bytes(GOOD)
    fetch_corpus("c", entry(server, "good.txt") | {"base_url": None}, folder)
    assert (folder / "good.txt").read_bytes() == GOOD
    assert server.asked == []


def test_own_files_are_copied(tmp_path, monkeypatch):
    monkeypatch.delenv("HEADCOUNT_MIRROR", raising=False)
    own = tmp_path / "my text.txt"
    given = {"splits": {"train": {"en": {"path": str(own), "sha256": None}}}}
    with pytest.raises(UserError, match="my text.txt: expected a file of your own, found none"):
        fetch_corpus("c", given, tmp_path / "raw")
    own.write_bytes(GOOD)
    fetch_corpus("c", given, tmp_path / "raw")
    own.write_bytes(b"edited\n")
    fetch_corpus("c", given, tmp_path / "raw")
    manifest = json.loads((tmp_path / "raw" / "manifest.json").read_text())
    assert manifest["splits"]["train"]["en"]["bytes"] == 7
    assert manifest["splits"]["train"]["en"]["own"] == str(own)  # as it was given, for messages
    given["splits"]["train"]["en"]["sha256"] = GOOD_HASH
    with pytest.raises(UserError, match=GOOD_HASH):
        fetch_corpus("c", given, tmp_path / "raw")
    assert (tmp_path / "raw" / "train.en").read_bytes() == b"edited\n"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"file": "../up.txt", "sha256": GOOD_HASH}, "expected a name"),
        ({"file": "/etc/passwd", "sha256": GOOD_HASH}, "expected a name"),
        ({"file": "good.txt"}, "its sha256"),
    ],
)
def test_faulty_entries(tmp_path, change, words):
    with pytest.raises(UserError, match=words):
        fetch_corpus(
            "c", {"base_url": "https://x.org", "splits": {"train": {"en": change}}}, tmp_path
        )


def test_only_safe_addresses(tmp_path):
    for url in ("http://example.org", "file:///etc", "ftp://example.org"):
        sides = {"en": {"file": "good.txt", "sha256": GOOD_HASH}}
        with pytest.raises(UserError, match="https://"):
            fetch_corpus("c", {"base_url": url, "splits": {"train": sides}}, tmp_path)


def test_unreadable_entry_is_a_user_error(tmp_path, capsys):
    out = ["--out", tmp_path / "manifest.json"]
    assert run_script("download", ["--corpus", "c", "--entry", "{", *out]) == 2
    assert "expected JSON" in capsys.readouterr().err

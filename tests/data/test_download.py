"""Downloads against a server on this machine that misbehaves in every way it can."""

import hashlib
import json
import random
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from script_runner import run_script

from headcount.base.errors import EnvironmentFault, UserError
from headcount.data.fetching import transfer
from headcount.data.fetching.download import fetch_corpus
from headcount.data.fetching.transfer import read_lock, record

GOOD = b"one line\nanother line\n"
GOOD_MD5 = hashlib.md5(GOOD).hexdigest()
GOOD_HASH = hashlib.sha256(GOOD).hexdigest()
BIG = b"\x1f\x8b" + random.Random(1).randbytes(300_000)
BIG_HASH = hashlib.sha256(BIG).hexdigest()
PAGE = b"<!DOCTYPE html><title>Please log in</title>"


class Handler(BaseHTTPRequestHandler):
    """Serves by file name: page.txt, cut.txt, late.txt, missing.txt and others.

    An answer with big.gz is cut after `server.piece` bytes, if that is set. Its content is
    `server.big`, its version `server.tag`.
    """

    def do_GET(self):
        name = self.path.rsplit("/", 1)[-1]
        self.server.asked.append(name)
        body = {"page.txt": PAGE, "other.txt": b"other"}.get(name, GOOD)
        if name == "big.gz":
            self.send_piece()
        elif name == "missing.txt" or (name == "late.txt" and len(self.server.asked) == 1):
            self.send_error(404 if name == "missing.txt" else 503)
        else:
            length = {"Content-Length": str(len(body))} if name != "endless.txt" else {}
            self.send(200, length, body[:5] if name == "cut.txt" else body)

    def send(self, code, headers, body=b""):
        self.send_response(code)
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)

    def send_piece(self):
        server, start = self.server, 0
        asked = self.headers.get("Range", "")
        server.ranges.append(asked)
        if asked and self.headers.get("If-Range", server.tag) == server.tag:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
        size = len(server.big)
        if start >= size:
            self.send(416, {"Content-Range": f"bytes */{size}", "Content-Length": "0"})
            return
        headers = {"Content-Range": f"bytes {start}-{size - 1}/{size}"} if start else {}
        headers |= {"ETag": server.tag} if server.tag else {}
        headers |= {"Content-Length": str(size - start)}
        self.send(206 if start else 200, headers, server.big[start:][: server.piece])

    def log_message(self, format, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.delenv("HEADCOUNT_MIRROR", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(transfer, "WAITS", (0,))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda request, address: None  # a client that hung up
    server.asked, server.ranges = [], []
    server.big, server.tag, server.piece = BIG, '"one"', None
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def entry(server, name, sha256=GOOD_HASH):
    url = f"http://127.0.0.1:{server.server_address[1]}/corpus/"
    return {"base_url": url, "splits": {"train": {"en": {"file": name, "sha256": sha256}}}}


def fetch(server, name, folder, sha256=GOOD_HASH, lock=None, **more):
    given = entry(server, name, sha256)
    given["splits"]["train"]["en"] |= more
    fetch_corpus("c", given, folder, lock or folder / "lock.yaml")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_files_and_manifest(server, tmp_path):
    given = entry(server, "good.txt")
    given["splits"]["dev"] = {"en": {"file": "good.txt", "sha256": GOOD_HASH, "member": None}}
    out = tmp_path / "raw" / "manifest.json"
    flags = ["--corpus", "c", "--entry", json.dumps(given), "--out", out]
    assert run_script("download", flags) == 0
    assert (out.parent / "good.txt").read_bytes() == GOOD
    row = {"file": "good.txt", "sha256": GOOD_HASH, "bytes": 22, "format": "plain"}
    row["language"] = "en"
    assert json.loads(out.read_text())["splits"] == {"train": {"en": row}, "dev": {"en": row}}
    assert str(tmp_path) not in out.read_text()
    fetch_corpus("c", given, out.parent)
    assert server.asked == ["good.txt"]  # once, though two splits name it and two calls ask


def test_a_second_attempt_succeeds(server, tmp_path):
    fetch(server, "late.txt", tmp_path)
    assert server.asked == ["late.txt", "late.txt"]
    assert (tmp_path / "late.txt").read_bytes() == GOOD


def test_f12_wrong_checksum(server, tmp_path, capsys):
    (tmp_path / "other.txt").write_bytes(b"an earlier good copy")
    (tmp_path / "manifest.json").write_text("{}")
    flags = ["--entry", json.dumps(entry(server, "other.txt")), "--out", tmp_path / "manifest.json"]
    assert run_script("download", ["--corpus", "c", *flags]) == 3
    message = capsys.readouterr().err
    assert GOOD_HASH in message and hashlib.sha256(b"other").hexdigest() in message
    assert "/corpus/other.txt" in message
    assert (tmp_path / "other.txt").read_bytes() == b"an earlier good copy"
    assert names(tmp_path) == ["manifest.json", "other.txt"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing.txt", "404"),
        ("cut.txt", "5 bytes read"),
        ("page.txt", "an HTML page"),
    ],
)
def test_f13_network_faults_leave_nothing(server, tmp_path, name, words):
    with pytest.raises(EnvironmentFault, match=words):
        fetch(server, name, tmp_path)
    assert names(tmp_path) == []
    assert len(server.asked) == 2


@pytest.mark.parametrize("later", [False, True])
def test_a_cut_download_goes_on_where_it_stopped(server, tmp_path, monkeypatch, later):
    server.piece = 140_000  # two whole pieces of 2 ** 16 bytes
    if later:
        monkeypatch.setattr(transfer, "WAITS", ())
        with pytest.raises(EnvironmentFault):
            fetch(server, "big.gz", tmp_path, BIG_HASH)
        assert names(tmp_path) == [".fetched-big.gz"]
    monkeypatch.setattr(transfer, "WAITS", (0, 0))
    fetch(server, "big.gz", tmp_path, BIG_HASH)
    assert server.ranges == ["", "bytes=131072-", "bytes=262144-"]
    assert (tmp_path / "big.gz").read_bytes() == BIG
    assert names(tmp_path) == ["big.gz", "manifest.json"]


def test_a_complete_piece_needs_only_its_check(server, tmp_path):
    (tmp_path / ".fetched-big.gz").write_bytes(BIG)
    fetch(server, "big.gz", tmp_path, BIG_HASH)
    assert server.ranges == [f"bytes={len(BIG)}-"]
    assert (tmp_path / "big.gz").read_bytes() == BIG


@pytest.mark.parametrize("left", [b"another start", BIG + b"more"])
def test_a_piece_of_another_file_is_fetched_anew(server, tmp_path, left):
    (tmp_path / ".fetched-big.gz").write_bytes(left)
    fetch(server, "big.gz", tmp_path, BIG_HASH)
    assert (tmp_path / "big.gz").read_bytes() == BIG


@pytest.mark.parametrize("tag", ['"one"', ""])
def test_without_checksum_a_cut_resumes_only_the_same_version(server, tmp_path, monkeypatch, tag):
    """Within a call and by the server's version. A later call starts anew."""
    server.piece, server.tag = 140_000, tag
    monkeypatch.setattr(transfer, "WAITS", (0,))
    with pytest.raises(EnvironmentFault):
        fetch(server, "big.gz", tmp_path / "raw", None)
    assert server.ranges == ["", "bytes=131072-" if tag else ""]
    assert names(tmp_path / "raw") == []
    server.piece, waited = None, []
    server.big = BIG[:2] + BIG[:1:-1]
    monkeypatch.setattr(transfer.time, "sleep", waited.append)
    fetch(server, "big.gz", tmp_path / "raw", None)
    assert not waited and (tmp_path / "raw" / "big.gz").read_bytes() == server.big


def test_a_version_that_changes_between_attempts_is_fetched_whole(server, tmp_path, monkeypatch):
    def change(seconds):
        server.big, server.piece, server.tag = BIG[:2] + BIG[:1:-1], None, '"two"'

    server.piece = 140_000
    monkeypatch.setattr(transfer.time, "sleep", change)
    fetch(server, "big.gz", tmp_path, None)
    assert (tmp_path / "big.gz").read_bytes() == server.big
    assert server.ranges == ["", "bytes=131072-"]


def test_a_first_fetch_is_recorded_and_binds_later_ones(server, tmp_path, capsys):
    lock = tmp_path / "lock.yaml"
    fetch(server, "big.gz", tmp_path / "one", None, lock)
    assert BIG_HASH in capsys.readouterr().err
    recorded = read_lock(lock)
    ((url, file),) = recorded.items()
    assert url.endswith("/corpus/big.gz") and (file.sha256, file.bytes) == (BIG_HASH, len(BIG))
    fetch(server, "big.gz", tmp_path / "one", None, lock)
    assert len(server.asked) == 1 and not capsys.readouterr().err
    server.big = BIG[:-1]
    with pytest.raises(EnvironmentFault, match=f"Expected SHA-256 {BIG_HASH}.*{lock}.*{file.date}"):
        fetch(server, "big.gz", tmp_path / "two", None, lock)
    assert read_lock(lock) == recorded and not (tmp_path / "two" / "big.gz").exists()


@pytest.mark.parametrize(
    ("name", "more", "words"),
    [
        ("page.txt", {}, "an HTML page"),
        ("good.txt", {"md5": "0" * 32}, f"Expected MD5 {'0' * 32}, found {GOOD_MD5}"),
        ("good.txt", {"bytes": 23}, "Expected 23 bytes"),
        ("endless.txt", {}, "neither its size nor its checksum is known"),
    ],
)
def test_unsuitable_files_are_not_recorded(server, tmp_path, name, more, words):
    with pytest.raises(EnvironmentFault, match=words):
        fetch(server, name, tmp_path, None, **more)
    assert names(tmp_path) == []


def test_several_jobs_record_at_once(tmp_path):
    lock = tmp_path / "config" / "lock.yaml"
    jobs = [
        threading.Thread(target=record, args=(lock, f"https://a.org/{n}", f"{n:064}", n))
        for n in range(1, 13)
    ]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert sorted(file.bytes for file in read_lock(lock).values()) == list(range(1, 13))
    with pytest.raises(UserError, match="fetched twice at once"):
        record(lock, "https://a.org/3", "f" * 64, 3)
    lock.write_text("https://a.org/x:\n  sha256: abc\n  bytes: 1\n  date: d\n")
    with pytest.raises(UserError, match=r"lock.yaml:2: .*sha256: "):
        read_lock(lock)


def test_another_folder_of_the_project_saves_the_network(server, tmp_path):
    given = entry(server, "good.txt")
    folders = [tmp_path / "raw" / name for name in ("one/0123", "two/4567")]
    for folder in folders:
        fetch_corpus(folder.parent.name, given, folder)
    assert server.asked == ["good.txt"]
    (folders[0] / "good.txt").write_bytes(b"damaged")
    (folders[1] / "good.txt").unlink()
    fetch_corpus("two", given, folders[1])
    assert server.asked == ["good.txt"] * 2


def test_mirror_replaces_the_network(server, tmp_path, monkeypatch):
    monkeypatch.setenv("HEADCOUNT_MIRROR", str(tmp_path / "mirror"))
    mirrored = tmp_path / "mirror" / "c" / "good.txt"
    mirrored.parent.mkdir(parents=True)
    with pytest.raises(EnvironmentFault, match="not in the mirror"):
        fetch(server, "good.txt", tmp_path / "raw")
    mirrored.write_bytes(b"tampered")
    with pytest.raises(EnvironmentFault, match="wrong content"):
        fetch(server, "good.txt", tmp_path / "raw")
    mirrored.write_bytes(GOOD)
    fetch(server, "good.txt", tmp_path / "raw")
    assert (tmp_path / "raw" / "good.txt").read_bytes() == GOOD and server.asked == []


def test_own_files_are_copied(tmp_path, monkeypatch):
    monkeypatch.delenv("HEADCOUNT_MIRROR", raising=False)
    own = tmp_path / "my text.txt"

    def fetch_own(**more):
        given = {"splits": {"train": {"en": {"path": str(own)} | more}}}
        fetch_corpus("c", given, tmp_path / "raw")

    with pytest.raises(UserError, match="my text.txt: "):
        fetch_own()
    for content in (GOOD, b"edited\n"):
        own.write_bytes(content)
        fetch_own()
    row = json.loads((tmp_path / "raw" / "manifest.json").read_text())["splits"]["train"]["en"]
    assert (row["bytes"], row["own"]) == (7, str(own))  # as it was given, for messages
    for more in ({"md5": GOOD_MD5}, {"bytes": 8}, {"sha256": GOOD_HASH}):
        with pytest.raises(UserError, match=f"Expected .*{next(iter(more.values()))}"):
            fetch_own(**more)
    assert (tmp_path / "raw" / "train.en").read_bytes() == b"edited\n"


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"file": "../up.txt", "sha256": GOOD_HASH}, "train.en.file: "),
        ({"file": "/etc/passwd", "sha256": GOOD_HASH}, "train.en.file: "),
        ({"file": "good.txt", "sha256": "abc"}, "train.en.sha256: "),
        ({"sha256": GOOD_HASH}, "train.en: "),
        *(({"url": f"{address}/x"}, "url: ") for address in ("http://a.org", "file:///etc")),
    ],
)
def test_faulty_entries(tmp_path, change, key):
    given = {"base_url": "https://x.org", "splits": {"train": {"en": change}}}
    with pytest.raises(UserError, match=key):
        fetch_corpus("c", given, tmp_path)

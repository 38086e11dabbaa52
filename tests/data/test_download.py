"""Downloads against a server on this machine that misbehaves in every way it can."""

import hashlib
import json
import random
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from script_runner import run_script

from headcount.base.errors import EnvironmentFault, UserError
from headcount.data.fetching import transfer
from headcount.data.fetching.checksums import read_lock, record
from headcount.data.fetching.download import fetch_corpus

GOOD = b"one line\nanother line\n"
GOOD_MD5 = hashlib.md5(GOOD).hexdigest()
GOOD_HASH = hashlib.sha256(GOOD).hexdigest()
BIG = b"\x1f\x8b" + random.Random(1).randbytes(300_000)
PAGE = b"<!DOCTYPE html><title>Please log in</title>"


class Handler(BaseHTTPRequestHandler):
    """Serves by file name: good.txt, page.txt, cut.txt, loop.txt, slow.txt, late.txt; else 404.

    big.gz comes in pieces: an answer is cut after `server.piece` bytes, if that is set, and the
    rest is sent to who asks for it. Its content is `server.big`, its version `server.tag`.
    """

    def do_GET(self):
        name = self.path.rsplit("/", 1)[-1]
        self.server.asked.append(name)
        if name == "big.gz":
            self.send_piece()
            return
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
        if name != "endless.txt":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:5] if name == "cut.txt" else body)

    def do_HEAD(self):
        """Of a client that takes packed answers, the size of such a one."""
        packed = "gzip" in self.headers.get("Accept-Encoding", "")
        self.send_response(200)
        self.send_header("Content-Length", "7" if packed else str(len(GOOD)))
        self.end_headers()

    def send_piece(self):
        server, start = self.server, 0
        asked = self.headers.get("Range", "")
        server.ranges.append(asked)
        if asked and self.headers.get("If-Range", server.tag) == server.tag:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
        if start >= len(server.big):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(server.big)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        if start:
            last = f"{len(server.big) - 1}/{len(server.big)}"
            self.send_header("Content-Range", f"bytes {start}-{last}")
        if server.tag:
            self.send_header("ETag", server.tag)
        self.send_header("Content-Length", str(len(server.big) - start))
        self.end_headers()
        self.wfile.write(server.big[start:][: server.piece])

    def log_message(self, format, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.delenv("HEADCOUNT_MIRROR", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(transfer, "WAITS", (0,))
    monkeypatch.setattr(transfer, "TIMEOUT", 0.3)
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
        ("missing.txt", "found none: 404"),
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


@pytest.mark.parametrize("later", [False, True])
def test_a_cut_download_goes_on_where_it_stopped(server, tmp_path, monkeypatch, later):
    given = entry(server, "big.gz", hashlib.sha256(BIG).hexdigest())
    server.piece = 140_000
    if later:
        monkeypatch.setattr(transfer, "WAITS", ())
        with pytest.raises(EnvironmentFault, match="found 131072 bytes of it, which are kept"):
            fetch_corpus("c", given, tmp_path)
        assert not (tmp_path / "big.gz").exists()
    monkeypatch.setattr(transfer, "WAITS", (0, 0))
    fetch_corpus("c", given, tmp_path)
    assert server.ranges == ["", "bytes=131072-", "bytes=262144-"]
    assert (tmp_path / "big.gz").read_bytes() == BIG
    assert sorted(path.name for path in tmp_path.iterdir()) == ["big.gz", "manifest.json"]


def test_a_complete_piece_needs_only_its_check(server, tmp_path):
    (tmp_path / ".fetched-big.gz").write_bytes(BIG)
    given = entry(server, "big.gz", hashlib.sha256(BIG).hexdigest())
    about = {"url": f"{given['base_url']}big.gz", "version": '"one"'}
    (tmp_path / ".fetched-big.gz.json").write_text(json.dumps(about))
    fetch_corpus("c", given, tmp_path)
    assert server.ranges == [f"bytes={len(BIG)}-"]
    assert (tmp_path / "big.gz").read_bytes() == BIG


@pytest.mark.parametrize("about", ["", "[]", "{}", '{"version": "1"}', '{"url": "x"}'])
def test_a_piece_of_nobody_knows_what_is_fetched_anew(server, tmp_path, about):
    (tmp_path / ".fetched-good.txt").write_bytes(b"one")
    (tmp_path / ".fetched-good.txt.json").write_text(about)
    fetch_corpus("c", entry(server, "good.txt"), tmp_path)
    assert (tmp_path / "good.txt").read_bytes() == GOOD


def test_a_size_is_that_of_the_file_and_not_of_a_packed_answer(server):
    assert transfer.size_of(f"{entry(server, '')['base_url']}good.txt") == 22


@pytest.mark.parametrize("tag", ['"one"', ""])
def test_a_file_that_changed_after_a_cut_is_fetched_whole(server, tmp_path, monkeypatch, tag):
    """Without a checksum the server's word for the version decides; without it, nothing is kept."""
    server.piece, server.tag = 140_000, tag
    monkeypatch.setattr(transfer, "WAITS", ())
    lock = tmp_path / "lock.yaml"
    with pytest.raises(EnvironmentFault, match="found 131072 bytes of it" if tag else "found none"):
        fetch_corpus("c", entry(server, "big.gz", None), tmp_path / "raw", lock)
    assert len(list((tmp_path / "raw").iterdir())) == (2 if tag else 0)
    server.big, server.piece, server.tag = BIG[:2] + BIG[:1:-1], None, tag and '"two"'
    fetch_corpus("c", entry(server, "big.gz", None), tmp_path / "raw", lock)
    assert (tmp_path / "raw" / "big.gz").read_bytes() == server.big
    assert server.ranges[1:] == (["bytes=131072-"] if tag else [""])


def test_a_first_fetch_is_recorded_and_binds_later_ones(server, tmp_path, capsys):
    lock, given = tmp_path / "lock.yaml", entry(server, "big.gz", None)
    fetch_corpus("c", given, tmp_path / "one", lock)
    told = capsys.readouterr().err
    found = hashlib.sha256(BIG).hexdigest()
    assert found in told and "for the first time" in told and "commit that file" in told
    url = f"{given['base_url']}big.gz"
    recorded = read_lock(lock)
    assert (recorded[url].sha256, recorded[url].bytes) == (found, len(BIG))
    fetch_corpus("c", given, tmp_path / "one", lock)
    assert len(server.asked) == 1 and "first time" not in capsys.readouterr().err
    server.big = BIG[:-1]
    with pytest.raises(EnvironmentFault) as caught:
        fetch_corpus("c", given, tmp_path / "two", lock)
    told = str(caught.value)
    assert f"Expected SHA-256 {found}, recorded in {lock} on {recorded[url].date}" in told
    assert f"delete its entry in {lock}: results may change" in told
    assert read_lock(lock) == recorded and not (tmp_path / "two" / "big.gz").exists()


@pytest.mark.parametrize(
    ("name", "more", "words"),
    [
        ("page.txt", {}, "Expected a .txt file, found another in 43 bytes .an HTML page"),
        ("good.gz", {}, "Expected a .gz file, found another"),
        ("good.txt", {"md5": "0" * 32}, f"Expected MD5 {'0' * 32}, found {GOOD_MD5}"),
        ("good.txt", {"bytes": 23}, "Expected 23 bytes, found others in 22 bytes"),
        ("endless.txt", {}, "neither its size nor its checksum is known"),
    ],
)
def test_what_cannot_be_the_file_is_not_recorded(server, tmp_path, name, more, words):
    given = entry(server, name, None)
    given["splits"]["train"]["en"] |= more
    with pytest.raises(EnvironmentFault, match=words):
        fetch_corpus("c", given, tmp_path, tmp_path / "lock.yaml")
    assert list(tmp_path.iterdir()) == []


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
    with pytest.raises(UserError, match="fetched twice at once, with different content"):
        record(lock, "https://a.org/3", "f" * 64, 3)


def test_f05_a_damaged_lock_is_named_at_its_line(server, tmp_path):
    lock = tmp_path / "lock.yaml"
    lock.write_text("https://a.org/x:\n  sha256: abc\n  bytes: 1\n  date: d\n")
    with pytest.raises(UserError, match=r"lock.yaml:2: .*sha256: "):
        fetch_corpus("c", entry(server, "big.gz", None), tmp_path, lock)


def test_another_folder_of_the_project_saves_the_network(server, tmp_path):
    given = entry(server, "good.txt")
    fetch_corpus("one", given, tmp_path / "raw" / "one" / "0123")
    fetch_corpus("two", given, tmp_path / "raw" / "two" / "4567")
    assert server.asked == ["good.txt"]
    (tmp_path / "raw" / "one" / "0123" / "good.txt").write_bytes(b"damaged")
    (tmp_path / "raw" / "two" / "4567" / "good.txt").unlink()
    fetch_corpus("two", given, tmp_path / "raw" / "two" / "4567")
    assert server.asked == ["good.txt"] * 2


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
    fetch_corpus("c", entry(server, "good.txt"), folder)
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
    for key, said, told in (
        ("md5", GOOD_MD5, f"Expected MD5 {GOOD_MD5}, found"),
        ("bytes", 8, "Expected 8 bytes, found others in 7 bytes"),
        ("sha256", GOOD_HASH, GOOD_HASH),
    ):
        with pytest.raises(UserError, match=told):
            fetch_corpus(
                "c", {"splits": {"train": {"en": {"path": str(own), key: said}}}}, tmp_path / "raw"
            )
    assert (tmp_path / "raw" / "train.en").read_bytes() == b"edited\n"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"file": "../up.txt", "sha256": GOOD_HASH}, "train.en.file: "),
        ({"file": "/etc/passwd", "sha256": GOOD_HASH}, "train.en.file: "),
        ({"file": "good.txt", "sha256": "abc"}, "train.en.sha256: "),
        ({"sha256": GOOD_HASH}, "train.en: "),
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
    assert "--entry: invalid" in capsys.readouterr().err

"""Small archives of the structure that a corpus in config/corpora.yaml has, and a server of them.

All that a corpus is made of follows from its entry: which members each archive has, in which
format, and which sentences translate each other. Only numbers are smaller.
"""

import bz2
import gzip
import hashlib
import io
import json
import lzma
import random
import tarfile
import threading
import zipfile
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import sacremoses

from headcount.base.settings.corpora import WORDS, Corpus
from headcount.base.settings.sources import Draw, File, Source

PAIRS = 60
PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@cache
def sentence(split: str, part: int, number: int, language: str, version: int = 0) -> str:
    """What stands in a file: the same words in every language, one of them its name."""
    words = random.Random(f"{split} {part} {number}").sample("abcdefghijklmnop", 5)
    return f"Q&A {number} <{language}> {' '.join(words)} v{version} {split} {part}"


@dataclass
class Text:
    """What one file, or one member of an archive, holds."""

    kind: str
    rows: dict[str, list[str]] = field(default_factory=dict)  # by language, column or translator
    separator: str = "\t"

    def content(self) -> bytes:
        """The text, in its format."""
        return getattr(self, f"_{self.kind}")().encode()

    def _plain(self) -> str:
        (lines,) = self.rows.values()
        return "".join(f"{line}\n" for line in lines)

    def _moses(self) -> str:
        escaped = sacremoses.MosesTokenizer().escape_xml
        return "".join(f"{escaped(line)}\n" for line in self._plain().splitlines())

    def _ted(self) -> str:
        (lines,) = self.rows.values()
        about = "<url>http://x</url>\n<keywords>a, b</keywords>\n<talkid>1</talkid>\n"
        title = f"{about}<title>{lines[0]}</title>\n<description>{lines[1]}</description>\n"
        return title + "".join(f"{line}\n" for line in lines[2:])

    def _tsv(self) -> str:
        width = max(map(int, self.rows))
        columns = [self.rows.get(str(n + 1)) for n in range(width)]
        count = len(next(iter(self.rows.values())))
        cells = ([str(i) if c is None else c[i] for c in columns] for i in range(count))
        return "".join(self.separator.join(row) + "\n" for row in cells)

    def _sgm(self) -> str:
        """Two documents; no well-formed XML, as WMT's are not."""
        out = '<refset setid="s" trglang="any">\n'
        for translator, lines in self.rows.items():
            half = (len(lines) + 1) // 2
            for name, part in (("first", lines[:half]), ("second", lines[half:])):
                segments = "".join(
                    f'<seg id="{n}">{escape(line)}</seg>\n' for n, line in enumerate(part, 1)
                )
                out += f'<DOC docid={name} sysid="{translator}">\n<p>\n{segments}</DOC>\n'
        return out + "</refset>\n"

    def _tmx(self) -> str:
        count = len(next(iter(self.rows.values())))
        units = (
            "".join(
                f'<tuv xml:lang="{language}"><seg>{escape(lines[i])}</seg></tuv>'
                for language, lines in self.rows.items()
            )
            for i in range(count)
        )
        body = "".join(f"<tu>{unit}</tu>\n" for unit in units)
        head = '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4"><header/><body>\n'
        return f"{head}{body}</body></tmx>"

    def _ids(self) -> str:
        rows = ((f"{n % 3}.xml.gz", n) for n in _by_document())
        return "".join(f"en/{name}\tru/{name}\t{n}\t{n} 0\n" for name, n in rows)

    def _links(self) -> str:
        """Links in the order of the pairs, one of three without time stamps that agree."""
        out, document = '<?xml version="1.0"?>\n<cesAlign version="1.0">', None
        for n in _by_document():
            if n % 3 != document:
                out += "" if document is None else "</linkGrp>\n"
                document = n % 3
                out += f'<linkGrp fromDoc="en/{document}.xml.gz" toDoc="ru/{document}.xml.gz">\n'
                out += '<link id="SL" xtargets=";9999" overlap="0.1"/>\n'
            share = "" if n % 10 == 0 else f' overlap="{0.5 if n % 10 == 1 else 0.9}"'
            out += f'<link xtargets="{n};{n} 0"{share}/>\n'
        return out + "</linkGrp></cesAlign>"


def _by_document() -> list[int]:
    return sorted(range(PAIRS), key=lambda n: n % 3)


def in_time() -> list[int]:
    """Numbers of the pairs whose subtitles agree, in the order of their file."""
    return [place for place, n in enumerate(_by_document()) if n % 10 > 1]


class Built:
    """A corpus's files by name, and its entry for a server on this machine."""

    def __init__(self, corpus: Corpus, address: str, folder: Path):
        self.texts: dict[str, dict[str | None, Text]] = {}
        self._files: dict[str, File] = {}
        self._corpus, self._address, self._folder = corpus, address, folder
        for split, sides in (corpus.splits or {}).items():
            for language, side in sides.items():
                for number, source in enumerate(side.files):
                    part = number if side.parts else 0
                    version = number if side.references else 0
                    lines = [sentence(split, part, n, language, version) for n in range(PAIRS)]
                    self._add(source, language, lines)
        for rule in (corpus.overlap or {}).values():
            self._text(rule.ids, "ids")
            self._text(rule.links, "links")
        for split, file in (corpus.entailment or {}).items():
            labels = ("neutral", "entailment", "contradiction", "-")
            rows = [
                {"sentence1": f"{split} {n}.", "sentence2": "Yes.", "gold_label": labels[n % 4]}
                for n in range(PAIRS)
            ]
            self._text(file, "plain").rows["all"] = [json.dumps(row) for row in rows]

    def _text(self, file: File, kind: str) -> Text:
        self._files.setdefault(file.path or file.url or file.name, file)
        members = self.texts.setdefault(file.path or file.url or file.name, {})
        return members.setdefault(file.member, Text(kind))

    def _add(self, source: Source, language: str, lines: list[str]) -> None:
        text = self._text(source, source.read_as)
        text.separator = source.separator or "\t"
        keys = {"tsv": str(source.column), "sgm": source.translator or "ref"}
        text.rows[keys.get(source.read_as, language)] = lines

    def content(self, name: str) -> bytes:
        """A file's bytes: packed, or an archive."""
        members = {member: text.content() for member, text in self.texts[name].items()}
        if None in members:
            return PACKERS.get(Path(name).suffix, bytes)(members[None])
        packed = {m: PACKERS.get(Path(m).suffix, bytes)(c) for m, c in members.items()}
        out = io.BytesIO()
        if name.endswith(".zip"):
            with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("README", "read me")
                for member, content in packed.items():
                    archive.writestr(member, content)
        else:
            with tarfile.open(fileobj=out, mode="w" if name.endswith(".tar") else "w:gz") as tar:
                for member, content in ({"README": b"read me"} | packed).items():
                    info = tarfile.TarInfo(member)
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))
        return out.getvalue()

    def contents(self) -> dict[str, bytes]:
        """All files; own ones by their paths, published ones by their addresses."""
        return {name: self.content(name) for name in self.texts}

    def entry(self, contents: dict[str, bytes]) -> dict[str, Any]:
        """The corpus's entry, with the checksums of these files where the true ones are known."""
        return self._local(self._corpus.model_dump(exclude=set(WORDS), exclude_none=True), contents)

    def _local(self, value: Any, contents: dict[str, bytes]) -> Any:
        if isinstance(value, list):
            return [self._local(each, contents) for each in value]
        if not isinstance(value, dict):
            return value
        found = {key: self._local(each, contents) for key, each in value.items()}
        name = found.get("path") or found.get("url") or found.get("file")
        if name in contents:
            if "path" in found:
                found["path"] = str(self._folder / name)
            elif "url" in found:
                found["url"] = f"{self._address}/{name.partition('//')[2]}"
            content = contents[name]
            known = {
                "sha256": hashlib.sha256(content).hexdigest(),
                "md5": hashlib.md5(content).hexdigest(),
                "bytes": len(content),
            }
            found |= {key: fact for key, fact in known.items() if key in found}
        if "base_url" in found:
            found["base_url"] = self._address
        if "every" in found:
            found["every"] = 5 + found["every"] % 10
        return found

    def draws(self) -> dict[str, Draw]:
        """By split, how many of so few pairs are drawn, as 100 of 180."""
        rules = (self._corpus.draw or {}).items()
        few = {2500000: 100, 6000000: 20, 3000: 30}
        return {split: Draw(pairs=few[rule.pairs], seed=rule.seed) for split, rule in rules}


@contextmanager
def served(contents: Callable[[str], bytes | None]):
    """Address of a server on this machine; `contents` finds a file by what follows the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = contents(self.path.removeprefix("/"))
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, format, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda request, address: None
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

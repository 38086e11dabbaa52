"""What there is to fetch of a corpus: files, sizes, checksums, where each lies by now."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from headcount.base.settings.text.corpora import Corpus
from headcount.base.settings.text.sources import File
from headcount.data.fetching.checksums import Recorded
from headcount.data.fetching.transfer import MIRROR, size_of


class Listed(NamedTuple):
    """One file of a corpus."""

    name: str
    bytes: int | None
    place: str  # here, mirror, to fetch; of one's own: your own, missing
    checksum: str  # SHA-256, MD5, recorded, unknown, or nothing for one's own
    address: str


def list_corpora(
    corpora: Mapping[str, Corpus], raw: Path, recorded: Mapping[str, Recorded], ask: bool
) -> Iterator[str]:
    """Lines that say of each corpus what it is, and its files; at the end what is to be fetched.

    `raw` is where fetched corpora lie (data/raw), `recorded` the content of `corpora.lock.yaml`.
    With `ask`, servers are asked for sizes that nothing says.
    """
    to_fetch: dict[str, int | None] = {}
    for name, corpus in corpora.items():
        yield name
        yield f"  licence: {corpus.licence}"
        yield f"  cite: {corpus.citation}"
        if corpus.generator:
            yield "  generated here"
        for file in list_files(name, corpus, raw, recorded, ask):
            yield (
                f"  {file.name:<36} {_shown(file.bytes):>10}  {file.place:<9}  "
                f"{file.checksum:<9}  {file.address}"
            )
            if file.place == "to fetch":
                to_fetch[file.address] = file.bytes
        yield ""
    known = [size for size in to_fetch.values() if size]
    lacking = len(to_fetch) - len(known)
    more = f" and {lacking} of unknown size" if lacking else ""
    yield f"to fetch: {len(known)} files, {_shown(sum(known))}{more}"


def list_files(
    name: str, corpus: Corpus, raw: Path, recorded: Mapping[str, Recorded], ask: bool
) -> list[Listed]:
    """Every file of a corpus once, those of its trees too; arguments as of `list_corpora`."""
    named = [(corpus.of or name, corpus.base_url, file) for file in corpus.files()]
    named += [(name, tree.base_url, tree) for tree in corpus.trees.values()]
    files = {
        file.path or file.url or f"{base_url}/{file.file}": (folder, file)
        for folder, base_url, file in named
    }
    return [
        _own(file) if file.path else _published(folder, file, address, raw, recorded, ask)
        for address, (folder, file) in files.items()
    ]


def _own(file: File) -> Listed:
    path = Path(file.path)
    here = path.is_file()
    size = path.stat().st_size if here else None
    return Listed(file.name, size, "your own" if here else "missing", "", file.path)


def _published(
    corpus: str, file: File, address: str, raw: Path, recorded: Mapping[str, Recorded], ask: bool
) -> Listed:
    here = next(iter(sorted((raw / corpus).glob(f"*/{file.name}"))), None)
    mirrored = Path(os.environ.get(MIRROR, "")) / corpus / file.name
    known = recorded.get(address)
    if here:
        place, size = "here", here.stat().st_size
    elif MIRROR in os.environ and mirrored.is_file():
        place, size = "mirror", mirrored.stat().st_size
    else:
        place, size = "to fetch", file.bytes or (known.bytes if known else None)
    if size is None and ask:
        size = size_of(address)
    said = "SHA-256" if file.sha256 else "recorded" if known else "MD5" if file.md5 else "unknown"
    return Listed(file.name, size, place, said, address)


def _shown(size: int | None) -> str:
    """Bytes as people read them."""
    if size is None:
        return "?"
    for unit, power in (("GB", 9), ("MB", 6), ("kB", 3)):
        if size >= 10**power:
            return f"{size / 10**power:.1f} {unit}"
    return f"{size} B"

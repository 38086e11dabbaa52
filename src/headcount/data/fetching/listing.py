"""List of the files of corpora: size, address, and place by now."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from headcount.base.settings.corpora import Corpus
from headcount.base.settings.sources import File
from headcount.data.fetching.checksums import Recorded
from headcount.data.fetching.transfer import MIRROR


def list_corpora(
    corpora: Mapping[str, Corpus], raw: Path, recorded: Mapping[str, Recorded]
) -> Iterator[str]:
    """Yield lines with licence, citation and files of each corpus, and the sum to fetch.

    `raw` is the folder of fetched corpora, `recorded` the content of `corpora.lock.yaml`.
    """
    to_fetch: dict[str, int] = {}
    for name, corpus in corpora.items():
        yield from (name, f"  licence: {corpus.licence}", f"  cite: {corpus.citation}")
        if corpus.generator:
            yield "  generated here"
        files = [(corpus.of or name, corpus.base_url, file) for file in corpus.files()]
        files += [(name, tree.base_url, tree) for tree in corpus.trees.values()]
        addresses = [file.path or file.url or f"{base}/{file.file}" for _, base, file in files]
        for address, (folder, _, file) in dict(zip(addresses, files, strict=True)).items():
            place, path = _place(file, raw, folder)
            size = path.stat().st_size if path else file.bytes
            size = size or (recorded[address].bytes if address in recorded else 0)
            yield f"  {file.name:<36} {_megabytes(size):>10}  {place:<9}  {address}"
            if place == "to fetch":
                to_fetch[address] = size
        yield ""
    unknown = sum(not size for size in to_fetch.values())
    more = f", {unknown} of them of unknown size" if unknown else ""
    yield f"to fetch: {len(to_fetch)} files, {_megabytes(sum(to_fetch.values()))}{more}"


def _place(file: File, raw: Path, corpus: str) -> tuple[str, Path | None]:
    if file.path:
        own = Path(file.path)
        return ("your own", own) if own.is_file() else ("missing", None)
    if here := sorted((raw / corpus).glob(f"*/{file.name}")):
        return "here", here[0]
    mirrored = Path(os.environ.get(MIRROR, "/dev/null"), corpus, file.name)
    return ("mirror", mirrored) if mirrored.is_file() else ("to fetch", None)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size else "?"

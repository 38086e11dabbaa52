"""Every corpus of config/corpora.yaml from its address to its text, sound and broken in each way.

What is fetched has the structure of the true files, see tests/helpers/published.py.
"""

import os
import re
from pathlib import Path
from unittest.mock import ANY

import pytest
from published import PAIRS, Built, Text, in_time, sentence, served
from script_runner import run_script

from headcount.base.errors import UserError
from headcount.base.files import read_json
from headcount.base.settings import corpora
from headcount.base.settings.corpora import WORDS
from headcount.base.settings.data import BpeSettings, TextSettings
from headcount.base.settings.sources import Draw
from headcount.data.bpe import join_pieces, segment_corpus
from headcount.data.entailment import read_pairs
from headcount.data.fetching import transfer
from headcount.data.fetching.download import fetch_corpus
from headcount.data.fetching.transfer import Recorded, list_corpora, read_lock
from headcount.data.lines import clean_lines, references
from headcount.data.manifest import find_file, read_manifest
from headcount.data.text import write_split

CORPORA = corpora.load_corpora(Path(__file__).parents[2] / "config" / "corpora.yaml")
FETCHED = {name: corpus for name, corpus in CORPORA.items() if corpus.splits and not corpus.of}
UNLIKELY = TextSettings(drop_duplicates=False, drop_overlap=False)


class Fetched:
    """A corpus's small files, behind a server, and what becomes of them."""

    def __init__(self, corpus: corpora.Corpus, address: str, folder: Path, files: dict[str, bytes]):
        self.built = Built(corpus, address, folder)
        self.corpus, self.folder, self._files = corpus, folder, files
        self.lock = folder / "corpora.lock.yaml"
        self.contents = self.built.contents()
        self.entry = self.built.entry(self.contents)
        self.draws = self.built.draws()
        self.serve()

    def serve(self, **changed: bytes) -> None:
        """Put the files where they are asked for; `changed` have another content."""
        for name, content in (self.contents | changed).items():
            if name.startswith("own/"):
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                (self.folder / name).write_bytes(content)
            self._files[name.partition("//")[2] or name] = content

    def fetch(self) -> Path:
        """The manifest, after fetching."""
        fetch_corpus("c", self.entry, self.folder / "raw", self.lock)
        return self.folder / "raw" / "manifest.json"

    def split(self, split: str, src: str, tgt: str) -> tuple[list[str], list[str]]:
        """Both sides of a split."""
        out = self.folder / f"{src}-{tgt}"
        paths = out / f"{split}.src", out / f"{split}.tgt"
        manifest = self.folder / "raw" / "manifest.json"
        counts = out / f"{split}.json"
        draw = self.draws.get(split)
        write_split(manifest, (src, tgt), split, UNLIKELY, [], paths, counts, draw)
        return tuple(list(clean_lines(path)) for path in paths)

    def pair(self) -> tuple[str, str]:
        """Two languages: of several references, the target."""
        sides = self.corpus.splits.get("train") or next(iter(self.corpus.splits.values()))
        return tuple(sides)[:2]


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.delenv("HEADCOUNT_MIRROR", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(transfer, "WAITS", ())
    files: dict[str, bytes] = {}
    with served(files.get) as address:

        def fetched(name: str, *only: str) -> Fetched:
            """A corpus: the whole, or what a test reads of the splits that are published."""
            whole = CORPORA[name]
            splits = {split: whole.splits[split] for split in only if split in whole.splits}
            part = whole.model_copy(update={"splits": splits}) if only else whole
            return Fetched(part, address, tmp_path, files)

        yield fetched


def expected(fetched: Fetched, split: str, src: str, tgt: str) -> list[tuple[str, list[str]]]:
    """The pairs of a split before it is held out of or drawn from."""
    corpus = fetched.corpus
    of = corpus.hold_out[split].of if split in (corpus.hold_out or {}) else split
    sides = corpus.splits[of]
    count = len(sides[tgt].references or [None])
    return [
        (
            sentence(of, part, n, src),
            [sentence(of, part, n, tgt, version) for version in range(count)],
        )
        for part in range(len(sides[src].parts or [None]))
        for n in (in_time() if of in (corpus.overlap or {}) else range(PAIRS))
    ]


@pytest.mark.parametrize("name", FETCHED)
def test_a_corpus_goes_its_whole_way(corpus, name, capsys):
    fetched = corpus(name)
    src, tgt = fetched.pair()
    fetched.fetch()
    unknown = {file.url for file in fetched.corpus.files() if file.url and not file.sha256}
    assert len(read_lock(fetched.lock)) == len(unknown)
    assert capsys.readouterr().err.count("fetched for the first time") == len(unknown)
    for one, other in ((src, tgt), (tgt, src)):
        tests = corpora.test_sets(fetched.corpus, one, other)
        if not tests:
            continue  # references on its source
        for split in ("train", "dev", *tests):
            source, target = fetched.split(split, one, other)
            counts = read_json(fetched.folder / f"{one}-{other}" / f"{split}.json")
            found = [(a, references(b)) for a, b in zip(source, target, strict=True)]
            whole = expected(fetched, split, one, other)
            assert len(found) == counts["pairs_kept"] == counts["pairs_read"]
            assert counts["pairs_read"] + sum(counts["left_out"].values()) == (
                len(whole) + counts["left_out"].get("overlap", 0)
            )
            if counts["left_out"]:
                assert set(map(str, found)) < set(map(str, whole))
            else:
                assert found == whole
            assert counts["references"] == len(found[0][1])
    train, dev = (
        [fetched.folder / f"{src}-{tgt}" / f"{split}.{side}" for side in ("src", "tgt")]
        for split in ("train", "dev")
    )
    bpe = fetched.folder / "bpe"
    segment_corpus(train, dev, (src, tgt), True, BpeSettings(merges=20), bpe)
    first = [references(line)[0].split() for line in clean_lines(dev[1])]
    pieces = [join_pieces(line.split()) for line in clean_lines(bpe / "dev.tgt")]
    assert pieces == first


def test_a_draw_keeps_the_order_and_depends_on_its_seed(corpus):
    fetched = corpus("wmt_en_de")
    fetched.fetch()
    once = fetched.split("train", "en", "de")
    whole = [source for source, _ in expected(fetched, "train", "en", "de")]
    assert len(once[0]) == 100 < len(whole) == 180
    assert [line for line in whole if line in set(once[0])] == once[0]
    assert fetched.split("train", "de", "en") == once[::-1]  # the same pairs
    fetched.draws["train"] = Draw(pairs=100, seed=2)
    assert fetched.split("train", "en", "de") != once
    fetched.draws["train"] = Draw(pairs=181)
    with pytest.raises(UserError, match=r"181 pairs of draw\.train, found 180"):
        fetched.split("train", "en", "de")


def test_held_out_pairs_leave_the_other_split(corpus):
    fetched = corpus("opensubtitles2018_en_ru")
    fetched.fetch()
    whole = [source for source, _ in expected(fetched, "train", "en", "ru")]
    dev, test = (fetched.split(split, "en", "ru")[0] for split in ("dev", "test"))
    assert len(whole) == 48  # of 60: six links have no overlap, six one of 0.5
    assert dev == whole[4::5]
    assert test == [line for line in whole[5::6] if line not in dev]
    train = fetched.split("train", "en", "ru")[0]
    assert not set(train) & {*dev, *test}
    counts = read_json(fetched.folder / "en-ru" / "train.json")
    assert counts["left_out"] == {"overlap": 12, "hold_out": len(dev) + len(test), "draw": 12}
    assert (counts["pairs_read"], counts["pairs_kept"]) == (20, 20)


def member_of(fetched: Fetched, split: str, language: str) -> tuple[str, str | None]:
    """Name of the file with the first part of a side, and of the member."""
    source = fetched.corpus.splits[split][language].files[0]
    return source.path or source.url or source.name, source.member


def test_f15_a_cut_file_of_unknown_checksum_shows_when_it_is_read(corpus):
    fetched = corpus("iwslt14_de_en")
    file, _ = member_of(fetched, "train", "de")
    fetched.serve(**{file: fetched.contents[file][:-40]})
    fetched.fetch()
    with pytest.raises(UserError, match="damaged, cut short"):
        fetched.split("train", "de", "en")


@pytest.mark.parametrize("name", FETCHED)
def test_misaligned_sides_and_missing_members_are_named(corpus, name):
    fetched = corpus(name, "train")
    src, tgt = fetched.pair()
    file, member = member_of(fetched, "train", tgt)
    kind = fetched.corpus.splits["train"][tgt].files[0].read_as
    texts = fetched.built.texts[file]
    if kind != "tmx":  # whose units hold both sides
        texts[member].rows[tgt].insert(17, "an extra line that translates nothing 99999")
        refetched(fetched)
        with pytest.raises(UserError, match="60 sentences, .* 61 sentences"):
            fetched.split("train", src, tgt)
    if member is not None:
        texts["elsewhere"] = texts.pop(member)
        refetched(fetched)
        with pytest.raises(UserError, match=f"expected a member {member}, found README"):
            fetched.split("train", src, tgt)


def refetched(fetched: Fetched) -> None:
    """Serve and fetch what the texts are now."""
    fetched.lock.unlink(missing_ok=True)
    fetched.contents = fetched.built.contents()
    fetched.entry = fetched.built.entry(fetched.contents)
    fetched.serve()
    fetched.fetch()


KEYED = [
    (name, split)
    for name, corpus in FETCHED.items()
    for split, sides in corpus.splits.items()
    if all(source.read_as == "sgm" for side in sides.values() for source in side.files)
]


@pytest.mark.parametrize(("name", "split"), KEYED)
def test_a_missing_document_is_named_with_both_files(corpus, name, split):
    fetched = corpus(name, split)
    src, tgt = fetched.pair()
    file, member = member_of(fetched, split, tgt)
    text = fetched.built.texts[file][member]
    translator, lines = next(iter(text.rows.items()))
    text.rows[translator] = lines[:-1]  # documents of 30 and 29 segments
    refetched(fetched)
    told = rf"{split}: segment 30 of document second and 0 more are in .* and missing in"
    with pytest.raises(UserError, match=told):
        fetched.split(split, src, tgt)
    text.content = lambda: Text.content(text).replace(b"docid=second", b"docid=third", 1)
    text.rows[translator] = lines
    refetched(fetched)
    with pytest.raises(
        UserError,
        match=rf"{split}: .*document second and 29 more are in",
    ):
        fetched.split(split, src, tgt)


def test_translators_are_found_by_name_or_number(corpus):
    fetched = corpus("nist_zh_en", "dev")
    file, member = member_of(fetched, "dev", "en")
    text = fetched.built.texts[file][member]
    text.rows = {f"E0{n}": lines for n, lines in text.rows.items()}
    refetched(fetched)
    target = fetched.split("dev", "zh", "en")[1]
    assert references(target[3]) == [sentence("dev", 0, 3, "en", n) for n in range(4)]
    side = fetched.entry["splits"]["dev"]["en"]["references"]
    side[0]["translator"] = "E04"
    fetched.fetch()
    assert references(fetched.split("dev", "zh", "en")[1][3])[0].endswith("v3 dev 0")
    for translator, words in (
        ("E05", "segments of translator E05, found E01, E02, E03, E04"),
        (None, "has a segment twice; name one translator of E01, E02"),
    ):
        side[0]["translator"] = translator
        fetched.fetch()
        with pytest.raises(UserError, match=words):
            fetched.split("dev", "zh", "en")


def test_labelled_pairs_are_read_from_their_archive(corpus):
    fetched = corpus("multinli")
    manifest = fetched.fetch()
    rows = read_manifest(manifest)["entailment"]
    for split in ("train", "matched", "mismatched"):
        found = find_file(manifest, rows[split])
        pairs = read_pairs(found)
        assert len(pairs) == 45  # of 60, a quarter undecided
        assert pairs[0].first == f"{split} 0."


def test_files_are_listed_with_size_and_place(tmp_path, monkeypatch, capsys):
    """Sizes from the entry or from the record of the first fetch."""
    entry = CORPORA["wmt16_ro_en"]
    raw, mirror = tmp_path / "data" / "raw", tmp_path / "mirror"
    for path in (raw / "wmt16_ro_en/0123/en-ro.tmx.gz", mirror / "wmt16_ro_en/dev.tgz"):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"1" * 200_000)
    monkeypatch.setenv("HEADCOUNT_MIRROR", str(mirror))
    test_set = next(file for file in entry.files() if file.name == "test.tgz")
    recorded = {test_set.url: Recorded(sha256="0" * 64, bytes=5 * 10**6, date="2026-01-01")}
    lines = [line.split() for line in list_corpora({"wmt16_ro_en": entry}, raw, recorded)]
    assert [line[:5] for line in lines[3:7]] == [
        ["training-parallel-ep-v8.tgz", "225.0", "MB", "to", "fetch"],
        ["en-ro.tmx.gz", ANY, "MB", "here", ANY],
        ["dev.tgz", "?", "mirror", ANY],
        ["test.tgz", "5.0", "MB", "to", "fetch"],
    ]
    assert run_script("corpora", ["--experiment", "quickstart"]) == 0
    assert capsys.readouterr().out.endswith("to fetch: 0 files, ?\n")
    assert run_script("corpora", []) == 0
    listed = capsys.readouterr().out
    assert all(f"\n{name}\n" in f"\n{listed}" for name in CORPORA)
    assert "own/nist/mt03-ref.sgm" in listed


def test_a_treebank_lies_under_its_own_corpus_also_where_that_is_a_part(tmp_path):
    name, entry = next((name, entry) for name, entry in CORPORA.items() if entry.trees)
    tree = next(iter(entry.trees.values()))
    (tmp_path / "few" / "0123").mkdir(parents=True)
    (tmp_path / "few" / "0123" / tree.name).write_bytes(b"12")
    lines = list_corpora({"few": entry.model_copy(update={"of": name})}, tmp_path, {})
    assert ["here" in line for line in lines if tree.name in line] == [True]


def test_the_real_test_sets_of_iwslt15(tmp_path):
    """The published archives, where a mirror has them."""
    mirror = Path(os.environ.get("HEADCOUNT_MIRROR", "/")) / "iwslt15_en_vi"
    if not mirror.is_dir():
        pytest.skip("no mirror with iwslt15_en_vi (HEADCOUNT_MIRROR)")
    given = FETCHED["iwslt15_en_vi"].model_dump(exclude=set(WORDS), exclude_none=True)
    given["splits"] = {split: given["splits"][split] for split in ("dev", "tst2013")}
    fetch_corpus("iwslt15_en_vi", given, tmp_path / "raw")
    for split, pairs in (("dev", 1553), ("tst2013", 1268)):
        out = tmp_path / f"{split}.en", tmp_path / f"{split}.vi"
        manifest = tmp_path / "raw" / "manifest.json"
        write_split(manifest, ("en", "vi"), split, UNLIKELY, [], out, tmp_path / "counts.json")
        assert read_json(tmp_path / "counts.json")["pairs_kept"] == pairs
        assert [len(list(clean_lines(path))) for path in out] == [pairs, pairs]
        assert not re.search(r"&[a-z#0-9]+;", "".join(path.read_text("utf-8") for path in out))

"""Every corpus of config/corpora.yaml from its address to its text, sound and broken in each way.

What is fetched has the structure of the true files, see tests/helpers/published.py.
"""

import os
import re
from pathlib import Path

import pytest
from published import PAIRS, Built, Text, in_time, sentence, served
from script_runner import run_script

from headcount.base.errors import EnvironmentFault, UserError
from headcount.base.files import read_json
from headcount.base.settings.data import BpeSettings, TextSettings
from headcount.base.settings.text import corpora
from headcount.base.settings.text.corpora import WORDS
from headcount.base.settings.text.sources import Draw
from headcount.data.bpe import join_pieces, segment_corpus
from headcount.data.entailment import read_pairs
from headcount.data.fetching import listing, transfer
from headcount.data.fetching.checksums import read_lock, record
from headcount.data.fetching.download import fetch_corpus
from headcount.data.fetching.listing import list_files
from headcount.data.lines import clean_lines, references
from headcount.data.manifest import find_file, read_manifest
from headcount.data.text import write_split

CORPORA = corpora.load_corpora(Path(__file__).parents[2] / "config" / "corpora.yaml")
FETCHED = {name: corpus for name, corpus in CORPORA.items() if corpus.splits and not corpus.of}
NEW = [name for name in FETCHED if name != "multi30k"]
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


@pytest.mark.parametrize("name", NEW)
def test_both_directions_have_the_same_pairs(corpus, name):
    fetched = corpus(name, "train", "dev")
    src, tgt = fetched.pair()
    fetched.fetch()
    for split in ("train", "dev"):
        if fetched.corpus.translates(split, tgt, src):
            assert fetched.split(split, src, tgt) == fetched.split(split, tgt, src)[::-1]


def test_a_draw_keeps_the_order_and_depends_on_its_seed(corpus):
    fetched = corpus("wmt_en_de")
    fetched.fetch()
    once = fetched.split("train", "en", "de")
    whole = [source for source, _ in expected(fetched, "train", "en", "de")]
    assert len(once[0]) == 100 < len(whole) == 180
    assert [line for line in whole if line in set(once[0])] == once[0]
    fetched.draws["train"] = Draw(pairs=100, seed=2)
    assert fetched.split("train", "en", "de") != once
    fetched.draws["train"] = Draw(pairs=181)
    with pytest.raises(UserError, match=r"at least the 181 pairs of draw\.train, found 180; lower"):
        fetched.split("train", "en", "de")


def test_a_split_that_is_held_out_leaves_the_other(corpus):
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


def test_text_to_parse_is_held_out_and_no_test_set(corpus):
    fetched = corpus("wmt_en_fr")
    fetched.fetch()
    assert corpora.test_sets(fetched.corpus, "en", "fr") == ["newstest2014"]
    parsed = fetched.split("to_parse", "en", "fr")[0]
    assert len(parsed) == 180 // 13
    assert not set(parsed) & set(fetched.split("train", "en", "fr")[0])


def member_of(fetched: Fetched, split: str, language: str) -> tuple[str, str | None]:
    """Name of the file with the first part of a side, and of the member."""
    source = fetched.corpus.splits[split][language].files[0]
    return source.path or source.url or source.name, source.member


@pytest.mark.parametrize("name", NEW)
def test_f13_a_page_or_a_cut_file_is_not_taken_for_a_corpus(corpus, name):
    fetched = corpus(name)
    file, _ = member_of(fetched, "train", fetched.pair()[0])
    if file.startswith("own/"):
        pytest.skip("its files are one's own")
    known = fetched.corpus.splits["train"][fetched.pair()[0]].files[0].sha256
    for content in (b"<!DOCTYPE html><title>Moved</title>", b"\n<html>"):
        fetched.serve(**{file: content})
        with pytest.raises(EnvironmentFault, match="an HTML page"):
            fetched.fetch()
    fetched.serve(**{file: fetched.contents[file][:-40]})
    if known:
        with pytest.raises(EnvironmentFault, match="Expected SHA-256 [0-9a-f]+, found "):
            fetched.fetch()
        return
    fetched.fetch()  # nobody knows how it ought to be until it is read
    with pytest.raises(UserError, match="damaged, cut short"):
        fetched.split("train", *fetched.pair())
    fetched.serve()
    for path in (fetched.folder / "raw").iterdir():
        path.unlink()
    with pytest.raises(EnvironmentFault, match="recorded in .* delete its entry"):
        fetched.fetch()


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
        with pytest.raises(
            UserError, match="60 (lines|sentences); .* 61 (lines|sentences). .* is 1"
        ):
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
    told = rf"{split}: segment 30 of document second is in .* and missing in .*, as are 0 more"
    with pytest.raises(UserError, match=told):
        fetched.split(split, src, tgt)
    text.content = lambda: Text.content(text).replace(b"docid=second", b"docid=third", 1)
    text.rows[translator] = lines
    refetched(fetched)
    with pytest.raises(UserError, match=rf"{split}: document second is in .* and missing in"):
        fetched.split(split, src, tgt)


def test_documents_may_stand_in_another_order(corpus):
    fetched = corpus("wmt16_ro_en", "dev")
    file, member = member_of(fetched, "dev", "en")
    text = fetched.built.texts[file][member]
    whole = Text.content(text)
    first, second = (whole.index(b"<DOC docid=" + name) for name in (b"first", b"second"))
    end = whole.index(b"</refset>")
    text.content = lambda: whole[:first] + whole[second:end] + whole[first:second] + whole[end:]
    refetched(fetched)
    found = fetched.split("dev", "ro", "en")
    assert [list(pair) for pair in zip(*found, strict=True)] == [
        [source, *target] for source, target in expected(fetched, "dev", "ro", "en")
    ]


def test_translators_are_found_by_name_or_number(corpus):
    fetched = corpus("nist_zh_en", "dev")
    file, member = member_of(fetched, "dev", "en")
    text = fetched.built.texts[file][member]
    text.rows = {f"E0{n}": lines for n, lines in text.rows.items()}
    refetched(fetched)
    _, target = fetched.split("dev", "zh", "en")
    assert references(target[3]) == [sentence("dev", 0, 3, "en", n) for n in range(4)]
    side = fetched.entry["splits"]["dev"]["en"]["references"]
    side[0]["translator"] = "E04"
    fetched.fetch()
    assert references(fetched.split("dev", "zh", "en")[1][3])[0].endswith("v3 dev 0")
    side[0]["translator"] = "E05"
    fetched.fetch()
    with pytest.raises(UserError, match="those of translator E05; found E01, E02, E03, E04"):
        fetched.split("dev", "zh", "en")
    del side[0]["translator"]
    fetched.fetch()
    with pytest.raises(UserError, match="holds segment 1 of document first twice; name one tr"):
        fetched.split("dev", "zh", "en")


def test_labelled_pairs_are_read_from_their_archive(corpus):
    fetched = corpus("multinli")
    manifest = fetched.fetch()
    rows = read_manifest(manifest)["entailment"]
    for split in ("train", "matched", "mismatched"):
        found = find_file(manifest, rows[split])
        pairs = read_pairs(found.path, member=found.member)
        assert len(pairs) == 45  # of 60, a quarter undecided
        assert pairs[0].first == f"{split} 0."


def test_what_is_to_be_fetched_is_listed(corpus, tmp_path, monkeypatch, capsys):
    """Each file once: from the entry, as recorded, in a mirror, here."""
    entry = CORPORA["wmt16_ro_en"]
    raw, mirror = tmp_path / "data" / "raw", tmp_path / "mirror"
    files = list_files("wmt16_ro_en", entry, raw, {}, ask=False)
    names = ["training-parallel-ep-v8.tgz", "en-ro.tmx.gz", "dev.tgz", "test.tgz"]
    assert [file.name for file in files] == names
    assert [file.checksum for file in files] == ["SHA-256", "SHA-256", "MD5", "MD5"]
    assert [file.bytes for file in files] == [225018324, 23458958, None, None]
    for folder in (raw / "wmt16_ro_en" / "0123", mirror / "wmt16_ro_en"):
        folder.mkdir(parents=True)
    (raw / "wmt16_ro_en" / "0123" / "en-ro.tmx.gz").write_bytes(b"12")
    (mirror / "wmt16_ro_en" / "dev.tgz").write_bytes(b"123")
    monkeypatch.setenv("HEADCOUNT_MIRROR", str(mirror))
    lock = tmp_path / "lock.yaml"
    record(lock, files[3].address, "0" * 64, 5)
    found = list_files("wmt16_ro_en", entry, raw, read_lock(lock), ask=False)
    assert [(file.place, file.bytes) for file in found] == [
        ("to fetch", 225018324),
        ("here", 2),
        ("mirror", 3),
        ("to fetch", 5),
    ]
    assert found[3].checksum == "recorded"
    monkeypatch.setattr(listing, "size_of", lambda address: 7)
    asked = list_files("wmt16_ro_en", entry, tmp_path, {}, ask=True)
    assert [file.bytes for file in asked] == [225018324, 23458958, 3, 7]
    assert run_script("corpora", ["--experiment", "quickstart"]) == 0
    told = capsys.readouterr().out
    assert "licence: generated by this project" in told and told.endswith(
        "to fetch: 0 files, 0 B\n"
    )
    assert run_script("corpora", ["--experiment", "michel_bert"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("multinli\n") and told.endswith("to fetch: 1 files, 226.9 MB\n")
    assert run_script("corpora", []) == 0
    told = capsys.readouterr().out
    assert all(f"\n{name}\n" in f"\n{told}" for name in CORPORA)
    assert "225.0 MB  to fetch   SHA-256" in told and "own/nist/mt03-ref.sgm" in told


def test_a_treebank_lies_under_its_own_corpus_also_where_that_is_a_part(tmp_path):
    name, entry = next((name, each) for name, each in CORPORA.items() if each.trees)
    tree = next(iter(entry.trees.values()))
    part = tmp_path / "few" / "0123"
    part.mkdir(parents=True)
    (part / tree.name).write_bytes(b"12")
    files = list_files("few", entry.model_copy(update={"of": name}), tmp_path, {}, ask=False)
    assert [file.place for file in files if file.name == tree.name] == ["here"]


def test_a_server_says_how_large_a_file_is(corpus):
    fetched = corpus("multinli")
    (source,) = {file["url"] for file in fetched.entry["entailment"].values()}
    (content,) = fetched.contents.values()
    assert transfer.size_of(source) == len(content)
    assert transfer.size_of(f"{source}x") is None


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

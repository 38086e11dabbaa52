"""Descriptions of corpora, and pairs checked against them."""

from pathlib import Path

import pytest

from headcount.base.errors import UserError
from headcount.base.settings import corpora
from headcount.base.settings.experiment import experiment_names, load_experiment

CONFIG = Path(__file__).parents[2] / "config"
HASH = "0123456789abcdef" * 4
OWN = """\
mine:
  licence: private
  citation: unpublished
  splits:
    train: {en: {path: own text/t.en}, nl: {path: t.nl}, cs: {path: t.cs}}
    dev: {en: {path: d.en}, nl: {path: d.nl}}
    news.2020: {nl: {path: n.nl}, en: {path: n.en}}
    talks: {en: {path: k.en}, nl: {path: k.nl}, fy: {path: k.fy}}
"""


@pytest.fixture
def load(tmp_path: Path):
    """Corpora described in a text."""

    def loaded(text: str) -> dict[str, corpora.Corpus]:
        (tmp_path / "corpora.yaml").write_text(text)
        return corpora.load_corpora(tmp_path / "corpora.yaml")

    return loaded


def published(source: str) -> str:
    """A corpus whose English training side is this; it starts in line 7."""
    rest = f"{{file: a.gz, sha256: {HASH}}}"
    return (
        "c:\n  licence: free\n  citation: A\n  base_url: https://a.org/x\n  splits:\n"
        f"    train:\n      en: {source}\n    dev: {{en: {rest}}}\n    test: {{en: {rest}}}\n"
    )


def test_test_sets_are_those_of_both_languages_in_file_order(load):
    mine = load(OWN)["mine"]
    assert corpora.test_sets(mine, "en", "nl") == ["news.2020", "talks"]
    assert corpora.test_sets(mine, "fy", "en") == ["talks"]


def test_a_generated_corpus_has_two_languages_and_three_splits(load):
    text = "s: {licence: free, citation: A, generator: synthetic, settings: {seed: 4}}"
    made = load(text)["s"]
    assert made.languages == {split: ["en", "art"] for split in ("train", "dev", "test")}
    assert corpora.test_sets(made, "art", "en") == ["test"]
    assert (made.settings.seed, made.settings.train_pairs) == (4, 30000)


def test_published_files_have_a_place_and_a_checksum(load):
    entry = load(published(f"{{file: t.tgz, sha256: {HASH}, member: in/t.en}}"))["c"]
    source = entry.splits["train"]["en"]
    assert (source.file, source.member, source.sha256) == ("t.tgz", "in/t.en", HASH)
    assert entry.base_url == "https://a.org/x"


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("{sha256: abc}", ".sha256: expected 64 hexadecimal digits in lower case, found 'abc'"),
        ("{file: a, md5: abc}", ".md5: expected 32 hexadecimal digits in lower case, found 'abc'"),
        (f"{{sha256: {HASH}}}", ": expected one of file, url, path, parts, references, found none"),
        (
            "{file: a, path: b}",
            ": expected one of file, url, path, parts, references, found file",
        ),
        ("{file: a.tgz}", ": member names a file inside a .tar, .tgz, .tar.gz, .zip, which needs"),
        ("{path: a.zip}", ": member names a file inside a .tar, .tgz, .tar.gz, .zip, which needs"),
        ("{file: a.gz, member: b}", ": member names a file inside a .tar, .tgz"),
        ("{url: 'https://a.org/x?y'}", ".url: expected an address that starts with https://"),
        ("{url: 'https://a.org/.x'}", ".url: expected a name of letters, digits, . _ and -"),
        ("{file: a, format: tsv}", ": format tsv or csv and column go together"),
        ("{file: a, column: 2}", ": format tsv or csv and column go together"),
        ("{file: a, separator: x}", ": separator is for the formats tsv and csv"),
        ("{file: a, format: csv, column: 1, separator: ab}", ": separator: expected a single char"),
        ("{file: a, translator: x}", ": translator is for the formats sgm and wmt"),
        ("{path: own/a.tsv}", ": a .tsv is a table; add format: tsv and column: "),
        ("{file: a.CSV.gz}", ": a .csv is a table; add format: csv and column: "),
        ("{file: a.tgz, member: a.tsv}", ": a .tsv is a table; add format: tsv and column: "),
        ("{path: a.jsonl}", ": a .jsonl is not read; save it as text with a sentence a line, or"),
        (
            "{file: a, format: srt}",
            ".format: expected plain, moses, sgm, wmt, ted, tmx, tsv or csv, found 'srt'",
        ),
        ("{parts: []}", ".parts: expected a list of at least 1"),
        ("{references: [{file: a}]}", ".references: expected a list of at least 2"),
        ("{parts: [{file: a}], sha256: " + HASH + "}", ": parts stand alone; give each of them"),
        ("{parts: [{path: a, sha265: b}]}", ".parts[0].sha265: unknown key; nearest: sha256"),
        ("{path: a, sha265: b}", ".sha265: unknown key; nearest: sha256"),
        (
            "t.en",
            ": expected a mapping with keys from file, url, sha256, md5, bytes, member, ",
        ),
    ],
)
def test_f03_f05_a_faulty_source_is_named_at_its_line(load, source, told):
    with pytest.raises(UserError) as caught:
        load(published(source))
    assert f"corpora.yaml:7: c.splits.train.en{told}" in str(caught.value)


@pytest.mark.parametrize(
    ("en", "nl", "same"),
    [
        ("path: a.txt", "path: ./a.txt", True),
        ("path: a.zip, member: t.en", "path: a.zip, member: t.en", True),
        ("path: a.zip, member: t.en", "path: a.zip, member: t.nl", False),
        ("path: a.tsv, format: tsv, column: 1", "path: a.tsv, format: tsv, column: 1", True),
        ("path: a.tsv, format: tsv, column: 1", "path: a.tsv, format: tsv, column: nl", False),
        ("path: a.sgm", "path: a.sgm", True),
        ("path: a.sgm, translator: '1'", "path: a.sgm, translator: '2'", False),
        ("parts: [{path: a}, {path: b}]", "parts: [{path: b}, {path: c}]", True),
        ("path: a.tmx", "path: a.tmx", False),
        ("path: a.xml, format: wmt", "path: a.xml, format: wmt", False),
    ],
)
def test_one_text_is_not_two_languages(load, en, nl, same):
    text = OWN.replace("{path: d.en}, nl: {path: d.nl}", f"{{{en}}}, nl: {{{nl}}}")
    if not same:
        assert load(text)
        return
    with pytest.raises(UserError, match="mine: splits: dev: en and nl are the same text of [ab]"):
        load(text)


HOSTILE = ["../up.gz", "/etc/passwd", "a;b", "$(x)", "{input}", "-rf", ".hidden", "a//b", "a b"]


@pytest.mark.parametrize("name", [*HOSTILE, r"a\nb"])
def test_f10_file_names_are_on_an_allow_list(load, name):
    with pytest.raises(UserError, match=r"train\.en\.file: expected a name of letters"):
        load(published(f'{{file: "{name}", sha256: {HASH}}}'))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("mine:", "m;ne:", r"'m;ne': expected a name of letters, digits, _ and -"),
        ("mine:", "m.ne:", r"m\.ne: expected a name of letters, digits, _ and -"),
        ("talks:", "'ta lks':", r"mine\.splits\.'ta lks': expected a name of letters"),
        ("fy:", "fy-NL:", r"mine\.splits\.talks\.fy-NL: expected a name of letters, digits and _"),
        ("t.nl", "'{x}'", r"train\.nl\.path: expected a path without braces or line ends"),
        ("t.nl", '"a\\nb"', r"train\.nl\.path: expected a path without braces or line ends"),
    ],
)
def test_f10_names_and_own_paths_are_on_an_allow_list(load, old, new, told):
    with pytest.raises(UserError, match=told):
        load(OWN.replace(old, new))


@pytest.mark.parametrize(
    "url",
    ["http://a.org", "file:///etc", "https://a.org/$(x)", "a.org", "http://localhost.a.org"],
)
def test_f10_files_come_over_https_alone(load, url):
    text = published(f"{{file: a, sha256: {HASH}}}").replace("https://a.org/x", url)
    with pytest.raises(UserError, match=r"4: c\.base_url: expected an address that starts with ht"):
        load(text)


def test_f01_norwegian_must_be_quoted_and_then_is_a_language(load):
    with pytest.raises(UserError, match=r":5: mine\.splits\.train\.no: .* quote it: 'no'"):
        load(OWN.replace("nl:", "no:"))
    quoted = load(OWN.replace("nl:", "'no':"))
    assert corpora.test_sets(quoted["mine"], "en", "no") == ["news.2020", "talks"]


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("generator: synthetic", "generator and settings go together"),
        ("settings: {}", "expected either splits .files., or generator and settings"),
        ("generator: synthetic\n  settings: {trian_pairs: 3}", "unknown key; nearest: train_pairs"),
        (
            "generator: synthetic\n  settings: {seed: x}",
            "settings.seed: expected a whole number fr",
        ),
        ("splits: {dev: {a: {path: b}}}", "splits: train and a test set missing; found dev"),
        ("splits: {dev: {}, news: {}}", "splits: train missing; found dev, news$"),
        ("splits: {train: {}, dev: {}}", "splits: a test set missing; found train, dev"),
        (
            f"splits: {{train: {{a: {{file: b, sha256: {HASH}}}}}, dev: {{}}, test: {{}}}}",
            "published files need a base_url to fetch them from, or a url each",
        ),
    ],
)
def test_a_corpus_is_either_files_or_a_generator(load, entry, told):
    with pytest.raises(UserError, match=told):
        load(f"c:\n  licence: free\n  citation: A\n  {entry}\n")


def test_f05_a_missing_key_is_placed_at_its_corpus(load):
    with pytest.raises(UserError, match=r"yaml:9: other\.licence: missing; expected text, 1 or "):
        load(f"{OWN}other:\n  citation: A\n")


@pytest.mark.parametrize(
    ("pair", "told"),
    [
        ("mien.en-nl", "no corpus 'mien' in corpora.yaml; nearest: mine"),
        ("mine.en-xx", "corpus mine has no language 'xx'; known: en, nl, cs, fy"),
        ("mine.enn-nl", "corpus mine has no language 'enn'; nearest: en"),
        ("mine.en-cs", "corpus mine has no dev text in 'cs'; add it under splits.dev in corpora"),
        ("mine.fy-en", "corpus mine has no train text in 'fy'; add it under splits.train in co"),
    ],
)
def test_f03_a_pair_that_cannot_be_had_names_the_nearest(load, pair, told):
    known = load(OWN)
    corpora.check_pairs(["mine.en-nl", "mine.nl-en"], known)
    with pytest.raises(UserError) as caught:
        corpora.check_pairs(["mine.en-nl", pair], known)
    assert str(caught.value).startswith(f"pairs: {pair}: {told}")


def test_a_pair_needs_a_test_set_of_both_languages(load):
    known = load(OWN.replace("{path: d.nl}}", "{path: d.nl}, cs: {path: d.cs}}"))
    with pytest.raises(UserError, match="no test set in both languages; it has train, dev, news"):
        corpora.check_pairs(["mine.en-cs"], known)


def test_test_sets_to_mask_exist_and_every_pair_has_one(load):
    known = load(OWN.replace("dev: {en: {path: d.en}", "dev: {fy: {path: d.fy}, en: {path: d.en}"))
    both = ["mine.en-nl", "mine.fy-en"]  # the second has the test set talks alone
    corpora.check_masking_tests([], both, known)
    corpora.check_masking_tests(["news.2020", "talks"], both, known)
    with pytest.raises(UserError, match=r"no pair has a test set 'news'; nearest: news\.2020"):
        corpora.check_masking_tests(["talks", "news"], both, known)
    told = r"masking\.test_sets: mine\.fy-en has none of news\.2020; add one of its own: talks"
    with pytest.raises(UserError, match=told):
        corpora.check_masking_tests(["news.2020"], both, known)


@pytest.mark.parametrize("name", experiment_names(CONFIG))
def test_every_pair_of_every_experiment_can_be_had(name):
    known = corpora.load_corpora(CONFIG / "corpora.yaml")
    corpora.check_pairs(load_experiment(name, CONFIG).pairs, known)


def test_multi30k_has_the_test_sets_that_were_published():
    multi30k = corpora.load_corpora(CONFIG / "corpora.yaml")["multi30k"]
    early, late = "test_2016_flickr", "test_2018_flickr"
    middle = ["test_2017_flickr", "test_2017_mscoco"]
    assert corpora.test_sets(multi30k, "en", "de") == [early, *middle, late]
    assert corpora.test_sets(multi30k, "en", "cs") == [early, late]  # none in Czech in 2017
    assert multi30k.splits["dev"]["de"].file == "val.de.gz"


def test_the_pattern_for_own_text_is_valid(load):
    text = (CONFIG / "corpora.yaml").read_text()
    pattern = text[text.index("# mine:") :].replace("# ", "")
    assert corpora.test_sets(load(pattern)["mine"], "en", "nl") == ["news"]


FILES = """\
p:
  licence: free
  citation: A
  base_url: https://a.org/x
  hold_out: {dev: {of: train, every: 3}}
  draw: {train: {pairs: 5}}
  splits:
    train:
      zh: {parts: [{file: a.zh}, {url: 'https://b.org/a.tmx.gz'}]}
      en: {parts: [{file: a.en}, {url: 'https://b.org/a.tmx.gz'}]}
    t1:
      zh: {file: s.xml.gz}
      en: {references: [{file: r.sgm, translator: A}, {file: r.sgm, translator: '2'}]}
    t2:
      zh: {url: 'https://b.org/t.tgz', file: u.tgz, member: in/t.zh}
      en: {path: own/t.tsv, format: tsv, column: 3}
"""


def test_files_have_a_place_and_a_format(load):
    made = load(FILES)["p"]
    assert [(file.name, file.read_as) for file in made.files()] == [
        ("a.zh", "plain"),
        ("a.tmx.gz", "tmx"),
        ("a.en", "plain"),
        ("a.tmx.gz", "tmx"),
        ("s.xml.gz", "sgm"),
        ("r.sgm", "sgm"),
        ("r.sgm", "sgm"),
        ("u.tgz", "plain"),
        ("t.tsv", "tsv"),
    ]


def test_several_references_are_targets_alone(load):
    made = load(FILES)
    assert corpora.test_sets(made["p"], "zh", "en") == ["t1", "t2"]
    assert corpora.test_sets(made["p"], "en", "zh") == ["t2"]
    assert made["p"].languages["dev"] == ["zh", "en"]  # held out of train
    more = FILES.replace(
        "every: 3}", "every: 3}, a: {of: train, every: 5}, b: {of: train, every: 7, scored: false}"
    )
    assert corpora.test_sets(load(more)["p"], "zh", "en") == ["t1", "t2", "a"]
    corpora.check_pairs(["p.zh-en", "p.en-zh"], made)
    dev = FILES.replace("    t1:", "    dev:").replace("hold_out: {dev:", "hold_out: {t3:")
    with pytest.raises(UserError, match="p has several references in 'en' for dev, which are no"):
        corpora.check_pairs(["p.en-zh"], load(dev))
    part = FILES.replace("every: 3}", "every: 3}, half: {of: t1, every: 2}")  # of references, too
    assert corpora.test_sets(load(part)["p"], "zh", "en") == ["t1", "t2", "half"]
    assert corpora.test_sets(load(part)["p"], "en", "zh") == ["t2"]


PART = "few:\n  of: p\n  citation: B\n  draw: {train: {pairs: 2, seed: 3}}\n"


def test_a_part_of_a_corpus_has_its_files_and_a_draw_of_its_own(load):
    made = load(PART + FILES)  # also of one that stands below it
    whole, part = made["p"], made["few"]
    assert (part.citation, part.licence) == ("B", "free")
    assert (part.splits, part.hold_out, part.languages) == (
        whole.splits,
        whole.hold_out,
        whole.languages,
    )
    assert (part.draw["train"].pairs, whole.draw["train"].pairs) == (2, 5)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("of: p\n", "of: q\n", "few: of: expected a corpus that is no part of another, found 'q'"),
        ("of: p\n", "of: few\n", "few: of: expected a corpus that is no part .*; known: p"),
        ("citation", "pretokenised: true\n  citation", "few: files are those of p; remove pretok"),
        ("train", "trian", "few.draw: no split 'trian'|draw: no split 'trian'; nearest: train"),
    ],
)
def test_a_part_of_a_corpus_that_is_none_is_refused(load, old, new, told):
    with pytest.raises(UserError, match=told):
        load(PART.replace(old, new) + FILES)


@pytest.mark.parametrize("given", ["3", "true", "", "text", "[]"])
def test_an_entry_that_is_no_mapping_is_told_with_its_line(load, given):
    with pytest.raises(UserError, match=r"corpora\.yaml:1: p: expected a mapping"):
        load(f"p: {given}\n" + PART)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "of: train",
            "of: trian",
            "hold_out: expected a new split of one under splits, found dev",
        ),
        ("{dev: {of", "{t1: {of", "hold_out: expected a new split of one under splits, found t1 o"),
        ("draw: {train", "draw: {trian", "draw: no split 'trian'; nearest: train"),
        (
            "  draw: {train",
            "  overlap: {dev: {at_least: 0.9, ids: {file: i}, links: {file: l}}}\n  draw: {train",
            "overlap: no split 'dev'; known: train, t1, t2",  # held out: it is of train's pairs
        ),
        ("{file: a.en}, ", "", "splits: train: expected as many parts in each language"),
        ("every: 3", "every: 1", "every: expected a whole number, 2 or more, found 1"),
        (
            "train:\n      zh: {parts",
            "train:\n      zh: {references",
            "references are for dev",
        ),
        ("  base_url: https://a.org/x\n", "", "published files need a base_url to fetch them fro"),
    ],
)
def test_faulty_rules_of_a_corpus(load, old, new, told):
    with pytest.raises(UserError, match=told):
        load(FILES.replace(old, new))

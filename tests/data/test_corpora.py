"""Descriptions of corpora, and experiments checked against them."""

from pathlib import Path

import pytest
from fault_places import places

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
    train: {en: {path: own text/t.en}, nl: {path: t.nl}, cs: {path: t.cs}, xx: {path: t.xx}}
    dev: {en: {path: d.en}, nl: {path: d.nl}, fy: {path: d.fy}, xx: {path: d.xx}}
    news.2020: {nl: {path: n.nl}, en: {path: n.en}}
    talks: {en: {path: k.en}, nl: {path: k.nl}, fy: {path: k.fy}}
    late: {nl: {path: l.nl}, xx: {path: l.xx}}
  trees:
    ewt: {language: en, path: own/ewt.conllu}
made: {licence: free, citation: A, generator: synthetic, settings: {seed: 4}}
"""


@pytest.fixture
def load(tmp_path: Path):
    """Corpora described in a text."""

    def loaded(text: str) -> dict[str, corpora.Corpus]:
        (tmp_path / "corpora.yaml").write_text(text)
        return corpora.load_corpora(tmp_path / "corpora.yaml")

    return loaded


@pytest.fixture
def faults(load):
    """Where corpora described in a text are faulty: line and key of each fault."""

    def found(text: str) -> list[tuple[int, str]]:
        with pytest.raises(UserError) as fault:
            load(text)
        return places(fault)

    return found


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
    made = load(OWN)["made"]
    assert made.languages == {split: ["en", "art"] for split in ("train", "dev", "test")}
    assert corpora.test_sets(made, "art", "en") == ["test"]
    assert (made.settings.seed, made.settings.train_pairs) == (4, 30000)


def test_gold_links_serve_both_directions_of_a_split_that_is_whole(load):
    made = load(OWN)["made"]
    assert made.linked("test", "en", "art") and made.linked("test", "art", "en")
    assert corpora.test_sets(made, "en", "qaa") == [] and not made.linked("test", "en", "qaa")
    two = load(changed(OWN, "{seed: 4} => {seed: 4, second_target: true}"))["made"]
    assert corpora.test_sets(two, "en", "qaa") == ["test"] and two.linked("dev", "qaa", "en")
    drawn = "draw: {train: {pairs: 5}}"
    links = "draw: {t2: {pairs: 5}}\n  links: {t1: {zh-en: {file: l}}, t2: {zh-en: {file: l}}}"
    corpus = load(FILES.replace(drawn, links))["p"]
    assert corpus.linked("t1", "en", "zh") and corpus.linked("t1", "zh", "en")
    assert not corpus.linked("t1", "en", "de") and not corpus.linked("dev", "zh", "en")
    assert not corpus.linked("t2", "zh", "en")  # a part of its lines


SOURCES = """
{file: a, sha256: abc}                    | .sha256
{sha256: HASH}                            |
{file: a, path: b}                        |
{file: a.tgz}                             |
{file: a.gz, member: b}                   |
{url: 'https://a.org/x?y'}                | .url
{file: a, format: tsv}                    |
{file: a, format: csv, column: 1, separator: ab} |
{file: a, translator: x}                  |
{file: a.CSV.gz}                          |
{file: a.tgz, member: a.tsv}              |
{file: a, format: srt}                    | .format
{parts: []}                               | .parts
{references: [{file: a}]}                 | .references
{parts: [{file: a}], sha256: HASH}        |
{parts: [{path: a, sha265: b}]}           | .parts[0].sha265
{path: a, sha265: b}                      | .sha265
t.en                                      |
{path: '{x}'}                             | .path
{path: "a\\nb"}                           | .path
"""
HOSTILE = ["../up.gz", "/etc/passwd", "a;b", "$(x)", "{input}", "-rf", ".hidden", "a//b", "a b"]
HOSTILE_ROWS = [f'{{file: "{name}"}} | .file' for name in [*HOSTILE, r"a\nb"]]


@pytest.mark.parametrize("row", SOURCES.strip().split("\n") + HOSTILE_ROWS)
def test_f03_f05_f10_a_faulty_source_is_named_at_its_line(faults, row):
    source, _, key = row.partition(" |")
    found = faults(published(source.replace("HASH", HASH)))
    assert found == [(7, f"c.splits.train.en{key.strip()}")]


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
def test_one_text_is_not_two_languages(load, faults, en, nl, same):
    text = OWN.replace("{path: d.en}, nl: {path: d.nl}", f"{{{en}}}, nl: {{{nl}}}")
    if same:
        assert faults(text) == [(6, "mine.splits.dev")]
    else:
        assert load(text)


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
PART = "few:\n  of: p\n  citation: B\n  draw: {train: {pairs: 2, seed: 3}}\n"
WHOLES = """
mine: => m;ne:                  | 1 'm;ne'
mine: => m.ne:                  | 1 m.ne
talks: => 'ta lks':             | 8 mine.splits.'ta lks'
fy: => fy-NL:                   | 6 mine.splits.dev.fy-NL, 8 mine.splits.talks.fy-NL
licence: private =>             | 1 mine.licence
dev: => deu:                    | 4 mine.splits
path: own/ewt => file: ewt      | 11 mine.trees.ewt
, settings: {seed: 4} =>        | 12 made
settings: {seed: 4} => splits: {} | 12 made
seed: 4 => sed: 4               | 12 made.settings.sed
generator: synthetic, =>        | 12 made
https://a.org/x => http://a.org      | 4 p.base_url
https://a.org/x => https://a.org/$(x) | 4 p.base_url
https://a.org/x => http://localhost.a.org | 4 p.base_url
base_url: https://a.org/x =>    | 1 p
of: train => of: trian          | 5 p.hold_out
{dev: {of => {t1: {of           | 5 p.hold_out
draw: {train: {pairs: 5 => draw: {trian: {pairs: 5    | 6 p.draw
draw: {train: {pairs: 5 => overlap: {dev: {at_least: 1, ids: {file: i}, links: {file: l}}}# | 6 p.overlap
draw: {train: {pairs: 5 => links: {dev: {zh-en: {file: l}}}# | 6 p.links
draw: {train: {pairs: 5 => links: {train: {zh-en: {file: l}}}# | 6 p.links
draw: {train: {pairs: 5 => links: {t1: {zh-de: {file: l}}}# | 6 p.links
draw: {train: {pairs: 5 => links: {t1: {zh: {file: l}}}# | 6 p.links.t1.zh
{file: a.en}, =>                | 7 p.splits
every: 3 => every: 1            | 5 p.hold_out.dev.every
of: p => of: q                  | 2 few.of
of: p => of: few                | 2 few.of
{pairs: 2 => {pairs: 0          | 4 few.draw.train.pairs
"""  # noqa: E501


def changed(text: str, change: str) -> str:
    old, _, new = (part.strip() for part in change.partition("=>"))
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize("row", WHOLES.strip().split("\n"))
def test_a_fault_of_a_corpus_names_its_line_and_key(faults, row):
    change, expected = (part.strip() for part in row.split(" |"))
    text = next(t for t in (OWN, PART, FILES) if change.partition(" =>")[0] in t)
    text = changed(text, change) + (FILES if text == PART else "")
    listed = [each.split(maxsplit=1) for each in expected.split(", ")]
    assert faults(text) == [(int(line), key) for line, key in listed]


@pytest.mark.parametrize("given", ["3", "true", "", "text", "[]"])
def test_an_entry_that_is_no_mapping_is_told_with_its_line(faults, given):
    assert (1, "p") in faults(f"p: {given}\n" + PART)


@pytest.mark.parametrize("key", ["no:", "'no':"])
def test_f01_norwegian_is_a_language(load, key):
    mine = load(OWN.replace("nl:", key))["mine"]
    assert corpora.test_sets(mine, "en", "no") == ["news.2020", "talks"]


EXPERIMENTS = """
pairs: [mine.en-nl, made.en-art, mine.fy-nl]        | 1 pairs
pairs: [mien.en-nl]                                 | 1 pairs
pairs: [mine.en-zz]                                 | 1 pairs
pairs: [mine.en-cs]                                 | 1 pairs
pairs: [mine.en-xx]                                 | 1 pairs
pairs: [mine.en-nl];masking: {test_sets: [talks]}   |
pairs: [mine.en-nl];masking: {test_sets: [news]}    | 2 masking.test_sets
pairs: [mine.en-nl, mine.nl-xx];masking: {test_sets: [talks]} | 2 masking.test_sets
pairs: [made.en-art];runs: [baseline];ablation: {runs: [baseline], test_sets: [dev]} | 3 ablation.test_sets
pairs: [made.en-art];roles: {trees: [mine.ewt, made.dev]} |
pairs: [made.en-art];roles: {trees: [mien.ewt]}     | 2 roles.trees
pairs: [made.en-art];roles: {trees: [mine.etw]}     | 2 roles.trees
pairs: [made.en-art];roles: {trees: [made.train]}   | 2 roles.trees
"""  # noqa: E501


@pytest.mark.parametrize("row", EXPERIMENTS.strip().split("\n"))
def test_f03_what_no_corpus_has_is_named_at_its_line(load, tmp_path, row):
    text, expected = (part.strip() for part in row.split(" |"))
    (tmp_path / "x.yaml").write_text(text.replace(";", "\n"))
    settings, known = load_experiment("x", tmp_path), load(OWN)
    if not expected:
        return corpora.check_corpora(settings, known, tmp_path / "x.yaml")
    with pytest.raises(UserError) as fault:
        corpora.check_corpora(settings, known, tmp_path / "x.yaml")
    line, key = expected.split()
    assert places(fault) == [(int(line), key)]


@pytest.mark.parametrize("name", experiment_names(CONFIG))
def test_every_corpus_of_every_experiment_can_be_had(name):
    known = corpora.load_corpora(CONFIG / "corpora.yaml")
    corpora.check_corpora(load_experiment(name, CONFIG), known, CONFIG / f"{name}.yaml")


def test_the_pattern_for_own_text_is_valid(load):
    text = (CONFIG / "corpora.yaml").read_text()
    pattern = text[text.index("# mine:") :].replace("# ", "")
    assert corpora.test_sets(load(pattern)["mine"], "en", "nl") == ["news"]


def test_files_have_a_place_and_a_format(load):
    read_as = "plain tmx plain tmx sgm sgm sgm plain tsv"
    names = "a.zh a.tmx.gz a.en a.tmx.gz s.xml.gz r.sgm r.sgm u.tgz t.tsv"
    files = list(load(FILES)["p"].files())
    assert " ".join(file.name for file in files) == names
    assert " ".join(file.read_as for file in files) == read_as


def test_several_references_are_targets_alone(load):
    made = load(FILES)["p"]
    assert corpora.test_sets(made, "zh", "en") == ["t1", "t2"]
    assert corpora.test_sets(made, "en", "zh") == ["t2"]
    assert made.languages["dev"] == ["zh", "en"]  # held out of train
    more = "every: 3}, a: {of: train, every: 5}, b: {of: train, every: 7, scored: false}"
    assert corpora.test_sets(load(changed(FILES, f"every: 3}} => {more}"))["p"], "zh", "en") == [
        *("t1", "t2", "a")
    ]
    part = load(changed(FILES, "every: 3} => every: 3}, half: {of: t1, every: 2}"))["p"]
    assert corpora.test_sets(part, "zh", "en") == ["t1", "t2", "half"]  # of references, too
    assert corpora.test_sets(part, "en", "zh") == ["t2"]
    dev = FILES.replace("    t1:", "    dev:").replace("hold_out: {dev:", "hold_out: {t3:")
    assert not load(dev)["p"].translates("dev", "en", "zh")


def test_a_part_of_a_corpus_has_its_files_and_a_draw_of_its_own(load):
    made = load(PART + FILES)  # also of one that stands below it
    whole, part = made["p"], made["few"]
    assert (part.citation, part.licence) == ("B", "free")
    assert part.splits == whole.splits and part.hold_out == whole.hold_out
    assert part.languages == whole.languages
    assert (part.draw["train"].pairs, whole.draw["train"].pairs) == (2, 5)

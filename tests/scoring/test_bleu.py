"""BLEU and chrF: known scores, signatures, unequal lengths, files."""

import functools
import json
import math
import operator
import re
import tomllib
from collections import Counter
from importlib import import_module
from importlib.metadata import requires
from pathlib import Path

import pytest
from sacrebleu.metrics import BLEU
from script_runner import run_script

from headcount.base.errors import EnvironmentFault, UserError
from headcount.base.files import sha256
from headcount.base.settings.data import SCORED_BY_EXTRA
from headcount.data.words import Tokeniser
from headcount.scoring.bleu import score_corpus, score_files, tokenised_bleu

ROOT = Path(__file__).resolve().parents[2]
REFERENCES = [f"the {a} cat number {n} sat on the {b} mat ." for n, (a, b) in enumerate(
    (a, b) for a in ("big", "small", "red", "old") for b in ("new", "wet", "blue", "soft", "flat")
)]  # fmt: skip
# Every second line loses its end.
WORSE = [" ".join(line.split()[: 10 if n % 2 else 6]) for n, line in enumerate(REFERENCES)]


def bleu_of(hypotheses, references):
    return score_corpus(hypotheses, references, "de")[0].score


def test_bleu_by_hand():
    # "a b c d x" against "a b c d e": 4 of 5 words, 3 of 4 pairs, 2 of 3 triples, 1 of 2 fours.
    expected = 100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** (1 / 4)
    assert bleu_of(["a b c d x"], ["a b c d e"]) == pytest.approx(expected)
    # "a b c d" has every n-gram right, and one word of five too few.
    assert bleu_of(["a b c d"], ["a b c d e"]) == pytest.approx(100 * math.exp(1 - 5 / 4))


def test_signatures_say_how_it_was_counted():
    bleu, chrf = score_corpus(REFERENCES, REFERENCES, "de")
    assert (bleu.metric, chrf.metric) == ("bleu", "chrf")
    assert bleu.score == pytest.approx(100) and chrf.score == pytest.approx(100)
    for part in ("nrefs:1", "case:mixed", "tok:13a", "smooth:exp", "version:"):
        assert part in bleu.signature
    assert "nc:6" in chrf.signature and "nw:0" in chrf.signature


CHINESE = "这只小猫昨天坐在红色的垫子上面。", "这只小猫昨天坐在蓝色的垫子上面。"


@pytest.mark.parametrize(
    ("languages", "texts", "tokeniser", "right", "total"),
    [
        # One of 16 characters is wrong; as one word each, as 13a sees them, nothing would match.
        (("zh", "zh_CN", "zho"), CHINESE, "zh", (15, 13, 11, 9), 16),
        # One of 私 は 猫 が 好き です 。 is wrong.
        (("ja",), ("私は犬が好きです。", "私は猫が好きです。"), "ja-mecab", (6, 4, 2, 1), 7),
        # One of seven Thai characters differs.
        (("th", "tha"), ("กาขาคาง", "กาขาคาน"), "char", (6, 5, 4, 3), 7),
    ],
)
def test_languages_with_other_words(languages, texts, tokeniser, right, total):
    shares = [count / (total - n) for n, count in enumerate(right)]
    for language in languages:
        bleu, _ = score_corpus([texts[0]], [texts[1]], language)
        assert f"tok:{tokeniser}" in bleu.signature
        assert bleu.score == pytest.approx(100 * math.prod(shares) ** (1 / 4))
    assert Tokeniser("fra", False, "characters").split("l'homme") == ["l'", "homme"]


@pytest.mark.parametrize("language", SCORED_BY_EXTRA)
def test_f53_a_tokeniser_that_is_missing_names_the_extra(monkeypatch, language):
    """The extras are those of sacreBLEU. Chinese needs none."""
    module = import_module(f"sacrebleu.tokenizers.tokenizer_{language}_mecab")
    monkeypatch.setattr(module, "MeCab", None)  # so it is where the import failed
    with pytest.raises(
        EnvironmentFault, match=rf"'{language}'.*pip install -e '\.\[{language}\]'$"
    ):
        score_corpus(["a"], ["a"], language)
    assert {*SCORED_BY_EXTRA, "zh"} == set(BLEU._TOKENIZER_MAP)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [line for line in requires("sacrebleu") if f'extra == "{language}"' in line]
    ours = {re.match(r"[\w-]+", line)[0] for line in project["optional-dependencies"][language]}
    assert {re.match(r"[\w-]+", line)[0] for line in wanted} == ours


@pytest.mark.parametrize(("found", "expected"), [(19, 20), (20, 19), (0, 20), (20, 0), (0, 0)])
def test_f17_unequal_lengths_are_refused(found, expected):
    told = f"found {found} translations and {expected} references; translate the test set again"
    with pytest.raises(UserError, match=told):
        score_corpus(REFERENCES[:found], REFERENCES[:expected], "de")


def test_files_of_several_test_sets(tmp_path):
    for name, lines in (("a.out", WORSE), ("b.out", REFERENCES), ("ref", REFERENCES)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    files = [tmp_path / "a.out", tmp_path / "b.out"]
    search = {"beam": 3, "length_penalty": 0.5, "sentences": 20}
    search |= {"source_truncated": 0, "hit_max_length": 1, "engine": "headcount"}
    facts = [tmp_path / f"{path.name}.json" for path in files]
    for path, about in zip(files, facts, strict=True):
        about.write_text(json.dumps({**search, "empty": 0, "sha256": sha256(path)}))
    german = Tokeniser("de", False, "none")
    rows = score_files(["a", "b"], files, [tmp_path / "ref"] * 2, facts, german)
    assert [(row["test_set"], row["metric"]) for row in rows] == [
        (test, metric) for test in "ab" for metric in ("bleu", "chrf", "bleu_tok_lc")
    ]
    assert rows[0]["score"] == pytest.approx(bleu_of(WORSE, REFERENCES))
    assert [row["score"] for row in rows[3:]] == pytest.approx([100, 100, 100])
    assert {key: rows[3][key] for key in search} == search
    about = json.loads(facts[1].read_text())
    facts[1].write_text(json.dumps(about | {"engine": "ctranslate2", "compute_type": "int8"}))
    rows = score_files(["a", "b"], files, [tmp_path / "ref"] * 2, facts, german)
    assert [row["engine"] for row in rows] == ["headcount"] * 3 + ["ctranslate2 int8"] * 3
    told = "found 1 names, 2 translations, 1 references, 2 facts"
    with pytest.raises(UserError, match=told):
        score_files(["a"], files, files[:1], facts, german)


def bleu_flags(folder):
    """Of the command, with translations of the 20 references and the facts beside them."""
    (folder / "ref").write_text("".join(f"{line}\n" for line in REFERENCES))
    (folder / "out").write_text("".join(f"{line}\n" for line in WORSE))
    facts = {
        "beam": 3,
        "length_penalty": 0.5,
        "sentences": 20,
        "source_truncated": 0,
        "hit_max_length": 1,
    }
    facts |= {"engine": "headcount"}
    (folder / "out.json").write_text(json.dumps(facts | {"sha256": sha256(folder / "out")}))
    flags = ["--pair", "x.en-de", "--run", "baseline", "--seed", 1, "--tests", "a"]
    flags += ["--translations", folder / "out", "--references", folder / "ref"]
    return [*flags, "--facts", folder / "out.json", "--out", folder / "bleu.json"]


@pytest.mark.parametrize("facts", ["", "[]", "{}", '{"sha256"', None])
def test_f33_f48_damaged_facts_and_edited_translations_are_not_scored(tmp_path, capsys, facts):
    flags = bleu_flags(tmp_path)
    if facts is None:
        (tmp_path / "out").write_text("".join(f"{line}\n" for line in REFERENCES))
    else:
        (tmp_path / "out.json").write_text(facts)
    assert run_script("bleu", flags) == 2
    assert str(tmp_path / "out.json") in capsys.readouterr().err
    assert not (tmp_path / "bleu.json").exists()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nothing of it", "a: BLEU is 0.00, under 1; "),
        (
            "\u043d\u0438\u0447\u0435\u0433\u043e " * 9 + "{}",
            "are mostly in CYRILLIC letters, references in LATIN",
        ),
        ("{}", None),
    ],
)
def test_translations_in_another_language_are_warned_of(tmp_path, capsys, line, message):
    flags = bleu_flags(tmp_path)
    out, facts = tmp_path / "out", json.loads((tmp_path / "out.json").read_text())
    out.write_text("".join(f"{line.format(each)}\n" for each in REFERENCES))
    (tmp_path / "out.json").write_text(json.dumps(facts | {"sha256": sha256(out)}))
    assert run_script("bleu", flags) == 0
    warnings = json.loads((tmp_path / "bleu.json").read_text()).get("warnings")
    told = capsys.readouterr().err
    if message is None:
        assert warnings is None and "warning" not in told
    else:
        assert message in warnings[0] and f"warning: {warnings[0]}" in told


def test_tokenised_lower_cased_bleu_is_that_of_words_and_not_of_letters():
    """Of 6 words in the hypothesis 5 are right, and 3 of 5 pairs, 1 of 4 triples, 0 of 3 fours.

    The third word differs: what goes across it is wrong. sacreBLEU's smoothing makes 1 / 2 of the
    first count that is 0.
    """
    split = Tokeniser("en", False, "none").split
    found = tokenised_bleu(["The cat is there, now"], ["the CAT was there , now"], split)
    expected = 100 * (5 / 6 * 3 / 5 * 1 / 4 * (1 / 2) / 3) ** (1 / 4)
    assert found.score == pytest.approx(expected) and found.metric == "bleu_tok_lc"
    assert "case:lc" in found.signature and "tok:none" in found.signature
    both = tokenised_bleu(["a cat sat down"], ["a dog lay down\tA cat sat down"], split)
    assert both.score == pytest.approx(100) and "nrefs:2" in both.signature


def multi_bleu(hypotheses, references):
    """The formula of multi-bleu.perl, as Papineni et al. 2002 have it: no smoothing."""
    right, total, found, expected = [0] * 5, [0] * 5, 0, 0
    for line, rows in zip(hypotheses, references, strict=True):
        words, others = line.split(), [row.split() for row in rows]
        found += len(words)
        expected += min((abs(len(other) - len(words)), len(other)) for other in others)[1]
        for n in range(1, 5):
            grams, *known = (
                Counter(zip(*(each[start:] for start in range(n)), strict=False))
                for each in (words, *others)
            )
            most = functools.reduce(operator.or_, known)
            right[n] += (grams & most).total()
            total[n] += grams.total()
    brevity = min(1, math.exp(1 - expected / found))
    return 100 * brevity * math.prod(right[n] / total[n] for n in range(1, 5)) ** (1 / 4)


def test_tokenised_lower_cased_bleu_is_that_of_multi_bleu_but_for_counts_of_0():
    """Umlauts in capitals too; references of 11 and 13 words, between which one of 12 is a tie."""
    split = Tokeniser("de", False, "none").split
    others = [f"{line} ÜBER Öl" for line in REFERENCES]
    targets = [f"{one}\t{two}" for one, two in zip(REFERENCES, others, strict=True)]
    upper = [line.upper() if n % 3 else f"{line} über öl" for n, line in enumerate(WORSE)]
    lowered = [[" ".join(split(line)).lower() for line in each] for each in (upper, REFERENCES)]
    second = [" ".join(split(line)).lower() for line in others]
    both = zip(lowered[1], second, strict=True)
    found = tokenised_bleu(upper, targets, split).score
    assert found == pytest.approx(multi_bleu(lowered[0], list(both)), rel=1e-12)
    assert 10 < found < 90
    none_of_four = tokenised_bleu(["a b c x"], ["a b c d"], split).score
    assert none_of_four > 0 == multi_bleu(["a b c x"], [["a b c d"]])

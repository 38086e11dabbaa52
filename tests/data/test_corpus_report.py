"""The table of corpora against numbers counted by hand."""

import json

import pytest
from script_runner import run_script

from headcount.base.errors import UserError
from headcount.base.folders import SIDES, TRAINING
from headcount.findings.general.corpora import (
    PairFolders,
    corpus_table,
    pair_folders,
    summary,
    warn_of_joining,
    warn_of_text,
)

TEXTS = {
    "train": ("a bb\na bb\nc", "x y z\nx y z\nw"),
    "dev": ("a bb\n\nnew a", "x\n\ny"),
    "test_9": ("c", "qq"),
}
PIECES = {
    "train": ("a b@@ b\na b@@ b\nc", "x y z\nx y z\nw"),
    "dev": ("a b@@ b\n\nn@@ e@@ w a", "x\n\ny"),
}
COUNTS = {"train": ["a 2", "b 2", "b@@ 2", "c 1"], "dev": ["x 2", "y 2", "z 2", "w 1"]}


@pytest.fixture
def folders(tmp_path):
    text, bpe = tmp_path / "text" / "c.en-de", tmp_path / "bpe" / "c.en-de"
    text.mkdir(parents=True)
    bpe.mkdir(parents=True)
    for split, sides in TEXTS.items():
        found = {"empty": 2, "duplicates": 1}
        dropped = {"empty": 2 if split == "train" else 0, "duplicates": 0}
        kept = len(sides[0].split("\n"))
        side = {"lines": kept, "spaced": 0, "tags": {}}
        counts = {"pairs_kept": kept, "found": found, "dropped": dropped, "pairs_read": kept + 2}
        counts |= {"equal": len(split) - 3, "src": side, "tgt": side}
        (text / f"{split}.json").write_text(json.dumps(counts))
        for side, name in enumerate(("src", "tgt")):
            (text / f"{split}.{name}").write_text(sides[side] + "\n")
            if split in PIECES:
                (bpe / f"{split}.{name}").write_text(PIECES[split][side] + "\n")
    for name, counts in zip(("src", "tgt"), COUNTS.values(), strict=True):
        (bpe / f"{name}.codes").write_text("#version: 0.2\n")
        (bpe / f"{name}.vocab").write_text("".join(f"{line}\n" for line in counts))
    about = {"src_lang": "en", "tgt_lang": "de", "pretokenised": True, "joint": False, "merges": 0}
    about |= {"unit": "subwords", "unspaced": "none"}
    (bpe / "segmentation.json").write_text(json.dumps(about))
    return PairFolders("c.en-de", ["train", "dev", "test_9"], text, bpe)


def test_f24_statistics_by_hand(folders):
    table = corpus_table([folders])
    value = table.set_index(["split", "side", "statistic"])["value"]
    assert set(table["pair"]) == {"c.en-de"}
    assert list(table["split"].unique()) == ["train", "dev", "test_9"]
    assert value["train", "both", "sentences"] == 3
    assert value["train", "both", "duplicates"] == 1
    assert (value["train", "both", "equal"], value["dev", "both", "equal"]) == (2, 0)
    assert value["train", "both", "dropped_empty"] == 2
    assert value["train", "both", "dropped_share"] == pytest.approx(2 / 5)  # 3 are left
    assert value["train", "src", "words"] == 5
    assert value["train", "src", "words_mean"] == pytest.approx(5 / 3)
    assert value["train", "tgt", "words_max"] == 3
    assert value["train", "src", "pieces_per_word"] == pytest.approx(7 / 5)
    assert value["dev", "both", "overlap"] == 1  # "a bb"; the empty line does not count
    assert value["dev", "both", "overlap_share"] == pytest.approx(1 / 3)
    # Seven pieces; n@@, e@@ and w are not in the vocabulary.
    assert value["dev", "src", "unknown_share"] == pytest.approx(3 / 7)
    assert value["test_9", "both", "overlap_share"] == 1
    assert value["test_9", "tgt", "pieces_per_word"] == 2  # q@@ q, both unknown
    assert value["test_9", "tgt", "unknown_share"] == 1


def test_summary_has_a_row_for_each_split(folders):
    shown = summary(corpus_table([folders, folders._replace(pair="b.en-de")]))
    assert list(shown["pair"]) == ["c.en-de"] * 3 + ["b.en-de"] * 3
    assert list(shown["split"]) == ["train", "dev", "test_9"] * 2
    assert list(shown["in train too"]) == ["–", "1", "1"] * 2
    assert list(shown["sentences"]) == ["3", "3", "1"] * 2
    assert list(shown["equal sides"]) == ["2", "0", "3"] * 2
    assert list(shown["dropped"]) == ["2", "–", "–"] * 2
    assert list(shown["share dropped"]) == ["40.00 %", "–", "–"] * 2
    assert shown["pieces a word"][0] == "1.40 / 1.00"  # 7 / 5, and every target word is whole
    assert shown["unknown pieces"][1] == "42.86 % / 0.00 %"  # 3 / 7


def test_highest_bleu_is_that_of_references_that_are_cut_and_joined(folders):
    about = {"src_lang": "en", "tgt_lang": "ru", "pretokenised": False, "joint": False}
    about |= {"unit": "words", "unspaced": "none"}
    (folders.bpe / "segmentation.json").write_text(json.dumps(about))
    words = ["да", "и", "он", "сказал", "ушёл", "«", "»"]
    (folders.bpe / "tgt.vocab").write_text("".join(f"{word} 1\n" for word in words))
    (folders.text / "test_9.tgt").write_text("он сказал «да» и ушёл\n")
    (folders.text / "dev.tgt").write_text("он ушёл и сказал\n\n\n")
    table = corpus_table([folders._replace(pair="c.en-ru")])
    value = table.set_index(["split", "side", "statistic"])["value"]
    assert ("train", "tgt", "highest_bleu") not in value.index
    assert value["dev", "tgt", "highest_bleu"] == pytest.approx(100)
    # Joined it is "он сказал « да » и ушёл": of 7, 6, 5, 4 n-grams 4, 2, 0, 0 are those of the
    # reference's five words; sacreBLEU takes a half of one for the first 0, a quarter for the next.
    by_hand = 100 * (4 / 7 * 2 / 6 * 0.5 / 5 * 0.25 / 4) ** 0.25
    assert value["test_9", "tgt", "highest_bleu"] == pytest.approx(by_hand)
    (warning,) = warn_of_joining(table)
    assert warning.startswith("c.en-ru, test_9: the references themselves,")
    assert "have 18.58 BLEU" in warning
    assert list(summary(table)["highest BLEU"]) == ["–", "100.00", "18.58"]


def test_what_texts_seldom_have_is_told(folders):
    folders = folders._replace(splits=["dev"])
    path = folders.text / "dev.json"
    counts = json.loads(path.read_text())  # 3 pairs, 5 read
    assert list(warn_of_text([folders])) == []
    tgt = {"lines": 3, "spaced": 1, "tags": {"de": 2, "de-AT": 1}}
    path.write_text(json.dumps(counts | {"equal": 1, "tgt": tgt}))
    equal, variants = warn_of_text([folders])
    assert "dev: 1 of 5 pairs have the same source" in equal and "de (2), de-AT (1)" in variants
    about = folders.bpe / "segmentation.json"
    about.write_text(about.read_text().replace("true", "false"))
    *_, spaced = warn_of_text([folders])
    assert "dev.tgt: 1 lines of 5 pairs" in spaced and "pretokenised: true" in spaced


@pytest.mark.slow
def test_the_script_writes_the_table(folders, tmp_path):
    counts = [folders.text / f"{split}.json" for split in folders.splits]
    texts = [folders.text / f"{split}.{side}" for split in folders.splits for side in SIDES]
    segmented = [folders.bpe / name for name in TRAINING]
    flags = ["--counts", *counts, "--text", *texts, "--segmented", *segmented]
    assert run_script("findings", ["general", *flags, "--out", tmp_path]) == 0
    out = tmp_path / "tables" / "corpus.csv"
    assert out.read_text().split("\n")[1] == "c.en-de,train,both,sentences,3"
    assert sorted(path.suffix for path in out.parent.iterdir()) == [".csv", ".json", ".md", ".tex"]
    origin = json.loads(out.with_suffix(".json").read_text())["provenance"]
    assert len(origin["inputs"]) == 3 * 3 + 4 + 4 + 1
    assert "src/headcount/findings/general/corpora.py" in origin["code"]["files"]


def test_pairs_are_told_by_the_folders_of_their_text(folders):
    counts = [folders.text / f"{split}.json" for split in folders.splits]
    assert pair_folders(counts, [folders.bpe / "src.codes"]) == [folders]
    with pytest.raises(UserError, match="expected files of a segmented c.en-de, found.* no pair"):
        pair_folders(counts, [])


def test_a_split_that_is_no_longer_named_is_not_in_the_table(folders):
    table = corpus_table([folders._replace(splits=["train", "dev"])])
    assert list(table["split"].unique()) == ["train", "dev"]


def test_missing_counts_are_named(folders):
    (folders.text / "dev.json").unlink()
    with pytest.raises(FileNotFoundError, match="dev.json"):
        corpus_table([folders])

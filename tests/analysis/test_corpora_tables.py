"""The tables of corpora and of time and memory, against numbers counted by hand."""

import json

import pandas as pd
import pytest
from script_runner import run_script

from headcount.analysis.tables.general.corpora import corpus, joining, odd_text
from headcount.analysis.tables.general.cost import cost
from headcount.base.errors import UserError

PAIR = "c.en-de"
TEXTS = {
    "train": ("a bb\na bb\nc", "x y z\nx y z\nw"),
    "dev": ("a bb\n\nnew a", "x\n\ny"),
    "test_9": ("c", "qq"),
}
PIECES = {
    "train": ("a b@@ b\na b@@ b\nc", "x y z\nx y z\nw"),
    "dev": ("a b@@ b\n\nn@@ e@@ w a", "x\n\ny"),
}
WORDS = ("a 2\nb 2\nb@@ 2\nc 1\n", "x 2\ny 2\nz 2\nw 1\n")
ABOUT = {"src_lang": "en", "tgt_lang": "de", "pretokenised": True, "joint": False, "merges": 0}
ABOUT |= {"unit": "subwords", "unsegmented_scripts": "none"}


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    return path


@pytest.fixture
def files(tmp_path):
    """Files of the counts, and a file of the segmentation."""
    text, bpe, counts = tmp_path / "text" / PAIR, tmp_path / "bpe" / PAIR, []
    for split, sides in TEXTS.items():
        kept, train = len(sides[0].split("\n")), split == "train"
        facts = {"pairs_kept": kept, "pairs_read": kept + 2, "equal": 2 if train else 0}
        facts |= {"found": {"duplicates": 1}, "dropped": {"empty": 2 * train, "long": 0}}
        facts |= {"src": {"spaced": 0}, "tgt": {"spaced": 0}}
        counts.append(write(text / f"{split}.json", facts))
        for number, side in enumerate(("src", "tgt")):
            write(text / f"{split}.{side}", sides[number] + "\n")
            write(bpe / f"{split}.{side}", PIECES.get(split, sides)[number] + "\n")
            write(bpe / f"{side}.codes", "#version: 0.2\n")
            write(bpe / f"{side}.vocab", WORDS[number])
    return counts, [write(bpe / "segmentation.json", ABOUT)]


def test_statistics(files):
    table = corpus(*files)
    train = table[(table["split"] == "train") & (table["side"] != "tgt")]
    # 3 of 5 pairs are left. They have 5 source words, 2 at most, and 7 pieces.
    numbers = [3, 2, 1, 2, 0, 2 / 5, 5, 5 / 3, 2, 7 / 5, 0]
    assert train["value"].tolist() == pytest.approx(numbers)
    value = table.set_index(["split", "side", "statistic"])["value"]
    assert value["dev", "both", "overlap"] == 1  # "a bb"; the empty line does not count
    assert value["dev", "both", "overlap_share"] == pytest.approx(1 / 3)
    # Seven pieces; n@@, e@@ and w are not in the vocabulary.
    assert value["dev", "src", "unknown_share"] == pytest.approx(3 / 7)
    assert value["test_9", "tgt", "pieces_per_word"] == 2  # q@@ q, both unknown
    assert value["test_9", "tgt", "unknown_share"] == 1
    assert ("train", "tgt", "highest_bleu") not in value.index
    with pytest.raises(UserError, match=PAIR):
        corpus(files[0], [])


def test_highest_score_of_references_that_are_cut_and_joined(files):
    """Joined it is "он сказал « да » и ушёл".

    Of its 7, 6, 5 and 4 n-grams 4, 2, 0 and 0 are in the reference of five words. sacreBLEU takes
    a half of one for the first 0 and a quarter for the second.
    """
    counts, (about,) = files
    write(about, ABOUT | {"tgt_lang": "ru", "pretokenised": False, "unit": "words"})
    write(about.parent / "tgt.vocab", "да 1\nи 1\nон 1\nсказал 1\nушёл 1\n« 1\n» 1\n")
    write(counts[0].parent / "test_9.tgt", "он сказал «да» и ушёл\n")
    write(counts[0].parent / "dev.tgt", "он ушёл и сказал\n\n\n")
    table = corpus(counts, [about])
    by_split = table[table["statistic"] == "highest_bleu"].set_index("split")["value"]
    assert by_split["dev"] == pytest.approx(100)
    assert by_split["test_9"] == pytest.approx(100 * (4 / 7 * 2 / 6 * 0.5 / 5 * 0.25 / 4) ** 0.25)
    (warning,) = joining(table)
    assert warning.startswith(f"{PAIR}, test_9") and "18.58" in warning


def test_equal_sides_and_tokenised_text(files):
    (_, dev, _), (about,) = files
    assert not list(odd_text([dev], [about]))
    facts = json.loads(dev.read_text()) | {"equal": 1, "tgt": {"spaced": 1}}  # of 5 pairs
    write(dev, facts)
    assert len(list(odd_text([dev], [about]))) == 1
    write(about, ABOUT | {"pretokenised": False})
    assert len(list(odd_text([dev], [about]))) == 2


@pytest.fixture
def benchmarks(tmp_path):
    jobs = {"text/a": "0.25\tNA\tNA", "bleu/a": "2.5\t90.5\t2", "bleu/b": "1.5\t100\t1"}
    paths = []
    for job, cells in (jobs | {"train/a": "40\t700\t39.5"}).items():
        paths.append(tmp_path / f"{job}.tsv")
        paths[-1].parent.mkdir(exist_ok=True)
        paths[-1].write_text(f"s\tmax_rss\tcpu_time\n{cells}\n")
    return paths


def test_jobs_are_added_by_rule_the_longest_first(benchmarks):
    assert cost(benchmarks).to_numpy().tolist() == [
        ["train", 1, 40.0, 40.0, 39.5, 700.0],
        ["bleu", 2, 4.0, 2.5, 3.0, 100.0],
        ["text", 1, 0.25, 0.25, 0.0, 0.0],
        ["all", 4, 44.25, 40.0, 42.5, 700.0],
    ]


def test_the_script_leaves_out_later_rules(tmp_path, benchmarks):
    late = tmp_path / "report" / "a.tsv"
    late.parent.mkdir()
    late.write_text(benchmarks[0].read_text())
    assert run_script("analysis", ["cost", "--benchmarks", tmp_path, "--out", tmp_path]) == 0
    rules = pd.read_csv(tmp_path / "tables/cost.csv")["rule"].tolist()
    assert rules == ["train", "bleu", "text", "all"]

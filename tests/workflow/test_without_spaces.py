"""A pair without spaces on its target side: one's own text, filtered, trained on and scored."""

import csv
import json
from itertools import product
from random import Random

import pytest
from project_copy import ProjectCopy
from sacrebleu.metrics import BLEU
from shared_results import leave_figures_empty

NOUNS = {"cat": "猫", "dog": "狗", "bird": "鸟", "horse": "马", "teacher": "老师", "child": "孩子"}
VERBS = {"sees": "看见", "likes": "喜欢", "helps": "帮助", "follows": "跟随"}
KINDS = {"big": "大", "small": "小", "old": "老", "red": "红色", "quiet": "安静", "young": "年轻"}
CORPUS = """
mine:
  licence: made by the test
  citation: none
  splits:
"""
EXPERIMENT = """
pairs: [mine.en-zh]
text: {max_words: 30, max_ratio: 3, drop_duplicates: true, drop_overlap: true}
model: {preset: tiny, encoder_layers: 2, decoder_layers: 1, d_model: 48, d_ff: 64, heads: 3}
train: {updates: 200, batch_tokens: 800, schedule: cosine, peak_lr: 1e-2, warmup_updates: 20,
  dev_interval: 50}
decode: {beam: 2}
bpe:
  merges: 50
"""
DROPPED = {"empty": 8, "max_words": 16, "max_ratio": 24, "long_word": 4, "duplicates": 40}
DROPPED |= {"overlap": 32}
"""Of 800 training pairs: 1, 2, 3, 0.5, 5 and 4 %."""


def sentences() -> list[tuple[str, str]]:
    """Every sentence of the form, in a drawn order: of 7 words, and of 9 to 13 characters."""
    made = [
        (
            f"The {kind} {noun} {verb} the {other} {whom}.",
            f"{KINDS[kind]}的{NOUNS[noun]}{VERBS[verb]}{KINDS[other]}的{NOUNS[whom]}。",
        )
        for kind, noun, verb, other, whom in product(KINDS, NOUNS, VERBS, KINDS, NOUNS)
    ]
    return Random(1).sample(made, len(made))


def text() -> dict[str, list[tuple[str, str]]]:
    """Splits: 800 training pairs, of which filters drop `DROPPED`; two of the others nearly so.

    Two characters count as a word. In dev and test every second target is cut at spaces.
    """
    every = sentences()
    held, good = every[:80], every[80:754]
    bad = [("Hello.", "")] * DROPPED["empty"]
    bad += [("a " * 31, "字" * 62)] * DROPPED["max_words"]
    bad += [("Good morning", "早" * 13)] * DROPPED["max_ratio"]  # 7 words, more than 3 × 2
    bad += [("w" * 1001, "字字")] * DROPPED["long_word"]
    bad += good[: DROPPED["duplicates"]] + held[: DROPPED["overlap"]]
    kept = [("a " * 30, "字" * 60), ("Good morning", "早" * 12)]
    spaced = [(src, " ".join(tgt) if n % 2 else tgt) for n, (src, tgt) in enumerate(held)]
    return {"train": [*good, *bad, *kept], "dev": spaced[:40], "test": spaced[40:]}


def characters(line: str) -> str:
    return " ".join(line.replace(" ", ""))


@pytest.fixture
def scored(tmp_path) -> ProjectCopy:
    """A copy of the project in which the pair is trained and scored."""
    copy = ProjectCopy(tmp_path / "copy")
    leave_figures_empty(copy)
    (copy.folder / "own").mkdir()
    entry = CORPUS
    for split, pairs in text().items():
        entry += f"    {split}: {{en: {{path: own/{split}.en}}, zh: {{path: own/{split}.zh}}}}\n"
        for language, lines in zip(("en", "zh"), zip(*pairs, strict=True), strict=True):
            content = "".join(f"{line}\n" for line in lines)
            (copy.folder / "own" / f"{split}.{language}").write_text(content, encoding="utf-8")
    with (copy.folder / "config" / "corpora.yaml").open("a") as file:
        file.write(entry)
    (copy.folder / "config" / "own.yaml").write_text(EXPERIMENT)
    copy.shell("snakemake --cores 2 --config experiment=own -- results/own/tables/bleu.csv")
    return copy


@pytest.mark.slow
def test_a_pair_without_spaces_is_filtered_trained_and_scored(scored):
    counts = json.loads((scored.folder / "data/text/own/mine.en-zh/train.json").read_text())
    assert (counts["dropped"], counts["pairs_read"], counts["pairs_kept"]) == (DROPPED, 800, 676)
    tables = scored.folder / "results/own/tables"
    rows = list(csv.DictReader((tables / "corpus.csv").open()))
    train = {row["statistic"]: float(row["value"]) for row in rows if row["split"] == "train"}
    assert {name: train[f"dropped_{name}"] for name in DROPPED} == DROPPED
    assert train["dropped_share"] == pytest.approx(124 / 800)

    pieces = (scored.folder / "data/bpe/own/mine.en-zh/dev.tgt").read_text(encoding="utf-8")
    dev = [characters(tgt) for _, tgt in text()["dev"]]
    assert pieces.replace("@@ ", "").splitlines() == dev

    run = scored.folder / "results/own/train/mine.en-zh/baseline/seed1"
    translations = (run / "translations/test.txt").read_text(encoding="utf-8").splitlines()
    assert len(translations) == 40 and not any(" " in line for line in translations)
    scores = {row["metric"]: row for row in csv.DictReader((tables / "bleu.csv").open())}
    assert "|tok:zh|" in scores["bleu"]["signature"]
    references = [tgt for _, tgt in text()["test"]]
    bleu = BLEU(tokenize="zh").corpus_score(translations, [references]).score
    assert float(scores["bleu"]["score"]) == pytest.approx(bleu, rel=1e-5) and bleu > 50
    cut = [[characters(line) for line in side] for side in (translations, references)]
    tokenised = BLEU(tokenize="none", force=True).corpus_score(cut[0], [cut[1]]).score
    assert float(scores["bleu_tok_lc"]["score"]) == pytest.approx(tokenised, rel=1e-5)

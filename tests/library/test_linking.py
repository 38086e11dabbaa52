"""Links between words from Python, beside those of commands and of single sentences."""

import pandas as pd
import pytest
from learnt_model import learnt
from script_runner import run_script
from single_links import word_links
from small_run import segment

import headcount
from headcount.base.errors import UserError
from headcount.heads.attention_map import all_weights

pytestmark = pytest.mark.slow

HEADS = ["dec_enc.1.2", "dec_enc.0.1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model in model, its pieces in bpe, text in dev.src and dev.tgt."""
    folder = tmp_path_factory.mktemp("linking")
    learnt(segment(folder), folder, 3, updates=30)
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return headcount.load(folder / "model", folder / "bpe")


def lines_of(folder):
    return [(folder / f"dev.{side}").read_text().splitlines() for side in ("src", "tgt")]


def pieces_by_word(side, line: str) -> list[int]:
    """Numbers of pieces, by the marks of pieces that a piece of the same word follows."""
    joined = "".join(f"{piece} " for piece in side.pieces(line)).replace("@@ ", "@@")
    return [word.count("@@") + 1 for word in joined.split()]


def test_links_are_those_of_single_sentences(folder, model):
    """By the mean of two heads, in batches; or by all heads of the last layer."""
    sources, targets = lines_of(folder)
    sides = model.pair.segmenters()
    found = model.align(sources, targets, HEADS), model.align(sources, targets)
    for number, lines in enumerate(zip(sources, targets, strict=True)):
        pair = [*zip(sides, lines, strict=True)]
        weights = all_weights(model.module, *(side.encode(line) for side, line in pair))
        counts = [pieces_by_word(side, line) for side, line in pair]
        two = (weights["dec_enc", 1][2] + weights["dec_enc", 0][1]) / 2
        assert found[0][number] == word_links(two, *counts, "output")
        last = weights["dec_enc", 2].mean(0)
        assert found[1][number] == word_links(last, *counts, "output")
        assert max(counts[1]) > 1
    assert found[0] != found[1]
    assert model.align(sources[3], targets[3], HEADS) == found[0][3]


def test_without_a_target_translations_are_linked(folder, model):
    sources = ["", *lines_of(folder)[0][:3]]
    translations, links = model.align(sources, heads=HEADS)
    assert translations == model.translate(sources) and any(translations)
    assert links == model.align(sources, translations, HEADS) and links[0] == []
    assert model.align(sources[1], heads=HEADS) == (translations[1], links[1])


def test_the_frame_is_that_of_the_command(folder, model, tmp_path):
    """Of the same sentences and links, which are all on the diagonal or only possible."""
    sources, targets = lines_of(folder)
    links = ["0-0 1-1 2p1"] * len(sources)
    frame = model.alignment(sources, targets, links)
    (tmp_path / "dev.links").write_text("\n".join(links) + "\n")
    given = ["--bpe", folder / "bpe", "--text", folder, "--raw", tmp_path / "dev.links"]
    assert run_script("links", [*given, "--test", "dev", "--out", tmp_path / "dev.jsonl"]) == 0
    given = ["--bpe", folder / "bpe", "--links", tmp_path / "dev.jsonl"]
    given += ["--models", folder / "model", "--outs", tmp_path]
    assert run_script("alignment", given) == 0
    written = pd.read_csv(tmp_path / "alignment.csv")
    assert set(written.pop("links")) == {"gold"} and set(frame.pop("links")) == {"given"}
    pd.testing.assert_frame_equal(frame, written, check_dtype=False)
    best = headcount.best_heads(frame, 2)
    assert model.align(sources, targets, best) == model.align(
        sources, targets, [head.name() for head in best]
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.alignment(["a"], ["b"]), "expected links, a string .* give links of an align"),
        (lambda m: m.alignment(["a", "b"], ["a", "b"], ["0-0", "0-1"]), r"links\[1\]: 0-1: "),
        (lambda m: m.alignment(["a", "b"], ["a", "b"], ["0-0"]), "found 2, 2 and 1"),
        (lambda m: m.alignment(["a", "b"], ["a", "b"], ["", ""]), "two pairs or more with links"),
        (lambda m: m.align("a", "b", ["enc_self.0.0"]), "some of dec_enc, found enc_self.0.0"),
        (lambda m: m.align("a", "b", ["dec_enc.9.0"]), "heads: dec_enc.9.0: expected a head"),
    ],
)
def test_errors_say_what_to_give(model, call, message):
    with pytest.raises(UserError, match=message):
        call(model)

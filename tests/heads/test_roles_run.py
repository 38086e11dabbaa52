"""Roles, relevance and attention of a small model, from files to files, by the scripts."""

import csv
import json
import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
from matplotlib import rc_context
from script_runner import run_script
from small_models import make_model

from headcount.base.addresses import Head
from headcount.base.errors import UserError
from headcount.base.head_values import read_head_values
from headcount.base.settings.data import BpeSettings
from headcount.base.settings.heads import LrpSettings, RolesSettings
from headcount.data.bpe import segment_corpus
from headcount.data.trees import AlignedTree, Arc, write_aligned
from headcount.data.vocabulary import UNK, Vocabulary
from headcount.heads.attention_map import all_weights, write_attention
from headcount.heads.relevance import write_relevance
from headcount.heads.roles import FILES, write_roles
from headcount.model.removal import remove_units
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

pytestmark = pytest.mark.slow  # a step from files to files, or models that are trained

SRC = ["the cat sees the yak", "the cat sleeps", "a yak sees a cat"]
TGT = ["kat vidas yak", "kat dormas", "yak vidas kat"]
TREE = AlignedTree("s", [["a"], ["yak"], ["sees"]], [Arc(0, 1, "det"), Arc(1, 2, "nsubj")])


class Files:
    """A segmented pair, a model of two encoder layers and a pruned one, a treebank."""

    def __init__(self, folder: Path):
        self.folder, self.bpe = folder, folder / "bpe"
        for side, lines in (("src", SRC), ("tgt", TGT)):
            (folder / f"t.{side}").write_text("".join(f"{line}\n" for line in lines))
        paths = (folder / "t.src", folder / "t.tgt")
        settings = BpeSettings(joint=False, merges=50)
        segment_corpus(paths, paths, ("en", "xx"), True, settings, self.bpe)
        src, tgt = (Vocabulary.load(self.bpe / f"{side}.vocab") for side in ("src", "tgt"))
        model = make_model(src_size=len(src), tgt_size=len(tgt))
        self.grid = model.grid
        self.model = self.save(model, "model", {})
        kept = model.grid.mask([model.grid.heads()[0], model.grid.heads()[4]])
        names = [h.name() for h, k in zip(model.grid.heads(), kept, strict=True) if k]
        smaller = remove_units(model, torch.from_numpy(kept))
        self.pruned = self.save(smaller, "pruned", {"kept_heads": names})
        self.trees = folder / "t.first.jsonl"
        write_aligned(self.trees, [TREE], {"sentences": 1}, {})

    def save(self, model, name: str, facts: dict) -> Path:
        facts = facts | PairFolder(self.bpe).subwords()
        ModelFolder(self.folder / name).save(model, dict(model.named_parameters()), facts)
        return self.folder / name

    def roles(self, out: Path, trees: list[Path], model: str = "model", **changes) -> None:
        folders = ModelFolder(self.folder / model), PairFolder(self.bpe)
        write_roles(*folders, trees, RolesSettings(**changes), out, {})

    def attention(self, out: Path, source: Path, head: Head, target: Path | None = None) -> None:
        folders = ModelFolder(self.model), PairFolder(self.bpe)
        write_attention(*folders, head, (source, target), "word", RolesSettings(), out, {})


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Files:
    return Files(tmp_path_factory.mktemp("roles"))


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_one_job_writes_what_every_head_does(files, tmp_path):
    files.roles(tmp_path, [files.trees])
    assert {path.name for path in tmp_path.iterdir()} == set(FILES)
    count = Counter(row["statistic"] for row in rows(tmp_path / "attention.csv"))
    encoder = sum(head.kind == "enc_self" for head in files.grid.heads())
    assert (count["confidence"], count["rare_rarest"]) == (files.grid.size, encoder)
    for name in ("sink_special", "sink_code", "sink_punctuation", "content"):
        assert count[name] == count["confidence_content"] == files.grid.size
    assert {row["kind"] for row in rows(tmp_path / "positions.csv")} == {"enc_self", "dec_self"}
    for statistic in ("share", "share_content"):
        found = [row for row in rows(tmp_path / "positions.csv") if row["statistic"] == statistic]
        assert {row["kind"] for row in found} == {"enc_self", "dec_self"}
    syntax = rows(tmp_path / "syntax.csv")
    assert {row["relation"] for row in syntax} == {"nsubj"}  # det is not among the relations
    assert len(syntax) == 2 * encoder and {r["treebank"] for r in syntax} == {"t.first"}
    about = json.loads((tmp_path / "roles.json").read_text())
    assert (about["sentences"], about["treebanks"]) == (3, {"t.first": 1})
    sentences = [json.loads(line) for line in (tmp_path / "sentences.jsonl").open()]
    texts = [" ".join(sentence["source"]).replace("@@ ", "") for sentence in sentences]
    assert texts == [f"{line} </s>" for line in SRC]
    for sentence in sentences:
        assert list(sentence["weights"]) == [head.name() for head in files.grid.heads()]
        for name, weights in sentence["weights"].items():
            queries = sentence["source" if name.startswith("enc_self") else "target"]
            assert len(weights) == len(queries)
            assert all(sum(row) == pytest.approx(1, abs=1e-3) for row in weights)


def test_heads_of_a_pruned_model_keep_their_addresses(files, tmp_path):
    files.roles(tmp_path, [], "pruned", sentences=1)
    expected = [head for n, head in enumerate(files.grid.heads()) if n not in (0, 4)]
    found = {(r["kind"], int(r["layer"]), int(r["head"])) for r in rows(tmp_path / "attention.csv")}
    assert found == {tuple(head) for head in expected}
    assert rows(tmp_path / "syntax.csv") == []  # no treebank
    (sentence,) = (tmp_path / "sentences.jsonl").open()
    assert set(json.loads(sentence)["weights"]) == {head.name() for head in expected}


def test_addresses_that_do_not_fit_the_model_are_refused(files, tmp_path):
    for listed in (["enc_self.0.1"], ["enc_self.0"], ["enc_self.a.1"], [7], 7):
        (tmp_path / "model.json").write_text(json.dumps({"format": 1, "kept_heads": listed}))
        with pytest.raises(UserError, match=r"model\.json: damaged"):
            ModelFolder(tmp_path).original_heads(files.grid)


def test_relevance_is_written_by_both_rules(files, tmp_path):
    out = tmp_path / "relevance.csv"
    settings = LrpSettings(max_sentences=2)
    write_relevance(ModelFolder(files.model), PairFolder(files.bpe), settings, out, {})
    names = ("relevance_low", "relevance", "relevance_high", "relevance_ratio")
    low, mean, high, ratio = (read_head_values(out, name, files.grid) for name in names)
    assert sum(mean[:3]) == pytest.approx(1, abs=1e-5)  # the first layer's heads
    assert (low <= mean + 1e-9).all() and (mean <= high + 1e-9).all() and min(ratio) < 0
    about = json.loads(out.with_suffix(".json").read_text())
    lines = (files.bpe / "dev.tgt").read_text().splitlines()[:2]
    steps = sum(len(line.split()) + 1 for line in lines)  # one for the end
    assert (about["sentences"], about["steps"]) == (2, steps)


def test_attention_of_a_head_is_written_and_drawn(files, tmp_path):
    (tmp_path / "s").write_text("the cat sees\na yak\n")
    out = tmp_path / "a.json"
    files.attention(out, tmp_path / "s", Head("dec_enc", 1, 2))
    found = json.loads(out.read_text())
    assert found["maps"][0]["keys"] == ["the", "cat", "sees", "</s>"]
    assert found["maps"][1]["queries"][0] == "<s>"
    # Every query's attention to words and to the end symbol is all it has.
    assert all(sum(row) == pytest.approx(1, abs=1e-3) for row in found["maps"][0]["weights"])
    assert run_script("attention_map", ["--weights", out, "--out", tmp_path / "map.svg"]) == 0
    assert "encoder–decoder attention layer 1 head 2" in (tmp_path / "map.svg").read_text()


def test_of_several_references_the_first_is_forced(files, tmp_path):
    (tmp_path / "s").write_text("the cat\na yak\n")
    made = []
    for targets in ("le chat\nun yak\n", "le chat\tun félin\nun yak\tle bœuf\n"):
        (tmp_path / "t").write_text(targets)
        files.attention(tmp_path / "a", tmp_path / "s", Head("dec_enc", 1, 2), tmp_path / "t")
        made.append((tmp_path / "a").read_bytes())
    assert made[0] == made[1]


def draw(words: list[str], out: Path, *flags) -> int:
    """Draw a map of equal weights between these words, and return the exit code."""
    path, weights = out.parent / "drawn.json", [[1 / len(words)] * len(words)] * len(words)
    found = {"queries": words, "keys": words, "weights": weights}
    head = {"kind": "enc_self", "layer": 0, "head": 0}
    path.write_text(json.dumps({"head": head, "level": "word", "maps": [found]}))
    return run_script("attention_map", ["--weights", path, *flags, "--out", out])


def test_f25_words_of_any_script_are_drawn_or_the_missing_letter_is_told(tmp_path, capsys):
    """Words from right to left and combining marks; a Chinese letter that the font lacks."""
    out = tmp_path / "a.svg"
    words = ["ذهب", "שלום", "e\u0301"]
    assert draw(words, out) == draw(words, out.with_suffix(".png")) == 0
    drawn = out.read_text(encoding="utf-8")
    assert all(drawn.count(word) >= 2 for word in words)
    # The first key stands at the right, where such a line begins.
    places = re.findall(r"translate\(([\d.]+) [\d.]+\) rotate\(-90\)\">(\w+)", drawn)
    assert [word for _, word in places[:2]] == words[:2]
    assert float(places[0][0]) > float(places[1][0])
    with rc_context({"font.family": ["DejaVu Sans"]}):  # whatever else is installed
        assert draw(["猫", "שלום", "x"], tmp_path / "b.png") == 2
    told = capsys.readouterr().err
    assert "Glyph 29483" in told and "missing from font" in told  # 29483 is 猫
    assert "a font that has it" in told and "or draw an .svg" in told
    assert not list(tmp_path.glob("*b.png")) and draw(["猫", "שלום", "x"], out) == 0


def test_x27_f54_titles_and_words_are_no_formulas(tmp_path):
    """Each of them is a fault, or another text, to who reads formulas."""
    words, title = ["$x$", r"$\frac{", r"\$5", "<b>&"], r"$\foo{$"
    for ending in ("svg", "pdf", "png"):
        assert draw(words, tmp_path / f"a.{ending}", "--title", title) == 0
    texts = [element.text for element in ElementTree.parse(tmp_path / "a.svg").iter()]
    assert title in texts and all(texts.count(word) == 2 for word in words)


@pytest.mark.parametrize("kind", ["enc_self", "dec_enc"])
def test_a_word_of_unknown_pieces_is_one_word_of_a_map(files, tmp_path, kind):
    (tmp_path / "s").write_text("the zq sees\n")  # z@@ and q are unknown, the is not
    (tmp_path / "t").write_text("kat zq\n")
    out, head = tmp_path / "a.json", Head(kind, 0, 1)
    files.attention(out, tmp_path / "s", head, tmp_path / "t")
    (found,) = json.loads(out.read_text())["maps"]
    source, target = ["the", "zq", "sees", "</s>"], ["<s>", "kat", "zq"]
    assert found["keys"] == source
    assert found["queries"] == (source if kind == "enc_self" else target)
    src, tgt = (Vocabulary.load(files.bpe / f"{side}.vocab") for side in ("src", "tgt"))
    ids = (src.ids(["the", "z@@", "q", "sees"]), tgt.ids(["kat", "z@@", "q"]))
    assert ids[0][1:3] == ids[1][1:3] == [UNK, UNK]
    weights = all_weights(ModelFolder(files.model).load(), *ids)[kind, 0][1]
    # Keys the, z@@ q, sees, </s>: the word's weight is the sum. As a query, source or target,
    # z@@ q has rows of its own, of which it is the mean: 1 and 2, or, after <s> and kat, 2 and 3.
    by_key = torch.stack([weights[:, 0], weights[:, 1:3].sum(1), weights[:, 3], weights[:, 4]], 1)
    rows = [[0], [1, 2], [3], [4]] if kind == "enc_self" else [[0], [1], [2, 3]]
    expected = torch.stack([by_key[row].mean(0) for row in rows])
    torch.testing.assert_close(torch.tensor(found["weights"]), expected, atol=1e-4, rtol=0)

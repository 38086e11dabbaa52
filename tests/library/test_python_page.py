"""The guides for Python programs, run as they stand, and errors of the Python interface."""

import contextlib
import io
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
from project_copy import ROOT
from small_hooked import save_t5, save_whisper
from small_marian import write_marian
from small_run import SmallRun, segment

import headcount
from headcount.base.errors import UserError
from headcount.library.measured import Measured, addresses

GUIDES = ROOT / "docs/guides"
PAGE, PRETRAINED, ALIGNMENT = (
    (GUIDES / f"{name}.md").read_text() for name in ("python", "pretrained", "alignment")
)


def follow(page: str, names: dict) -> str:
    """What the Python code of a page says, run as it stands with these names."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        for block in re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
            exec(compile(block, "a guide", "exec"), names)
    return said.getvalue()


def test_every_name_is_on_the_page():
    """Those of the package, and what a model has."""
    names = [f"headcount.{name}" for name in headcount.__all__ if name != "Model"]
    own = {*vars(Measured), *vars(headcount.Model)}
    names += [f"model.{name}" for name in sorted(own) if not name.startswith("_")]
    assert [name for name in names if name not in PAGE] == []
    assert len(names) > 20 and set(headcount.__all__) <= set(dir(headcount))


def test_the_package_is_imported_without_torch():
    code = "import sys, headcount; headcount.DecodeSettings; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    with pytest.raises(AttributeError, match="module 'headcount' has no attribute 'lod'"):
        headcount.lod  # noqa: B018


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where a reader stands: a run, its folder with subwords, text, and a folder like OPUS-MT's."""
    folder = tmp_path_factory.mktemp("reader")
    bpe = segment(folder / "text")
    SmallRun(bpe).finish(folder / "run", folder / "state")
    shutil.copytree(bpe, folder / "run/bpe")
    for side in ("src", "tgt"):
        shutil.copy(folder / f"text/dev.{side}", folder)
    (folder / "dev.links").write_text("0-0 1-1\n" * 12)
    texts = tuple(folder / f"text/train.{side}" for side in ("src", "tgt"))
    write_marian(folder / "opus-mt-en-de", texts)
    headcount.load(folder / "run/model", folder / "run/bpe").save(folder / "translator")
    words = {*(folder / "dev.src").read_text().split(), *(folder / "dev.tgt").read_text().split()}
    save_t5(folder / "t5-small", ["translate", "English", "to", "German:", *sorted(words)])
    return folder


@pytest.mark.slow
def test_the_page_leads_where_it_says(folder, monkeypatch):
    monkeypatch.chdir(folder)
    names = {}
    printed = follow(PAGE, names)
    assert len(names["plain"]) == len(names["lines"]) == 12
    assert names["masked"] != names["plain"]
    assert list(names["importance"]["value"]) == sorted(names["importance"]["value"])
    assert len(names["importance"]) == 12
    assert len(names["smaller"].heads) == 8
    assert set(names["smaller"].first_heads) == set(addresses(names["importance"][4:]))
    assert len(names["theirs"].heads) == 24
    for words in ("enc_self.0.0", "tok:13a", "back: a marian", "as_pegasus: a pegasus", "fast: 3"):
        assert words in printed, words
    assert "aligned: 3 heads" in printed and "align: dec_enc.0.0, dec_enc.0.1" in printed  # moved


@pytest.mark.slow
def test_heads_that_align_link_words_as_the_guide_says(folder, monkeypatch):
    monkeypatch.chdir(folder)
    sources, targets = ((folder / f"dev.{s}").read_text().splitlines() for s in ("src", "tgt"))
    names = {"sources": sources, "targets": targets, "links": ["0-0 1-1"] * len(sources)}
    printed = follow(ALIGNMENT, names)
    assert [head.kind for head in names["heads"]] == ["dec_enc"] * 2
    assert names["translation"] == names["model"].translate(sources[:1])[0]
    words = [len(line.split()) for line in (sources[0], names["translation"])]
    assert all(s < words[0] and t < words[1] for s, t in names["found"])
    assert str(names["found"]) in printed


def test_t5_and_whisper_are_measured_as_the_guide_says(tmp_path, monkeypatch):
    """The three heads that it prints are the largest by the library's own losses."""
    monkeypatch.chdir(tmp_path)
    said = ["the dog sleeps", "a cat"]
    words = ("translate", "English", "to", "German:", "the", "dog", "sleeps", "a", "cat")
    save_t5(tmp_path / "models/t5-small", words)
    save_whisper(tmp_path / "models/whisper-tiny")
    sounds = list(np.random.default_rng(1).standard_normal((2, 16000)).astype("float32"))
    names = {"english": said, "german": said[::-1], "sounds": sounds, "said": said}
    printed = follow(PRETRAINED, names)
    targets = names["tokenizer"](text_target=names["german"]).input_ids
    sources = list(map(torch.tensor, names["sources"]))
    expected = largest(names["t5"], sources, targets)
    expected += largest(names["whisper"], names["text"].src, names["text"].tgt)
    assert re.findall(r"^(\S+ \S+) nats per sentence$", printed, re.MULTILINE) == expected


def largest(model, sources, targets) -> list[str]:
    """Three heads by |∂L/∂ξ| of each pair, L the library's mean loss times the words."""
    found = np.zeros(model.grid.size)
    for source, target in zip(sources, targets, strict=True):
        mask = torch.ones(model.grid.size, requires_grad=True)
        with model.multiplied(mask):
            given = {model.model.main_input_name: source[None], "labels": torch.tensor([target])}
            (model.model(**given).loss * len(target)).backward()
        found += mask.grad.abs().numpy() / len(targets)
    heads = model.grid.heads()
    return [f"{heads[place].name()} {found[place]:.3g}" for place in found.argsort()[:-4:-1]]


@pytest.mark.slow
def test_values_are_those_of_the_commands(folder, monkeypatch):
    """Masked, removed and saved are one translation; BLEU and loss go with them."""
    monkeypatch.chdir(folder)
    model = headcount.load("translator")
    lines, references = ((folder / f"dev.{s}").read_text().splitlines() for s in ("src", "tgt"))
    silent = ["enc_self.0.1", "dec_self.0.0", "dec_self.0.1", "dec_self.0.2"]
    smaller = model.without(silent)
    smaller.save("again")
    again = headcount.load("again")
    masked = model.translate([*lines, ""], mask=silent)
    assert masked == smaller.translate([*lines, ""]) == again.translate([*lines, ""])
    assert masked[-1] == "" and masked[:-1] != model.translate(lines)
    assert again.first_heads == smaller.first_heads and set(silent).isdisjoint(again.first_heads)
    assert again.loss(lines, references) == pytest.approx(
        model.loss(lines, references, mask=silent), abs=1e-5
    )
    assert again.bleu(lines, references) == model.bleu(lines, references, mask=silent)
    (folder / "silent.txt").write_text("\n".join(silent))
    assert model.translate(lines, mask="silent.txt") == masked[:-1]
    single = model.ablate(lines, references).set_index("heads")["bleu"]
    assert list(single.index) == ["", *model.heads]
    assert single["dec_enc.0.1"] == pytest.approx(
        model.bleu(lines, references, mask="dec_enc.0.1").score
    )
    parts = (slice(1), slice(1, 3), slice(3))
    one, other, both = (model.importance(lines[p], references[p])["value"] for p in parts)
    np.testing.assert_allclose(both, (one + 2 * other) / 3, rtol=1e-4)  # a mean over sentences
    assert model.encode("the dog sleeps .") == again.encode("the  dog sleeps .")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.translate("a line"), "expected a list of lines"),
        (lambda m: m.bleu(["a", "b"], "ab"), "expected a list of lines"),
        (lambda m: m.loss(["a"], []), "1 and 0"),
        (lambda m: m.translate(["a"], mask="enc_self:0:1"), "mask: enc_self:0:1"),
        (
            lambda m: m.translate(["a"], mask=["dec_enc.0.3"]),
            "dec_enc.0.3 is no file",
        ),
        (lambda m: m.decode([4, 99999]), r"expected ids .*from 0 to \d+, found 99999"),
        (lambda m: headcount.load("translator", device="tpu"), "device: .* 'tpu'"),
        (lambda m: m.export("x", to="onnx"), "expected one of headcount, ctranslate2, huggingface"),
        (lambda m: m.save("run"), "run: expected "),
        (lambda m: headcount.load("run/model"), "run/model/segmentation.json: expected"),
        (lambda m: headcount.load("nowhere"), "nowhere/model.json: damaged or missing"),
    ],
)
def test_errors_say_what_to_do(folder, monkeypatch, call, message):
    monkeypatch.chdir(folder)
    with pytest.raises(UserError, match=message):
        call(headcount.load("translator"))

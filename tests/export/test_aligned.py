"""Heads that align, where CTranslate2 and the library's Whisper look for them."""

import json

import pytest
import torch
from imported_marian import import_marian
from script_runner import run_script
from single_links import word_links
from small_hooked import save_t5, save_whisper

import headcount
from headcount.data.text import read_clean
from headcount.deployment.export import Deployed
from headcount.heads.attention_map import all_weights
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

pytestmark = pytest.mark.slow

MASK = ["dec_enc.1.0", "dec_enc.0.2"]
HEADS = ["dec_enc.1.3", "dec_enc.0.1", "dec_enc.1.1"]  # two of layer 1, which CTranslate2 shows


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder like OPUS-MT's in opus, its model in model, its pieces in bpe, text in text."""
    return import_marian(tmp_path_factory.mktemp("aligned"))


def export(root, out, *words) -> int:
    return run_script(
        "export", ["--model", root / "model", "--bpe", root / "bpe", "--out", out, *words]
    )


def piece_counts(segmenter, pieces) -> list[int]:
    """Pieces of every word of a translation."""
    starts = [n for n, begins in enumerate(segmenter.begins(pieces)) if begins]
    return [end - start for start, end in zip(starts, [*starts[1:], len(pieces)], strict=True)]


@pytest.mark.parametrize(
    ("gone", "aligned", "here"),
    # Head 0 of layer 1 is gone, and head 3 has its place; head 1 of layer 0 keeps its place.
    [([], HEADS, ["dec_enc.1.0", "dec_enc.0.1", "dec_enc.1.1"]),
     (["dec_layer.0"], HEADS[::2], ["dec_enc.0.0", "dec_enc.0.1"])],
)  # fmt: skip
def test_ctranslate2_links_words_as_this_project_does(root, tmp_path, gone, aligned, here):
    """Its own translations, by the mean of the two heads in the model with units masked."""
    import ctranslate2

    out = tmp_path / "out"
    assert export(root, out, "--mask", *MASK, *gone, "--alignment", *aligned) == 0
    listed = json.loads((out / "alignment_heads.json").read_text())
    assert (listed["heads"], listed["original_heads"]) == (here, aligned)
    translator = ctranslate2.Translator(str(out), compute_type="float32")
    what = Deployed.open(ModelFolder(root / "model"), PairFolder(root / "bpe"), [*MASK, *gone])
    src, tgt = what.pair.segmenters()
    found = []
    for line in read_clean(root / "text/dev.src")[:6]:
        pieces = src.pieces(line)
        options = {"beam_size": 2, "max_decoding_length": 9, "return_attention": True}
        result = translator.translate_batch([pieces], **options)[0]
        theirs, translation = torch.tensor(result.attention[0]), result.hypotheses[0]
        ids = src.vocabulary.ids(pieces), tgt.vocabulary.ids(translation)
        # Heads 3 and 1 of layer 1, where head 0 is gone.
        ours = all_weights(what.model, *ids)["dec_enc", 1 - len(gone)][[2, 0]].mean(0)
        assert theirs.shape == (len(ids[1]), len(ids[0])) and len(ids[1]) > 4
        torch.testing.assert_close(theirs, ours[:-1, :-1], atol=1e-6, rtol=0)
        counts = piece_counts(src, pieces), piece_counts(tgt, translation)
        whole = torch.zeros_like(ours)  # with the end on both sides
        whole[:-1, :-1] = theirs
        links = word_links(whole, *counts, "output")
        assert links == word_links(ours, *counts, "output")
        found += links
    assert len(set(found)) > 6


def test_heads_come_from_an_alignment_json_or_from_python(root, tmp_path):
    (tmp_path / "dev.links").write_text("0-0 1-1\n" * 12)
    words = ["--bpe", root / "bpe", "--text", root / "text", "--raw", tmp_path / "dev.links"]
    assert run_script("links", [*words, "--test", "dev", "--out", tmp_path / "dev.jsonl"]) == 0
    words = ["--bpe", root / "bpe", "--links", tmp_path / "dev.jsonl", "--models", root / "model"]
    assert run_script("alignment", [*words, "--outs", tmp_path]) == 0
    best = json.loads((tmp_path / "alignment.json").read_text())["best"]
    assert export(root, tmp_path / "out", "--alignment", tmp_path / "alignment.json") == 0
    listed = json.loads((tmp_path / "out/alignment_heads.json").read_text())
    assert listed["original_heads"] == best["2"]
    model = headcount.load(root / "model", root / "bpe")
    model.export(tmp_path / "again", "ctranslate2", alignment=best["layer"])
    one, other = (tmp_path / name / "model.bin" for name in ("out", "again"))
    assert one.read_bytes() == other.read_bytes()


def test_a_list_goes_beside_other_models_and_needs_their_heads(root, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["--to", "huggingface", "--pretrained", root / "opus", "--mask", *MASK]
    assert export(root, out, *words, "--alignment", *HEADS) == 0
    listed = json.loads((out / "alignment_heads.json").read_text())
    assert listed["heads"] == listed["original_heads"] == HEADS  # masked heads are zeros there
    assert export(root, out, *words, "dec_layer.0", "--alignment", *HEADS[::2]) == 0
    listed = json.loads((out / "alignment_heads.json").read_text())
    assert listed["heads"] == ["dec_enc.0.3", "dec_enc.0.1"]
    for wrong, message in [
        (["dec_enc.1.0"], "dec_enc.1.0 does not exist in this model, or is masked"),
        (["enc_self.1.1"], "expected heads such as dec_enc.1.3, found enc_self.1.1"),
        (["first"], "expected addresses such as dec_enc.1.3, or one alignment.json, found 'first'"),
        ([tmp_path / "alignment.json"], "damaged or missing"),
    ]:
        assert export(root, out, "--mask", *MASK, "--alignment", *wrong) == 2
        assert message in capsys.readouterr().err


def test_models_that_keep_no_such_list_are_refused(tmp_path, capsys):
    save_t5(tmp_path / "t5", ["a"])
    words = ["--to", "huggingface", "--model", tmp_path / "t5", "--out", tmp_path / "out"]
    assert run_script("export", [*words, "--alignment", "dec_enc.0.0"]) == 2
    assert "--alignment expects a Whisper or a model of this" in capsys.readouterr().err


def test_whisper_takes_time_from_the_heads_of_its_generation_config(tmp_path, capsys):
    """The library then finds the times of words by these heads alone."""
    import transformers

    save_whisper(tmp_path / "whisper")
    sound = torch.randn(1, 6, 30, generator=torch.Generator().manual_seed(1))
    times = []
    for number, heads in enumerate((["dec_enc.0.1"], ["dec_enc.1.2", "dec_enc.1.3"])):
        words = ["--model", tmp_path / "whisper", "--out", tmp_path / f"out{number}"]
        words += ["--to", "huggingface"]
        assert run_script("export", [*words, "--alignment", *heads]) == 0
        model = transformers.AutoModelForSpeechSeq2Seq.from_pretrained(tmp_path / f"out{number}")
        listed = [[int(part) for part in head.split(".")[1:]] for head in heads]
        assert model.generation_config.alignment_heads == listed
        options = {"return_token_timestamps": True, "return_dict_in_generate": True}
        times.append(model.generate(sound, max_new_tokens=6, **options)["token_timestamps"])
    assert times[0].shape == times[1].shape == (1, 7)
    assert not torch.equal(*times)
    assert run_script("export", [*words, "--alignment", "dec_enc.2.0"]) == 2
    assert "has no dec_enc.2.0, expected 2 layers of 4 heads" in capsys.readouterr().err
    assert run_script("export", [*words[:-2], "--alignment", *heads]) == 2
    assert "a Whisper: expected --to huggingface" in capsys.readouterr().err

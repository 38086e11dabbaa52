"""A folder like OPUS-MT's goes through our commands, and becomes a run."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from script_runner import run_script
from small_marian import write_marian
from small_run import segment
from small_tokenizers import pieces_of
from torch import nn

from headcount.base.errors import UserError
from headcount.base.files import read_json
from headcount.base.folders import CODES, SIDES
from headcount.base.settings.data import LetterSettings
from headcount.base.settings.experiment import load_experiment
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.pretrained import load_models
from headcount.base.settings.train import TrainSettings
from headcount.data.sentencepieces import UNIT, Marks, make_pieces
from headcount.data.trees import Arc, Tree, align_trees
from headcount.data.vocabulary import Vocabulary
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount_hf.pretrained.families import check_sizes
from headcount_hf.pretrained.imports import (
    compare_with_library,
    describe,
    import_for,
    write_imported,
    write_imported_run,
)
from headcount_hf.pretrained.segment import segment_pretrained

LANGUAGES = ("en", "art")


@dataclass(frozen=True)
class Imported:
    """Their folder and model; ours of them."""

    folder: Path
    theirs: nn.Module
    pair: PairFolder
    model: ModelFolder
    texts: dict[str, Path]  # as train.src


@pytest.fixture(scope="module")
def imported(tmp_path_factory) -> Imported:
    root = tmp_path_factory.mktemp("marian")
    segment(root / "text")
    names = [f"{split}.{side}" for split in ("train", "dev") for side in ("src", "tgt")]
    texts = {name: root / "text" / name for name in names}
    theirs = write_marian(root / "opus", (texts["train.src"], texts["train.tgt"]))
    train, dev = ((texts[f"{s}.src"], texts[f"{s}.tgt"]) for s in ("train", "dev"))
    segment_pretrained(root / "opus", LANGUAGES, train, dev, root / "bpe")
    pair = PairFolder(root / "bpe")
    write_imported(root / "opus", pair, root / "model", {})
    return Imported(root / "opus", theirs, pair, ModelFolder(root / "model"), texts)


@pytest.fixture
def copy(imported, tmp_path) -> Path:
    """A copy of their folder, to be damaged."""
    return shutil.copytree(imported.folder, tmp_path / "opus")


def test_pairs_have_counts_of_the_training_text(imported):
    vocabulary = imported.pair.vocabulary("src")
    counts = dict(vocabulary.counts)
    lines = imported.pair.texts("train")[0].read_text().splitlines()
    pieces = [piece for line in lines for piece in line.split()]
    assert counts["▁the"] == pieces.count("▁the") > 0
    assert [piece for piece in counts if piece.startswith("<row")] == [
        f"<row\\20;{number}>" for number in (len(counts) + 1, len(counts) + 2)
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("source.spm", None, "its tokeniser .*; the files there are config.json, "),
        ("source.spm", b"other", r"could not parse ModelProto from .*source\.spm"),
        ("vocab.json", b"[]", "<unk> token must be in the vocab"),
        ("vocab.json", b'{"<unk>": 1, "a": 900}', "'a': .* found 900"),
    ],
)
def test_damaged_pieces_are_named(imported, copy, tmp_path, name, content, message):
    (copy / name).unlink()
    if content is not None:
        (copy / name).write_bytes(content)
    pairs = [(imported.texts[f"{s}.src"], imported.texts[f"{s}.tgt"]) for s in ("train", "dev")]
    with pytest.raises(UserError, match=message):
        segment_pretrained(copy, LANGUAGES, *pairs, tmp_path / "bpe")
    assert not (tmp_path / "bpe" / "segmentation.json").exists()


def test_two_tables_with_unlike_places_of_unknown_words_are_refused(copy):
    config = json.loads((copy / "config.json").read_text())
    config["share_encoder_decoder_embeddings"] = False
    (copy / "config.json").write_text(json.dumps(config))
    ids = json.loads((copy / "vocab.json").read_text())
    src, tgt = pieces_of(copy).sides  # as in the library: one table for both
    assert src.ids == tgt.ids
    about = copy / "tokenizer_config.json"
    about.write_text(json.dumps({"separate_vocabs": True}))
    with pytest.raises(UserError, match="expected a whole encoder-decoder and its tokeniser"):
        pieces_of(copy)
    (copy / "target_vocab.json").write_text(json.dumps(ids))
    assert pieces_of(copy).sides[1].ids == ids
    other = next(piece for piece, place in ids.items() if place == 5)
    (copy / "target_vocab.json").write_text(json.dumps(ids | {"<unk>": 5, other: ids["<unk>"]}))
    with pytest.raises(UserError, match="unk_token: expected the piece with the id 1, found"):
        pieces_of(copy)


def test_other_pieces_are_refused(imported, tmp_path):
    ours = PairFolder(segment(tmp_path / "text"))
    with pytest.raises(UserError, match=r"expected text cut into the pieces of .*segment\.py"):
        write_imported(imported.folder, ours, tmp_path / "model", {})


def test_a_reader_s_line_is_written_as_the_text_was(imported, tmp_path):
    """What is not told is left alone: the normal form, which such models have of their own."""
    train, dev = ([imported.texts[f"{s}.{side}"] for side in SIDES] for s in ("train", "dev"))
    lower, bpe = LetterSettings(lowercase=True), tmp_path / "bpe"
    segment_pretrained(imported.folder, LANGUAGES, train, dev, bpe, spelt=lower)
    cutter = PairFolder(bpe).segmenters()[0]
    assert cutter.pieces("The DOG") == cutter.pieces("the dog")
    tree = Tree("s", ["\u0130", "dog"], [], "\u0130 dog")  # two letters when it is small
    (aligned,), _ = align_trees([tree], cutter)
    assert "".join(aligned.pieces[1]) == "▁dog"
    assert cutter.normalise("E\u0301") == "e\u0301"
    as_read = imported.pair.segmenters()[0]
    assert as_read.pieces("The DOG") != as_read.pieces("the dog")


def test_words_begin_with_the_sign_of_a_space(imported):
    cutter = imported.pair.segmenters()[0]
    pieces = cutter.pieces("the dog sees")
    starts = [place for place, begins in enumerate(cutter.begins(pieces)) if begins]
    ends = [*starts[1:], len(pieces)]
    words = [cutter.word(pieces[a:b]) for a, b in zip(starts, ends, strict=True)]
    assert words == ["the", "dog", "sees"] and len(pieces) > 3
    assert cutter.word_count(pieces) == 3
    marks = Marks(("eng",), ("</s>",), ("eng", "</s>"))
    codes = (imported.texts["train.src"].parents[1] / "bpe" / CODES[0]).read_bytes()
    marked = make_pieces(UNIT, "en", codes, Vocabulary([]), marks)
    pieces = marked.pieces("the dog sees")
    assert marked.begins(pieces)[0] and marked.begins(pieces)[-1] and len(pieces) > 5
    assert marked.word_count(pieces) == 3 and marked.word(pieces[:1]) == "eng"


def test_trees_are_cut_as_running_text(imported):
    """By hand: a piece belongs to the token in which its first character that is no space is.

    "…" becomes three full stops, which are its own, not the word's before it.
    """
    cutter = imported.pair.segmenters()[0]
    tokens, text = ["the", "dog", "…", "sees", "."], "the dog… sees."
    kept, counts = align_trees([Tree("s", tokens, [Arc(1, 3, "nsubj")], text)], cutter)
    (tree,) = kept
    assert ["".join(pieces) for pieces in tree.pieces] == ["▁the", "▁dog", "...", "▁sees", "."]
    assert [piece for pieces in tree.pieces for piece in pieces] == cutter.pieces(text)
    assert counts["sentences"] == 1
    assert "".join(cutter.pieces(tokens[4])) == "▁."  # alone, as the model has never read it
    other = Tree("t", ["the", "cat"], [], "the dogs")
    with pytest.raises(UserError, match="sentence t: its words do not make up its text"):
        align_trees([other], cutter)


SIZES = {
    **{"encoder_layers": 2, "decoder_layers": 2, "d_model": 32, "d_ff": 48, "heads": 4},
    **{"norm": "post", "norm_epsilon": 1e-5, "activation": "silu", "output_bias": True},
}
CPU = TrainSettings(device="cpu")


@pytest.fixture(scope="module")
def opus(imported) -> Path:
    """The folder of `opus`, with `bpe` beside it."""
    return imported.folder.parent


def test_the_dropout_is_the_experiments_and_all_else_the_models(opus, tmp_path):
    pair, settings = PairFolder(opus / "bpe"), ModelSettings(**SIZES, dropout=0.3)
    write_imported_run(opus / "opus", pair, settings, CPU, tmp_path, {})
    model = ModelFolder(tmp_path / "model").load()
    assert model.settings == settings
    for name, weight in import_for(opus / "opus", pair)[0].model.named_parameters():
        assert weight.equal(model.get_parameter(name))
    facts = read_json(tmp_path / "model" / "model.json")
    _, row = (tmp_path / "curves.csv").read_text().splitlines()
    assert facts["update"] == 0 and f",{facts['dev_loss']}," in row
    for name in ("masks.csv", "slopes.csv"):
        assert (tmp_path / name).read_text().startswith("step,kind,layer,head,")
    wrong = settings.model_copy(update={"d_ff": 64, "activation": "relu"})
    with pytest.raises(UserError, match="d_ff: 48, found 64; activation: silu, found relu"):
        write_imported_run(opus / "opus", pair, wrong, CPU, tmp_path / "other", {})


def test_a_printed_description_is_valid_settings(opus, tmp_path, capsys):
    assert run_script("describe_model", ["--pretrained", opus / "opus"]) == 0
    entry, experiment = capsys.readouterr().out.split("# in config/<experiment>.yaml\n")
    (tmp_path / "models.yaml").write_text(entry)
    (tmp_path / "mine.yaml").write_text(f"pairs: [multi30k.en-de]\n{experiment}")
    assert set(load_models(tmp_path / "models.yaml")["opus"].files) == {
        *("config.json", "model.safetensors", "source.spm", "target.spm", "vocab.json"),
        "generation_config.json",
    }
    experiment = load_experiment("mine", tmp_path)
    assert experiment.model.imported == "opus" and experiment.model.dropout == 0.0
    check_sizes(opus / "opus", experiment.model.sizes)
    lines = "\n".join(describe(opus / "opus", "a/b", "0a" * 20))
    (tmp_path / "models.yaml").write_text(lines.partition("# in config/<experiment>")[0])
    assert load_models(tmp_path / "models.yaml")["opus"].revision == "0a" * 20


def test_scores_are_the_librarys_and_another_model_is_refused(opus):
    pair = PairFolder(opus / "bpe")
    (imported, _), text = import_for(opus / "opus", pair), pair.read("dev")
    check = compare_with_library(imported, text)
    assert check["library"].startswith("transformers ") and check["pairs"] == 8
    assert check["largest_gap"] <= 1e-5 * check["largest_score"]
    with torch.no_grad():  # a change of a hundredth in the last layer is visible
        imported.theirs.model.decoder.layers[1].fc2.weight[0, 0] += 0.01
    with pytest.raises(UserError, match=r"opus: expected the scores of transformers"):
        compare_with_library(imported, text)

"""An imported model as a run: its sizes, its scores beside the library's, what is printed of it."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from script_runner import run_script
from small_marian import write_marian
from small_run import segment
from small_tokenizers import write_small, write_text

from headcount.base.errors import UserError
from headcount.base.settings.experiment import load_experiment
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.pretrained import load_models
from headcount.base.settings.train import TrainSettings
from headcount.data.trees import Tree, align_trees
from headcount.model.attention import sinusoids
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount_hf.pretrained.check import compare_with_library
from headcount_hf.pretrained.describe import describe
from headcount_hf.pretrained.families import Config, check_sizes
from headcount_hf.pretrained.imported_run import write_imported_run
from headcount_hf.pretrained.imports import import_for
from headcount_hf.pretrained.segment import segment_pretrained

SIZES = {
    **{"encoder_layers": 2, "decoder_layers": 2, "d_model": 32, "d_ff": 48, "heads": 4},
    **{"norm": "post", "norm_epsilon": 1e-5, "activation": "silu", "output_bias": True},
}


@pytest.fixture(scope="module")
def opus(tmp_path_factory) -> Path:
    """A folder like OPUS-MT's in `opus`, and its pieces of a text in `bpe`."""
    root = tmp_path_factory.mktemp("imports")
    segment(root / "text")
    texts = {s: tuple(root / "text" / f"{s}.{e}" for e in ("src", "tgt")) for s in ("train", "dev")}
    write_marian(root / "opus", texts["train"])
    segment_pretrained(root / "opus", ("en", "art"), texts["train"], texts["dev"], root / "bpe")
    return root


@pytest.fixture
def copy(opus, tmp_path) -> Path:
    """Their folder, to be changed."""
    return shutil.copytree(opus / "opus", tmp_path / "opus")


def test_the_dropout_is_the_experiments_and_all_else_the_models(opus, tmp_path):
    pair = PairFolder(opus / "bpe")
    settings = ModelSettings(**SIZES, dropout=0.3)
    train = TrainSettings(device="cpu")
    write_imported_run(opus / "opus", pair, settings, train, tmp_path, {})
    model = ModelFolder(tmp_path / "model").load()
    assert model.settings == settings
    for name, weight in import_for(opus / "opus", pair).model.named_parameters():
        assert weight.equal(model.get_parameter(name))
    facts = json.loads((tmp_path / "model" / "model.json").read_text())
    _, row = (tmp_path / "curves.csv").read_text().splitlines()
    assert facts["update"] == 0 and f",{facts['dev_loss']}," in row
    assert (tmp_path / "masks.csv").read_text() == "step,kind,layer,head,masked\n"
    columns = "step,kind,layer,head,slope_mean,slope_sd,importance"
    assert (tmp_path / "slopes.csv").read_text() == f"{columns}\n"


def test_each_wrong_size_is_named_with_both_values(opus):
    wrong = ModelSettings(**SIZES | {"d_ff": 64, "activation": "relu"}, dropout=0.3)
    told = r"d_ff: 48, found 64; activation: silu, found relu; correct .*describe_model\.py"
    with pytest.raises(UserError, match=told):
        check_sizes(opus / "opus", wrong)


def test_what_is_printed_is_what_settings_take(opus, tmp_path, capsys):
    assert run_script("describe_model", ["--pretrained", opus / "opus"]) == 0
    entry, experiment = capsys.readouterr().out.split("# in config/<experiment>.yaml\n")
    (tmp_path / "models.yaml").write_text(entry)
    (tmp_path / "mine.yaml").write_text(f"pairs: [multi30k.en-de]\n{experiment}")
    assert set(load_models(tmp_path / "models.yaml")["opus"].files) == {
        *("config.json", "model.safetensors", "source.spm", "target.spm", "vocab.json"),
        "generation_config.json",
    }
    given = load_experiment("mine", tmp_path)
    assert given.model.imported == "opus"
    check_sizes(opus / "opus", given.model.sizes)
    assert given.model.dropout == 0.0  # of the config
    (tmp_path / "models.yaml").write_text("\n".join(describe(opus / "opus", "a/b", "0a" * 20)))
    (tmp_path / "models.yaml").write_text(
        (tmp_path / "models.yaml").read_text().partition("# in config/<experiment>")[0]
    )
    assert load_models(tmp_path / "models.yaml")["opus"].revision == "0a" * 20


def test_scores_are_the_librarys_and_another_model_is_refused(opus):
    pair = PairFolder(opus / "bpe")
    imported, text = import_for(opus / "opus", pair), pair.read("dev")
    found = compare_with_library(imported, text)
    assert found["library"].startswith("transformers ") and found["pairs"] == 8
    assert found["largest_gap"] <= 1e-5 * found["largest_score"]
    # One weight of the last layer moved by a hundredth: seen in the scores.
    with torch.no_grad():
        imported.theirs.model.decoder.layers[1].fc2.weight[0, 0] += 0.01
    with pytest.raises(UserError, match=r"opus: expected the scores that transformers .* gives"):
        compare_with_library(imported, text)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["nllb_spm", "mbart_json", "bart_merges", "pegasus_spm"])
def test_every_family_is_a_run_whose_scores_were_compared(layout, tmp_path):
    """Trees only of those whose sources have no mark, to which heads would attend as to a word."""
    text = write_text(tmp_path / "text")
    small = write_small(layout, tmp_path / "their", text)
    texts = (text, text), (text, text)
    segment_pretrained(small.folder, ("en", "de"), *texts, tmp_path / "bpe", small.codes)
    pair, settings = PairFolder(tmp_path / "bpe"), Config.read(small.folder).settings()
    train = TrainSettings(device="cpu")
    write_imported_run(small.folder, pair, settings, train, tmp_path / "run", {})
    told = json.loads((tmp_path / "run" / "import.json").read_text())
    assert told["check"]["largest_gap"] <= 1e-5 * told["check"]["largest_score"]
    cutter, tree = pair.segmenters()[0], Tree("s", ["the", "ma"], [], "the ma")
    if small.family == "pegasus":
        assert align_trees([tree], cutter)[1]["sentences"] == 1
    else:
        with pytest.raises(UserError, match="trees: expected sentences of words alone"):
            align_trees([tree], cutter)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weights_in_half_precision_are_computed_with_in_full(opus, copy, dtype):
    """The library, told to compute in fp32, gets the same numbers from the same halves.

    Its rounded sinusoids are no difference.
    """
    path = copy / "model.safetensors"
    weights = load_file(path)
    for side in ("encoder", "decoder"):
        sines = sinusoids(64, 32)
        halves = torch.cat((sines[:, 0::2], sines[:, 1::2]), 1)
        weights[f"model.{side}.embed_positions.weight"] = halves
    weights = {name: weight.to(dtype) for name, weight in weights.items()}
    save_file(weights, path, metadata={"format": "pt"})
    pair = PairFolder(opus / "bpe")
    imported = import_for(copy, pair)
    assert {weight.dtype for weight in imported.model.parameters()} == {torch.float32}
    found = compare_with_library(imported, pair.read("dev"))
    assert found["largest_gap"] <= 1e-5 * found["largest_score"]

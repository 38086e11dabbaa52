"""An imported model as a run: its sizes, its scores beside the library's, its description."""

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
from headcount.base.files import read_json
from headcount.base.settings.experiment import load_experiment
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.pretrained import load_models
from headcount.base.settings.train import TrainSettings
from headcount.data.trees import Tree, align_trees
from headcount.model.attention import sinusoids
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount_hf.pretrained.check import compare_with_library
from headcount_hf.pretrained.families import Config, check_sizes
from headcount_hf.pretrained.imports import describe, import_for, write_imported_run
from headcount_hf.pretrained.segment import segment_pretrained

SIZES = {
    **{"encoder_layers": 2, "decoder_layers": 2, "d_model": 32, "d_ff": 48, "heads": 4},
    **{"norm": "post", "norm_epsilon": 1e-5, "activation": "silu", "output_bias": True},
}
CPU = TrainSettings(device="cpu")


@pytest.fixture(scope="module")
def opus(tmp_path_factory) -> Path:
    """A folder like OPUS-MT's in `opus`, and its pieces of a text in `bpe`."""
    root = tmp_path_factory.mktemp("imports")
    segment(root / "text")
    texts = {s: tuple(root / "text" / f"{s}.{e}" for e in ("src", "tgt")) for s in ("train", "dev")}
    write_marian(root / "opus", texts["train"])
    segment_pretrained(root / "opus", ("en", "art"), texts["train"], texts["dev"], root / "bpe")
    return root


def test_the_dropout_is_the_experiments_and_all_else_the_models(opus, tmp_path):
    pair, settings = PairFolder(opus / "bpe"), ModelSettings(**SIZES, dropout=0.3)
    write_imported_run(opus / "opus", pair, settings, CPU, tmp_path, {})
    model = ModelFolder(tmp_path / "model").load()
    assert model.settings == settings
    for name, weight in import_for(opus / "opus", pair).model.named_parameters():
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
    imported, text = import_for(opus / "opus", pair), pair.read("dev")
    check = compare_with_library(imported, text)
    assert check["library"].startswith("transformers ") and check["pairs"] == 8
    assert check["largest_gap"] <= 1e-5 * check["largest_score"]
    with torch.no_grad():  # a change of a hundredth in the last layer is visible
        imported.theirs.model.decoder.layers[1].fc2.weight[0, 0] += 0.01
    with pytest.raises(UserError, match=r"opus: expected the scores of transformers"):
        compare_with_library(imported, text)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["nllb_spm", "mbart_json", "bart_merges", "pegasus_spm"])
def test_every_family_is_a_run_whose_scores_were_compared(layout, tmp_path):
    """Trees are refused for sources with a mark, to which heads would attend as to a word."""
    text = write_text(tmp_path / "text")
    small = write_small(layout, tmp_path / "their", text)
    texts = (text, text), (text, text)
    segment_pretrained(small.folder, ("en", "de"), *texts, tmp_path / "bpe", small.codes)
    pair, settings = PairFolder(tmp_path / "bpe"), Config.read(small.folder).settings()
    write_imported_run(small.folder, pair, settings, CPU, tmp_path / "run", {})
    check = read_json(tmp_path / "run" / "import.json")["check"]
    assert check["largest_gap"] <= 1e-5 * check["largest_score"]
    cutter, tree = pair.segmenters()[0], Tree("s", ["the", "ma"], [], "the ma")
    if small.family == "pegasus":
        assert align_trees([tree], cutter)[1]["sentences"] == 1
    else:
        with pytest.raises(UserError, match="trees: expected sentences of words alone"):
            align_trees([tree], cutter)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_weights_give_the_librarys_scores_in_fp32(opus, tmp_path, dtype):
    """Rounded sinusoids in the file make no difference."""
    copy = shutil.copytree(opus / "opus", tmp_path / "opus")
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
    check = compare_with_library(imported, pair.read("dev"))
    assert check["largest_gap"] <= 1e-5 * check["largest_score"]

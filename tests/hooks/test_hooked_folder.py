"""Folders of the library's encoder-decoders: read with their tokenisers, measured by commands."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from script_runner import run_script
from small_hooked import save_mbart, save_nllb, save_t5
from small_marian import write_marian
from small_run import segment
from small_tokenizers import write_small, write_text

from headcount.ablation import masking
from headcount.ablation.masking import ABLATION_COLUMNS
from headcount.base.errors import EnvironmentFault, UserError
from headcount.base.files import read_csv, read_json
from headcount.base.head_values import read_head_values
from headcount.base.settings.decode import GenerateSettings
from headcount.base.settings.heads import ImportanceSettings
from headcount.heads.importance import read_importance, write_importance
from headcount.model import machine
from headcount.store.pair_folder import PairFolder
from headcount_hf.hooks.hooked_folder import HookedFolder, HookedInputs
from headcount_hf.pretrained.imports import write_imported
from headcount_hf.pretrained.segment import segment_pretrained

pytestmark = pytest.mark.slow  # of the library's own classes, a dozen of them

SEARCH = GenerateSettings(beam=2, max_new_tokens=9, batch_tokens=60)
GIVEN = ["--beam", 2, "--max-new-tokens", 9, "--batch-tokens", 60]


@pytest.fixture(scope="module")
def origin(tmp_path_factory) -> Path:
    """`opus`, a Marian model; `t5`, a model that is not importable; `text` for both."""
    root = tmp_path_factory.mktemp("hooked")
    segment(root / "text")
    write_marian(root / "opus", (root / "text/train.src", root / "text/train.tgt"))
    lines = [(root / f"text/{name}").read_text() for name in ("train.src", "train.tgt")]
    save_t5(root / "t5", sorted({word for text in lines for word in text.split()})[:290])
    return root


@pytest.fixture
def folder(origin, tmp_path) -> Path:
    """A copy of both, to be changed."""
    return Path(shutil.copytree(origin, tmp_path / "copy"))


@pytest.fixture(autouse=True)
def _threads(monkeypatch):
    monkeypatch.setattr(machine, "use_threads", torch.set_num_threads)


def inputs(root: Path, model: str) -> HookedInputs:
    return HookedInputs(HookedFolder(root / model), root / "text", "en-art", SEARCH)


def test_text_has_the_ids_of_the_tokeniser(origin):
    model = HookedFolder(origin / "t5", prefix="say: ")
    text = model.text(["a b", ""], ["c", "d e"])
    ends = [ids[-1] for ids in (*text.src, *text.tgt)]
    assert ends == [1] * 4 and len(text.src[1]) == 2  # the prefix is one unknown word here
    assert text.tgt_in == [[0, *ids[:-1]] for ids in text.tgt]  # T5 begins with its padding
    dev = HookedInputs(model, origin / "text").read("dev")
    assert len(dev) == 12 and dev.pad == 0
    words = (origin / "text/dev.tgt").read_text().splitlines()[0].split()
    ids = json.loads((origin / "t5/tokenizer.json").read_text())["model"]["vocab"]
    assert dev.tgt[0] == [*(ids.get(word, 2) for word in words), 1]


def test_a_model_of_several_languages_begins_with_the_named_one(tmp_path):
    save_nllb(tmp_path)
    model = HookedFolder(tmp_path, "fra_Latn", "deu_Latn")
    text = model.text(["ab"], ["c"])
    assert text.src == [[34, 4, 5, 6, 2]]  # 26 letters from 5 on, a mask, then the languages
    assert text.tgt == [[33, 4, 7, 2]] and text.tgt_in == [[2, 33, 4, 7]]
    assert model.target_options() == {"forced_bos_token_id": 33}
    ids = model.load("cpu").generate(text.src, {"max_new_tokens": 3} | model.target_options())
    assert ids[0, :2].tolist() == [2, 33]
    about = tmp_path / "generation_config.json"
    about.write_text(json.dumps(read_json(about) | {"forced_bos_token_id": 34}))
    HookedFolder(tmp_path, "deu_Latn", "fra_Latn").load()
    with pytest.raises(UserError, match="forced_bos_token_id: .* deu_Latn, .* fra_Latn"):
        HookedFolder(tmp_path, "fra_Latn", "deu_Latn").load()
    about.unlink()
    for told, message in (
        (("eng_Latn", "deu"), "such as .*deu_Latn.* found 'deu'"),
        (("a", "deu_Latn"), "found 'a'"),
        (("eng_Latn",), "expected --src-code and --tgt-code"),
    ):
        with pytest.raises(UserError, match=message):
            HookedFolder(tmp_path, *told).load()
    about = tmp_path / "tokenizer_config.json"
    about.write_text(json.dumps(read_json(about) | {"legacy_behaviour": True}))
    with pytest.raises(UserError, match="legacy_behaviour: expected false"):
        HookedFolder(tmp_path, "fra_Latn", "deu_Latn").load()


def test_m2m100_has_other_names_of_languages(tmp_path):
    m2m100 = write_small("m2m100", tmp_path / "m2m100", write_text(tmp_path / "text"))
    model = HookedFolder(m2m100.folder, "en", "de")
    text = model.text(["the sun"], ["the"])
    begins = [text.src[0][0], text.tgt[0][0]]
    assert model.tokeniser.convert_ids_to_tokens(begins) == ["__en__", "__de__"]
    assert model.target_options() == {"forced_bos_token_id": begins[1]}


def test_a_marian_of_several_targets_needs_a_code_before_sources(origin, tmp_path):
    several = tmp_path / "several"
    texts = (origin / "text/train.src", origin / "text/train.tgt")
    write_marian(several, texts, codes=(">>deu<<", ">>fra<<"))
    for folder, told, message in (
        (several, {}, "expected a --prefix .* >>deu<< or one of 1 more, found ''"),
        (several, {"target": ">>deu<<"}, "expected no --src-code or --tgt-code"),
        (
            origin / "t5",
            {"source": "en", "target": "de"},
            "expected no --src-code or --tgt-code, found en, de",
        ),
    ):
        with pytest.raises(UserError, match=message):
            HookedFolder(folder, **told).load()
    model = HookedFolder(several, prefix=">>fra<< ")
    ((code, *_),) = model.text(["a"], ["b"]).src
    assert model.tokeniser.convert_ids_to_tokens(code) == ">>fra<<"


def test_mbarts_targets_begin_with_their_language(tmp_path):
    """Its tokeniser has the language behind the end: letters from 5 on, de_DE 18, en_XX 19."""
    save_mbart(tmp_path)
    model = HookedFolder(tmp_path, "en_XX", "de_DE")
    text = model.text(["ab"], ["c"])
    assert text.src == [[4, 5, 6, 2, 19]]
    assert text.tgt == [[4, 7, 2]] and text.tgt_in == [[18, 4, 7]]
    assert model.target_options() == {"decoder_start_token_id": 18}
    ids = model.load("cpu").generate(text.src, {"max_new_tokens": 3} | model.target_options())
    assert ids[0, 0].item() == 18


def test_importance_by_command_is_that_of_the_imported_model(origin, tmp_path):
    """Two routes: hooks, and the commands for models of ours; 12 pairs of dev in two halves."""
    text, opus = origin / "text", origin / "opus"
    sides = [(text / f"{split}.src", text / f"{split}.tgt") for split in ("train", "dev")]
    segment_pretrained(opus, ("en", "art"), *sides, tmp_path / "bpe")
    write_imported(opus, PairFolder(tmp_path / "bpe"), tmp_path / "model", {})
    asked = ["--data", "dev", "--batch-tokens", 90]
    ours = ["--model", tmp_path / "model", "--bpe", tmp_path / "bpe", "--out", tmp_path / "a.csv"]
    theirs = ["--model", opus, "--text", text, "--out", tmp_path / "b.csv"]
    assert run_script("importance", [*ours, *asked]) == 0
    assert run_script("importance", [*theirs, *asked]) == 0
    grid = HookedFolder(opus).load().grid
    for statistic in ("importance", "importance_first_half", "importance_second_half"):
        expected, found = (
            read_head_values(tmp_path / f"{name}.csv", statistic, grid) for name in "ab"
        )
        np.testing.assert_allclose(found, expected, atol=1e-5 * expected.max(), rtol=0)
    facts = read_json(tmp_path / "b.json")
    assert facts["sentences"] == 12 and facts["halves"] == [6, 6]
    names = {Path(path).name for path in facts["provenance"]["inputs"]}
    assert {"config.json", "model.safetensors", "source.spm", "vocab.json", "dev.src"} <= names


def test_masking_by_command(folder, tmp_path):
    """References are what T5 says without one group of heads: with it masked BLEU is 100."""
    given = ["--model", folder / "t5", "--text", folder / "text"]
    ranking, out = tmp_path / "importance.csv", tmp_path / "masking.csv"
    assert run_script("importance", [*given, "--out", ranking]) == 0
    masked = inputs(folder, "t5").load()
    values = read_head_values(ranking, "importance", masked.grid)
    assert (values > 0).all()
    first = tuple(sorted(np.argsort(-values, kind="stable")[:14].tolist()))  # 28 heads, 2 groups
    lines = (folder / "text/dev.src").read_text().splitlines()
    said = masked.translations(lines, [first], lambda count: None)[first]
    (folder / "text/dev.tgt").write_text("".join(f"{line}\n" for line in said))
    given += ["--src-lang", "en", "--tgt-lang", "art", "--seed", 1, "--own", ranking]
    given += ["--groups", 2, "--draws", 1, "--test-sets", '["dev"]', "--out", out]
    assert run_script("masking", [*given, *GIVEN]) == 0
    rows = [row for _, row in read_csv(out, masking.COLUMNS)]
    found = {(row["order"], row["index"]): row for row in rows}
    assert float(found["group", "1"]["bleu"]) == pytest.approx(100)
    assert found["group", "1"]["heads_masked"] == "14"
    assert float(found["none", "0"]["bleu"]) < 100
    facts = read_json(out.with_suffix(".json"))
    assert (facts["search"], facts["beam"], facts["max_new_tokens"]) == ("generate", 2, 9)
    assert (facts["early_stopping"], facts["do_sample"]) == (False, False)


def test_single_heads_are_ablated_as_ours_are(origin, tmp_path):
    out = tmp_path / "ablation.csv"
    given = ["--model", origin / "opus", "--text", origin / "text", "--out", out]
    given += ["--src-lang", "en", "--tgt-lang", "art", "--test-sets", '["dev"]', "--sentences", 2]
    assert run_script("ablation", [*given, *GIVEN]) == 0
    rows = [row for _, row in read_csv(out, ABLATION_COLUMNS)]
    names = [head.name() for head in HookedFolder(origin / "opus").load().grid.heads()]
    single = [row["heads"] for row in rows if row["order"] == "single"]
    assert single == names and len(names) == 24
    alone = [row for row in rows if row["order"] == "all_but_one"]
    assert len(alone) == 24 and all(row["heads_masked"] == "3" for row in alone)


def test_other_languages_and_sides_of_unequal_length_are_refused(folder):
    model = HookedFolder(folder / "t5")
    other = HookedInputs(model, folder / "text", "en-de", SEARCH)
    with pytest.raises(UserError, match="dev is en-art, expected en-de"):
        other.read_tests(["dev"], None)
    with (folder / "text/dev.src").open("a") as file:
        file.write("more\n")
    with pytest.raises(UserError, match=r"dev\.src has 13 lines, dev\.tgt has 12"):
        HookedInputs(model, folder / "text").read("dev")
    (folder / "opus/tokenizer_config.json").write_text('{"source_lang": "de"}')
    with pytest.raises(UserError, match="source_lang of tokenizer_config.json: expected en"):
        inputs(folder, "opus").load()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lm_head.weight": None}, None),  # tied, as config.json says nothing
        ({"decoder.block.7.layer.0.layer_norm.weight": 1.0}, "1 more, the first .*block.7"),
        ({"decoder.final_layer_norm.weight": float("nan")}, "decoder.final_layer_norm.weight: "),
    ],
)
def test_weights_that_the_library_passes_over_are_refused(folder, change, message):
    path = folder / "t5/model.safetensors"
    weights = load_file(path)
    for name, number in change.items():
        weights.pop(name, None)
        weights |= {} if number is None else {name: torch.full((40,), number)}
    save_file(weights, path, {"format": "pt"})
    if message is None:
        HookedFolder(folder / "t5").load()
        config = json.loads((folder / "t5/config.json").read_text())
        config["tie_word_embeddings"] = False
        (folder / "t5/config.json").write_text(json.dumps(config))
        message = "the weights lack lm_head.weight"
    with pytest.raises(UserError, match=message):
        HookedFolder(folder / "t5").load()


def test_missing_weights_folders_and_packages_are_named(folder, monkeypatch):
    path = folder / "t5/model.safetensors"
    weights = load_file(path)
    name = "decoder.block.1.layer.1.EncDecAttention.o.weight"
    save_file({key: weights[key] for key in weights if key != name}, path, {"format": "pt"})
    with pytest.raises(UserError, match=f"the weights lack {name}"):
        HookedFolder(folder / "t5").load()
    with pytest.raises(UserError, match="no/folder: expected a folder"):
        HookedFolder(Path("no/folder")).load()
    monkeypatch.setitem(sys.modules, "transformers", None)  # as where the extra is not installed
    with pytest.raises(EnvironmentFault, match=r"transformers, .*'\.\[pretrained\]'"):
        HookedFolder(folder / "opus").load()


OPUS = "--model opus --text text"


@pytest.mark.parametrize(
    ("script", "flags", "words"),
    [
        ("importance", "--model . --bpe x --prefix a", "--prefix: not for a model of this project"),
        ("importance", "--model opus", "--text: expected with a Hugging Face model"),
        ("importance", f"{OPUS} --bpe x", "--bpe: not for a Hugging Face model"),
        ("importance", f"{OPUS} --measure loss_change", "--measure: loss_change"),
        ("ablation", "--model . --bpe x --text text --max-new-tokens 9", "--max-new-tokens: not"),
        ("ablation", f"{OPUS} --src-lang en", "--tgt-lang: expected with"),
        ("ablation", f"{OPUS} --src-lang a --tgt-lang b --max-source 9", "--max-source: not for"),
    ],
)
def test_flags_of_the_other_kind_of_model_are_refused(
    origin, script, flags, words, monkeypatch, capsys
):
    monkeypatch.chdir(origin)
    assert run_script(script, [*flags.split(), "--out", "out.csv"]) == 2
    assert words in capsys.readouterr().err


def test_importance_belongs_to_all_files_of_weights(folder, tmp_path):
    path, out = folder / "t5", tmp_path / "importance.csv"
    weights = load_file(path / "model.safetensors")
    (path / "model.safetensors").unlink()
    names = sorted(weights)
    shards = {f"model-0000{n}-of-00002.safetensors": names[n - 1 :: 2] for n in (1, 2)}
    for file, part in shards.items():
        save_file({name: weights[name] for name in part}, path / file, {"format": "pt"})
    index = {"metadata": {}, "weight_map": {name: f for f, part in shards.items() for name in part}}
    (path / "model.safetensors.index.json").write_text(json.dumps(index))
    model, settings = HookedFolder(path), ImportanceSettings(data="dev", batch_tokens=90)
    write_importance(model, HookedInputs(model, folder / "text"), settings, out, {})
    grid = model.load("cpu").grid
    assert read_importance(out, model, grid).shape == (28,)
    for file, (name, *_) in shards.items():
        before = (path / file).read_bytes()
        save_file(load_file(path / file) | {name: weights[name] + 1}, path / file, {"format": "pt"})
        with pytest.raises(UserError, match=r"t5: importance\.json names other weights"):
            read_importance(out, model, grid)
        (path / file).write_bytes(before)


def test_a_folder_without_a_tokeniser_is_refused(folder, capsys):
    """The library would invent one for T5 without a warning."""
    for file in folder.glob("t5/tokenizer*"):
        file.unlink()
    flags = ["--model", folder / "t5", "--text", folder / "text", "--out", folder / "out.csv"]
    assert run_script("importance", flags) == 2
    assert f"{folder / 't5'}: expected a tokeniser" in capsys.readouterr().err


def test_another_models_tokeniser_is_refused(folder):
    save_t5(folder / "t5", [f"w{n}" for n in range(290)])
    whole = json.loads((folder / "t5/tokenizer.json").read_text())
    whole["model"]["vocab"] |= {f"more{n}": 293 + n for n in range(20)}
    (folder / "t5/tokenizer.json").write_text(json.dumps(whole))
    with pytest.raises(UserError, match="at most 300 subwords, found 313"):
        HookedFolder(folder / "t5").load()

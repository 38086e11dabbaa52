"""Folders of the library's encoder-decoders: read with their tokenisers, measured by commands."""

import hashlib
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
from small_models import make_model
from small_run import segment
from small_tokenizers import write_small, write_text

from headcount.ablation import masking
from headcount.ablation.ablation import COLUMNS
from headcount.base.errors import EnvironmentFault, UserError
from headcount.base.files import read_csv, read_json
from headcount.base.head_values import read_head_values
from headcount.base.settings.decode import GenerateSettings
from headcount.base.settings.importance import ImportanceSettings
from headcount.heads.importance import read_importance, write_importance
from headcount.model import machine
from headcount.store.pair_folder import PairFolder
from headcount_hf.export.huggingface_export import form_of_ours
from headcount_hf.hooks.hooked_bleu import HookedInputs
from headcount_hf.hooks.hooked_folder import HookedFolder, HookedTexts, Told
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
    model = HookedFolder(origin / "t5", Told(prefix="say: "))
    text = model.text(["a b", ""], ["c", "d e"])
    ends = [ids[-1] for ids in (*text.src, *text.tgt)]
    assert ends == [1] * 4 and len(text.src[1]) == 2  # the prefix is one unknown word here
    assert text.tgt_in == [[0, *ids[:-1]] for ids in text.tgt]  # T5 begins with its padding
    dev = HookedTexts(model, origin / "text").read("dev")
    assert len(dev) == 12 and dev.pad == 0
    words = (origin / "text/dev.tgt").read_text().splitlines()[0].split()
    ids = json.loads((origin / "t5/tokenizer.json").read_text())["model"]["vocab"]
    assert dev.tgt[0] == [*(ids.get(word, 2) for word in words), 1]


def test_a_model_of_several_languages_is_told_which(tmp_path):
    save_nllb(tmp_path)
    model = HookedFolder(tmp_path, Told("fra_Latn", "deu_Latn"))
    text = model.text(["ab"], ["c"])
    assert text.src == [[34, 4, 5, 6, 2]]  # 26 letters from 5 on, a mask, then the languages
    assert text.tgt == [[33, 4, 7, 2]] and text.tgt_in == [[2, 33, 4, 7]]
    assert model.target_options() == {"forced_bos_token_id": 33}
    found = model.load("cpu").generate(text.src, {"max_new_tokens": 3} | model.target_options())
    assert found[0, :2].tolist() == [2, 33]
    about = tmp_path / "generation_config.json"
    about.write_text(json.dumps(read_json(about) | {"forced_bos_token_id": 34}))
    HookedFolder(tmp_path, Told("deu_Latn", "fra_Latn")).load()
    with pytest.raises(UserError, match="expected the id of deu_Latn, found that of fra_Latn"):
        HookedFolder(tmp_path, Told("fra_Latn", "deu_Latn")).load()
    about.unlink()
    told = r"expected a language that it has, found 'deu'; among its special subwords are .*deu_L"
    with pytest.raises(UserError, match=told):
        HookedFolder(tmp_path, Told("eng_Latn", "deu")).load()
    with pytest.raises(
        UserError, match="names of both languages, since it has several; give --src-code"
    ):
        HookedFolder(tmp_path, Told("eng_Latn")).load()


def test_a_piece_of_words_is_no_language(tmp_path):
    save_nllb(tmp_path)
    with pytest.raises(UserError, match="expected a language that it has, found 'a'; among"):
        HookedFolder(tmp_path, Told("a", "deu_Latn")).load()
    about = tmp_path / "tokenizer_config.json"
    about.write_text(json.dumps(json.loads(about.read_text()) | {"legacy_behaviour": True}))
    with pytest.raises(UserError, match="legacy_behaviour: expected false"):
        HookedFolder(tmp_path, Told("fra_Latn", "deu_Latn")).load()


def test_m2m100_has_names_of_its_own_for_languages(tmp_path):
    m2m100 = write_small("m2m100", tmp_path / "m2m100", write_text(tmp_path / "text"))
    model = HookedFolder(m2m100.folder, Told("en", "de"))
    text = model.text(["the sun"], ["the"])
    begins = [text.src[0][0], text.tgt[0][0]]
    assert model.tokeniser.convert_ids_to_tokens(begins) == ["__en__", "__de__"]
    assert model.target_options() == {"forced_bos_token_id": begins[1]}


def test_a_model_that_is_not_told_languages_takes_no_codes(origin):
    told = "expected no --src-code or --tgt-code, .* found en, de; .* is --prefix"
    with pytest.raises(UserError, match=told):
        HookedFolder(origin / "t5", Told("en", "de")).load()


def test_a_marian_of_several_targets_needs_a_code_before_sources(origin, tmp_path):
    texts = (origin / "text/train.src", origin / "text/train.tgt")
    write_marian(tmp_path / "several", texts, codes=(">>deu<<", ">>fra<<"))
    told = "expected a --prefix that begins with .* >>deu<< or one of 1 more, found ''"
    with pytest.raises(UserError, match=told):
        HookedFolder(tmp_path / "several").load()
    with pytest.raises(UserError, match="expected no --src-code or --tgt-code"):
        HookedFolder(tmp_path / "several", Told(target=">>deu<<")).load()
    model = HookedFolder(tmp_path / "several", Told(prefix=">>fra<< "))
    ((code, *_),) = model.text(["a"], ["b"]).src
    assert model.tokeniser.convert_ids_to_tokens(code) == ">>fra<<"


def test_mbarts_targets_begin_with_their_language(tmp_path):
    """Its tokeniser has the language behind the end: letters from 5 on, de_DE 18, en_XX 19."""
    save_mbart(tmp_path)
    model = HookedFolder(tmp_path, Told("en_XX", "de_DE"))
    text = model.text(["ab"], ["c"])
    assert text.src == [[4, 5, 6, 2, 19]]
    assert text.tgt == [[4, 7, 2]] and text.tgt_in == [[18, 4, 7]]
    assert model.target_options() == {"decoder_start_token_id": 18}
    found = model.load("cpu").generate(text.src, {"max_new_tokens": 3} | model.target_options())
    assert found[0, 0].item() == 18


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


@pytest.mark.parametrize("model", ["opus", "t5"])
def test_masks_of_one_search_are_searches_of_their_own(origin, model):
    masked = inputs(origin, model).load()
    lines = (origin / "text/dev.src").read_text().splitlines()[:5]
    sets = [(), (0, 5), (2,), tuple(range(8))]
    told = []
    together = masked.translations(lines, sets, told.append)
    assert sum(told) == 20 and len(told) > 3 and len({*map(tuple, together.values())}) > 1
    tokeniser = masked.folder.tokeniser
    for heads in sets:
        mask = torch.ones(masked.grid.size)
        mask[list(heads)] = 0
        for line, found in zip(lines, together[heads], strict=True):
            source = tokeniser(line)["input_ids"]
            ids = masked.model.generate(
                [source], {"num_beams": 2, "max_new_tokens": 9, "length_penalty": 0.0}, mask
            )
            assert tokeniser.decode(ids[0], skip_special_tokens=True) == found


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
    rows = [row for _, row in read_csv(out, COLUMNS)]
    names = [head.name() for head in HookedFolder(origin / "opus").load().grid.heads()]
    single = [row["heads"] for row in rows if row["order"] == "single"]
    assert single == names and len(names) == 24
    alone = [row for row in rows if row["order"] == "all_but_one"]
    assert len(alone) == 24 and all(row["heads_masked"] == "3" for row in alone)


def test_text_in_other_languages_is_refused(origin):
    made = HookedInputs(HookedFolder(origin / "t5"), origin / "text", "en-de", SEARCH)
    with pytest.raises(UserError, match="dev is en-art, expected en-de, as --src-lang and --tgt"):
        made.read_tests(["dev"], None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lm_head.weight": None}, None),  # tied, as config.json says nothing
        ({"decoder.block.7.layer.0.layer_norm.weight": 1.0}, "1 more, the first .*decoder.block.7"),
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


def test_a_hooked_model_of_another_direction_is_refused(folder):
    (folder / "opus/tokenizer_config.json").write_text('{"source_lang": "de"}')
    with pytest.raises(UserError, match="source_lang of tokenizer_config.json: expected en"):
        inputs(folder, "opus").load()


def test_what_is_no_whole_model_is_refused(folder, monkeypatch):
    path = folder / "t5"
    weights = load_file(path / "model.safetensors")
    name = "decoder.block.1.layer.1.EncDecAttention.o.weight"
    less = {key: weight for key, weight in weights.items() if key != name}
    save_file(less, path / "model.safetensors", {"format": "pt"})
    with pytest.raises(UserError, match=f"the weights lack {name}, which the library would draw"):
        HookedFolder(path).load()
    (path / "model.safetensors").write_bytes((path / "model.safetensors").read_bytes()[:-9])
    with pytest.raises(UserError, match="model.safetensors: not a whole safetensors file"):
        HookedFolder(path).load()
    (path / "model.safetensors").rename(path / "pytorch_model.bin")
    with pytest.raises(UserError, match=r"pickled weights \(.bin, .pt\) can run code and are not"):
        HookedFolder(path).load()
    with pytest.raises(UserError, match="no/folder: expected a folder, found none; copy one here"):
        HookedFolder(Path("no/folder")).load()
    monkeypatch.setitem(sys.modules, "transformers", None)  # as where the extra is not installed
    told = r"encoder-decoders: .* transformers, found it not installed; .*'\.\[pretrained\]'"
    with pytest.raises(EnvironmentFault, match=told):
        HookedFolder(folder / "opus").load()


@pytest.mark.parametrize(
    ("script", "flags", "words"),
    [
        ("importance", "--model . --bpe x --prefix a", "--prefix: not for a model of this project"),
        ("importance", "--model opus", "--text: expected with a Hugging Face model"),
        ("importance", "--model opus --text text --bpe x", "--bpe: not for a Hugging Face model"),
        ("importance", "--model opus --text text --measure loss_change", "--measure: loss_change"),
        (
            "ablation",
            "--model . --bpe x --text text --max-new-tokens 9",
            "--max-new-tokens: not for",
        ),
        ("ablation", "--model opus --text text --src-lang en", "--tgt-lang: expected with"),
        (
            "ablation",
            "--model opus --text text --src-lang a --tgt-lang b --max-source 9",
            "--max-source: not for a Hugging Face model, which --model opus is",
        ),
    ],
)
def test_flags_of_the_other_kind_of_model_are_refused(
    origin, script, flags, words, monkeypatch, capsys
):
    monkeypatch.chdir(origin)
    assert run_script(script, [*flags.split(), "--out", "out.csv"]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.slow
def test_importance_is_of_one_model_whichever_of_its_files_differs(folder, tmp_path):
    """Weights in two files: a number of the first or of the second makes another model."""
    path, out = folder / "t5", tmp_path / "importance.csv"
    weights = load_file(path / "model.safetensors")
    (path / "model.safetensors").unlink()
    names = sorted(weights)
    shards = {"model-00001-of-00002.safetensors": names[:9]}
    shards["model-00002-of-00002.safetensors"] = names[9:]
    for file, part in shards.items():
        save_file({name: weights[name] for name in part}, path / file, {"format": "pt"})
    index = {name: file for file, part in shards.items() for name in part}
    (path / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": index})
    )
    model = HookedFolder(path)
    settings = ImportanceSettings(data="dev", batch_tokens=90)
    write_importance(model, HookedTexts(model, folder / "text"), settings, out, {})
    grid = model.load("cpu").grid
    assert read_importance(out, model, grid).shape == (28,)
    both = b"".join((path / file).read_bytes() for file in shards)
    assert read_json(out.with_suffix(".json"))["weights"] == hashlib.sha256(both).hexdigest()
    for file, part in shards.items():
        changed = {name: weights[name].clone() for name in part}
        changed[part[-1]].view(-1)[0] += 1
        before = (path / file).read_bytes()
        save_file(changed, path / file, {"format": "pt"})
        with pytest.raises(UserError, match=r"t5: importance\.json names other weights"):
            read_importance(out, model, grid)
        (path / file).write_bytes(before)
    assert read_importance(out, model, grid).shape == (28,)


@pytest.mark.parametrize("form", ["t5", "pegasus"])
def test_a_folder_without_a_tokeniser_says_what_to_do(folder, form, capsys):
    """Without a word the library makes up one for T5, and speaks of <unk> for Pegasus."""
    path = folder / form
    if form == "pegasus":
        path.mkdir()
        model = make_model(joint=True, src_size=11, d_model=12, norm="pre", activation="gelu")
        form_of_ours(model, model.grid.heads()).save(path)
        (path / "src.codes").write_text("ours\n")
    for file in path.glob("tokenizer*"):
        file.unlink()
    given = ["--model", path, "--text", folder / "text", "--out", folder / "out.csv"]
    assert run_script("importance", given) == 2
    told = capsys.readouterr().err
    assert f"{path}: expected a tokeniser beside the weights, found no file of one" in told
    assert "copy the tokeniser that the model was trained with here" in told
    assert "has none: give the folder that it was made from to scripts/importance.py" in told


def test_another_models_tokeniser_is_refused(folder):
    save_t5(folder / "t5", [f"w{n}" for n in range(290)])
    whole = json.loads((folder / "t5/tokenizer.json").read_text())
    whole["model"]["vocab"] |= {f"more{n}": 293 + n for n in range(20)}
    (folder / "t5/tokenizer.json").write_text(json.dumps(whole))
    with pytest.raises(UserError, match="tokeniser has 313 subwords, its embedding 300 rows"):
        HookedFolder(folder / "t5").load()


def test_halves_are_computed_with_in_fp32(folder):
    path = folder / "opus/model.safetensors"
    halves = {name: weight.half() for name, weight in load_file(path).items()}
    save_file(halves, path, {"format": "pt"})
    config = json.loads((folder / "opus/config.json").read_text()) | {"dtype": "float16"}
    (folder / "opus/config.json").write_text(json.dumps(config))
    model = HookedFolder(folder / "opus").load()
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}


def test_sides_of_unlike_length_are_refused(folder):
    with (folder / "text/dev.src").open("a") as file:
        file.write("more\n")
    told = r"dev\.src has 13 lines, dev\.tgt has 12; expected as many on both sides"
    with pytest.raises(UserError, match=told):
        HookedTexts(HookedFolder(folder / "t5"), folder / "text").read("dev")

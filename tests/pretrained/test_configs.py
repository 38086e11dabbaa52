"""What config.json says, what it leaves out, and what it cannot say."""

import json
import shutil
from pathlib import Path

import pytest
from script_runner import run_script
from small_pretrained import KINDS, UNKNOWN, saved_pretrained
from small_tokenizers import write_small, write_text

from headcount.base.errors import UserError
from headcount.data.batches import ParallelText
from headcount_hf.pretrained.check import compare_with_library
from headcount_hf.pretrained.families import Config
from headcount_hf.pretrained.weights import import_model

GONE = object()
MAY_LACK = ("scale_embedding", "tie_word_embeddings", "dropout", "attention_dropout")
SHARED = ("share_encoder_decoder_embeddings", "decoder_vocab_size")
TEXT = ParallelText([[7, 9, 31, 200, 8], [12, 5]], [[9, 8, 7], [10, 400, 11, 12]])


def change(path: Path, **values: object) -> None:
    found = json.loads(path.read_text()) | values
    path.write_text(json.dumps({key: value for key, value in found.items() if value is not GONE}))


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_config_leaves_out_is_what_the_library_takes(kind, tmp_path):
    """Of M2M100, alone, embeddings are scaled then, and attention has dropout."""
    import transformers

    saved_pretrained(kind, tmp_path)
    lacking = (*MAY_LACK, *SHARED) if kind != "marian_apart" else (*MAY_LACK, "decoder_vocab_size")
    change(tmp_path / "config.json", **dict.fromkeys(lacking, GONE))
    code = {"src_end": 251} if kind == "mbart" else {}  # of a language, behind the end
    found = compare_with_library(import_model(tmp_path, UNKNOWN, **code), TEXT)
    assert found["largest_gap"] <= 1e-5 * found["largest_score"]
    theirs = transformers.AutoConfig.from_pretrained(tmp_path)
    ours = Config.read(tmp_path).settings()
    for key in ("scale_embedding", "dropout", "attention_dropout"):
        assert getattr(ours, key) == getattr(theirs, key), key
    assert ours.scale_embedding == (kind == "m2m_100")


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A folder of BART in `bart`, with a table of ids, and a text."""
    root = tmp_path_factory.mktemp("configs")
    write_small("bart_merges", root / "bart", write_text(root / "text"))
    return root


@pytest.fixture
def bart(made, tmp_path) -> Path:
    """The folder, to be changed."""
    return shutil.copytree(made / "bart", tmp_path / "bart")


def refused(folder: Path, text: Path, capsys, *scripts: str) -> str:
    """What these scripts say in one line, the same, and exit with 2."""
    flags = [f"--{split}-{side}" for split in ("train", "dev") for side in ("src", "tgt")]
    texts = [word for flag in flags for word in (flag, text)]
    out = ["--src-lang", "en", "--tgt-lang", "de", "--out-folder", folder.with_name("out")]
    told = set()
    for script in scripts:
        more = [*texts, *out] if script == "segment" else []
        assert run_script(script, ["--pretrained", folder, *more]) == 2, script
        printed = capsys.readouterr()
        assert printed.out == ""
        told |= {line for line in printed.err.splitlines() if line.startswith("error:")}
    (line,) = told
    return line


SHARE = "expected a number, 0 or more and less than 1, found"
WHOLE = "expected a whole number from 1 to 1000000, found"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"encoder_attention_heads": 5, "decoder_attention_heads": 5},
            "encoder_attention_heads: expected a number that divides d_model, 32; found 5",
        ),
        (
            {"encoder_attention_heads": "4", "decoder_attention_heads": "4"},
            f"encoder_attention_heads: {WHOLE} '4'",
        ),
        ({"encoder_layers": True}, f"encoder_layers: {WHOLE} true"),
        ({"encoder_layers": 1001}, "encoder_layers: "),
        ({"decoder_layers": 0}, f"decoder_layers: {WHOLE} 0"),
        ({"d_model": 32.0}, f"d_model: {WHOLE} 32.0"),
        ({"vocab_size": 10**12}, f"vocab_size: {WHOLE} 1000000000000"),
        ({"max_position_embeddings": "64"}, f"max_position_embeddings: {WHOLE} '64'"),
        ({"encoder_ffn_dim": None}, f"encoder_ffn_dim: {WHOLE} null"),
        ({"dropout": None}, f"dropout: {SHARE} null"),
        (
            {"attention_dropout": 1},
            f"attention_dropout: {SHARE} 1",
        ),
        ({"dropout": float("nan")}, f"dropout: {SHARE} nan"),
        ({"scale_embedding": "no"}, "scale_embedding: expected true or false, found 'no'"),
        ({"tie_word_embeddings": None}, "tie_word_embeddings: expected true or false, found null"),
        (
            {"pad_token_id": None},
            "pad_token_id: expected a whole number, 0 or more, found null",
        ),
        ({"pad_token_id": GONE}, "pad_token_id: missing; expected a whole number"),
        ({"pad_token_id": -1}, "pad_token_id: expected a whole number, 0 or more, found -1"),
        (
            {"decoder_start_token_id": 99999},
            "decoder_start_token_id: expected a whole number from 0 to 329, the id of one word; "
            "found 99999",
        ),
        (
            {"decoder_start_token_id": None},
            "start_token_id: expected a whole number from 0 to 329",
        ),
        (
            {"eos_token_id": [0, 5]},
            "eos_token_id: expected a whole number, 0 or more, found [0, 5]",
        ),
        ({"model_type": ["bart"]}, "model_type: expected one of marian, "),
        (
            {"activation_function": ["relu"]},
            "activation_function: expected relu, swish, ",
        ),
    ],
)
def test_values_of_another_kind_are_named_by_every_script(made, bart, capsys, values, message):
    change(bart / "config.json", **values)
    told = refused(bart, made / "text", capsys, "describe_model", "segment")
    assert f"error: {bart / 'config.json'}: " in told and message in told


@pytest.mark.parametrize("number", ["7", -1, None])
def test_an_id_that_is_none_is_refused(made, bart, capsys, number):
    change(bart / "vocab.json", **{"<pad>": 1, "the": number})
    assert f"error: {bart}: " in refused(bart, made / "text", capsys, "segment")


@pytest.mark.parametrize(("kind", "width"), [("marian", 33), ("pegasus", 33), ("m2m_100", 2)])
def test_sinusoids_need_an_even_width(tmp_path, kind, width):
    saved_pretrained(kind, tmp_path)
    one = {"encoder_attention_heads": 1, "decoder_attention_heads": 1}
    change(tmp_path / "config.json", d_model=width, **one)
    with pytest.raises(UserError, match=f"d_model: expected an even number from 4, .*nd {width}"):
        Config.read(tmp_path)


def test_only_mbart_is_told_elsewhere_what_translations_begin_with(tmp_path):
    saved_pretrained("mbart", tmp_path)
    for nothing in (None, GONE):
        change(tmp_path / "config.json", decoder_start_token_id=nothing)
        assert import_model(tmp_path, UNKNOWN, start=250).tgt_rows[1] == 250
        with pytest.raises(UserError, match=r"decoder_start_token_id: expected an id, found none"):
            import_model(tmp_path, UNKNOWN)


def test_an_end_without_a_piece(made, bart, capsys):
    change(bart / "config.json", vocab_size=340, eos_token_id=335)
    told = refused(bart, made / "text", capsys, "segment")
    assert "eos_token: expected the piece with the id 335, found '</s>'" in told

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
    errors = set()
    for script in scripts:
        more = [*texts, *out] if script == "segment" else []
        assert run_script(script, ["--pretrained", folder, *more]) == 2, script
        printed = capsys.readouterr()
        assert printed.out == ""
        errors |= {line for line in printed.err.splitlines() if line.startswith("error:")}
    (line,) = errors
    return line


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("encoder_attention_heads", 5),  # of width 32
        ("encoder_attention_heads", "4"),
        ("encoder_layers", True),
        ("encoder_layers", 1001),
        ("decoder_layers", 0),
        ("d_model", 32.0),
        ("vocab_size", 10**12),
        ("max_position_embeddings", "64"),
        ("encoder_ffn_dim", None),
        ("dropout", None),
        ("dropout", float("nan")),
        ("attention_dropout", 1),
        ("scale_embedding", "no"),
        ("tie_word_embeddings", None),
        ("tie_word_embeddings", False),
        ("pad_token_id", None),
        ("pad_token_id", GONE),
        ("pad_token_id", -1),
        ("decoder_start_token_id", 99999),
        ("decoder_start_token_id", None),
        ("decoder_ffn_dim", 47),
        ("eos_token_id", [0, 5]),
        ("model_type", ["bart"]),
        ("model_type", "t5"),
        ("activation_function", ["relu"]),
        ("activation_function", "tanh"),
    ],
)
def test_values_of_another_kind_are_named_by_every_script(made, bart, capsys, key, value):
    both = {"decoder_attention_heads": value} if key == "encoder_attention_heads" else {}
    change(bart / "config.json", **{key: value}, **both)
    message = refused(bart, made / "text", capsys, "describe_model", "segment")
    assert message.startswith(f"error: {bart / 'config.json'}: {key}")


@pytest.mark.parametrize("number", ["7", -1, None])
def test_an_id_that_is_none_is_refused(made, bart, capsys, number):
    change(bart / "vocab.json", **{"<pad>": 1, "the": number})
    assert f"error: {bart}: " in refused(bart, made / "text", capsys, "segment")


@pytest.mark.parametrize(("kind", "width"), [("marian", 33), ("pegasus", 33), ("m2m_100", 2)])
def test_sinusoids_need_an_even_width(tmp_path, kind, width):
    saved_pretrained(kind, tmp_path)
    one = {"encoder_attention_heads": 1, "decoder_attention_heads": 1}
    change(tmp_path / "config.json", d_model=width, **one)
    with pytest.raises(UserError, match="config.json: d_model: "):
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

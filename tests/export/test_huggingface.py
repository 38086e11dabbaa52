"""Folders for Hugging Face's library: what was imported goes back to the bit; ours go as well."""

import json
from types import SimpleNamespace

import pytest
import safetensors.torch
import torch
from small_models import TEXT, make_model
from small_pretrained import KINDS, LONG, import_small, saved_pretrained, their_logits

from headcount.base.addresses import Head
from headcount.base.errors import UserError
from headcount.base.settings.decode import DecodeSettings
from headcount.data.vocabulary import BOS, PAD
from headcount.model.loss import token_losses
from headcount.model.removal import remove_units
from headcount.model.transformer import Transformer, copy_weights
from headcount.model.units import UnitTransformer
from headcount_hf.export import huggingface_export
from headcount_hf.export.ctranslate2_model import POSITIONS
from headcount_hf.export.huggingface_export import HuggingFaceForm, form_of_imported, form_of_ours
from headcount_hf.export.huggingface_search import HuggingFaceSearch

pytestmark = pytest.mark.slow  # of the library's own classes, a dozen of them

SEARCH = DecodeSettings(beam=3, length_penalty=0.0, max_length_factor=0.01, max_length_extra=12)
# Of 3 + 2 + 2 layers of 4 heads, the first of decoder self-attention loses all of its.
GONE = ["enc_self.1.3", "dec_enc.1.0", "enc_layer.0", "dec_layer.0"]
GONE += [f"enc_ffn.1.{n}" for n in range(0, 48, 3)] + [f"enc_ffn.2.{n}" for n in range(48)]
NO_PREFIX = (SimpleNamespace(prefix=()),) * 2
SILENT = [0, 3, 5, 12, 13, 14, 15, 17, 21, 26]


def rows_of(ours) -> tuple[list[int], list[int]]:
    return ours.src_rows, ours.tgt_rows


def mask_of(grid, silent) -> torch.Tensor:
    mask = torch.ones(grid.size)
    mask[silent] = 0
    return mask


def written(form, folder, rows) -> HuggingFaceSearch:
    folder.mkdir()
    form.save(folder)
    if form.start is not None:
        rows = rows[0], [*rows[1][:BOS], form.start, *rows[1][BOS + 1 :]]
    return HuggingFaceSearch(folder, NO_PREFIX, SEARCH, POSITIONS, rows)


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def imported(kind, tmp_path):
    """A model of theirs, its folder, and ours."""
    folder = tmp_path / "theirs"
    theirs = saved_pretrained(kind, folder)
    return theirs, folder, import_small(folder)


def silence(theirs, grid, silent) -> None:
    """Zero columns in W_O of theirs: what a mask does."""
    places = {"enc_self": ("encoder", "self_attn"), "dec_self": ("decoder", "self_attn")}
    places["dec_enc"] = ("decoder", "encoder_attn")
    for head in (grid.heads()[place] for place in silent):
        side, name = places[head.kind]
        weight = getattr(getattr(theirs.model, side).layers[head.layer], name).out_proj.weight
        weight[:, 8 * head.head : 8 * (head.head + 1)] = 0  # d_model 32, 4 heads


@torch.no_grad()
@pytest.mark.parametrize("silent", [[], SILENT])
def test_an_imported_model_goes_back_to_the_bit(imported, tmp_path, silent):
    """With all heads, and with some that were removed: as under a mask of theirs."""
    theirs, folder, ours = imported
    grid = ours.model.grid
    smaller = remove_units(ours.model, mask_of(grid, silent))
    heads = [head for place, head in enumerate(grid.heads()) if place not in silent]
    form = form_of_imported(smaller, heads, folder, rows_of(ours))
    assert form.silent == len(silent)
    engine = written(form, tmp_path / "back", rows_of(ours))
    assert type(engine.model) is type(theirs)
    batch = LONG.batch(range(3))
    silence(theirs, grid, silent)
    expected = their_logits(theirs, ours, batch)
    assert torch.equal(engine.logits(batch.src, batch.tgt_in), expected)
    if not silent:
        mine = safetensors.torch.load_file(tmp_path / "back/model.safetensors")
        other = safetensors.torch.load_file(folder / "model.safetensors")
        assert mine.keys() == other.keys()
        for name in mine:
            assert torch.equal(mine[name], other[name]), name


@torch.no_grad()
def test_an_imported_model_goes_back_without_units(imported, tmp_path):
    """Theirs without two layers, and with zero columns in W_O and in the second map."""
    theirs, folder, ours = imported
    units, sides = UnitTransformer.of(ours.model), (theirs.model.encoder, theirs.model.decoder)
    mask = torch.from_numpy(units.grid.mask(map(Head.parse, GONE)))
    heads = [units.grid.heads()[place] for place in units.grid.heads_left(mask.numpy())]
    form = form_of_imported(remove_units(units, mask), heads, folder, rows_of(ours))
    assert (form.silent, form.zero_units) == (2, 16 + 48)
    silence(theirs, ours.model.grid, map(ours.model.grid.index, map(Head.parse, GONE[:2])))
    sides[0].layers[1].fc2.weight[:, ::3] = 0
    sides[0].layers[2].fc2.weight[:] = 0
    for side in sides:
        del side.layers[0]
    engine = written(form, tmp_path / "back", rows_of(ours))
    config = engine.model.config
    assert (config.encoder_layers, config.decoder_layers, config.num_hidden_layers) == (2, 1, 2)
    assert (config.encoder_ffn_dim, config.decoder_ffn_dim) == (48, 44)
    batch = LONG.batch(range(3))
    expected = their_logits(theirs, ours, batch)
    torch.testing.assert_close(engine.logits(batch.src, batch.tgt_in), expected)
    mine, other = (each.model.decoder.layers[0].fc1.weight for each in (engine.model, theirs))
    assert torch.equal(mine, other)


@torch.no_grad()
def test_what_begins_translations_may_have_been_trained(imported, kind, tmp_path, monkeypatch):
    """It becomes a word of its own, which no translation holds, with heads that are not whole."""
    _, folder, ours = imported
    model = remove_units(ours.model, mask_of(ours.model.grid, SILENT))
    heads = [head for place, head in enumerate(ours.model.grid.heads()) if place not in SILENT]
    model.tgt_embedding.weight[BOS] += 0.5
    if kind in ("m2m_100", "marian_apart"):
        with pytest.raises(UserError, match="expected one embedding for both sides, and an output"):
            form_of_imported(model, heads, folder, rows_of(ours))
        return
    pieces = SimpleNamespace(sides=[SimpleNamespace(ids={"a": 499})])
    monkeypatch.setattr(huggingface_export, "read_pieces", lambda config: pieces)
    monkeypatch.setattr(HuggingFaceForm, "_add_start", lambda form, folder: None)  # no tokeniser
    form = form_of_imported(model, heads, folder, rows_of(ours))
    engine = written(form, tmp_path / "back", rows_of(ours))
    assert engine.model.config.decoder_start_token_id == form.start == 500
    batch = LONG.batch(range(3))
    found = engine.losses(batch.src, batch.tgt_in, batch.tgt_out)[batch.tgt_out != PAD]
    torch.testing.assert_close(found, token_losses(model, batch), atol=2e-5, rtol=0)


@torch.no_grad()
def test_embeddings_that_were_trained_apart_are_refused_in_one(tmp_path):
    saved_pretrained("mbart", tmp_path)
    ours = import_small(tmp_path)
    apart = Transformer(ours.model.settings, 501, 501, joint=False).eval()
    copy_weights(apart, dict(apart.named_parameters()) | dict(ours.model.named_parameters()))
    with pytest.raises(UserError, match="expected an embedding for every side"):
        form_of_imported(apart, apart.grid.heads(), tmp_path, rows_of(ours))


@torch.no_grad()
@pytest.mark.parametrize(("norm", "joint"), [("pre", True), ("post", True), ("post", False)])
@pytest.mark.parametrize("others", [[], ["enc_layer.0", "dec_layer.1", "dec_ffn.2.5"]])
def test_our_own_models_are_pegasuses_and_marians(tmp_path, norm, joint, others):
    """With uneven heads and ours of layer norm's ε, which theirs have ten times as large."""
    sizes = {"src_size": 11 if joint else 9, "d_model": 12, "norm": norm, "activation": "gelu"}
    whole = UnitTransformer.of(make_model(joint=joint, **sizes))
    mask = mask_of(whole.grid, [0, 4, 6, 7, 8, 11, 20])  # layer 0 of dec_self is left without
    mask *= torch.from_numpy(whole.grid.mask(map(Head.parse, others)))
    heads = [whole.grid.heads()[place] for place in whole.grid.heads_left(mask.numpy())]
    model = remove_units(whole, mask)
    form = form_of_ours(model, heads)
    kind = "pegasus" if norm == "pre" else "marian"
    # Of the 7 heads, 3 go with their layers.
    found = form.theirs.config.model_type, form.silent, form.zero_units
    assert found == ((kind, 4, 1) if others else (kind, 7, 0))
    engine = written(form, tmp_path / "out", ([*range(sizes["src_size"])], [*range(11)]))
    assert type(engine.model).__name__ == type(form.theirs).__name__
    batch = TEXT.batch(range(3))
    expected = model.logits(model.decode(batch.tgt_in, model.encode(batch.src)))
    found = engine.logits(batch.src, batch.tgt_in)
    real = batch.tgt_out != PAD
    size = expected.abs().max().item()
    torch.testing.assert_close(found[real], expected[real], atol=1e-4 * size, rtol=0)
    make_norms_ours(engine.model)
    found = engine.logits(batch.src, batch.tgt_in)
    torch.testing.assert_close(found[real], expected[real], atol=2e-6 * size, rtol=0)


def make_norms_ours(theirs) -> None:
    for module in theirs.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 1e-6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"embedding_norm": True}, "model.embedding_norm: "),
        ({"position_table": 40}, "model.position_table: "),
        ({"norm_epsilon": 1e-3}, "model.norm_epsilon: expected at most 1e-05"),
        ({"d_model": 10}, "model.d_model: expected a multiple of d_head"),
        ({"joint": False}, "model.norm: expected post, or one vocabulary"),
        (
            {"heads": {"enc_self": [3, 4], "dec_self": [1, 3, 2], "dec_enc": [2, 3, 1]}},
            "encoder self-attention layer 1 head 3: expected heads below 3",
        ),
    ],
)
def test_what_theirs_cannot_express_is_named(changes, message):
    model = make_model(**{"joint": True, "src_size": 11, "d_model": 12, **changes})
    with pytest.raises(UserError, match=message):
        form_of_ours(model, model.grid.heads())


def test_the_folder_of_another_model_is_refused(tmp_path):
    saved_pretrained("marian", tmp_path)
    imported = import_small(tmp_path)
    ours = imported.model
    config = tmp_path / "config.json"
    for key, value, message in (
        ("decoder_layers", 1, "decoder_layers: at most 1, found 2"),
        ("encoder_ffn_dim", 40, "encoder_ffn_dim: at most 40, found 48"),
        ("activation_function", "relu", "activation: relu, found silu"),
        ("vocab_size", 700, r"words of both sides: \(700, 500\), found \(500, 500\)"),
    ):
        values = json.loads(config.read_text())
        config.write_text(json.dumps({**values, key: value}))
        with pytest.raises(UserError, match=message):
            form_of_imported(ours, ours.grid.heads(), tmp_path, rows_of(imported))
        config.write_text(json.dumps(values))

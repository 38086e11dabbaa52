"""CTranslate2 in place of our own search: translations, refusals, records."""

import io
import json
import sys

import pytest
import torch
from learnt_model import learnt
from script_runner import run_script
from small_models import make_model
from small_run import segment

from headcount.base.errors import EnvironmentFault, UserError
from headcount.base.settings.decode import TranslateSettings
from headcount.data.lines import clean_lines
from headcount.deployment.export import Deployed
from headcount.model.removal import remove_units
from headcount.model.units import UnitTransformer
from headcount.search.translation import translate_lines
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount.training.score import score_targets
from headcount_hf.export import ctranslate2_model
from headcount_hf.export.ctranslate2_search import CTranslate2Search, open_search, search_with
from headcount_hf.export.exported import Best

pytest.importorskip("ctranslate2")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Model, subwords, and the three sentences that it has learnt, one of them empty in between."""
    folder = tmp_path_factory.mktemp("engine")
    bpe = segment(folder, pairs=20)
    model = learnt(bpe, folder, 3)
    first, *others = clean_lines(folder / "learnt.txt")
    return ModelFolder(model), PairFolder(bpe), [first, "", *others]


def settings(engine: str, **changes) -> TranslateSettings:
    return TranslateSettings(**{"beam": 3, "engine": engine, "device": "cpu", **changes})


def lines_of(small, engine: str, mask=(), **changes):
    model, pair, lines = small
    return translate_lines(open_search(model, pair, mask, settings(engine, **changes)), lines)


MASK = ["enc_self.0.1", "dec_enc.1.0"]


@pytest.mark.parametrize(("alpha", "mask"), [(0.0, []), (0.6, []), (0.0, MASK), (0.6, MASK)])
@pytest.mark.parametrize("threads", [1, 2])
def test_it_translates_as_ours_does(small, alpha, mask, threads):
    """Every search ends by itself, and with a penalty CTranslate2 has patience."""
    wide = {"length_penalty": alpha, "max_length_factor": 4.0}
    ours, counts = lines_of(small, "headcount", mask, **wide)
    assert ours[1] == "" and (counts["empty"], counts["hit_max_length"]) == (1, 0)
    assert lines_of(small, "ctranslate2", mask, threads=threads, **wide) == (ours, counts)


def test_a_mask_makes_a_difference_and_int8_does_not(small):
    blind = [head.name() for head in small[0].settings.grid.heads() if head.kind == "dec_enc"]
    assert lines_of(small, "ctranslate2", blind)[0] != lines_of(small, "ctranslate2")[0]
    int8 = lines_of(small, "ctranslate2", compute_type="int8")[0]
    assert int8 == lines_of(small, "headcount")[0]


def without(units: UnitTransformer, kind: str, layers: range):
    """The model without all units of a kind in these layers."""
    mask = torch.ones(units.grid.size)
    for layer in layers:
        mask[units.grid.span(kind, layer)] = 0
    return remove_units(units, mask)


@pytest.mark.parametrize(("kind", "count"), [
    ("enc_ffn", 1), ("dec_ffn", 3), ("dec_layer", 1), ("enc_layer", 2), ("dec_layer", 3),
])  # fmt: skip
def test_it_scores_as_ours_does_without_units_of_a_layer_or_a_side(small, kind, count):
    folder, pair, _ = small
    model = without(UnitTransformer.of(folder.load()), kind, range(count))
    deployed = Deployed(model, model.grid.heads(), folder, pair)
    text = pair.read("dev").part(range(4))
    scores = search_with(deployed, settings("ctranslate2")).score(text.src, text.tgt)
    assert scores == pytest.approx((-score_targets(model, text, 100)).tolist(), abs=1e-4)


def test_a_side_without_layers_needs_norm_before_them(small):
    folder, pair, _ = small
    words = len(pair.vocabulary("src"))
    whole = UnitTransformer.of(make_model(norm="post", joint=True, src_size=words, tgt_size=words))
    model = without(whole, "enc_layer", range(2))
    with pytest.raises(UserError, match="norm: post"):
        search_with(Deployed(model, model.grid.heads(), folder, pair), settings("ctranslate2"))


UNEVEN = ["enc_self.0.0", *(f"enc_self.1.{head}" for head in range(3)), "dec_self.0.2"]

UNITS = ["enc_layer.0", "dec_layer.1", "dec_enc.2.1", *(f"dec_ffn.0.{n}" for n in range(14))]
UNITS += ["enc_ffn.1.0", "enc_ffn.1.13"]


@pytest.mark.parametrize("mask", [[], UNEVEN, UNITS])
@pytest.mark.parametrize("compute_type", ["int8", "int8_float32", "int16"])
def test_a_number_format_is_that_of_the_program_itself(small, tmp_path, compute_type, mask):
    """Also where units are removed, and zeros fill their layers up, one of them completely."""
    import ctranslate2 as package

    if compute_type not in package.get_supported_compute_types("cpu"):
        pytest.skip(f"no {compute_type} on this processor")
    model, pair, lines = small
    exact = open_search(model, pair, mask, settings("ctranslate2"))
    search = open_search(model, pair, mask, settings("ctranslate2", compute_type=compute_type))
    words = [side.vocabulary for side in search.sides]
    ctranslate2_model.export(Deployed.open(model, pair, mask).model, *words, tmp_path)
    theirs = package.Translator(str(tmp_path), compute_type=compute_type, intra_threads=1)
    ids = [[side.encode(line) for line in lines if line] for side in search.sides]
    pieces = [[of.pieces(row) for row in rows] for of, rows in zip(words, ids, strict=True)]
    found = search.score(*ids)
    assert found == [sum(each.log_probs) for each in theirs.score_batch(*pieces)]
    gaps = [(a - b) / len(row) for a, b, row in zip(found, exact.score(*ids), ids[1], strict=True)]
    assert 0 < max(map(abs, gaps)) < 0.1  # nats a token
    direct = theirs.translate_batch(pieces[0], beam_size=1)
    greedy = settings("ctranslate2", compute_type=compute_type, beam=1, length_penalty=0)
    best = open_search(model, pair, mask, greedy).translate(ids[0])
    for one, result in zip(best, direct, strict=True):  # limits on the length differ
        assert words[1].pieces(one.ids[:9]) == result.hypotheses[0][:9]


def test_formats_are_refused_where_they_are_unknown(small, tmp_path, capsys, monkeypatch):
    """A format of another device is a fault of the machine, an old name one of the caller."""
    import ctranslate2 as package

    formats = {"int16", "int8", "float32"}
    monkeypatch.setattr(package, "get_supported_compute_types", lambda device: formats)
    model, pair, lines = small
    files = ["--model", model.path, "--bpe", pair.path, "--source", tmp_path / "source"]
    files += ["--out", tmp_path / "out", "--facts", tmp_path / "facts", "--device", "cpu"]
    (tmp_path / "source").write_text(lines[0])
    for engine, compute_type, code, words in (
        ("ctranslate2", "float16", 3, "expected float32, int16, int8, "),
        ("ctranslate2", "int4", 2, "--compute-type: "),
        ("headcount", "int8", 2, "needs engine: ctranslate2"),
        ("ctranslate2-int8", "int8", 2, "--engine: it is now ctranslate2, with compute_type"),
    ):
        flags = ["--engine", engine, "--compute-type", compute_type]
        assert run_script("translate", [*files, *flags]) == code
        assert words in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_int8_that_would_overflow_is_refused(small, monkeypatch):
    """As where CTranslate2 was imported first, or CT2_USE_MKL is 0: without MKL it has no int16."""
    import ctranslate2 as package

    monkeypatch.setattr(ctranslate2_model.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(package, "get_supported_compute_types", lambda device: {"int8", "float32"})
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    int8, model = settings("ctranslate2", compute_type="int8"), small[:2]
    assert open_search(*model, (), int8).facts["compute_type"] == "int8"
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    assert open_search(*model, (), settings("ctranslate2")).facts["compute_type"] == "float32"
    with pytest.raises(EnvironmentFault, match="found oneDNN, whose int8 overflows"):
        open_search(*model, (), int8)


def test_every_output_ends_at_its_own_limit(small):
    """At most int(0.1 · length) + 3 subwords with EOS; batches share the longest of theirs."""
    model, pair, lines = small
    short = {"max_length_factor": 0.1, "max_length_extra": 3}
    search = open_search(model, pair, (), settings("ctranslate2", **short))
    sources = [search.sides[0].encode(line) for line in lines]
    found = search.translate(sources, lambda sentences: None)
    for ids, best in zip(sources, found, strict=True):
        limit = int(0.1 * len(ids)) + 3
        assert len(best.ids) < limit and best.hit_max_length == bool(
            ids and len(best.ids) == limit - 1
        )
    assert found[1] == Best([], False) and any(best.hit_max_length for best in found)


class Result:
    """A result of CTranslate2 for one sentence."""

    def __init__(self, *hypotheses: tuple[str, float]):
        self.hypotheses = [words.split() for words, _ in hypotheses]
        self.scores = [score for _, score in hypotheses]


def test_our_length_penalty_chooses_among_its_hypotheses(small):
    """α = 1: theirs is nats / length, ours nats · 6 / (5 + length).

    2 subwords of -1 nats: theirs -0.5, ours -6/7 = -0.857. 8 subwords of -3.2 nats: theirs -0.4,
    so that it comes first, ours -19.2/13 = -1.477. With 7 as the longest it would not count.
    """
    model, pair, lines = small
    search = open_search(model, pair, (), settings("ctranslate2", length_penalty=1.0))
    word = search.sides[1].vocabulary.pieces([5])[0]
    long, short = " ".join([word] * 7), word
    result = Result((f"{long} </s>", -0.4), (f"{short} </s>", -0.5))
    assert search._choose(result, 9) == Best([5], False)
    assert search._choose(Result((f"{long} </s>", -0.4)), 8) == Best([5] * 7, True)
    assert search._choose(Result((long, -0.4), (f"{short} </s>", -9.0)), 9) == Best([5], False)
    assert search._choose(Result((long, -0.4)), 4) == Best([5] * 3, True)


def test_the_record_names_the_program(small, tmp_path, monkeypatch, capfdbinary):
    import ctranslate2 as package

    model, pair, lines = small
    text = "".join(f"{line}\n" for line in lines)
    (tmp_path / "source").write_text(text)
    flags = ["--model", model.path, "--bpe", pair.path, "--beam", 3]
    records = []
    for engine, compute_type in (("headcount", "float32"), ("ctranslate2", "int8")):
        files = ["--out", tmp_path / engine, "--facts", tmp_path / f"{engine}.json"]
        files += ["--source", tmp_path / "source", "--engine", engine]
        files += ["--compute-type", compute_type]
        assert run_script("translate", [*flags, *files]) == 0
        records.append(json.loads((tmp_path / f"{engine}.json").read_text()))
    expected = (tmp_path / "headcount").read_text()
    assert expected == (tmp_path / "ctranslate2").read_text()
    ours, theirs = records
    assert ours["engine"] == "headcount" and "ctranslate2" not in ours["provenance"]["versions"]
    assert (theirs["engine"], theirs["compute_type"]) == ("ctranslate2", "int8")
    assert theirs["patience"] == 1.5
    version = package.__version__
    assert theirs["ctranslate2"] == theirs["provenance"]["versions"]["ctranslate2"] == version
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert run_script("translate", [*flags, "--engine", "ctranslate2"]) == 0
    assert capfdbinary.readouterr().out.decode() == expected


def test_what_it_cannot_do_is_refused(small, monkeypatch):
    with pytest.raises(ValueError, match="engine: ctranslate2"):
        settings("ctranslate2", device="cuda")
    assert settings("headcount", device="cuda").device == "cuda"

    monkeypatch.setitem(sys.modules, "ctranslate2", None)  # as where the extra is not installed
    with pytest.raises(EnvironmentFault, match=r"pip install -e '\.\[export\]'") as fault:
        open_search(*small[:2], (), settings("ctranslate2"))
    assert fault.value.exit_code == 3


@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_numbers_that_are_not_finite_are_refused(small, alpha):
    """CTranslate2 itself translates by them without a word."""
    penalised = settings("ctranslate2", length_penalty=alpha)
    with torch.no_grad():
        damaged = Deployed.open(*small[:2])
        damaged.model.decoder_norm.bias[0] = torch.nan
        with pytest.raises(UserError, match="scores are not finite numbers; its weights"):
            search_with(damaged, penalised)
        large = Deployed.open(*small[:2])
        large.model.decoder_norm.weight.fill_(3e38)  # finite, and no product of two such numbers
    search = search_with(large, penalised)
    with pytest.raises(UserError, match="scores are not finite numbers; its weights"):
        translate_lines(search, small[2])


def test_a_source_longer_than_its_positions_is_named(small):
    model, pair, lines = small
    search = open_search(model, pair, (), settings("ctranslate2", max_source=2000))
    assert isinstance(search, CTranslate2Search) and search.positions == 1024
    with pytest.raises(UserError, match=r"text:1: expected at most 1023 subwords"):
        translate_lines(search, ["a " * 1100])

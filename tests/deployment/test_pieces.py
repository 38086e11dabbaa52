"""Vocabularies cut to the pieces of a text: the same logits, fewer weights."""

from pathlib import Path

import pytest
import torch
from learnt_model import learnt
from script_runner import run_script
from small_models import make_model
from small_run import segment

from headcount.base.errors import UserError
from headcount.base.settings.decode import DecodeSettings
from headcount.data.batches import ParallelText
from headcount.data.lines import clean_lines, write_lines
from headcount.data.vocabulary import UNK
from headcount.deployment.export import Deployed
from headcount.deployment.pieces import with_ids
from headcount.search.beam_search import translate
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount_hf.export.export import export_model

GREEDY = DecodeSettings(beam=1, max_length_factor=2.0, max_length_extra=5)
pytest.importorskip("ctranslate2")
pytestmark = pytest.mark.slow  # steps from files to files


@pytest.fixture(scope="module")
def learnt_folder(tmp_path_factory):
    """A model with its subwords, `learnt.txt` that it has learnt, and `said.txt`, translations."""
    folder = tmp_path_factory.mktemp("pieces")
    learnt(segment(folder, pairs=20), folder, 2, d_model=12, d_head=6)
    write_lines(folder / "said.txt", greedy(opened(folder), folder))
    return folder


def greedy(what: Deployed, folder: Path) -> list[str]:
    src, tgt = what.pair.segmenters()
    sources = [src.encode(line) for line in clean_lines(folder / "learnt.txt")]
    return [tgt.decode(found.ids) for found in translate(what.model, sources, GREEDY)]


def opened(folder: Path) -> Deployed:
    return Deployed.open(ModelFolder(folder / "model"), PairFolder(folder / "bpe"))


def test_logits_of_the_kept_pieces_and_greedy_translations_stay(learnt_folder):
    texts = [learnt_folder / name for name in ("learnt.txt", "said.txt")]
    whole = opened(learnt_folder)
    cut = whole.with_pieces_of(*texts)
    logits, names = [], []
    for what in (whole, cut):
        src, tgt = what.pair.segmenters()
        source, target = (next(iter(clean_lines(path))) for path in texts)
        batch = ParallelText([src.encode(source)], [tgt.encode(target)]).batch([0])
        states = what.model.decode(batch.tgt_in, what.model.encode(batch.src))
        logits.append(what.model.logits(states))
        names.append(tgt.vocabulary.pieces(range(len(tgt.vocabulary))))
        assert UNK not in src.encode(source)
    assert 4 < len(names[1]) < len(names[0]) and names[1][:4] == names[0][:4]
    places = [names[0].index(name) for name in names[1]]
    torch.testing.assert_close(logits[1], logits[0][..., places])
    assert greedy(cut, learnt_folder) == greedy(whole, learnt_folder)


def test_sides_with_own_embeddings_keep_own_pieces():
    model = make_model()
    smaller = with_ids(model, ([0, 1, 2, 3, 5], [0, 1, 2, 3, 4, 6]))
    assert torch.equal(smaller.src_embedding.weight[4], model.src_embedding.weight[5])
    assert torch.equal(smaller.tgt_embedding.weight[5], model.tgt_embedding.weight[6])


@pytest.mark.parametrize("to", ["headcount", "ctranslate2", "huggingface"])
def test_an_export_with_few_pieces_is_smaller_and_checked(learnt_folder, tmp_path, to):
    folder = learnt_folder
    texts = [folder / name for name in ("learnt.txt", "said.txt")]
    flags = ["--model", folder / "model", "--bpe", folder / "bpe", "--to", to]
    check = [] if to == "headcount" else ["--check", folder / "learnt.txt"]
    for name, more in (("whole", []), ("cut", ["--cut-vocabulary", *texts, *check])):
        assert run_script("export", [*flags, "--out", tmp_path / name, *more]) == 0
    sizes = [
        max(path.stat().st_size for path in (tmp_path / name).iterdir())
        for name in ("whole", "cut")
    ]
    assert sizes[1] < sizes[0]
    if to == "headcount":
        again = ModelFolder(tmp_path / "cut")
        what = Deployed.open(again, again.pair(None))  # its checksums are the cut subwords'
        assert what.model.tgt_embedding.num_embeddings == len(what.pair.vocabulary("tgt"))


def test_a_tokenizer_of_others_keeps_all_pieces(learnt_folder, tmp_path):
    cut = opened(learnt_folder).with_pieces_of(learnt_folder / "learnt.txt")
    with pytest.raises(UserError, match="--cut-vocabulary"):
        export_model(cut, "huggingface", tmp_path, tmp_path / "out", {})

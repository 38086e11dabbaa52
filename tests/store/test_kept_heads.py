"""Names of the heads that are left of a model that is pruned again."""

import pytest
from named_runs import RUNS
from script_runner import run_script
from small_models import make_model
from small_run import GATES, TRAIN, SmallGates, segment, small_origin

from headcount.base.files import read_json
from headcount.base.head_values import write_head_values
from headcount.data.vocabulary import Vocabulary
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount.training.pruning_run import PruningRun

pytestmark = pytest.mark.slow  # a step from files to files, or models that are trained

FOUR = {"enc_self": [4, 1], "dec_self": [0, 0, 1], "dec_enc": [0, 0, 2]}
OTHERS = ["enc_self.1.0", "dec_self.2.0", "dec_enc.2.0", "dec_enc.2.1"]


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """A model of heads 0 to 3 in the first layer that has lost head 0, and its text."""
    folder = tmp_path_factory.mktemp("once")
    bpe = segment(folder, 20)
    size = len(Vocabulary.load(bpe / "src.vocab"))
    model = make_model(joint=True, src_size=size, tgt_size=size, heads=FOUR)
    facts = PairFolder(bpe).subwords()
    ModelFolder(folder / "whole").save(model, dict(model.named_parameters()), facts)
    remove(folder / "whole", "enc_self.0.0", folder / "removed")
    return folder / "removed", bpe


def remove(model, head, out):
    (listed := out.with_suffix(".txt")).write_text(head)
    flags = ["--model", model, "--list", listed, "--out", out]
    assert run_script("remove", flags) == 0


def kept(out):
    return read_json(out / "model" / "model.json")["kept_heads"]


def test_a_second_removal_has_the_addresses_of_the_first_model(once, tmp_path):
    folder, _ = once
    assert kept(folder) == ["enc_self.0.1", "enc_self.0.2", "enc_self.0.3", *OTHERS]
    two, three = tmp_path / "two", tmp_path / "three"
    remove(folder / "model", "enc_self.0.0", two)  # what was head 1 before
    assert kept(two) == ["enc_self.0.2", "enc_self.0.3", *OTHERS]
    remove(two / "model", "enc_self.0.1", three)  # the last of the four
    assert kept(three) == ["enc_self.0.2", *OTHERS]


def test_a_pruned_model_that_is_tuned_keeps_the_addresses_of_the_first(once, tmp_path):
    folder, bpe = once
    grid = ModelFolder(folder / "model").load().grid
    SmallGates(bpe, folder / "model", "gates-all-l0").finish(tmp_path, tmp_path / "state")
    assert kept(tmp_path) == kept(folder)  # λ = 0 and few updates: every gate is open
    # Of heads 1 to 3 the second goes.
    write_head_values(tmp_path / "heads.csv", grid, {"gate": [1, 0, *[1] * 5]})
    ranks = {"importance": [3, 1, *[2] * 5]}
    write_head_values(tmp_path / "importance.csv", grid, ranks)
    resumable = 3, small_origin({}), tmp_path / "state", 1e9
    run = RUNS["ranked-gates-all-l1"]
    tuned = PruningRun(TRAIN, *resumable, run, PairFolder(bpe))
    files = (tmp_path / "heads.csv", tmp_path / "importance.csv")
    tuned.finish(ModelFolder(folder / "model"), tmp_path, *files, GATES)
    assert kept(tmp_path) == ["enc_self.0.1", "enc_self.0.3", *OTHERS]

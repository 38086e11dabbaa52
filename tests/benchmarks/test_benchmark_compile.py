"""The layers under torch.compile: one graph for batches of any size, with the same weights after.

Here no code is made, which needs a C++ compiler.
"""

from functools import partial

import pytest
import torch
from named_runs import RUNS
from torch._dynamo.utils import counters

from benchmarks.data import BenchData
from benchmarks.training import check_compiler, our_trainer
from headcount.base.errors import EnvironmentFault
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.train import TrainSettings
from headcount.base.settings.training_runs import BASELINE
from headcount.data.batches import ParallelText
from headcount.data.vocabulary import Vocabulary
from headcount.model.kernels import matmul
from headcount.training.optimiser import ADAM

LENGTHS = [2, 3, 3, 4, 7, 8, 8, 9, 18, 20, 35, 35, 36]  # targets: up to two more
TEXT = ParallelText(
    [[4 + (n + i) % 6 for i in range(n)] for n in LENGTHS],
    [[4 + (2 * n + i) % 6 for i in range(n + n % 3)] for n in LENGTHS],
)
WORDS = Vocabulary([(letter, 1) for letter in "abcdef"])
# Sentences, source and target positions: of one length and of two, few keys and more than 32. None
# has one sentence, for which torch.compile always makes a graph of its own.
SHAPES = {(6, 10, 10), (3, 19, 19), (2, 36, 38), (2, 37, 37)}


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Makes a trainer of a small model, with oneDNN for the larger half of the batches."""
    if not torch.backends.mkldnn.is_available():
        pytest.skip("this torch has no oneDNN")
    monkeypatch.setattr(matmul, "_ONEDNN_PAYS", True)
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))

    def trainer(dropout, precision="fp32", run=BASELINE):
        shape = ModelSettings(preset="tiny", encoder_layers=1, decoder_layers=1, dropout=dropout)
        monkeypatch.setitem(ADAM, "eps", 0.01)
        # A large ε, or Adam makes whole steps of gradients that are nothing but rounding.
        settings = TrainSettings(
            batch_tokens=76,
            device="cpu",
            peak_lr=0.01,
            warmup_updates=1,
            precision=precision,
        )
        return our_trainer(BenchData(WORDS, TEXT, TEXT), shape, settings, tmp_path, run)

    yield trainer
    torch._dynamo.reset()
    counters.clear()


def moved(trainer, before):
    """How all weights have changed, in one row."""
    after = trainer.weights
    return torch.cat([(after[n] - w).detach().flatten() for n, w in before.weights.items()])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "precision", "graphs", "close"),
    [
        ("baseline", "fp32", 2, 1e-4),
        ("random-2", "bf16", 2, 0.08),  # as tests/model/test_gpu_ways.py derives it
        ("impt-2", "fp32", 4, 1e-4),  # two are the first pass's: no dropout, other gradients
    ],
)
def test_compiled_layers_learn_the_same_from_batches_of_any_size(
    make, monkeypatch, name, precision, graphs, close
):
    fresh, plain, compiled = (make(0.0, precision, RUNS[name]) for _ in "123")
    batches = [plain.resident.batch(indices) for indices in plain.plan.epoch(0)]
    assert {(*batch.src.shape, batch.tgt_in.shape[1]) for batch in batches} == SHAPES
    sizes, width = [batch.src.numel() for batch in batches], plain.model.settings.d_model
    monkeypatch.setattr(matmul, "LEAST", (min(sizes) + max(sizes)) // 2 * 3 * width * width)
    compiled.compile()
    for trainer in (plain, compiled):
        trainer.run(2 * len(SHAPES))
    assert counters["stats"]["unique_graphs"] == graphs
    assert compiled.progress.masked_since == plain.progress.masked_since
    right, found = (moved(trainer, fresh) for trainer in (plain, compiled))
    assert right.norm() > 0 and (found - right).norm() < close * right.norm()


@pytest.mark.slow
def test_no_compiler_is_told():
    without = torch._inductor.config.patch({"cpp.cxx": (None, "/no/such/compiler")})
    told = r"torch\.compile makes no code here: .*; install a C\+\+ compiler such as g\+\+"
    with without, pytest.raises(EnvironmentFault, match=told):
        check_compiler(torch.device("cpu"))

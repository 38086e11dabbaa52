"""The layers under torch.compile: one graph for batches of any size, with the same weights after.

Here no code is made, which needs a C++ compiler.
"""

from functools import partial

import pytest
import torch

from benchmarks.data import BenchData
from benchmarks.training import check_compiler, our_trainer
from headcount.base.errors import EnvironmentFault
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.train import TrainSettings
from headcount.data.batches import ParallelText
from headcount.data.vocabulary import Vocabulary
from headcount.model.kernels import matmul

LENGTHS = [2, 3, 3, 4, 7, 8, 8, 9]  # of both sides; with their ends batches of 4, 2 and 2
TEXT = ParallelText(
    [[4 + (n + i) % 6 for i in range(n)] for n in LENGTHS],
    [[4 + (2 * n + i) % 6 for i in range(n)] for n in LENGTHS],
)
WORDS = Vocabulary([(letter, 1) for letter in "abcdef"])


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Makes a trainer of a small model, with oneDNN for the larger half of the batches."""
    if not torch.backends.mkldnn.is_available():
        pytest.skip("this torch has no oneDNN")
    monkeypatch.setattr(matmul, "_ONEDNN_PAYS", True)
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))

    def trainer(dropout):
        shape = ModelSettings(preset="tiny", encoder_layers=1, decoder_layers=1, dropout=dropout)
        # A large ε, or Adam makes whole steps of gradients that are nothing but rounding.
        settings = TrainSettings(
            batch_tokens=20, device="cpu", peak_lr=0.01, warmup_updates=1, epsilon=0.01
        )
        return our_trainer(BenchData(WORDS, TEXT, TEXT), shape, settings, tmp_path)

    yield trainer
    torch._dynamo.reset()


@pytest.mark.slow
def test_compiled_layers_learn_the_same_from_batches_of_any_size(make, monkeypatch):
    plain, compiled = make(dropout=0.0), make(dropout=0.0)
    sizes = [batch.src.numel() for batch in map(plain.resident.batch, plain.plan.epoch(0))]
    width = plain.model.settings.d_model
    monkeypatch.setattr(matmul, "LEAST", (min(sizes) + max(sizes)) // 2 * 3 * width * width)
    assert len(set(sizes)) > 1
    compiled.compile()
    with torch._dynamo.config.patch(error_on_recompile=True):
        for trainer in (plain, compiled):
            trainer.run(len(sizes))
    before = make(dropout=0.0).weights
    for name, weight in plain.weights.items():
        torch.testing.assert_close(compiled.weights[name], weight)
        assert not torch.equal(weight, before[name])


@pytest.mark.slow
def test_no_compiler_is_told():
    without = torch._inductor.config.patch({"cpp.cxx": (None, "/no/such/compiler")})
    told = r"torch\.compile makes no code here: .*; install a C\+\+ compiler such as g\+\+"
    with without, pytest.raises(EnvironmentFault, match=told):
        check_compiler(torch.device("cpu"))


@pytest.mark.slow
def test_dropout_is_compiled_as_well(make):
    trainer = make(dropout=0.5)
    trainer.compile()
    trainer.run(1)  # a break in the graph would raise

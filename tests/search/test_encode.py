"""Sources that the encoder reads once: what it is asked for, and that the memory is the same."""

import pytest
import torch
from small_models import UNEVEN, make_model

from headcount.data.batches import pad_sources
from headcount.search import sources as sources_of_search
from headcount.search.sources import encode_once

# 17 heads, the first five of them the encoder's.
SOURCES = [[4, 8, 5], [7], [4, 8, 5], [4, 8, 5], [7]]


def masks(*silent: int | None) -> torch.Tensor:
    """A row per entry, with that head silent."""
    rows = torch.ones(len(silent), 17)
    for row, head in enumerate(silent):
        if head is not None:
            rows[row, head] = 0
    return rows


@pytest.fixture
def counted(monkeypatch):
    """A model, and how many sources each call of its encoder had."""
    model, sizes = make_model(heads=UNEVEN), []
    encode = type(model).encode

    def counting(self, src, multiplier=None):
        sizes.append(len(src))
        return encode(self, src, multiplier)

    monkeypatch.setattr(type(model), "encode", counting)
    return model, sizes


@pytest.mark.parametrize(
    ("multiplier", "read"),
    [
        (None, 2),
        (torch.ones(17), 2),  # one mask for all
        (masks(5, 6, 7, 16, None), 2),  # decoder heads alone
        (masks(0, 6, 0, 1, None), 3),  # rows 0 and 2 are the same, 1 and 4 too
        (masks(0, 0, 1, 2, 1), 5),
    ],
)
def test_memory_is_that_of_every_source_alone(counted, multiplier, read):
    model, sizes = counted
    with torch.inference_mode():
        found = encode_once(model, SOURCES, multiplier)
        assert sizes == [read]
        plain = model.encode(pad_sources(SOURCES), multiplier)
    assert torch.equal(found.mask, plain.mask)
    for one, other in zip(found.keys_values, plain.keys_values, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("multiplier", [None, torch.rand(17), torch.rand(4, 17)])
def test_memory_of_a_few_at_a_time_is_that_of_all_at_once(counted, monkeypatch, multiplier):
    model, sizes = counted
    sources = [[4, 8, 5], [7], [4, 8, 5, 6, 6], [6]]  # 4, 2, 6 and 2 positions with EOS
    monkeypatch.setitem(
        sources_of_search._POSITIONS, "cpu", 8
    )  # 2 · 4 fit, 3 · 6 do not, nor 2 · 6
    with torch.inference_mode():
        found = encode_once(model, sources, multiplier)
        assert sizes == [2, 1, 1]
        plain = model.encode(pad_sources(sources), multiplier)
    assert torch.equal(found.mask, plain.mask)
    real = plain.mask.transpose(2, 3)
    for one, other in zip(found.keys_values, plain.keys_values, strict=True):
        for ours, theirs in zip(one, other, strict=True):
            torch.testing.assert_close(ours * real, theirs * real, atol=1e-6, rtol=1e-5)
            assert ours.isfinite().all()  # what is masked out still enters a product with 0

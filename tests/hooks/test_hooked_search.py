"""Searches of Hugging Face's library under masks."""

from functools import cache

import pytest
import torch
from small_hooked import EAGER_ONLY, HOOKED, small_hooked, small_text
from test_hooked_seq2seq import drawn, folded

pytestmark = pytest.mark.slow  # of the library's own classes, a dozen of them

CASES = [(kind, "sdpa") for kind in ("marian", "mbart", *HOOKED) if kind not in EAGER_ONLY]
CASES += [(kind, "eager") for kind in ("t5", "t5gemma")]
SEARCH = {"num_beams": 3, "max_new_tokens": 7, "min_new_tokens": 4, "do_sample": False}


@cache
def searched(kind: str, attention: str):
    """A model, its sources, a mask, and what it finds under the mask."""
    model = small_hooked(kind, attention)
    sources, mask = small_text(model).src, drawn(model)
    return model, sources, mask, model.generate(sources, SEARCH, mask)


@pytest.fixture(params=CASES, ids=" ".join)
def case(request):
    return searched(*request.param)


def test_a_mask_is_zero_columns_with_and_without_a_cache(case):
    model, sources, mask, found = case
    assert len(found) == len(sources)
    assert found.tolist() != model.generate(sources, SEARCH).tolist()
    assert found.tolist() == folded(model, mask).generate(sources, SEARCH).tolist()
    assert not any(module._forward_pre_hooks for module in model.modules())
    without = model.generate(sources, {**SEARCH, "use_cache": False}, mask)
    assert found.tolist() == without.tolist()


def test_rows_of_masks_are_searches_of_their_own(case):
    """Of one search the four sentences have four masks; padding may follow what ends early."""
    model, sources, mask, _ = case
    rows = torch.stack([torch.ones_like(mask), mask, 1 - mask, drawn(model, 9)[8]])
    together = model.generate(sources, SEARCH, rows).tolist()
    pad = model.model.config.pad_token_id
    for number, row in enumerate(rows):
        (alone,) = model.generate([sources[number]], SEARCH, row).tolist()
        width = max(len(alone), len(together[number]))
        filled = [ids + [pad] * (width - len(ids)) for ids in (alone, together[number])]
        assert filled[0] == filled[1]


def test_dropout_is_off_in_a_search():
    model = small_hooked("t5")
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.5
    sources = small_text(model).src
    plain = model.generate(sources, SEARCH)
    assert model.train().generate(sources, SEARCH).tolist() == plain.tolist()

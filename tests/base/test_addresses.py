"""Head addresses: their flat order, their names, and what is refused."""

import numpy as np
import pytest

from headcount.base.addresses import Head, HeadGrid
from headcount.base.errors import UserError

# Two encoder layers with 2 and 0 heads, three decoder layers.
GRID = HeadGrid({"enc_self": (2, 0), "dec_self": (1, 0, 2), "dec_enc": (0, 3, 1)})


def test_flat_order_by_hand():
    assert GRID.size == 9  # 2 + 0, 1 + 0 + 2, 0 + 3 + 1
    assert GRID.heads() == [
        ("enc_self", 0, 0),
        ("enc_self", 0, 1),
        ("dec_self", 0, 0),
        ("dec_self", 2, 0),
        ("dec_self", 2, 1),
        ("dec_enc", 1, 0),
        ("dec_enc", 1, 1),
        ("dec_enc", 1, 2),
        ("dec_enc", 2, 0),
    ]


def test_layers_in_flat_order_with_those_that_have_no_head():
    layers = list(GRID.layers())
    assert all(GRID.span(kind, layer) == span for kind, layer, span in layers)
    assert [(kind, layer, span.start, span.stop) for kind, layer, span in layers] == [
        ("enc_self", 0, 0, 2),
        ("enc_self", 1, 2, 2),
        ("dec_self", 0, 2, 3),
        ("dec_self", 1, 3, 3),
        ("dec_self", 2, 3, 5),
        ("dec_enc", 0, 5, 5),
        ("dec_enc", 1, 5, 8),
        ("dec_enc", 2, 8, 9),
    ]


def test_index_is_the_place_in_the_list():
    assert [GRID.index(head) for head in GRID.heads()] == list(range(9))


def test_people_count_from_one():
    assert Head("enc_self", 0, 3).label() == "encoder self-attention layer 0 head 3"
    assert Head("dec_self", 4, 0).label() == "decoder self-attention layer 4 head 0"
    assert Head("dec_enc", 1, 1).label() == "encoder–decoder attention layer 1 head 1"


def test_mask_silences_the_named_heads_only():
    mask = GRID.mask([Head("dec_enc", 2, 0), Head("enc_self", 0, 1), Head("dec_self", 2, 0)])
    np.testing.assert_array_equal(mask, [1, 0, 1, 0, 1, 1, 1, 1, 0])
    np.testing.assert_array_equal(GRID.mask([]), np.ones(9))
    assert not GRID.mask(GRID.heads()).any()


@pytest.mark.parametrize(
    "head",
    [("enc_dec", 0, 0), ("enc_self", 2, 0), ("dec_self", -1, 0), ("dec_self", 2, 2)]
    + [("dec_enc", 1, -1), ("enc_self", 1, 0)],
)
def test_f08_a_head_that_is_not_there(head):
    with pytest.raises(UserError, match=f"^{Head(*head).name()} does not exist"):
        GRID.mask([Head(*head)])

"""Properties of the gates' distribution; tests/model/test_hard_concrete.py has sums by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headcount.base.hard_concrete import HardConcrete

GATES = st.builds(
    HardConcrete,
    temperature=st.floats(0.1, 2),
    low=st.floats(-0.5, -0.01),
    high=st.floats(1.01, 1.5),
)


@given(GATES, st.floats(-20, 20), st.floats(0, 5))
def test_a_larger_location_opens_a_gate(gates, log_alpha, more):
    assert gates.p_zero(log_alpha) + gates.p_open(log_alpha) == pytest.approx(1)
    assert gates.p_one(log_alpha) <= gates.p_open(log_alpha)
    assert gates.p_open(log_alpha + more) >= gates.p_open(log_alpha)
    assert gates.at_test(log_alpha + more) >= gates.at_test(log_alpha)

"""Properties of the gates' distribution; tests/model/test_hard_concrete.py has sums by hand."""

import numpy as np
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


@given(GATES, st.floats(-3, 3), st.integers(0, 2**32 - 1))
def test_shares_of_draws_are_the_closed_forms(gates, log_alpha, seed):
    uniform = np.random.default_rng(seed).uniform(size=4000)
    logits = (np.log(uniform / (1 - uniform)) + log_alpha) / gates.temperature
    drawn = np.clip((gates.high - gates.low) / (1 + np.exp(-logits)) + gates.low, 0, 1)
    # Six standard errors of a share of 4,000 draws are at most 0.047.
    assert (drawn == 0).mean() == pytest.approx(gates.p_zero(log_alpha), abs=0.05)
    assert (drawn == 1).mean() == pytest.approx(gates.p_one(log_alpha), abs=0.05)

"""Scripts run in the process of the tests."""

import pytest
import torch

from headcount.model import machine


@pytest.fixture(autouse=True)
def threads(monkeypatch):
    """The number of threads can be set many times, the rest of `use_threads` once."""
    monkeypatch.setattr(machine, "use_threads", torch.set_num_threads)

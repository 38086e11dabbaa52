"""What a GPU would be waited for, noted on a CPU: operations that need a tensor's numbers."""

from collections.abc import Callable

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

_TO_THE_HOST = ("tolist", "cpu", "numpy")  # methods, for which nothing is dispatched on a CPU


class Waits(TorchDispatchMode):
    """Notes in `seen` what needs a tensor's numbers on the host, or its result's size from them."""

    NAMES = ("_local_scalar_dense", "item", "is_nonzero", "nonzero", "masked_select", "equal")

    def __init__(self):
        super().__init__()
        self.seen = []
        self._patch = pytest.MonkeyPatch()

    def __enter__(self) -> "Waits":
        for name in _TO_THE_HOST:
            self._patch.setattr(torch.Tensor, name, self._noting(getattr(torch.Tensor, name)))
        return super().__enter__()

    def __exit__(self, *fault) -> None:
        self._patch.undo()
        super().__exit__(*fault)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.name().removeprefix("aten::").split(".")[0]
        places = args[1] if name in ("index", "index_put", "index_put_") else ()
        masks = [p for p in places if isinstance(p, torch.Tensor) and p.dtype == torch.bool]
        if name in self.NAMES or masks:
            self.seen.append(name)
        return func(*args, **(kwargs or {}))

    def _noting(self, method: Callable) -> Callable:
        def noted(tensor, *args):
            self.seen.append(method.__name__)
            return method(tensor, *args)

        return noted

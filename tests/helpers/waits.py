"""What a GPU would be waited for, noted on a CPU: operations that need a tensor's numbers."""

from collections.abc import Callable, Iterable

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

_NAMES = ("_local_scalar_dense", "item", "is_nonzero", "nonzero", "masked_select", "equal")
_TO_THE_HOST = ("tolist", "cpu", "numpy")  # methods, for which nothing is dispatched on a CPU


class Waits(TorchDispatchMode):
    """Notes in `seen` what needs a tensor's numbers on the host, or its result's size from them."""

    def __init__(self, there: Iterable[Tensor] = ()):
        """`there`: what would lie on the GPU, with all that is computed from it; none: all is."""
        super().__init__()
        self.seen = []
        self._there = {}  # storages, kept alive so that no other one takes the place of theirs
        self._mark(there)
        self._all = not self._there
        self._patch = pytest.MonkeyPatch()

    def __enter__(self) -> "Waits":
        for name in _TO_THE_HOST:
            self._patch.setattr(Tensor, name, self._noting(getattr(Tensor, name)))
        return super().__enter__()

    def __exit__(self, *fault) -> None:
        self._patch.undo()
        super().__exit__(*fault)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.name().removeprefix("aten::").split(".")[0]
        places = args[1] if name in ("index", "index_put", "index_put_") else ()
        masks = [p for p in places if isinstance(p, Tensor) and p.dtype == torch.bool]
        there = any(map(self._is_there, tree_leaves((args, kwargs))))
        if there and (name in _NAMES or masks):
            self.seen.append(name)
        found = func(*args, **(kwargs or {}))
        if there:
            self._mark(tree_leaves(found))
        return found

    def _mark(self, values: Iterable) -> None:
        for value in values:
            if isinstance(value, Tensor):
                storage = value.untyped_storage()
                self._there[storage._cdata] = storage

    def _is_there(self, value: object) -> bool:
        if not isinstance(value, Tensor):
            return False
        return self._all or value.untyped_storage()._cdata in self._there

    def _noting(self, method: Callable) -> Callable:
        def noted(tensor, *args):
            if self._is_there(tensor):
                self.seen.append(method.__name__)
            return method(tensor, *args)

        return noted

"""Products of activations with weights, by the fastest library that torch has on this processor.

torch hands fp32 products on a CPU to its BLAS. Where that is MKL and the processor is not Intel's,
it leaves AVX-512 alone, and oneDNN, which torch has as well, is twice as fast; on an Intel one
MKL is the faster of the two at every shape. Where weights do not change, each is brought once into
the order in which the library reads it; otherwise every product would do so again. Letters in
shapes: m rows (positions of all sentences), k width of the inputs, n width of the outputs.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

# A shape that oneDNN has not seen costs a millisecond, so rows are filled up to a multiple; to a
# smaller one in a search, which has few rows at last: its sentences leave one by one.
ROWS = 64
ROWS_FORWARD = 16
# Multiplications; below, torch's own products are as fast or faster: in training, in a search.
LEAST = 3 << 20
LEAST_FORWARD = 1 << 18
_USUAL_ROWS = 512  # by which a library chooses the order of a weight that many products share


def _mkl_leaves_avx512() -> bool:
    """Whether this processor has AVX-512 that MKL does not use, and torch has oneDNN."""
    processor = Path("/proc/cpuinfo")  # Linux; elsewhere torch's own products stay
    return (
        torch.backends.mkldnn.is_available()
        and torch.backends.mkl.is_available()
        and "AVX512" in torch.backends.cpu.get_cpu_capability()
        and processor.exists()
        and "AuthenticAMD" in processor.read_text()
    )


_ONEDNN_PAYS = _mkl_leaves_avx512()
_MKL_KEEPS_ORDER = hasattr(torch.ops.mkl, "_mkl_linear")  # whether torch has MKL, and this of it


class _Frozen:
    """How many now rely on it that no weight changes, and what was made of the weights."""

    lock = Lock()
    users = 0
    reordered: ClassVar[dict[tuple, tuple[Tensor, Tensor]]] = {}  # by place, shape and strides


class Linear(nn.Linear):
    """torch's layer by way of `linear`."""

    def forward(self, inputs: Tensor) -> Tensor:
        """[..., n] of inputs [..., k]."""
        return linear(inputs, self.weight, self.bias)


def linear(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """inputs [..., k] times the transposed weight [n, k], plus the bias [n]: [..., n]."""
    rows = inputs.numel() // max(1, inputs.shape[-1])
    multiplications, trained = rows * weight.numel(), torch.is_grad_enabled()
    if _by_ordered_mkl(inputs, multiplications):
        # The number of rows is that of this product; another one would leave the order unused.
        return torch.ops.mkl._mkl_linear(inputs, _in_its_order(weight), weight, bias, rows)
    if not _by_onednn(inputs, multiplications, LEAST if trained else LEAST_FORWARD):
        return functional.linear(inputs, weight, bias)
    flat = inputs.reshape(rows, -1)
    if trained:
        flat = _OneDnn.apply(flat, weight, bias)
    else:
        flat = _onednn(_fill(flat, ROWS_FORWARD), _in_its_order(weight), bias)[:rows]
    return flat.view(*inputs.shape[:-1], len(weight))


@contextmanager
def frozen_weights() -> Iterator[None]:
    """Context in which no weight of any model changes.

    So each is brought only once into the order that oneDNN or MKL wants, until the last one in the
    process who is in such a context leaves it. Meanwhile it is in memory twice.
    """
    with _Frozen.lock:
        _Frozen.users += 1
    try:
        yield
    finally:
        with _Frozen.lock:
            _Frozen.users -= 1
            if not _Frozen.users:
                _Frozen.reordered.clear()


def matmul_transposed(left: Tensor, right: Tensor) -> Tensor:
    """left [m, k] times the transposed right [n, k]: [m, n], without a gradient."""
    if not _by_onednn(left, len(left) * right.numel(), LEAST):
        return left @ right.t()
    return _onednn(_fill(left), right)[: len(left)]


def weight_gradient(upstream: Tensor, inputs: Tensor) -> Tensor:
    """Transposed upstream [m, n] times inputs [m, k]: [n, k], what a weight gets."""
    if not _by_onednn(inputs, upstream.numel() * inputs.shape[1], LEAST):
        return upstream.t() @ inputs
    return _narrower_first(_fill(upstream), _fill(inputs))


def _by_onednn(inputs: Tensor, multiplications: int, least: int) -> bool:
    """Whether a product goes to oneDNN; by its shape alone, so that a run can be repeated."""
    return _ONEDNN_PAYS and _is_ours(inputs, multiplications, least)


def _by_ordered_mkl(inputs: Tensor, multiplications: int) -> bool:
    """Whether a product goes to MKL with a weight that is in MKL's order beforehand."""
    return (
        _MKL_KEEPS_ORDER
        and not _ONEDNN_PAYS
        and _Frozen.users > 0
        and not torch.is_grad_enabled()
        and _is_ours(inputs, multiplications, LEAST_FORWARD)
    )


def _is_ours(inputs: Tensor, multiplications: int, least: int) -> bool:
    """Whether a product is in fp32 on a CPU, and large enough to choose a library for."""
    return (
        not torch.compiler.is_compiling()  # torch.compile chooses, and for any number of rows
        and multiplications >= least
        and inputs.dtype == torch.float32
        and inputs.device.type == "cpu"
        and not torch.is_autocast_enabled("cpu")
    )


class _OneDnn(torch.autograd.Function):
    """`linear` of inputs [m, k]; its three products are all oneDNN's."""

    @staticmethod
    def forward(ctx, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """[m, n]."""
        filled = _fill(inputs)
        ctx.save_for_backward(filled, weight)
        ctx.rows = len(inputs)
        return _onednn(filled, weight, bias)[: ctx.rows]

    @staticmethod
    @once_differentiable
    def backward(ctx, upstream: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients by inputs, weight and bias, each where it is needed."""
        inputs, weight = ctx.saved_tensors
        by_inputs, by_weight, by_bias = ctx.needs_input_grad
        filled = _fill(upstream)
        return (
            _onednn(filled, weight.t())[: ctx.rows] if by_inputs else None,
            _narrower_first(filled, inputs) if by_weight else None,
            upstream.sum(0) if by_bias else None,
        )


def _narrower_first(upstream: Tensor, inputs: Tensor) -> Tensor:
    """[n, k] from [m, n] and [m, k]; faster with the narrower of the two on the left."""
    if upstream.shape[1] <= inputs.shape[1]:
        return _onednn(upstream.t(), inputs.t())
    return _onednn(inputs.t(), upstream.t()).t()


def _fill(rows: Tensor, multiple: int = ROWS) -> Tensor:
    """The rows [m, width], and rows of zeros up to a multiple of that many."""
    missing = -len(rows) % multiple
    if not missing:
        return rows
    filled = rows.new_empty(len(rows) + missing, rows.shape[1])
    filled[: len(rows)] = rows
    filled[len(rows) :] = 0
    return filled


def _in_its_order(weight: Tensor) -> Tensor:
    """The weight as oneDNN or MKL reads it fastest, where it is sure not to change."""
    if not _Frozen.users:
        return weight
    key = (weight.data_ptr(), weight.shape, weight.stride())
    known = _Frozen.reordered.get(key)
    if known is None:
        if _ONEDNN_PAYS:
            ordered = torch.ops.mkldnn._reorder_linear_weight(weight, _USUAL_ROWS)
        else:
            ordered = torch.ops.mkl._mkl_reorder_linear_weight(weight, _USUAL_ROWS)
        # With the weight's memory, so that no other one takes its place there meanwhile.
        known = _Frozen.reordered[key] = weight.detach(), ordered
    return known[1]


def _onednn(left: Tensor, right: Tensor, bias: Tensor | None = None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(left, right, bias, "none", [], "")

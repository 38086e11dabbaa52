"""Products of activations with weights, by the fastest library that torch has on this processor.

For fp32 on a CPU torch uses MKL, which does not use AVX-512 on AMD processors. There oneDNN is
twice as fast. On Intel processors MKL is faster at every shape.

Letters in shapes: m rows (positions of all sentences), k width of inputs, n width of outputs.
"""

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

# A new shape costs oneDNN a millisecond, so rows are filled up to a multiple, a smaller one in a
# search, whose sentences leave one by one.
ROWS = 64
ROWS_FORWARD = 16
# Multiplications below which torch's products are as fast: in training, in a search.
LEAST = 3 << 20
LEAST_FORWARD = 1 << 18


_PROCESSOR = Path("/proc/cpuinfo")  # of Linux
_ONEDNN_PAYS = (
    torch.backends.mkldnn.is_available()
    and torch.backends.mkl.is_available()
    and "AVX512" in torch.backends.cpu.get_cpu_capability()
    and _PROCESSOR.exists()
    and "AuthenticAMD" in _PROCESSOR.read_text()
)


class Linear(nn.Linear):
    """torch's layer by way of `linear`."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Return outputs [..., n] of inputs [..., k]."""
        return linear(inputs, self.weight, self.bias)


def linear(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return inputs [..., k] times the transposed weight [n, k], plus the bias [n]: [..., n]."""
    rows = inputs.numel() // max(1, inputs.shape[-1])
    multiplications, trained = rows * weight.numel(), torch.is_grad_enabled()
    if not _by_onednn(inputs, multiplications, LEAST if trained else LEAST_FORWARD):
        return functional.linear(inputs, weight, bias)
    flat = inputs.reshape(rows, -1)
    if trained:
        flat = _OneDnn.apply(flat, weight, bias)
    else:
        flat = _onednn(_fill(flat, ROWS_FORWARD), weight, bias)[:rows]
    return flat.view(*inputs.shape[:-1], len(weight))


def matmul_transposed(left: Tensor, right: Tensor) -> Tensor:
    """Return left [m, k] times the transposed right [n, k]: [m, n], without a gradient."""
    if not _by_onednn(left, len(left) * right.numel(), LEAST):
        return left @ right.t()
    return _onednn(_fill(left), right)[: len(left)]


def weight_gradient(upstream: Tensor, inputs: Tensor) -> Tensor:
    """Return the gradient [n, k] of a weight: transposed upstream [m, n] times inputs [m, k]."""
    if not _by_onednn(inputs, upstream.numel() * inputs.shape[1], LEAST):
        return upstream.t() @ inputs
    return _narrower_first(_fill(upstream), _fill(inputs))


def _by_onednn(inputs: Tensor, multiplications: int, least: int) -> bool:
    """Return True for products where oneDNN is faster, by shapes alone, to repeat runs exactly."""
    return (
        _ONEDNN_PAYS
        and not torch.compiler.is_compiling()  # which chooses by itself
        and multiplications >= least
        and inputs.dtype == torch.float32
        and inputs.device.type == "cpu"
        and not torch.is_autocast_enabled("cpu")
    )


class _OneDnn(torch.autograd.Function):
    """Linear layer of inputs [m, k] with three products by oneDNN."""

    @staticmethod
    def forward(ctx, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Return outputs [m, n]."""
        filled = _fill(inputs)
        ctx.save_for_backward(filled, weight)
        ctx.rows = len(inputs)
        return _onednn(filled, weight, bias)[: ctx.rows]

    @staticmethod
    @once_differentiable
    def backward(ctx, upstream: Tensor) -> tuple[Tensor | None, ...]:
        """Return gradients by inputs, weight and bias, where they are needed."""
        inputs, weight = ctx.saved_tensors
        by_inputs, by_weight, by_bias = ctx.needs_input_grad
        filled = _fill(upstream)
        return (
            _onednn(filled, weight.t())[: ctx.rows] if by_inputs else None,
            _narrower_first(filled, inputs) if by_weight else None,
            upstream.sum(0) if by_bias else None,
        )


def _narrower_first(upstream: Tensor, inputs: Tensor) -> Tensor:
    """Return [n, k] from [m, n] and [m, k], with the narrower matrix on the left for speed."""
    if upstream.shape[1] <= inputs.shape[1]:
        return _onednn(upstream.t(), inputs.t())
    return _onednn(inputs.t(), upstream.t()).t()


def _fill(rows: Tensor, multiple: int = ROWS) -> Tensor:
    """Return the rows [m, width] and rows of zeros up to a multiple."""
    missing = -len(rows) % multiple
    return functional.pad(rows, (0, 0, 0, missing)) if missing else rows


def _onednn(left: Tensor, right: Tensor, bias: Tensor | None = None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(left, right, bias, "none", [], "")

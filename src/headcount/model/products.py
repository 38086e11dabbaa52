"""Products of activations with weights, by the fastest library that torch has on this processor.

torch hands fp32 products on a CPU to its BLAS. Where that is MKL and the processor is not Intel's,
it leaves AVX-512 alone, and oneDNN, which torch has as well, is twice as fast; on an Intel one
MKL is the faster of the two at every shape. Letters in shapes: m rows (positions of all
sentences), k width of the inputs, n width of the outputs.
"""

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

# A shape that oneDNN has not seen costs a millisecond, so rows are filled up to a multiple.
ROWS = 64
LEAST = 3 << 20  # multiplications; below, oneDNN with its gradients is slower, filled up or not


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


class Linear(nn.Linear):
    """torch's layer by way of `linear`."""

    def forward(self, inputs: Tensor) -> Tensor:
        """[..., n] of inputs [..., k]."""
        return linear(inputs, self.weight, self.bias)


def linear(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """inputs [..., k] times the transposed weight [n, k], plus the bias [n]: [..., n]."""
    rows = inputs.numel() // max(1, inputs.shape[-1])
    if not _by_onednn(inputs, rows * weight.numel()):
        return functional.linear(inputs, weight, bias)
    flat = inputs.reshape(rows, -1)
    if torch.is_grad_enabled():
        flat = _OneDnn.apply(flat, weight, bias)
    else:
        flat = _rows_by_onednn(flat, weight, bias)
    return flat.view(*inputs.shape[:-1], len(weight))


def product(left: Tensor, right: Tensor) -> Tensor:
    """left [m, k] times the transposed right [n, k]: [m, n], without a gradient."""
    if not _by_onednn(left, len(left) * right.numel()):
        return left @ right.t()
    return _rows_by_onednn(left, right, None)


def weight_gradient(upstream: Tensor, inputs: Tensor) -> Tensor:
    """Transposed upstream [m, n] times inputs [m, k]: [n, k], what a weight gets."""
    if not _by_onednn(inputs, upstream.numel() * inputs.shape[1]):
        return upstream.t() @ inputs
    return _narrower_first(_fill(upstream), _fill(inputs))


def _by_onednn(inputs: Tensor, multiplications: int) -> bool:
    """Whether a product goes to oneDNN; by its shape alone, so that a run can be repeated."""
    return (
        _ONEDNN_PAYS
        and multiplications >= LEAST
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
            _onednn(filled, weight.t(), None)[: ctx.rows] if by_inputs else None,
            _narrower_first(filled, inputs) if by_weight else None,
            upstream.sum(0) if by_bias else None,
        )


def _narrower_first(upstream: Tensor, inputs: Tensor) -> Tensor:
    """[n, k] from [m, n] and [m, k]; faster with the narrower of the two on the left."""
    if upstream.shape[1] <= inputs.shape[1]:
        return _onednn(upstream.t(), inputs.t(), None)
    return _onednn(inputs.t(), upstream.t(), None).t()


def _fill(rows: Tensor) -> Tensor:
    """The rows [m, width], and zeros up to a multiple of ROWS."""
    missing = -len(rows) % ROWS
    if not missing:
        return rows
    filled = rows.new_empty(len(rows) + missing, rows.shape[1])
    filled[: len(rows)] = rows
    filled[len(rows) :] = 0
    return filled


def _rows_by_onednn(left: Tensor, right: Tensor, bias: Tensor | None) -> Tensor:
    return _onednn(_fill(left), right, bias)[: len(left)]


def _onednn(left: Tensor, right: Tensor, bias: Tensor | None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(left, right, bias, "none", [], "")

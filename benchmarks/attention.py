"""Attention of one layer, forward and back: written out beside torch's fused kernel.

Which of the two a processor is faster with depends on how long sentences are: `DenseAttention`
goes by the number of keys. Both must give the same gradients before they are timed.
"""

import argparse
from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.data import add_timing_flags
from benchmarks.measuring import Bench, Contender, Work
from headcount.base import command
from headcount.base.errors import HeadcountError
from headcount.model.attention import DenseAttention

SEED = 1
TOLERANCE = 1e-4
HEADS = 8


def main() -> None:
    """Print a table for every length and width of heads."""
    args = _parser().parse_args()
    bench = Bench(args)
    for width in args.widths:
        for length in args.lengths:
            print(_compare(bench, length, width, args.tokens), end="\n\n")


def _compare(bench: Bench, length: int, width: int, tokens: int) -> str:
    """The table of one shape. Raises HeadcountError if the two do not agree."""
    torch.manual_seed(SEED)
    sentences = max(1, tokens // length)
    shape = (3, sentences, HEADS, length, width)
    states = torch.randn(shape, device=bench.device, requires_grad=True)
    upstream = torch.randn(shape[1:], device=bench.device)
    mask = torch.ones(sentences, 1, 1, length, dtype=torch.bool, device=bench.device)
    mask[::2, ..., max(1, length * 3 // 4) :] = False
    attention = DenseAttention(mask)
    ways = {"written out": attention.written_out, "fused kernel": attention.fused}
    gradients = [_step(way, states, upstream) for way in ways.values()]
    if not torch.allclose(*gradients, atol=TOLERANCE):
        raise HeadcountError("the two ways differ in their gradients; look for the fault first")
    pairs = sentences * HEADS * length**2
    work = Work({"tokens": sentences * length}, flops=3 * 4 * pairs * width)
    return bench.measure(
        [
            Contender(name, lambda way=way: _step(way, states, upstream), work)
            for name, way in ways.items()
        ],
        f"## {length} keys, heads of width {width}",
    )


def _step(way: Callable[..., Tensor], states: Tensor, upstream: Tensor) -> Tensor:
    """Gradient by queries, keys and values [3, b, h, k, e] of one pass and its way back."""
    states.grad = None
    way(*states.unbind(0)).backward(upstream)
    return states.grad.clone()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    add_timing_flags(parser)
    parser.add_argument("--lengths", type=int, nargs="+", default=[12, 24, 32, 48], help="keys")
    parser.add_argument("--widths", type=int, nargs="+", default=[12, 32, 64], help="of a head")
    parser.add_argument("--tokens", type=int, default=1000, help="positions of one batch")
    return parser


if __name__ == "__main__":
    command.run(main)

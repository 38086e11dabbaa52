"""Importance of all heads over a text: this project beside plainer ways to the same numbers.

The plainer ways run HF Marian with our weights, each head's output times a multiplier before W_O:
`multipliers`, one per sentence, nothing else differentiated; `full`, the same with a whole backward
pass, weights included; `single`, one sentence at a time. All must give our numbers before they are
timed.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.data import add_common_flags, read_data, sentence_lengths
from benchmarks.flops import forward_flops
from benchmarks.measuring import Bench, Contender, Work
from benchmarks.peers import add_peers_flag, chosen_peers
from benchmarks.peers.marian import copy_weights, marian_logits, marian_model
from headcount.base import command
from headcount.base.errors import HeadcountError
from headcount.base.settings.heads import ImportanceSettings
from headcount.base.settings.model import PRESETS, ModelSettings
from headcount.data.batches import Batch, ParallelText, in_order
from headcount.data.vocabulary import PAD
from headcount.heads.importance import measure_importance
from headcount.model.transformer import Transformer

PEERS = dict.fromkeys(("multipliers", "full", "single"), "transformers")
TITLES = {
    "multipliers": "Marian, multipliers only",
    "full": "Marian, whole backward",
    "single": "Marian, one sentence at a time",
}
SEED = 1
TOLERANCE = 1e-3  # relative, by which one head's importance may differ


@dataclass(frozen=True)
class Way:
    """One way to the importance of every head: [h], nats per sentence."""

    title: str
    measure: Callable[[], Tensor]


def our_way(model: Transformer, text: ParallelText, settings: ImportanceSettings) -> Way:
    """This project's pass over the text."""
    return Way("ours", lambda: torch.from_numpy(measure_importance(model, text, settings)))


def marian_way(name: str, marian: nn.Module, batches: Sequence[Batch], model: Transformer) -> Way:
    """A plainer way; `batches` hold one pair each for `single`."""
    count = sum(len(batch.indices) for batch in batches)
    marian.requires_grad_(False)

    def measure() -> Tensor:
        total = torch.zeros(model.grid.size, dtype=torch.float64)
        marian.requires_grad_(name == "full")
        for batch in batches:
            slopes = _slopes(marian, batch, model, whole=name == "full")
            total += slopes.abs().sum(0).double().cpu()
            marian.zero_grad(set_to_none=True)
        return total / count

    return Way(TITLES[name], measure)


def _slopes(marian: nn.Module, batch: Batch, model: Transformer, whole: bool) -> Tensor:
    """∂L/∂ξ of every sentence and head, [b, h]; `whole` differentiates the weights as well."""
    ones = torch.ones(
        len(batch.indices), model.grid.size, device=batch.src.device, requires_grad=True
    )
    with multiplied(marian, model, ones):
        scores = marian_logits(marian, batch).flatten(0, 1)
    targets = batch.tgt_out.flatten()
    loss = functional.cross_entropy(scores, targets, ignore_index=PAD, reduction="sum")
    if whole:
        loss.backward()
        return ones.grad
    return torch.autograd.grad(loss, ones)[0]


@contextmanager
def multiplied(marian: nn.Module, model: Transformer, multiplier: Tensor) -> Iterator[None]:
    """Context in which every head's output in Marian is multiplied before W_O.

    `multiplier` is [b, h], in the flat order of our model's grid.
    """

    def hook(own: Tensor) -> Callable[[nn.Module, tuple[Tensor]], Tensor]:
        def multiply(_: nn.Module, inputs: tuple[Tensor]) -> Tensor:
            context = inputs[0]  # [b, q, h · e]
            by_head = context.unflatten(2, (own.shape[1], -1))
            return (by_head * own[:, None, :, None]).flatten(2)

        return multiply

    handles = [
        attention.out_proj.register_forward_pre_hook(hook(model.part(multiplier, kind, layer)))
        for kind, layer, attention in _attentions(marian)
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _attentions(marian: nn.Module) -> Iterator[tuple[str, int, nn.Module]]:
    for number, layer in enumerate(marian.model.encoder.layers):
        yield "enc_self", number, layer.self_attn
    for number, layer in enumerate(marian.model.decoder.layers):
        yield "dec_self", number, layer.self_attn
        yield "dec_enc", number, layer.encoder_attn


def check_agreement(ways: Sequence[Way]) -> None:
    """Print how far each way's numbers are from ours. Raises HeadcountError if they are others."""
    ours = ways[0].measure()
    for way in ways[1:]:
        gap = ((way.measure() - ours).abs() / ours).max().item()
        print(f"{way.title}: importance within {gap:.1e} of ours")
        if not gap < TOLERANCE:
            raise HeadcountError(f"{way.title}: expected the numbers of ours; this is a bug")


def one_by_one(text: ParallelText, device: torch.device) -> list[Batch]:
    """A batch for each pair."""
    return [text.batch([number], device) for number in range(len(text))]


def main() -> None:
    """Check, measure, and print one table."""
    args = _flags().parse_args()
    peers = chosen_peers(args.peers, PEERS)
    data = read_data(args.data)
    bench = Bench(args)
    text = ParallelText(data.dev.src[: args.sentences], data.dev.tgt[: args.sentences])
    sizes = ModelSettings(preset=args.preset, norm="post")  # Marian knows no other
    torch.manual_seed(SEED)
    model = Transformer(sizes, len(data.words), len(data.words), joint=True).to(bench.device)
    settings = ImportanceSettings(batch_tokens=args.batch_tokens)
    ways = [our_way(model, text, settings)]
    batches = list(in_order(text, args.batch_tokens, bench.device))
    for name in peers:
        marian = marian_model(sizes, len(data.words)).to(bench.device).eval()
        copy_weights(model, marian)
        given = one_by_one(text, bench.device) if name == "single" else batches
        ways.append(marian_way(name, marian, given, model))
    check_agreement(ways)
    lengths = [pair for batch in batches for pair in sentence_lengths(batch)]
    # Forward once, and backward through the states but not to the weights as much again.
    flops = 2 * forward_flops(sizes, len(data.words), lengths)
    units = {"sentences": float(len(text)), "tokens": float(sum(map(sum, lengths)))}
    contenders = [Contender(way.title, way.measure, Work(units, flops)) for way in ways]
    title = f"Importance of {model.grid.size} heads, {args.preset}, {len(text)} sentences."
    print(bench.measure(contenders, title))


def _flags() -> argparse.ArgumentParser:
    parser = command.parser(__doc__)
    add_common_flags(parser)
    add_peers_flag(parser, PEERS)
    parser.add_argument("--preset", default="small", choices=PRESETS, help="sizes of all models")
    parser.add_argument("--sentences", type=int, default=1014, help="of the dev set, at most")
    parser.add_argument("--batch-tokens", type=int, default=4096, help="budget of one batch")
    return parser


if __name__ == "__main__":
    command.run(main)

"""Beam search: this project beside CTranslate2 and HF generate, with the very same weights.

`--model` is a folder that training wrote. Before anything is timed, each peer must give our
log-probabilities for the references, and our translations where no length penalty enters: with one
they differ by right, for ours divides by ((5 + length) / 6)^α, the peers by length^α.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import torch

from benchmarks.data import add_common_flags, read_data
from benchmarks.flops import forward_flops
from benchmarks.measuring import Bench, Contender, Work
from benchmarks.peers import add_peers_flag, chosen_peers
from benchmarks.peers.engines import PEERS, Engine, Task, engines, reference_scores
from headcount.base import command
from headcount.base.errors import HeadcountError, UserError
from headcount.base.settings.decode import FP32, ComputeType, DecodeSettings
from headcount.data.batches import Ids, ParallelText
from headcount.model.machine import pick_device
from headcount.model.transformer import Transformer
from headcount.search.beam_search import translate
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder

NATS = 1e-3  # by which one token's log-probability may differ between two engines in fp32
AGREEING = 0.99  # share of sentences that two engines in fp32 must translate alike


def check_agreement(task: Task, found: Sequence[Engine]) -> None:
    """Print how far each engine is from ours. Raises HeadcountError where one is not the same.

    References: the largest difference in log-probability, per token. Translations without length
    penalty: the share that is the same, and the mean log-probability that our model gives them.
    """
    ours, references = found[0].translate(0.0), found[0].score()
    print(f"{found[0].name}: {_mean_score(task, ours):.4f} nats a translation")
    for engine in found[1:]:
        theirs = engine.translate(0.0)
        same = sum(a == b for a, b in zip(ours, theirs, strict=True)) / len(ours)
        line = f"{engine.name}: {_mean_score(task, theirs):.4f} nats, {same:.1%} as ours"
        if engine.score is not None:
            gap = max(
                abs(a - b) / (len(ids) + 1)
                for a, b, ids in zip(references, engine.score(), task.text.tgt, strict=True)
            )
            line += f", references within {gap:.1e} nats a token"
            if gap > NATS or same < AGREEING:
                raise HeadcountError(f"{line}; expected the same model: this is a bug")
        print(line)


def contender(task: Task, engine: Engine) -> Contender:
    """The engine at the length penalty of the task; runs it once for the length of its output."""
    alpha = task.settings.length_penalty
    lengths = [
        (len(source) + 1, len(ids) + 1)
        for source, ids in zip(task.text.src, engine.translate(alpha), strict=True)
    ]
    units = {"sentences": float(len(lengths)), "tokens": float(sum(t for _, t in lengths))}
    sizes = task.model.settings
    flops = forward_flops(sizes, len(task.words), lengths, task.settings.beam)
    return Contender(engine.name, lambda: engine.translate(alpha), Work(units, flops))


def main() -> None:
    """Check, measure, and print one table."""
    args = _flags().parse_args()
    peers = chosen_peers(args.peers, PEERS)
    bench = Bench(args)
    task = _task(args)
    with tempfile.TemporaryDirectory() as folder:
        found = engines(task, peers, args.compute_types, Path(folder))
        torch.set_num_threads(args.threads)  # making a CTranslate2 translator changes it
        check_agreement(task, found)
        contenders = [contender(task, engine) for engine in found]
        sizes = task.model.settings
        title = (
            f"Beam {args.beam}, α {args.length_penalty}, {len(task.text)} sentences, "
            f"{sizes.encoder_layers} + {sizes.decoder_layers} layers of {sizes.d_model}."
        )
        print(bench.measure(contenders, title))


def _flags() -> argparse.ArgumentParser:
    parser = command.parser(__doc__)
    add_common_flags(parser)
    add_peers_flag(parser, PEERS)
    formats = {"nargs": "+", "choices": get_args(ComputeType), "default": [FP32, "int8"]}
    parser.add_argument("--compute-types", help="number formats of CTranslate2", **formats)
    parser.add_argument("--model", required=True, type=Path, help="folder of the model")
    parser.add_argument("--sentences", type=int, default=1014, help="of the dev set, at most")
    parser.add_argument("--beam", type=int, default=5, help="hypotheses kept per sentence")
    parser.add_argument("--length-penalty", type=float, default=0.6, help="α of every engine")
    parser.add_argument("--batch-tokens", type=int, default=4096, help="budget of one batch")
    return parser


def _task(args: argparse.Namespace) -> Task:
    ModelFolder(args.model).check(PairFolder(args.data))
    data = read_data(args.data)
    settings = DecodeSettings(
        beam=args.beam,
        length_penalty=args.length_penalty,
        batch_tokens=args.batch_tokens,
        device=args.device,
        threads=args.threads,
    )
    device = pick_device(args.device)
    model = ModelFolder(args.model).load(args.device)
    text = ParallelText(data.dev.src[: args.sentences], data.dev.tgt[: args.sentences])
    text = ended_by_themselves(model, text, settings)
    return Task(model, data.words, text, settings, device)


def ended_by_themselves(
    model: Transformer, text: ParallelText, settings: DecodeSettings
) -> ParallelText:
    """The pairs whose translation the model ends, with the length penalty and without.

    Others go on up to the longest output allowed, which is another one in every engine.
    """
    ended = [bool(ids) for ids in text.src]
    for alpha in {0.0, settings.length_penalty}:
        search = settings.model_copy(update={"length_penalty": alpha})
        found = translate(model, text.src, search)
        ended = [
            before and not each.hit_max_length for before, each in zip(ended, found, strict=True)
        ]
    kept = [number for number, each in enumerate(ended) if each]
    if not kept:
        raise UserError("--model: it ends no translation by itself; name one trained for longer")
    if len(kept) < len(text):
        print(f"left out: {len(text) - len(kept)} sentences that the model does not end\n")
    return ParallelText([text.src[i] for i in kept], [text.tgt[i] for i in kept])


def _mean_score(task: Task, translations: list[Ids]) -> float:
    """Mean log-probability, in nats, that our model gives to translations; larger is better."""
    losses = reference_scores(task, ParallelText(task.text.src, translations))
    return -sum(losses) / len(losses)


if __name__ == "__main__":
    command.run(main)

"""Memory of one task of ours or of HF Marian, before the work and at its highest, as JSON.

`benchmarks.memory` runs this once for each, for a process counts all that it has ever held.
Decoding is that of an untrained model, every sentence as long as allowed: the worst case.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks import FOLDER
from benchmarks.data import BenchData, read_data
from benchmarks.peers.engines import Task, marian_engine, our_engine
from benchmarks.results.child import peak_bytes
from benchmarks.training import first_batches, make_peer, our_trainer, peer_training
from headcount.base import command
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.model import PRESETS, ModelSettings
from headcount.base.settings.train import TrainSettings
from headcount.data.batches import ParallelText
from headcount.model.machine import pick_device, use_threads
from headcount.model.transformer import Transformer

SEED = 1
_MEGABYTE = 1e6


def prepare(args: argparse.Namespace, data: BenchData, folder: Path) -> Callable[[], object]:
    """The work of one task and one contender, ready to run."""
    sizes = ModelSettings(preset=args.preset, norm="post")  # Marian knows no other
    if args.task == "training":
        settings = TrainSettings(
            precision=args.precision,
            batch_tokens=args.batch_tokens,
            device=args.device,
            threads=args.threads,
        )
        return _training(args.who, args.updates, data, sizes, settings, folder)
    torch.manual_seed(SEED)
    device = pick_device(args.device)
    model = Transformer(sizes, len(data.words), len(data.words), joint=True).to(device)
    text = ParallelText(data.dev.src[: args.sentences], data.dev.tgt[: args.sentences])
    settings = DecodeSettings(beam=args.beam, batch_tokens=args.batch_tokens, device=args.device)
    task = Task(model, data.words, text, settings, device)
    engine = our_engine(task) if args.who == "ours" else marian_engine(task)
    return lambda: engine.translate(settings.length_penalty)


def _training(
    who: str,
    updates: int,
    data: BenchData,
    sizes: ModelSettings,
    settings: TrainSettings,
    folder: Path,
) -> Callable[[], object]:
    if who == "ours":
        trainer = our_trainer(data, sizes, settings, folder)
        trainer.repeat(updates)
        return lambda: trainer.run(updates)
    batches = first_batches(data, settings, updates)
    return peer_training(make_peer(who, data.words, sizes, settings), batches, settings)


def measure(args: argparse.Namespace) -> dict[str, float]:
    """Megabytes held before the work and at the highest; on a GPU also those of its memory."""
    use_threads(args.threads)
    data = read_data(args.data)
    with tempfile.TemporaryDirectory() as folder:
        work = prepare(args, data, Path(folder))
        before = peak_bytes()
        work()
    found = {"before": before, "peak": peak_bytes()}
    if pick_device(args.device).type == "cuda":
        found["GPU peak"] = torch.cuda.max_memory_allocated()
    return {name: size / _MEGABYTE for name, size in found.items()}


def main() -> None:
    """Measure here, and print one line of JSON."""
    print(json.dumps(measure(_flags().parse_args())))


def _flags() -> argparse.ArgumentParser:
    parser = command.parser(__doc__)
    parser.add_argument("--data", type=Path, default=FOLDER, help="folder of the segmented pair")
    parser.add_argument("--preset", default="small", choices=PRESETS, help="sizes of all models")
    parser.add_argument("--batch-tokens", type=int, default=4096, help="budget of one batch")
    parser.add_argument("--precision", default="fp32", choices=("fp32", "bf16"))
    parser.add_argument("--updates", type=int, default=8, help="updates of training")
    parser.add_argument("--sentences", type=int, default=200, help="of the dev set, to decode")
    parser.add_argument("--beam", type=int, default=5, help="hypotheses kept per sentence")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="CPU threads")
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--task", required=True, choices=("training", "decoding"))
    parser.add_argument("--who", required=True, choices=("ours", "marian"))
    return parser


if __name__ == "__main__":
    command.run(main)

"""What an update costs with Random-N and with Impt-N, beside the baseline's.

All three go through the same batches, from the same weights, in turns. The table's ratio is the
cost of a method's updates in those of the baseline; wanted: 1.03 for random, 1.7 for impt.
"""

import argparse
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.data import BenchData, add_common_flags, read_data
from benchmarks.measuring import Bench, Contender
from benchmarks.training import first_batches, our_trainer, work_of
from headcount.base import command
from headcount.base.settings.model import PRESETS, ModelSettings
from headcount.base.settings.train import TrainSettings
from headcount.base.settings.training_runs import RunSettings

METHODS = ("baseline", "random", "importance")


def contenders(
    data: BenchData, model: ModelSettings, settings: TrainSettings, args: argparse.Namespace
) -> list[Contender]:
    """The baseline first, then the two methods, each with a trainer of its own."""
    work = work_of(first_batches(data, settings, args.updates), model, len(data.words))
    found = []
    for method in METHODS:
        share = None if method == "baseline" else args.share
        run = RunSettings(method=method, share=share).counted(model)
        trainer = our_trainer(data, model, settings, Path(tempfile.gettempdir()), run)
        trainer.repeat(args.updates)
        go = partial(trainer.run, args.updates)
        found.append(Contender(run.label, go, work, settings.precision))
    return found


def main() -> None:
    """Measure, and print one table."""
    args = _flags().parse_args()
    data = read_data(args.data)
    bench = Bench(args)
    model = ModelSettings(preset=args.preset)
    settings = TrainSettings(
        precision=args.precision,
        device=args.device,
        threads=args.threads,
        batch_tokens=args.batch_tokens,
    )
    title = f"HeadMask, {args.preset}: {args.updates} updates of {args.batch_tokens} tokens."
    print(bench.measure(contenders(data, model, settings, args), title))


def _flags() -> argparse.ArgumentParser:
    parser = command.parser(__doc__)
    add_common_flags(parser)
    parser.add_argument("--preset", default="small", choices=PRESETS, help="sizes of the model")
    parser.add_argument("--share", default="12.5%", help="heads to mask")
    parser.add_argument("--precision", default="fp32", choices=("fp32", "bf16"))
    parser.add_argument("--updates", type=int, default=8, help="updates of one run")
    parser.add_argument("--batch-tokens", type=int, default=4096, help="budget of one batch")
    return parser


if __name__ == "__main__":
    command.run(main)

"""Cost of an update with Random-N and with Impt-N, relative to the baseline's.

The three train side by side on the same batches of random ids, one update each in turn, so that
what else the machine does falls on all alike. Prints seconds per update (min, median, max) and the
ratio to the baseline's update on the same batch. On a busy machine CPU seconds of one thread tell
more than those on the wall. Goals: 1.03 for random, 1.7 for impt.
"""

import tempfile
import time
from pathlib import Path

import numpy as np

from headcount.base import command
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.run_names import RunName, parse_run
from headcount.base.settings.train import TrainSettings
from headcount.data.batches import ParallelText
from headcount.model.transformer import Transformer
from headcount.runs.checkpoint import StateStore
from headcount.runs.machine import pick_device, use_threads
from headcount.runs.train import Trainer

CLOCKS = {"wall": time.perf_counter, "CPU": time.process_time}
GOALS = {"random": 1.03, "impt": 1.7}
WARM_UP = 3
SPECIAL = 4  # ids below are no words


def random_text(pairs: int, words: int) -> ParallelText:
    """Pairs of unlike lengths, 5 to 30 subwords a side, as in image captions."""
    draw = np.random.default_rng(1)
    sides = [
        [draw.integers(SPECIAL, words, length).tolist() for length in draw.integers(5, 31, pairs)]
        for _ in range(2)
    ]
    return ParallelText(*sides)


def make_trainer(
    run: RunName, text: ParallelText, words: int, model: ModelSettings, train: TrainSettings
) -> Trainer:
    """A trainer that has not begun; the same data and weights for every run."""
    transformer = Transformer(model, words, words, joint=True).to(pick_device(train.device))
    states = StateStore(Path(tempfile.gettempdir()) / "unused", {}, 1e9)
    dev = ParallelText(text.src[:1], text.tgt[:1])
    return Trainer(transformer, text, dev, train, 1, states, run)


def time_updates(trainers: dict[str, Trainer], rounds: int) -> dict[str, np.ndarray]:
    """Seconds of each update, by run: [rounds, 2], on the wall and of this process's CPU.

    The runs take turns, each round in another order.
    """
    seconds = {name: np.zeros((rounds, len(CLOCKS))) for name in trainers}
    names = list(trainers)
    for turn in range(-WARM_UP, rounds):
        for place in range(len(names)):
            name = names[(turn + place) % len(names)]
            start = [clock() for clock in CLOCKS.values()]
            trainers[name]._update()  # ends by reading the gradient's norm: no work is left over
            taken = [clock() - then for clock, then in zip(CLOCKS.values(), start, strict=True)]
            if turn >= 0:
                seconds[name][turn] = taken
    return seconds


def report(seconds: dict[str, np.ndarray]) -> None:
    """Print a table per clock."""
    for number, clock in enumerate(CLOCKS):
        print(f"{clock:<12}{'min':>9}{'median':>9}{'max':>9} s   ratio min / median / max   goal")
        for name, table in seconds.items():
            own, baseline = table[:, number], seconds["baseline"][:, number]
            times = "".join(f"{value:>9.4f}" for value in spread(own))
            ratios = " / ".join(f"{value:.3f}" for value in spread(own / baseline))
            print(f"{name:<12}{times}     {ratios}   {GOALS.get(name.split('-')[0], '')}")


def spread(values: np.ndarray) -> tuple[float, float, float]:
    """Smallest, median, largest."""
    return values.min(), float(np.median(values)), values.max()


def main() -> None:
    """Read the flags, train side by side, print."""
    parser = command.parser(__doc__)
    parser.add_argument("--preset", default="small", help="sizes of the model")
    parser.add_argument("--share", default="12.5%", help="heads to mask")
    parser.add_argument("--batch-tokens", type=int, default=2000, help="budget of a batch")
    parser.add_argument("--words", type=int, default=8000, help="size of the vocabulary")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--precision", default="fp32", help="fp32 or bf16")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20, help="updates of each run")
    args = parser.parse_args()
    use_threads(args.threads)
    model = ModelSettings(preset=args.preset, dropout=args.dropout)
    train = TrainSettings(batch_tokens=args.batch_tokens, precision=args.precision)
    text = random_text(20 * args.batch_tokens // 18, args.words)
    runs = [
        parse_run(name, model.grid.size)
        for name in ("baseline", f"random-{args.share}", f"impt-{args.share}")
    ]
    trainers = {str(run): make_trainer(run, text, args.words, model, train) for run in runs}
    report(time_updates(trainers, args.rounds))


if __name__ == "__main__":
    command.run(main)

"""The text that benchmarks work on, and the flags that they share."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from benchmarks import FOLDER
from benchmarks.measuring import CLOCKS
from benchmarks.results.record import add_results_flag
from headcount.base.errors import UserError
from headcount.base.files import read_json
from headcount.data.batches import Batch, ParallelText
from headcount.data.vocabulary import Vocabulary
from headcount.store.pair_folder import PairFolder


@dataclass(frozen=True)
class BenchData:
    """A pair under one vocabulary."""

    words: Vocabulary
    train: ParallelText
    dev: ParallelText


def read_data(folder: Path) -> BenchData:
    """The pair in a `data/bpe` folder. Raises UserError if it is not there, or not joint."""
    if not (folder / "segmentation.json").is_file():
        raise UserError(
            f"{folder}: expected a segmented pair, found none; docs/guides/speed.md has the "
            "command that makes it, and --data names another folder"
        )
    if not read_json(folder / "segmentation.json")["joint"]:
        raise UserError(f"{folder}: expected one joint vocabulary, which the peers need; found two")
    pair = PairFolder(folder)
    return BenchData(pair.vocabulary("src"), pair.read("train"), pair.read("dev"))


def sentence_lengths(batch: Batch) -> list[tuple[int, int]]:
    """Real tokens of source and target of each pair of a batch, EOS counted."""
    return list(zip(batch.src_lengths, batch.tgt_lengths, strict=True))


def add_common_flags(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of every benchmark that measures time on a segmented pair."""
    parser.add_argument("--data", type=Path, default=FOLDER, help="folder of the segmented pair")
    add_timing_flags(parser)


def add_timing_flags(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of every benchmark that measures time."""
    parser.add_argument("--threads", type=int, default=2, help="CPU threads of every contender")
    parser.add_argument("--repeats", type=int, default=5, help="measured runs of every contender")
    parser.add_argument("--warm-up", type=int, default=1, help="runs before them, not measured")
    words = "seconds of a table, after which no further round begins"
    parser.add_argument("--at-most", type=float, help=words)
    add_results_flag(parser)
    parser.add_argument(
        "--clock",
        default="wall",
        choices=CLOCKS,
        help="cpu, the processor time of all threads, suits a machine that others use as well; "
        "with one thread, for threads that wait count too",
    )
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))

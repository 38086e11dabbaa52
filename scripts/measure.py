"""Measure models on this machine, in turns: BLEU, megabytes of weights, sentences per second."""

from typing import get_args

from tabulate import tabulate

from headcount.base.command import Flags, flag, path, script
from headcount.base.errors import UserError
from headcount.base.settings.decode import FP32, ComputeType, DecodeSettings
from headcount.model.machine import use_threads
from headcount_hf.export.measured import COLUMNS, write_measured

FORMATS = {"nargs": "+", "choices": get_args(ComputeType), "default": [FP32]}


@script(
    *("[--bpe]", "--source"),
    path("--models", "folders", nargs="+"),
    path("--reference", "translations of the source"),
    flag("--repeats", "measured rounds", type=int, default=5),
    flag("--compute-types", "number formats of CTranslate2, each measured", **FORMATS),
    out="CSV to write",
)
def main(args: Flags, decode: DecodeSettings) -> None:
    if args.repeats < 1:
        raise UserError(f"--repeats: expected at least 1, found {args.repeats}")
    use_threads(decode.threads)
    texts = args.source, args.reference
    files = [path for folder in args.models for path in folder.glob("*") if path.is_file()]
    how = {"repeats": args.repeats, "compute_types": args.compute_types}
    origin = args.origin(files, texts, **how)
    rows = write_measured(args.models, args.bpe, texts, decode, **how, out=args.out, origin=origin)
    print(tabulate([row[:-1] for row in rows], COLUMNS[:-1], floatfmt=".2f"))
    print(f"BLEU: {rows[0][-1]}; low, high: 95 % interval over rounds; threads: {decode.threads}")

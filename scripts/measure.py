"""Measure models on this machine: BLEU, megabytes of weights, sentences per second.

Folders of this project, and exports for CTranslate2 and Hugging Face, take turns: each translates
the whole text in its own program, subwords included, on the CPU, without length penalty.
"""

from pathlib import Path

from tabulate import tabulate

from headcount.base import command
from headcount.base.errors import UserError
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.flags import read_flags
from headcount.model.machine import use_threads
from headcount_hf.export.measured import COLUMNS, write_measured


def main() -> None:
    """Read the flags, measure, write the table and print it."""
    parser = command.parser(__doc__, "[--bpe]", "--source", out="CSV to write")
    parser.add_argument("--models", required=True, nargs="+", type=Path, help="folders")
    parser.add_argument("--reference", required=True, type=Path, help="translations of the source")
    parser.add_argument("--repeats", type=int, default=5, help="measured rounds")
    args, decode = read_flags(parser, DecodeSettings)
    if args.repeats < 1:
        raise UserError(f"--repeats: expected at least 1, found {args.repeats}")
    use_threads(decode.threads)
    texts = args.source, args.reference
    told = {"decode": decode, "repeats": args.repeats}
    files = [path for folder in args.models for path in sorted(folder.glob("*")) if path.is_file()]
    origin = command.provenance("scripts/measure.py", told, None, [*files, *texts])
    rows = write_measured(args.models, args.bpe, texts, decode, args.repeats, args.out, origin)
    print(tabulate([row[:-1] for row in rows], COLUMNS[:-1], floatfmt=".2f"))
    print(
        f"BLEU: {rows[0][-1]}; low and high: 95 % interval over rounds; threads: {decode.threads}"
    )


if __name__ == "__main__":
    command.run(main)

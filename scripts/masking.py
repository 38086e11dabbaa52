"""Translate with one model under many head masks: groups by importance, cumulative, random."""

from pathlib import Path

from headcount.ablation.masked_bleu import MaskedInputs
from headcount.ablation.masking import write_masking
from headcount.base import command
from headcount.base.settings.ablation import MaskingSettings
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.flags import read_flags
from headcount.store.model_folder import open_model


def main() -> None:
    """Read the flags and write BLEU under every mask as CSV, and a JSON beside it."""
    parser = command.parser(__doc__, *command.MASKING, "--seed", out="CSV to write")
    parser.add_argument("--own", required=True, type=Path, help="importance.csv of the model")
    words = "importance.csv of the baseline, to mask by its ranking too"
    parser.add_argument("--baseline", type=Path, help=words)
    args, masking, decode = read_flags(parser, MaskingSettings, DecodeSettings)
    rankings = {"own": args.own} | ({"baseline": args.baseline} if args.baseline else {})
    inputs = MaskedInputs(*open_model(args, decode.threads), args.text, decode)
    files = [*inputs.files(masking.test_sets), *rankings.values()]
    shown = {"masking": masking, "decode": decode}
    origin = command.provenance("scripts/masking.py", shown, args.seed, files)
    write_masking(inputs, rankings, masking, args.seed, args.out, origin)


if __name__ == "__main__":
    command.run(main)

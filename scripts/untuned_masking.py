"""Translate with heads masked and nothing fine-tuned, as many as each gates run closed."""

from pathlib import Path

from headcount.ablation.masked_bleu import MaskedInputs
from headcount.ablation.masking import write_untuned
from headcount.base import command
from headcount.base.errors import UserError
from headcount.base.settings.ablation import MaskingSettings
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.flags import read_flags, read_run_flag
from headcount.base.settings.runs import PrunedSettings
from headcount.store.model_folder import open_model


def main() -> None:
    """Read the flags and write BLEU under every mask as CSV, and a JSON beside it."""
    parser = command.parser(__doc__, *command.MASKING, "--seed", "--importance", out="CSV to write")
    parser.add_argument("--runs", required=True, nargs="+", help="gates runs that started from it")
    parser.add_argument("--gates", required=True, nargs="+", type=Path, help="heads.csv of each")
    args, masking, decode = read_flags(parser, MaskingSettings, DecodeSettings)
    if len(args.runs) != len(args.gates):
        raise UserError(f"--gates: expected {len(args.runs)} files, found {len(args.gates)}")
    inputs = MaskedInputs(*open_model(args, decode.threads), args.text, decode)
    model = inputs.model.settings
    runs = [read_run_flag(name, PrunedSettings, model, "gates") for name in args.runs]
    gates = dict(zip(runs, args.gates, strict=True))
    files = [*inputs.files(masking.test_sets), args.importance, *args.gates]
    shown = {"masking": masking, "decode": decode}
    origin = command.provenance("scripts/untuned_masking.py", shown, args.seed, files)
    write_untuned(inputs, args.importance, gates, masking, args.seed, args.out, origin)


if __name__ == "__main__":
    command.run(main)

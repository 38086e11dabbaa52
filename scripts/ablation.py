"""Translate without each head of one model, and with one head alone in each of its layers."""

from headcount.ablation.ablation import with_dev, write_ablation
from headcount.ablation.masked_bleu import MaskedInputs
from headcount.base import command
from headcount.base.settings.ablation import AblationSettings
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.flags import read_flags
from headcount.store.model_folder import open_model


def main() -> None:
    """Read the flags and write BLEU under every mask as CSV, and a JSON beside it."""
    parser = command.parser(__doc__, *command.MASKING, out="CSV to write")
    args, ablation, decode = read_flags(parser, AblationSettings, DecodeSettings)
    inputs = MaskedInputs(*open_model(args, decode.threads), args.text, decode)
    shown = {"ablation": ablation, "decode": decode}
    files = inputs.files(with_dev(ablation))
    origin = command.provenance("scripts/ablation.py", shown, None, files)
    write_ablation(inputs, ablation, args.out, origin)


if __name__ == "__main__":
    command.run(main)

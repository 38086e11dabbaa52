"""Prune one model at points of its training: importance at each, and BLEU by step."""

from pathlib import Path

from headcount.ablation.ablation import first_test
from headcount.ablation.masked_bleu import MaskedInputs
from headcount.ablation.pruning_profile import by_update, write_training_profile
from headcount.base import command
from headcount.base.settings.ablation import AblationSettings, RerankSettings
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.flags import read_flags
from headcount.store.model_folder import open_model


def main() -> None:
    """Read the flags and write BLEU of every step as CSV, and a JSON and the heads beside it."""
    parser = command.parser(__doc__, *command.MASKING, out="CSV to write")
    words = "<update>.safetensors of each"
    parser.add_argument("--checkpoints", required=True, nargs="+", type=Path, help=words)
    asked = (AblationSettings, RerankSettings, DecodeSettings)
    args, ablation, importance, decode = read_flags(parser, *asked)
    inputs = MaskedInputs(*open_model(args, decode.threads), args.text, decode)
    checkpoints = by_update(args.checkpoints, ablation.updates)
    shown = {"ablation": ablation, "importance": importance, "decode": decode}
    files = [*inputs.files(first_test(ablation)), *args.checkpoints]
    files += inputs.pair.texts(importance.data)
    origin = command.provenance("scripts/training_profile.py", shown, None, files)
    write_training_profile(inputs, checkpoints, ablation, importance, args.out, origin)


if __name__ == "__main__":
    command.run(main)

"""Prune one model at points of its training: importance at each, and BLEU by step."""

from pathlib import Path

from headcount.ablation.ablation import first_test
from headcount.ablation.masked_bleu import MaskedInputs
from headcount.ablation.training_profile import by_update, write_training_profile
from headcount.base import command
from headcount.base.results import provenance
from headcount.base.settings.ablation import AblationSettings, RerankSettings
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.flags import read_flags
from headcount.model.machine import use_threads
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder


def main() -> None:
    """Read the flags and write BLEU of every step as CSV, and a JSON and the heads beside it."""
    parser = command.parser(__doc__, *command.MASKING, out="CSV to write")
    parser.add_argument(
        "--checkpoints", required=True, nargs="+", type=Path, help="<update>.safetensors of each"
    )
    asked = (AblationSettings, RerankSettings, DecodeSettings)
    args, ablation, importance, decode = read_flags(parser, *asked)
    use_threads(decode.threads)
    model, pair = ModelFolder(args.model), PairFolder(args.bpe)
    inputs = MaskedInputs(model, pair, args.text, decode)
    checkpoints = by_update(args.checkpoints, ablation.updates)
    shown = {"ablation": ablation, "importance": importance, "decode": decode}
    files = [*inputs.files(first_test(ablation)), *args.checkpoints]
    files += pair.texts(importance.data)
    origin = provenance("scripts/training_profile.py", shown, None, files)
    write_training_profile(inputs, checkpoints, ablation, importance, args.out, origin)


if __name__ == "__main__":
    command.run(main)

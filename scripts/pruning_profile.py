"""Translate with more and more heads of one model pruned: by importance, by effect, at random."""

from pathlib import Path

from headcount.ablation.ablation import first_test
from headcount.ablation.masked_bleu import MaskedInputs
from headcount.ablation.pruning_profile import write_profile
from headcount.base import command
from headcount.base.settings.ablation import AblationSettings, RerankSettings
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.flags import read_flags
from headcount.heads.measures_files import files_of
from headcount.store.model_folder import open_model


def main() -> None:
    """Read the flags and write BLEU of every step as CSV, and a JSON and the areas beside it."""
    parser = command.parser(__doc__, *command.MASKING, "--seed", "--importance", out="CSV to write")
    parser.add_argument("--ablation", required=True, type=Path, help="ablation.csv of the model")
    parser.add_argument("--measured", type=Path, help="measures.csv of the model: more orders")
    asked = (AblationSettings, RerankSettings, DecodeSettings)
    args, ablation, importance, decode = read_flags(parser, *asked)
    inputs = MaskedInputs(*open_model(args, decode.threads), args.text, decode)
    shown = {"ablation": ablation, "importance": importance, "decode": decode}
    files = [*inputs.files(first_test(ablation)), args.importance, args.ablation]
    if ablation.reestimate or ablation.signed:
        files += inputs.pair.texts(importance.data)
    files += files_of(args.measured) if args.measured else []
    origin = command.provenance("scripts/pruning_profile.py", shown, args.seed, files)
    measured = (args.importance, args.ablation, args.measured)
    write_profile(inputs, *measured, ablation, importance, args.seed, args.out, origin)


if __name__ == "__main__":
    command.run(main)

"""Translate with more and more heads of one model pruned: by importance, by effect, at random."""

from headcount.ablation.masked_bleu import MaskedInputs
from headcount.ablation.masking import first_test
from headcount.ablation.pruning_profile import write_profile
from headcount.base.command import MASKING, Flags, path, script
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.heads import AblationSettings, RerankSettings
from headcount.heads.measures_files import files_of
from headcount.store.model_folder import open_model

MEASURED = (
    path("--ablation", "ablation.csv of the model"),
    path("[--measured]", "measures.csv of the model: more orders"),
)


@script(*MASKING, "--seed", "--importance", *MEASURED, out="CSV to write")
def main(
    args: Flags, ablation: AblationSettings, importance: RerankSettings, decode: DecodeSettings
) -> None:
    inputs = MaskedInputs(*open_model(args, decode.threads), args.text, decode, args.metrics)
    files = [*inputs.files(first_test(ablation)), args.importance, args.ablation]
    if ablation.signed:
        files += inputs.pair.texts(importance.data)
    files += files_of(args.measured) if args.measured else []
    rankings = (args.importance, args.ablation, args.measured)
    settings = (ablation, importance, args.seed)
    write_profile(inputs, *rankings, *settings, args.out, args.origin(files))

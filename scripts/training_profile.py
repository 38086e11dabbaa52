"""Prune one model at points of its training: importance at each, and BLEU by step."""

from headcount.ablation.masked_bleu import MaskedInputs
from headcount.ablation.masking import first_test
from headcount.ablation.pruning_profile import by_update, write_training_profile
from headcount.base.command import MASKING, Flags, path, script
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.heads import AblationSettings, RerankSettings
from headcount.store.model_folder import open_model

CHECKPOINTS = path("--checkpoints", "<update>.safetensors of each", nargs="+")


@script(*MASKING, CHECKPOINTS, out="CSV to write")
def main(
    args: Flags, ablation: AblationSettings, importance: RerankSettings, decode: DecodeSettings
) -> None:
    inputs = MaskedInputs(*open_model(args, decode.threads), args.text, decode, args.metrics)
    checkpoints = by_update(args.checkpoints, ablation.updates)
    files = [*inputs.files(first_test(ablation)), *args.checkpoints]
    origin = args.origin(files, inputs.pair.texts(importance.data))
    write_training_profile(inputs, checkpoints, ablation, importance, args.out, origin)

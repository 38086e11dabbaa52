"""Translate with heads masked and nothing fine-tuned, as many as each gates run closed."""

from headcount.ablation.masked_bleu import MaskedInputs
from headcount.ablation.masking import write_untuned
from headcount.base.command import MASKING, Flags, flag, path, script
from headcount.base.errors import UserError
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.flags import read_run_flag
from headcount.base.settings.heads import MaskingSettings
from headcount.base.settings.runs import PrunedSettings
from headcount.store.model_folder import open_model


@script(
    *(*MASKING, "--seed", "--importance"),
    flag("--runs", "gates runs that started from it", nargs="+"),
    path("--gates", "heads.csv of each", nargs="+"),
    out="CSV to write",
)
def main(args: Flags, masking: MaskingSettings, decode: DecodeSettings) -> None:
    if len(args.runs) != len(args.gates):
        raise UserError(f"--gates: expected {len(args.runs)} files, found {len(args.gates)}")
    inputs = MaskedInputs(*open_model(args, decode.threads), args.text, decode, args.metrics)
    model = inputs.model.settings
    runs = [read_run_flag(name, PrunedSettings, model) for name in args.runs]
    gates = dict(zip(runs, args.gates, strict=True))
    origin = args.origin(inputs.files(masking.test_sets), args.importance, args.gates)
    write_untuned(inputs, args.importance, gates, masking, args.seed, args.out, origin)

"""Measure what pruning and CTranslate2 save, in turns: size, memory, seconds, BLEU and chrF."""

from headcount.base.command import Flags, flag, path, script
from headcount.base.errors import UserError
from headcount.base.folders import TRAINING
from headcount.base.settings.decode import DecodeSettings, SavingsSettings
from headcount.model.machine import use_threads
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder
from headcount_hf.export.savings import write_savings


@script(
    *("--bpe", "--source", "--metrics"),
    path("--reference", "translations of the source"),
    flag("--runs", "names of the runs, the whole model first", nargs="+"),
    path("--models", "a model's folder for each run", nargs="+"),
    out="CSV to write",
)
def main(args: Flags, savings: SavingsSettings, decode: DecodeSettings) -> None:
    if len(args.runs) != len(args.models):
        raise UserError(f"--models: expected {len(args.runs)} folders, found {len(args.models)}")
    use_threads(savings.threads)
    models = dict(zip(args.runs, map(ModelFolder, args.models), strict=True))
    pair, texts = PairFolder(args.bpe), (args.source, args.reference)
    files = [file for model in models.values() for file in model.files]
    origin = args.origin(files, pair.files(TRAINING), texts)
    write_savings(models, pair, texts, savings, decode, args.out, origin, args.metrics)

"""Translate with heads masked and nothing fine-tuned, as many as each gates run closed."""

from pathlib import Path

from headcount.ablation.untuned_masking import UntunedInputs, write_untuned
from headcount.base import command
from headcount.base.errors import UserError
from headcount.base.results import provenance
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.flags import add_flags, from_flags, read_run_flag
from headcount.base.settings.masking import MaskingSettings
from headcount.base.settings.model import ModelSettings
from headcount.base.settings.pair import parse_pair
from headcount.base.settings.runs import PrunedSettings
from headcount.model.machine import use_threads
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder


def main() -> None:
    """Read the flags and write BLEU under every mask as CSV, and a JSON beside it."""
    parser = command.parser(__doc__)
    command.add_masking_flags(parser)
    parser.add_argument("--seed", required=True, type=int, help="seed of the random heads")
    parser.add_argument("--importance", required=True, type=Path, help="the model's ranking")
    parser.add_argument("--runs", required=True, nargs="+", help="gates runs that started from it")
    parser.add_argument("--gates", required=True, nargs="+", type=Path, help="heads.csv of each")
    for section in (ModelSettings, MaskingSettings, DecodeSettings):
        add_flags(parser, section)
    args = parser.parse_args()
    if len(args.runs) != len(args.gates):
        raise UserError(f"--gates: expected {len(args.runs)} files, found {len(args.gates)}")
    masking, decode = from_flags(args, MaskingSettings), from_flags(args, DecodeSettings)
    use_threads(decode.threads)
    heads = from_flags(args, ModelSettings).grid.size
    runs = [read_run_flag(name, PrunedSettings, heads, "gates") for name in args.runs]
    gates = dict(zip(runs, args.gates, strict=True))
    model, pair = ModelFolder(args.model), PairFolder(args.bpe)
    inputs = UntunedInputs(model, pair, args.text, args.importance, gates)
    shown = {"masking": masking.model_dump(), "decode": decode.model_dump()}
    origin = provenance("scripts/untuned_masking.py", shown, args.seed, inputs.files(masking))
    language = parse_pair(args.pair).tgt
    write_untuned(inputs, masking, decode, language, args.seed, args.out, origin)


if __name__ == "__main__":
    command.run(main)

"""Translate with more and more heads of one model pruned: by importance, by effect, at random."""

from pathlib import Path

from headcount.ablation.pruning_profile import ProfileInputs, write_profile
from headcount.base import command
from headcount.base.results import provenance
from headcount.base.settings.ablation import AblationSettings, RerankSettings
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.flags import add_flags, from_flags
from headcount.base.settings.pair import parse_pair
from headcount.model.machine import use_threads
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder


def main() -> None:
    """Read the flags and write BLEU of every step as CSV, and a JSON and the areas beside it."""
    parser = command.parser(__doc__)
    command.add_masking_flags(parser)
    parser.add_argument("--seed", required=True, type=int, help="seed of the random orders")
    parser.add_argument("--importance", required=True, type=Path, help="the model's ranking")
    parser.add_argument("--ablation", required=True, type=Path, help="ablation.csv of the model")
    for section in (AblationSettings, RerankSettings, DecodeSettings):
        add_flags(parser, section)
    args = parser.parse_args()
    sections = [from_flags(args, kind) for kind in (AblationSettings, RerankSettings)]
    decode = from_flags(args, DecodeSettings)
    use_threads(decode.threads)
    model, pair = ModelFolder(args.model), PairFolder(args.bpe)
    inputs = ProfileInputs(model, pair, args.text, args.importance, args.ablation)
    names = ("ablation", "importance", "decode")
    shown = {n: s.model_dump() for n, s in zip(names, [*sections, decode], strict=True)}
    files = set(inputs.files(sections[0]))
    if sections[0].reestimate:
        files |= set(pair.texts(sections[1].data))
    origin = provenance("scripts/pruning_profile.py", shown, args.seed, list(files))
    language = parse_pair(args.pair).tgt
    write_profile(inputs, *sections, decode, language, args.seed, args.out, origin)


if __name__ == "__main__":
    command.run(main)

"""Prune one model at points of its training: importance at each, and BLEU by step."""

from pathlib import Path

from headcount.ablation.training_profile import CheckpointInputs, write_training_profile
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
    """Read the flags and write BLEU of every step as CSV, and a JSON and the heads beside it."""
    parser = command.parser(__doc__)
    command.add_masking_flags(parser)
    parser.add_argument(
        "--checkpoints", required=True, nargs="+", type=Path, help="<update>.safetensors of each"
    )
    for section in (AblationSettings, RerankSettings, DecodeSettings):
        add_flags(parser, section)
    args = parser.parse_args()
    sections = [from_flags(args, kind) for kind in (AblationSettings, RerankSettings)]
    decode = from_flags(args, DecodeSettings)
    use_threads(decode.threads)
    model, pair = ModelFolder(args.model), PairFolder(args.bpe)
    inputs = CheckpointInputs(model, pair, args.text, args.checkpoints)
    inputs.by_update(sections[0].updates)  # before they are read for the provenance
    names = ("ablation", "importance", "decode")
    shown = {n: s.model_dump() for n, s in zip(names, [*sections, decode], strict=True)}
    files = {*inputs.files(sections[0]), *pair.texts(sections[1].data)}
    origin = provenance("scripts/training_profile.py", shown, None, list(files))
    language = parse_pair(args.pair).tgt
    write_training_profile(inputs, *sections, decode, language, args.out, origin)


if __name__ == "__main__":
    command.run(main)

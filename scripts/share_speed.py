"""Time one model without more and more of its heads, really removed."""

from pathlib import Path

from headcount.base import command
from headcount.base.folders import TIMING
from headcount.base.results import provenance
from headcount.base.settings.ablation import AblationSettings
from headcount.base.settings.decode import DecodeSettings
from headcount.base.settings.flags import add_flags, from_flags
from headcount.base.settings.speed import SpeedSettings
from headcount.deployment.share_speed import write_share_speed
from headcount.model.machine import use_threads
from headcount.store.model_folder import ModelFolder
from headcount.store.pair_folder import PairFolder


def main() -> None:
    """Read the flags, measure, and write the times as CSV, and a JSON beside it."""
    parser = command.parser(__doc__)
    parser.add_argument("--model", required=True, type=Path, help="folder of the model")
    parser.add_argument("--importance", required=True, type=Path, help="the model's ranking")
    parser.add_argument("--bpe", required=True, type=Path, help="folder of the segmented pair")
    parser.add_argument("--out", required=True, type=Path, help="CSV to write")
    kinds = (AblationSettings, SpeedSettings, DecodeSettings)
    for section in kinds:
        add_flags(parser, section)
    args = parser.parse_args()
    sections = [from_flags(args, kind) for kind in kinds]
    use_threads(sections[1].threads)
    names = ("ablation", "speed", "decode")
    shown = {n: s.model_dump() for n, s in zip(names, sections, strict=True)}
    model, pair = ModelFolder(args.model), PairFolder(args.bpe)
    files = [*model.files, *pair.files(TIMING), args.importance]
    origin = provenance("scripts/share_speed.py", shown, None, files)
    write_share_speed(model, args.importance, pair, *sections, args.out, origin)


if __name__ == "__main__":
    command.run(main)

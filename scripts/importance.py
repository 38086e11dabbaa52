"""Measure the importance of every head of one model: the size of the loss's derivative."""

from pathlib import Path

from headcount.base import command
from headcount.base.results import provenance
from headcount.base.settings.flags import add_flags, from_flags
from headcount.base.settings.importance import ImportanceSettings
from headcount.heads.importance_run import importance_inputs, write_importance
from headcount.model.machine import use_threads


def main() -> None:
    """Read the flags and write the importance as CSV, and a JSON beside it."""
    parser = command.parser(__doc__)
    parser.add_argument("--model", required=True, type=Path, help="folder of the model")
    parser.add_argument("--bpe", required=True, type=Path, help="folder of the segmented pair")
    parser.add_argument("--out", required=True, type=Path, help="CSV to write")
    add_flags(parser, ImportanceSettings)
    args = parser.parse_args()
    settings = from_flags(args, ImportanceSettings)
    use_threads(settings.threads)
    shown = {"importance": settings.model_dump()}
    files = importance_inputs(args.model, args.bpe, settings)
    origin = provenance("scripts/importance.py", shown, settings.subset_seed, files)
    write_importance(args.model, args.bpe, settings, args.out, origin)


if __name__ == "__main__":
    command.run(main)

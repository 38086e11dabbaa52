"""Measure the importance of every head of one model, or the loss's change without each head."""

from headcount.base.command import Flags, flag, script
from headcount.base.errors import UserError
from headcount.base.settings.heads import ImportanceSettings
from headcount.heads.importance import write_importance
from headcount.heads.loss_change import write_loss_change
from headcount_hf.hooks.opened import HOOKED, is_hooked, open_texts

MEASURES = {"importance": write_importance, "loss_change": write_loss_change}
MEASURE = flag("--measure", "quantity of a head", choices=MEASURES, default="importance")


UNITS = flag("[--units]", "of all kinds of units", action="store_true")


@script("--model", "[--bpe]", "[--text]", *HOOKED, MEASURE, UNITS, out="CSV to write")
def main(args: Flags, importance: ImportanceSettings) -> None:
    ours_alone = args.measure == "loss_change" or args.units
    if ours_alone and is_hooked(args.model):
        what = "--units" if args.units else "--measure: loss_change"
        raise UserError(f"{what} expects a model of ours, found {args.model}")
    model, texts, files, facts = open_texts(args, importance.data, importance.threads)
    origin = args.origin(files, **facts)
    MEASURES[args.measure](model, texts, importance, args.out, origin, args.units)

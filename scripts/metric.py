"""Score one test set's translations by another metric, from an outside command or its files."""

from statistics import fmean

from headcount.base.command import Flags, flag, path, script
from headcount.base.errors import UserError
from headcount.base.files import sha256, write_result
from headcount.base.settings.metrics import MetricSettings
from headcount.data.lines import clean_lines, references
from headcount.scoring.bleu import check_lengths, search_of
from headcount.scoring.segments import read_segments, run_metric


@script(
    *("--seed", "--source"),
    flag("--pair", "pair, such as multi30k.en-de"),
    flag("--run", "training variant, such as baseline"),
    flag("--test", "name of the test set"),
    flag("--metric", "name of the metric"),
    path("--translations", "translations of the test set"),
    path("--facts", "JSON file beside the translations"),
    path("--reference", "its references"),
    path("[--scores]", "file of scores, in place of --command"),
    flag("[--sha256]", "SHA-256 of --scores when the job was planned"),
    out="CSV of scores to write",
)
def main(args: Flags, metric: MetricSettings) -> None:
    search = search_of(args.translations, args.facts)
    files = {"sources": args.source, "translations": args.translations}
    texts = {name: list(clean_lines(file)) for name, file in files.items()}
    texts["references"] = [references(line)[0] for line in clean_lines(args.reference)]
    check_lengths(texts["translations"], texts["references"])
    if bool(args.scores) == bool(metric.command):
        raise UserError("expected --command or --scores")
    if args.sha256 and sha256(args.scores) != args.sha256:
        raise UserError(f"{args.scores}: changed since the job was planned; run it again")
    if args.scores:
        scores = read_segments(args.scores, texts["translations"])
    else:
        scores = run_metric(metric.command, texts)
    scores = [metric.scale * score for score in scores]
    row = {"test_set": args.test, "metric": args.metric, "score": fmean(scores)}
    row |= {"signature": f"{args.metric}|mean|scale:{metric.scale:g}", **search}
    inputs = [*files.values(), args.facts, args.reference, *([args.scores] if args.scores else [])]
    facts = {"pair": args.pair, "run": args.run, "seed": args.seed, "scores": [row]}
    columns, rows = ("sentence", "score"), enumerate(scores, start=1)
    write_result(args.out, columns, rows, facts | {"provenance": args.origin(inputs)})

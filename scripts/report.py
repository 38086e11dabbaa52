"""Put the tables and figures of one experiment or several, by question, on one offline page."""

from headcount.analysis.report.page import write_report
from headcount.base.command import Flags, flag, path, script
from headcount.base.errors import UserError


@script(
    path("--results", "folders of results, such as results/quickstart", nargs="+"),
    flag("[--title]", "heading of each folder in turn; default: the names", action="append"),
    flag("--outputs", "outputs such as tables/bleu.json; default: all", nargs="*", default=[]),
    flag("--metrics", "metrics beside BLEU whose outputs are shown", nargs="*", default=[]),
    out="page to write",
)
def main(args: Flags) -> None:
    titles = args.title or [folder.name for folder in args.results]
    if len(titles) != (folders := len(set(args.results))):
        raise UserError(f"--title: expected one for each of {folders} results, found {len(titles)}")
    titles = dict(zip(args.results, titles, strict=True))
    write_report(titles, args.outputs, args.out, args.metrics)

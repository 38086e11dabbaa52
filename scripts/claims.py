"""Decide the papers' claims from files of results, and tabulate the verdicts.

Results of several experiments are taken together: seeds, pairs and corpora add up.
"""

from headcount.analysis.build import write_tables
from headcount.analysis.claims.claims import result_files
from headcount.analysis.frames import Data
from headcount.analysis.outputs import chapters
from headcount.base.command import Flags, path, script


@script(
    path("--results", "folders of results, such as results/quickstart, or files", nargs="+"),
    out="folder of the table",
)
def main(args: Flags) -> None:
    files = [path for given in args.results for path in result_files(given)]
    (chapter,) = (chapter for chapter in chapters() if chapter.name == "claims")
    origin = args.origin(files, modules=chapter.modules)
    write_tables(chapter, Data({"outputs": files}, {}), args.out, origin)

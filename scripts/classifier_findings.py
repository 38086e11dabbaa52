"""Write tables and figures of classifiers whose heads were removed (Michel et al., BERT).

Not part of the workflow. A model is shown by the name of its folder.
"""

from pathlib import Path

from headcount.base import command
from headcount.findings.michel.classifiers import ClassifierResults, write_classifier_findings


def main() -> None:
    """Read the flags and write."""
    words = "folder to write to; tables and figures have a folder each in it"
    parser = command.parser(__doc__, out=words)
    words = "folders that scripts/classifier_ablation.py wrote, one a model"
    parser.add_argument("--results", required=True, nargs="+", type=Path, help=words)
    args = parser.parse_args()
    results = ClassifierResults.read(args.results)
    origin = command.provenance("scripts/classifier_findings.py", {}, None, results.files)
    write_classifier_findings(results, args.out, origin)


if __name__ == "__main__":
    command.run(main)

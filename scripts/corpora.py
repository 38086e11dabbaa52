"""List the corpora, their files, sizes, licences and checksums; fetch nothing.

Without an experiment, all of config/corpora.yaml.
"""

from pathlib import Path

from headcount.base import command
from headcount.base.settings.experiment import load_experiment
from headcount.base.settings.names import parse_pair
from headcount.base.settings.text.corpora import check_corpora, load_corpora
from headcount.data.fetching.checksums import LOCK, read_lock
from headcount.data.fetching.listing import list_corpora


def main() -> None:
    """Read the flags and print the list."""
    parser = command.parser(__doc__)
    parser.add_argument("--experiment", help="list what this experiment needs, such as multi30k")
    parser.add_argument("--ask", action="store_true", help="ask servers for sizes nothing says")
    args = parser.parse_args()
    corpora = load_corpora(Path("config/corpora.yaml"))
    if args.experiment:
        settings = load_experiment(args.experiment, Path("config"))
        check_corpora(settings, corpora, Path("config", f"{args.experiment}.yaml"))
        named = [parse_pair(pair).corpus for pair in settings.pairs]
        named += [tree.partition(".")[0] for tree in settings.roles.trees]
        named += [settings.classifiers.corpus] * bool(settings.classifiers.models)
        corpora = {name: corpora[name] for name in dict.fromkeys(named)}
    for line in list_corpora(corpora, Path("data/raw"), read_lock(LOCK), args.ask):
        print(line)


if __name__ == "__main__":
    command.run(main)

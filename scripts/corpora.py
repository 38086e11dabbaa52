"""List the corpora: files, sizes, licences and checksums. Nothing is fetched."""

from pathlib import Path

from headcount.base.command import Flags, flag, script
from headcount.base.settings.corpora import check_corpora, load_corpora
from headcount.base.settings.experiment import load_experiment
from headcount.base.settings.section import parse_pair
from headcount.data.fetching.transfer import LOCK, list_corpora, read_lock


@script(flag("[--experiment]", "list what this experiment needs, such as multi30k"))
def main(args: Flags) -> None:
    corpora = load_corpora(Path("config/corpora.yaml"))
    if args.experiment:
        settings = load_experiment(args.experiment, Path("config"))
        check_corpora(settings, corpora, Path("config", f"{args.experiment}.yaml"))
        named = [parse_pair(pair).corpus for pair in settings.pairs]
        named += [tree.partition(".")[0] for tree in settings.roles.trees]
        named += [settings.classifiers.corpus] * bool(settings.classifiers.models)
        corpora = {name: corpora[name] for name in dict.fromkeys(named)}
    for line in list_corpora(corpora, Path("data/raw"), read_lock(LOCK)):
        print(line)

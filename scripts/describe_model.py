"""Print a model's lines in config/models.yaml and an experiment. --hub fetches it first."""

from headcount.base.command import Flags, flag, script
from headcount.data.fetching.models import fetch_commit
from headcount_hf.pretrained.imports import describe


@script(
    *("--pretrained", "[--revision]"),
    flag("[--hub]", "name on the hub, such as Helsinki-NLP/opus-mt-en-de"),
)
def main(args: Flags) -> None:
    if args.hub or args.revision:
        fetch_commit(args.hub, args.revision, args.pretrained)
    print("\n".join(describe(args.pretrained, args.hub, args.revision)))

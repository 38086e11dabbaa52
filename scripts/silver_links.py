"""Link the words of a test set by eflomal (extra `align`), trained on the pair's own text."""

from headcount.base.command import Flags, flag, script
from headcount.base.folders import SIDES
from headcount.base.settings.heads import SilverSettings
from headcount.data.word_links.silver import predict_links, write_silver


@script("--text", flag("--test", "name of the test set"), out="<test>.silver.links to write")
def main(args: Flags, alignment: SilverSettings) -> None:
    train, test = (
        [args.text / f"{split}.{side}" for side in SIDES] for split in ("train", args.test)
    )
    links, pairs = predict_links(train, test, alignment.silver_pairs, alignment.threads)
    origin = args.origin(train, test, packages=("eflomal",))
    write_silver(args.out, links, {"training_pairs": pairs, "provenance": origin})

"""Learn one byte-pair encoding for several pairs, mark target languages, and mix their texts."""

from headcount.base.command import Flags, flag, path, script
from headcount.base.errors import UserError
from headcount.base.settings.data import BpeSettings, MixtureSettings, SpellingSettings
from headcount.base.settings.section import parse_pair
from headcount.data.shared_bpe import PairText, segment_pairs


@script(
    flag("--pairs", "names of the pairs, such as multi30k.en-de", nargs="+", type=parse_pair),
    path("--texts", "folder of every pair's cleaned text", nargs="+"),
    path("--out-folders", "folder to write into for every pair, and for the mixture", nargs="+"),
    flag("--pretokenised", "corpora whose text is tokenised already", nargs="*", default=[]),
)
def main(args: Flags, bpe: BpeSettings, spelling: SpellingSettings, mix: MixtureSettings) -> None:
    if not len(args.pairs) == len(args.texts) == len(args.out_folders) - 1:
        counts = f"{len(args.pairs)}, {len(args.texts)} and {len(args.out_folders)}"
        raise UserError(f"expected as many pairs as texts, and a folder more, found {counts}")
    given = zip(args.pairs, args.texts, strict=True)
    texts = [PairText(pair, text, pair.corpus in args.pretokenised) for pair, text in given]
    *folders, shared = args.out_folders
    learnt = segment_pairs(texts, folders, shared, bpe, spelling, mix.temperature)
    print(f"merges learnt: {learnt.merges} (all pairs)")

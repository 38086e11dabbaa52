"""Learn byte-pair encoding from the training text of a pair, and write codes and pieces."""

from headcount.base.command import CLEANED, Flags, script
from headcount.base.settings.data import BpeSettings, SpellingSettings
from headcount.data.bpe import segment_corpus


@script(*CLEANED, "--pretokenised", "--out-folder")
def main(args: Flags, bpe: BpeSettings, spelling: SpellingSettings) -> None:
    texts = (args.train_src, args.train_tgt), (args.dev_src, args.dev_tgt)
    languages = (args.src_lang, args.tgt_lang)
    settings = (args.pretokenised, bpe, args.out_folder, spelling)
    learnt = segment_corpus(*texts, languages, *settings)
    print(f"merges learnt: {learnt['src']} (src), {learnt['tgt']} (tgt)")

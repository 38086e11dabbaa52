"""Cut the text of a pair into the pieces of a pretrained model, in place of scripts/bpe.py."""

from headcount.base.command import CLEANED, Flags, flag, script
from headcount.base.settings.data import LetterSettings
from headcount.data.fetching.models import check_record
from headcount_hf.pretrained.segment import segment_pretrained

CODES = [
    flag(f"[--{side}-code]", f"the model's name of the {side} language, such as deu_Latn")
    for side in ("src", "tgt")
]


@script(*CLEANED, "--out-folder", "--pretrained", *CODES)
def main(args: Flags, letters: LetterSettings) -> None:
    check_record(args.pretrained)
    texts = (args.train_src, args.train_tgt), (args.dev_src, args.dev_tgt)
    languages, codes = (args.src_lang, args.tgt_lang), (args.src_code, args.tgt_code)
    segment_pretrained(args.pretrained, languages, *texts, args.out_folder, codes, letters)

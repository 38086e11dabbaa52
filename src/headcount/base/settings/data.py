"""Settings of the steps from raw corpora to subwords, and codes of languages."""

import re
from typing import Annotated, Literal

from pydantic import Field
from pydantic.functional_validators import AfterValidator

from headcount.base.settings.section import LARGEST, MOST_DRAWS, Faults, Section, each_once

ASSUMED_WORDS = 30_000
"""Known words of a text whose vocabulary is not known yet."""


class SyntheticSettings(Section):
    """Size of the generated text. The same settings generate the same text."""

    seed: int = Field(1, ge=1, le=10**9)
    """Seed of the generator."""
    train_pairs: int = Field(30000, ge=1, le=10**8)
    """Sentence pairs for training."""
    dev_pairs: int = Field(1000, ge=1, le=10**8)
    """Sentence pairs for validation."""
    test_pairs: int = Field(1000, ge=1, le=10**8)
    """Sentence pairs of the test set."""
    variation: float = Field(0.0, ge=0, le=0.5)
    """Chance that a target word is a synonym, and that a phrase stands in its other order."""
    variety: Literal["far", "near"] = "far"
    """Language of the target: verbs last and far from the source, or small and near it."""
    second_target: bool = False
    """Translations into a second language, `qaa`, too, with its own spelling, endings and order."""

    @property
    def targets(self) -> list[str]:
        """Target languages: `art`, and perhaps `qaa`, which stands for a local language."""
        return ["art", *["qaa"] * self.second_target]


class LetterSettings(Section):
    """Letters of every line of both sides, of references and of trees."""

    lowercase: bool = False
    """Every line in lower case, of both sides, references included."""


class SpellingSettings(LetterSettings):
    """Spelling of every line of both sides, of references and of trees."""

    normal_form: Literal["NFC", "none"] = "NFC"
    """Unicode normal form of every line, references included; NFC changes no visible character."""


class TextSettings(SpellingSettings):
    """Filters for training pairs. Dev and test sets keep every line, so that ids stay aligned."""

    max_words: int = Field(200, ge=1, le=LARGEST)
    """Longest side of a training pair (words; two characters each in scripts without spaces)."""
    max_ratio: float = Field(5.0, ge=1)
    """Largest ratio of the words of both sides of a training pair, counted above five words."""
    max_dropped: float = Field(0.1, ge=0, le=1)
    """Largest share of the training pairs that one filter may leave out: by an empty side,
    `max_words`, `max_ratio`, or a word of more than 1000 characters. More is an error."""
    drop_duplicates: bool = False
    """Leave out a training pair that occurred before. Duplicates are counted in any case."""
    drop_overlap: bool = False
    """Leave out training pairs whose source line is in dev or a test set. Counted in any case."""


class BpeSettings(Section):
    """Segmentation of lines into words, and of words into subwords."""

    unit: Literal["subwords", "words"] = "subwords"
    """What a model reads and writes: learnt pieces of words, or the `largest` number of words."""
    merges: int = Field(8000, ge=0, le=LARGEST)
    """Number of merge operations learnt, per code file; none for whole words."""
    joint: bool = True
    """One code file and vocabulary for both languages. The model then ties all embeddings."""
    largest: int | None = Field(None, ge=1, le=LARGEST)
    """Largest vocabulary: the most frequent pieces or words, this many; without it all."""
    unsegmented_scripts: Literal["characters", "jieba", "none"] = "characters"
    """Words of a script without spaces: each character (with its marks); words by jieba, for
    Chinese only (`pip install -e '.[zh]'`); or by Moses's rules."""

    @property
    def assumed_pieces(self) -> int:
        """Assumed size of the vocabulary before text is read."""
        units = ASSUMED_WORDS if self.unit == "words" else self.merges
        return min(units, self.largest or units)


class MixtureSettings(Section):
    """Mixture of the texts of several pairs."""

    temperature: float = Field(1.0, ge=1)
    """T of `one_model`: a pair with n training pairs has a share proportional to n^(1/T). T above 1
    repeats smaller pairs; none is cut."""


class TransferSettings(Section):
    """Heads that are masked by the rankings of other pairs."""

    shares: Annotated[list[Annotated[float, Field(gt=0, lt=1)]], AfterValidator(each_once)] = []
    """Shares of all heads, as in `[0.25, 0.5]`, that are masked by the ranking of every pair while
    every pair is translated. Needs `one_model`, or an imported model as it is. Empty: none."""
    draws: int = Field(3, ge=0, le=MOST_DRAWS)
    """Random sets of heads that are masked for comparison, for every share."""
    sentences: int | None = Field(None, ge=1)
    """Sentences of the first test set that are translated for `shares`; without it all."""


class ManyPairsSettings(MixtureSettings, TransferSettings):
    """One model for all pairs, and heads that matter to one pair or to several."""

    one_model: bool = False
    """Train one model for all pairs, with one vocabulary and the target language's mark, such as
    `<2de>`, before every source sentence. Needs two pairs or more."""

    def _faults(self) -> Faults:
        yield "temperature: goes with one_model", self.temperature != 1 and not self.one_model


SCORED_BY_EXTRA = ("ja", "ko")
"""Target languages whose words sacreBLEU finds by a package of the project's extra of that name."""
SCORED_BY_CHARACTERS = ("th", "lo", "km", "my", "bo")
"""Target languages that are written without spaces, and whose words sacreBLEU does not find."""

_REGION = re.compile(r"[A-Z]{2}|[A-Z][a-z]{3}(_[A-Z]{2})?|\d{3}|cn|tw|hk|hans|hant|jp|kr|us|gb|br")
# Two letters of languages, and their other codes by ISO 639-2 and 639-3. Names that several
# languages share, such as ms (Malay, Indonesian), are left out.
_TABLE = """
af:afr am:amh ar:ara as:asm az:aze be:bel bg:bul bn:ben bo:bod,tib br:bre bs:bos ca:cat cs:ces,cze
cy:cym,wel da:dan de:deu,ger el:ell,gre en:eng eo:epo es:spa et:est eu:eus,baq fa:fas,per fi:fin
fo:fao fr:fra,fre fy:fry ga:gle gd:gla gl:glg gu:guj ha:hau he:heb hi:hin hr:hrv ht:hat hu:hun
hy:hye,arm id:ind ig:ibo is:isl,ice it:ita ja:jpn jv:jav ka:kat,geo kk:kaz km:khm kn:kan ko:kor
ku:kur ky:kir la:lat lb:ltz ln:lin lo:lao lt:lit lv:lav mg:mlg mi:mri,mao mk:mkd,mac ml:mal mn:mon
mr:mar mt:mlt my:mya,bur ne:nep nl:nld,dut no:nor,nob,nno,nb,nn oc:oci or:ori pa:pan pl:pol ps:pus
pt:por ro:ron,rum ru:rus rw:kin sd:snd si:sin sk:slk,slo sl:slv sn:sna so:som sq:sqi,alb sr:srp
st:sot su:sun sv:swe sw:swa ta:tam te:tel tg:tgk th:tha tk:tuk tl:tgl tn:tsn tr:tur tt:tat ug:uig
uk:ukr ur:urd uz:uzb vi:vie wo:wol xh:xho yi:yid yo:yor zh:zho,chi,cmn zu:zul
"""
_CODES = dict(entry.split(":") for entry in _TABLE.split())
_TWO = {code: two for two, codes in _CODES.items() for code in codes.split(",")}


def two_letters(language: str) -> str:
    """Return two letters of a known language, `zh` for `zh_TW`, or another name in lower case."""
    base, mark, region = language.partition("_")
    name = base.lower() if not mark or _REGION.fullmatch(region) else language.lower()
    return _TWO.get(name, name)


def contradict(first: str, second: str) -> bool:
    """Return whether two names belong to two known languages, whatever their regions are."""
    codes = {two_letters(name.replace("-", "_")) for name in (first, second)}
    return len(codes) == 2 and codes <= {*_CODES}

"""Sentences of the embedded corpus derived by hand, form by form."""

from collections import Counter

from headcount.data.synthetic.corpus import Realiser, lexicon, pharaoh, rules
from headcount.data.synthetic.grammar import (
    Adjective,
    Clause,
    NounPhrase,
    PrepositionalPhrase,
    Weighted,
    Word,
)


def _word(words: Weighted, form: str) -> Word:
    return next(word for word in words.items if form in word.forms.values())


def _verb(base: str) -> Word:
    verbs = lexicon()["transitive_verbs"].items + lexicon()["intransitive_verbs"].items
    return next(verb for verb in verbs if verb.forms["base"] == base)


def _noun_phrase(
    determiner: str,
    form: str,
    *adjectives: Adjective,
    modifier: PrepositionalPhrase | None = None,
    relative: Clause | None = None,
) -> NounPhrase:
    words = lexicon()
    nouns = [noun for kind in ("animate", "inanimate") for noun in words[kind].items]
    noun = next(noun for noun in nouns if form in noun.forms.values())
    number = next(number for number, found in noun.forms.items() if found == form)
    article = next(d for d in words["determiners"].items if determiner in d.forms.values())
    return NounPhrase(noun, number, article, adjectives, modifier, relative)


def _spelt(main: Clause) -> tuple[str, str, list[tuple[int, str]]]:
    source, target, tree, _ = Realiser(lexicon(), rules()).sentence(main)
    return " ".join(source), " ".join(target), [(token.head, token.deprel) for token in tree]


def _women_sleep() -> Clause:
    words = lexicon()
    young = Adjective(_word(words["adjectives"], "young"), strong=True)
    red = Adjective(_word(words["adjectives"], "red"))
    relative = Clause(_verb("watch"), "past", None, _noun_phrase("the", "dog", red))
    subject = _noun_phrase("the", "women", young, relative=relative)
    return Clause(_verb("sleep"), "future", subject)


def test_agreement_crosses_a_relative_clause():
    source, target, edges = _spelt(_women_sleep())

    assert source == "the very young women that watched the red dog will sleep ."
    assert target.split() == [
        # The relative clause comes first, its verb last.
        "lamo",  #     the:   la + m accusative + o masculine (dog), singular
        "ritim",  #    dog:   riti + m accusative
        "pepemo",  #   red:   pepe + m + o, like its noun, after which it stands
        "vorotan",  #  watch: vo past + rot (animate object) + a feminine + n plural: the women
        "ke",  #       that, after its clause
        "latan",  #    the:   la + t nominative + a feminine + n plural
        "vesane",  #   women: vesa + ne plural, nominative without suffix
        "zolitan",  #  young: zoli + t + a + n
        "sukus",  #    very, after its adjective
        "zanagan",  #  sleep: za future + nag + a + n: agrees with the women, far off
        ".",
    ]
    heads = (4, 3, 4, 11, 6, 4, 9, 9, 6, 11, 0, 11)
    relations = "det advmod amod nsubj nsubj acl:relcl det amod obj aux root punct"
    assert edges == list(zip(heads, relations.split(), strict=True))


def test_links_join_words_that_translate_each_other():
    sentence = Realiser(lexicon(), rules()).sentence(_women_sleep())
    # the very young women that watched the red dog will sleep .
    # lamo ritim pepemo vorotan ke latan vesane zolitan sukus zanagan .
    # "will" has no word of its own: za is a prefix.
    assert pharaoh(sentence.links) == "0-5 1-8 2-7 3-6 4-4 5-3 6-0 7-2 8-1 10-9 11-10"
    # "she" is in the verb's suffix, "a" and "of" leave nothing.
    words = lexicon()
    of = PrepositionalPhrase(_word(words["object_prepositions"], "of"), _noun_phrase("a", "king"))
    she = NounPhrase(words["pronouns"].items[1], "singular")
    cats = _noun_phrase("the", "cats", modifier=of)
    sentence = Realiser(lexicon(), rules()).sentence(Clause(_verb("find"), "past", she, cats))
    assert " ".join(sentence.source) == "she found the cats of a king ."
    assert " ".join(sentence.target) == "zolul laman mibinem vorufa ."
    assert pharaoh(sentence.links) == "1-3 2-1 3-2 6-0 7-4"


def test_second_target_has_its_own_letters_endings_and_order():
    sentence = Realiser(lexicon(), rules("far", "qaa")).sentence(_women_sleep())
    assert sentence.target == (
        "wimokyr",  # sleep: wi future + mok (nag in other letters) + y feminine + r plural, first
        "fizok",  #    women: fizo (vesa) + k plural
        "zegez",  #    very, before its adjective
        "saruhyr",  #  young: saru (zoli) + h nominative + y + r, after its noun
        "rohyr",  #    the:   ro (la) + h + y + r
        "gi",  #       that, before its clause
        "geladyr",  #  watch: ge past + lad (rot) + y + r: the women
        "ludue",  #    dog:   ludu (riti) + e accusative
        "bibije",  #   red:   bibi (pepe) + j accusative + e masculine
        "roje",  #     the:   ro + j + e
        ".",
    )
    assert pharaoh(sentence.links) == "0-4 1-2 2-3 3-1 4-5 5-6 6-9 7-8 8-7 10-0 11-10"


def test_near_target_follows_the_order_of_the_source():
    sentence = Realiser(lexicon("near"), rules("near")).sentence(_women_sleep())
    target = "latan sukus zolitan vesane ke vorotan lamo pepemo ritim tu zanagan ."
    assert " ".join(sentence.target) == target
    assert pharaoh(sentence.links) == " ".join(f"{i}-{i}" for i in range(12))


def test_near_subject_of_a_past_verb_is_in_the_ergative():
    words = lexicon("near")
    king = _noun_phrase("the", "king")
    of_king = PrepositionalPhrase(_word(words["object_prepositions"], "of"), king)
    she = NounPhrase(words["pronouns"].items[1], "singular")
    cats = _noun_phrase("the", "cats", modifier=of_king)
    sentences = [
        Realiser(words, rules("near")).sentence(Clause(_verb("find"), tense, she, cats))
        for tense in ("past", "present")
    ]
    # she: si + s ergative. "she" and "of" have words of their own.
    assert " ".join(sentences[0].target) == "sis vorufa laman mibinem ge lalo zolul ."
    assert " ".join(sentences[1].target) == "si nirufa laman mibinem ge lalo zolul ."


def test_varied_target_has_synonyms_and_other_orders():
    sentence = Realiser(lexicon("near"), rules("near"), lambda: True).sentence(_women_sleep())
    stems = {w.stem(): w.synonym for group in lexicon().values() for w in group.items if w.synonym}
    # watch has a stem for each kind of object and so no synonym; adjectives follow their nouns.
    young, red, woman, dog, sleep = (stems[s] for s in ("zoli", "pepe", "vesa", "riti", "nag"))
    words = f"latan {woman}ne sukus {young}tan ke vorotan lamo {dog}m {red}mo tu za{sleep}an ."
    assert " ".join(sentence.target) == words
    assert pharaoh(sentence.links) == "0-0 1-2 2-3 3-1 4-4 5-5 6-6 7-8 8-7 9-9 10-10 11-11"


def test_object_chooses_the_stem_of_the_verb():
    words = lexicon()
    of_king = PrepositionalPhrase(
        _word(words["object_prepositions"], "of"), _noun_phrase("the", "king")
    )
    cats = _noun_phrase("these", "cats", modifier=of_king)
    girl = _noun_phrase("a", "girl")
    carry, find = _verb("carry"), _verb("find")
    gladly = _word(words["adverbs"], "gladly")
    main = Clause(carry, "present", girl, cats, adverb=gladly)
    she = NounPhrase(words["pronouns"].items[1], "singular")
    letters = _noun_phrase("a", "letters")
    subordinate = Clause(find, "past", she, letters)
    because = _word(words["conjunctions"], "because")

    source, target, _ = _spelt(main._replace(conjunction=because, subordinate=subordinate))

    assert source == "a girl gladly carries these cats of the king because she found letters ."
    assert target.split() == [
        # The subordinate clause comes first; "she" is dropped, and so is the absent article.
        "falonem",  #  letters: falo because "find" is a verb of the mind + ne plural + m accusative
        "vorufa",  #   find: vo past + ruf (plural object) + a feminine singular: she
        "rekas",  #    because, after its clause
        "temi",  #     a girl: no article, nominative singular without suffix
        "lalo",  #     the: la + l genitive + o masculine (king)
        "zolul",  #    king: zolu + l genitive, which is all that is left of "of"
        "feman",  #    these: fe + m accusative + a feminine (cat) + n plural
        "mibinem",  #  cats: mibi + ne plural + m accusative
        "mobad",  #    gladly, before the verb
        "nilupa",  #   carry: ni present + lup (animate object) + a feminine singular: the girl
        ".",
    ]


def test_governor_chooses_the_stem_of_noun_and_preposition():
    words = lexicon()
    in_bank = PrepositionalPhrase(
        _word(words["verb_prepositions"], "in"), _noun_phrase("the", "bank")
    )
    man = _noun_phrase("the", "man")

    def target(verb: str) -> list[str]:
        clause = Clause(_verb(verb), "past", man, oblique=in_bank)
        return _spelt(clause)[1].split()

    # bank and in are oblique: k; man is masculine: o. Motion: nifo, nis; rest: nebi, nup.
    assert target("run") == ["lato", "diku", "laki", "nifok", "nis", "vonifo", "."]
    assert target("sleep") == ["lato", "diku", "laki", "nebik", "nup", "vonago", "."]


def test_object_relative_agrees_with_its_own_subject():
    relative = Clause(_verb("push"), "present", _noun_phrase("the", "boys"))
    lamp = _noun_phrase("this", "lamp", relative=relative)
    fall = Clause(_verb("fall"), "past", lamp)
    source, target, edges = _spelt(fall)
    assert source == "this lamp that the boys push fell ."
    # push: ni + riz (the lamp, its missing object, is inanimate) + on, the masculine plural boys.
    assert target == "laton zibone nirizon ke feta vase vokisa ."
    assert edges[2] == (6, "obj") and edges[5] == (2, "acl:relcl")


def test_no_source_form_belongs_to_two_words():
    words = {word for group in lexicon().values() for word in group.items}
    owners = [(form, word) for word in words for form in {*word.forms.values()} - {""}]
    shared = Counter(form for form, word in owners if word.upos != "ADP")
    assert len(shared) > 500 and set(shared.values()) == {1}
    assert not shared.keys() & {form for form, word in owners if word.upos == "ADP"}

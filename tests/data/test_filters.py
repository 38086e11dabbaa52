"""Which training pairs are kept: lengths counted by hand, and losses that nobody meant."""

import pytest
from text_step import Step

from headcount.base.errors import UserError
from headcount.base.settings.data import TextSettings
from headcount.data.text import PairFilter, measure

# One's own sentences, with their translations.
JAPANESE = (
    "昨日は友達と一緒に新しい図書館へ行って、夜まで静かに本を読んでいました。",
    "駅の前にある小さなパン屋は、朝早くから多くの人でにぎわっています。",
    "私たちは来週の土曜日に、海の近くで花火を見るつもりです。",
    "すみません、もう一度ゆっくり言ってください。",
    "先週の日曜日、父は庭の古い木の下で、私が書いた長い手紙を一人で静かに読みました。",
    "新しい Python 3.11 の説明書は、まだ日本語になっていません。",
    "はい。",
)
ENGLISH = (
    "Yesterday I went to the new library with a friend and read quietly until the evening.",
    "The small bakery in front of the station is crowded from early in the morning.",
    "Next Saturday we are going to watch the fireworks by the sea.",
    "Excuse me, please say it once more, slowly.",
    "Last Sunday my father quietly read my long letter in the garden.",
    "The manual of the new Python 3.11 has not been translated into Japanese yet.",
    "Yes, certainly.",
)


@pytest.fixture
def step(tmp_path):
    return Step(tmp_path)


def lines(sentences) -> bytes:
    """A text of these sentences."""
    return "".join(f"{sentence}\n" for sentence in sentences).encode()


def keeps(src: str, tgt: str, **settings) -> bool:
    return PairFilter(TextSettings(**settings), [], active=True).keeps(src, tgt)


def test_ratio_counts_from_six_words():
    def kept(src, tgt):
        return keeps("w " * src, "w " * tgt, max_ratio=2.5, max_words=9)

    assert kept(1, 5)  # five words may face one
    assert not kept(1, 6)
    assert kept(2, 5) and not kept(2, 6)  # 6 > 2.5 × 2
    assert not kept(6, 2)
    assert kept(9, 9) and not kept(9, 10)


@pytest.mark.parametrize(
    ("line", "words", "longest"),
    [
        ("", 0, 0),
        ("Straßen und Häuser", 3, 7),
        ("나는 고양이를 좋아합니다", 3, 5),  # Korean has spaces
        ("猫が好きです。", 4, 0),  # seven characters: three pairs and one
        ("東京", 1, 0),
        ("これは Python 3.11 の新機能です。", 7, 6),  # ten characters, and two words
        ("ภาษาไทย ง่าย", 6, 0),  # eleven characters; the space is between phrases
        ("Tokio (東京)", 3, 5),  # Tokio, the brackets, and two characters
    ],
)
def test_lengths_by_hand(line, words, longest):
    assert measure(line) == (words, longest)


def test_a_language_without_spaces_is_compared_by_its_characters():
    # 40 characters, so 20 words, against 12.
    assert keeps(JAPANESE[4], ENGLISH[4]) and keeps(ENGLISH[4], JAPANESE[4])
    assert not keeps(JAPANESE[4], "Yes.")  # 20 against 1
    assert not keeps("はい。", ENGLISH[4])  # 2 against 12
    assert not keeps("猫" * 60, "Only five words of English.")  # 30 against 5
    assert keeps("猫" * 50, "Only five words of English.")
    assert keeps("猫" * 400, "w " * 200) and not keeps("猫" * 401, "w " * 200)  # max_words
    assert keeps("猫" * 2000, "w " * 1000, max_words=1000)  # no word of more than 1000 characters


def test_japanese_goes_through_the_text_step_whole(step, capsys):
    assert step(lines(ENGLISH), lines(JAPANESE)) == 0
    texts, counts = step.result()
    assert texts == [lines(ENGLISH), lines(JAPANESE)]
    assert not any(counts["dropped"].values())
    # The other way round every sentence meets a wrong one; two of ten are absurd.
    assert step(lines(ENGLISH), lines(JAPANESE[::-1])) == 2
    assert "filter max_ratio would leave out 2 of 7 training pairs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "bad", "settings"),
    [
        ("empty", ("word", ""), {}),
        ("max_words", ("w w w", "w w w"), {"max_words": 2}),
        ("max_ratio", ("w", "w w w w w w"), {}),
        ("long_word", ("w", "w" * 1001), {}),
    ],
)
def test_a_filter_that_drops_more_than_a_tenth_is_refused(name, bad, settings):
    def loss(dropped, of, **more):
        judge = PairFilter(TextSettings(**settings, **more), [], active=True)
        pairs = [("w", "w")] * (of - dropped) + [bad] * dropped
        assert sum(judge.keeps(*pair) for pair in pairs) == of - dropped
        judge.check_losses("a.en, a.ja")

    loss(2, 20)
    with pytest.raises(UserError, match=rf"a\.en.* {name} .*3 of 20.* pair 18;.* 0\.15\.$"):
        loss(3, 20)
    loss(3, 20, max_dropped=0.15)
    loss(29, 100, max_dropped=0.29)  # 0.29 · 100 is less than 29 in floating point
    with pytest.raises(UserError, match=r" 0\.67\.$"):
        loss(2, 3, max_dropped=0.66)


def test_requested_losses_may_be_large(step):
    same = b"one\n" * 20
    assert step(same + b"\n", same + b"\n", "dev") == 0
    assert step.result("dev")[1]["equal"] == 20  # an empty pair copies nothing
    flags = ("--held-out", step.out / "dev.src", "--drop-overlap", "true")
    assert step(same + b"two\n", same + b"two\n", "train", *flags) == 0
    assert step.result()[1]["dropped"]["overlap"] == 20
    assert step(same, same, "train", "--drop-duplicates", "true") == 0
    assert step.result()[1]["dropped"]["duplicates"] == 19
    assert step(b"w\n" + b"\n" * 9, b"w\n" * 10, "dev") == 0  # dev drops nothing
    assert step.result("dev")[1]["found"]["empty"] == 9

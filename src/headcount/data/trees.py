"""Dependency trees in CoNLL-U: read, checked, and aligned with the subwords of a model.

A token is what is written between spaces or punctuation; a word is a node of the tree. They differ
where one token stands for several words (French `du`, English `don't`): the model reads tokens, so
arcs are carried over to tokens and those inside one are left out. Tokens count from 0.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import conllu
from conllu.exceptions import ParseException

from headcount.base.errors import UserError
from headcount.base.files import write_result
from headcount.base.settings.heads import relation_fault
from headcount.data.bpe import AnySegmenter
from headcount.data.lines import LineTally, clean_lines, read_lines, write_lines
from headcount.data.sentencepieces import RunningPieces
from headcount.data.text import clean
from headcount.data.vocabulary import UNK

_COLUMNS = 10  # of CoNLL-U
_MERGE = "merge the text into the treebank first, as its publisher says"
_SHOWN = 200  # characters of a fault, whose row may have any number of them


class Arc(NamedTuple):
    """A dependent, its governor and their relation; both are positions of tokens."""

    dependent: int
    governor: int
    relation: str


@dataclass(frozen=True)
class Tree:
    """One sentence: its tokens, the arcs between them, and the text they were taken from."""

    sentence: str
    tokens: list[str]
    arcs: list[Arc]
    text: str | None

    @property
    def lacks_words(self) -> bool:
        """Whether its words were taken out, as where a text may not be shared: all are `_`."""
        return bool(self.tokens) and set(self.tokens) == {"_"}


@dataclass(frozen=True)
class AlignedTree:
    """One sentence as a model reads it: pieces of every token, and the arcs between tokens."""

    sentence: str
    pieces: list[list[str]]
    arcs: list[Arc]


def read_trees(path: Path, member: str | None = None, shown: str = "") -> Iterator[Tree]:
    """Every sentence of a CoNLL-U file, those without a word too. Empty nodes are passed over.

    Lines are those of `read_lines`, to which `member` and `shown` belong. Raises UserError, naming
    the sentence, for one that is no tree: a head that does not exist, no root or several, a cycle,
    words out of order; for ranges of words that overlap or end after the last word; for a row with
    too few columns and a relation that Universal Dependencies do not have; and if no sentence of
    the file has a word.
    """
    shown = shown or str(path)
    words = wordless = 0
    lines = (f"{line}\n" for line in read_lines(path, member, LineTally(), shown))
    for number, block in enumerate(conllu.parse_sentences(lines), start=1):
        try:
            rows = conllu.parse_token_and_metadata(block)
        except (ParseException, ValueError) as fault:  # the latter for a number of 5000 digits
            reason = " ".join(str(fault).split())[:_SHOWN]
            raise UserError(f"{shown}: sentence {number}: not CoNLL-U ({reason})") from None
        sentence = rows.metadata.get("sent_id", str(number))
        tree = _tree(rows, sentence, f"{shown}: sentence {sentence}")
        words += not tree.lacks_words and len(tree.tokens)
        wordless += tree.lacks_words
        yield tree
    if not words:
        found = "no sentence with a word; name another file"
        if wordless:
            found = f"{wordless} sentences whose every word is _; {_MERGE}"
        raise UserError(f"{shown}: expected trees in CoNLL-U, found {found}")


def align_trees(
    trees: Iterable[Tree], segmenter: AnySegmenter
) -> tuple[list[AlignedTree], Counter[str]]:
    """The trees whose tokens the model can read, and counts.

    Counted: sentences read; `dropped_empty`, without a word; `dropped_wordless`, all of whose words
    are `_`; `dropped_text`, their tokens do not
    make up the text they come with; `dropped_word`, a token without a piece; kept sentences, those
    whose text in one gives the very same pieces, tokens, tokens of several pieces, pieces, and
    pieces unknown to the model. Tokens are cleaned and cut one by one, as the training text was;
    pieces of running text (SentencePiece) are cut of the whole sentence, and each belongs to the
    token in which it begins. Raises UserError naming a sentence if none is left, and for a model
    whose sentences have marks.
    """
    if isinstance(segmenter, RunningPieces) and segmenter.marked:
        raise UserError(
            "trees: expected sentences of words alone, found a model whose sentences have a mark, "
            "such as the code of a language, to which heads would attend as to a word; leave trees "
            "out: roles.trees"
        )

    @cache  # the tokeniser takes a quarter of a millisecond for each
    def cut(text: str) -> list[str]:
        return segmenter.pieces(clean(text, LineTally()))

    def cut_tree(tree: Tree) -> list[list[str]]:
        if isinstance(segmenter, RunningPieces):
            return _cut_running(tree, segmenter)
        return [cut(token) for token in tree.tokens]

    counts: Counter[str] = Counter(dict.fromkeys(COUNTS, 0))
    kept, example = [], ""
    for tree in trees:
        counts["sentences_read"] += 1
        pieces = cut_tree(tree)
        reason, dropped = _unfit(tree, pieces)
        if dropped:
            counts[f"dropped_{dropped}"] += 1
            example = f"sentence {tree.sentence}: {reason}"
            continue
        kept.append(AlignedTree(tree.sentence, pieces, tree.arcs))
        flat = [piece for token in pieces for piece in token]
        counts["sentences"] += 1
        counts["tokens"] += len(pieces)
        counts["split_tokens"] += sum(len(token) > 1 for token in pieces)
        counts["pieces"] += len(flat)
        counts["unknown_pieces"] += segmenter.vocabulary.ids(flat).count(UNK)
        counts["cut_like_text"] += tree.text is not None and cut(tree.text) == flat
    if not kept:
        raise UserError(f"no sentence is left of {counts['sentences_read']}; the last: {example}")
    return kept, counts


def _cut_running(tree: Tree, segmenter: RunningPieces) -> list[list[str]]:
    """Pieces of the sentence by token; none of a token in which no piece begins.

    A piece begins with its first character that is no space. It is the first at or after its
    position, for "▁" alone stands before its word.
    """
    text = segmenter.spell(clean(tree.text or " ".join(tree.tokens), LineTally()))
    # Small letters may be more than capitals.
    spelt = (segmenter.spell(clean(token, LineTally())) for token in tree.tokens)
    letters = [n for n, token in enumerate(spelt) for _ in "".join(token.split())]
    found: list[list[str]] = [[] for _ in tree.tokens]
    if len("".join(text.split())) != len(letters) or not letters:
        return found
    before = list(accumulate((not each.isspace() for each in text), initial=0))  # letters
    for piece, start in segmenter.placed(text):
        found[letters[min(before[start], len(letters) - 1)]].append(piece)
    return found


def _unfit(tree: Tree, pieces: list[list[str]]) -> tuple[str, str]:
    """Why a model cannot read a tree, in words, and as the counts call it; empty if it can."""
    if not tree.tokens:
        return "it has no word", "empty"
    if tree.lacks_words:
        return f"all its words are _; {_MERGE}", "wordless"
    letters = "".join("".join(tree.tokens).split())
    if tree.text is not None and "".join(tree.text.split()) != letters:
        return f"its words do not make up its text {tree.text!r}", "text"
    if not all(pieces):
        return "a word has nothing that the model could read", "word"
    return "", ""


ARC_COLUMNS = ("relation", "offset", "count")
COUNTS = (
    *("sentences_read", "dropped_empty", "dropped_wordless", "dropped_text", "dropped_word"),
    "sentences",
    *("cut_like_text", "tokens", "split_tokens", "pieces", "unknown_pieces"),
)


def write_aligned(
    path: Path, trees: list[AlignedTree], counts: Counter[str], about: dict[str, Any]
) -> None:
    """Write trees as JSON, one a line; beside them, as `.csv` and `.json`, arcs and counts.

    The CSV says how often each relation has each relative position of the dependent.
    """
    write_lines(path, (json.dumps(asdict(tree), ensure_ascii=False) for tree in trees))
    arcs = Counter((a.relation, a.dependent - a.governor) for tree in trees for a in tree.arcs)
    rows = [(*of, count) for of, count in sorted(arcs.items())]
    write_result(path.with_suffix(".csv"), ARC_COLUMNS, rows, {**counts, **about})


def read_aligned(path: Path) -> list[AlignedTree]:
    """The trees that `write_aligned` wrote."""
    rows = map(json.loads, clean_lines(path))
    return [
        AlignedTree(row["sentence"], row["pieces"], [Arc(*arc) for arc in row["arcs"]])
        for row in rows
    ]


def _tree(rows: conllu.TokenList, sentence: str, where: str) -> Tree:
    for number, row in enumerate(rows, start=1):
        if len(row) < _COLUMNS:
            raise UserError(
                f"{where}: expected {_COLUMNS} columns in every row, found {len(row)} in row "
                f"{number} ({' '.join(str(cell) for cell in row.values())}); mend the row or leave "
                "the sentence out"
            )
    words = [row for row in rows if isinstance(row["id"], int)]
    spans = [row for row in rows if isinstance(row["id"], tuple) and row["id"][1] == "-"]
    _check_words(words, where)
    _check_spans([row["id"] for row in spans], len(words), where)
    _check_tree({word["id"]: word["head"] for word in words}, where)
    token_of: dict[int, int] = {}
    tokens: list[str] = []
    starts = {row["id"][0]: row for row in spans}
    for word in words:
        if word["id"] not in token_of:
            row = starts.get(word["id"], word)
            last = word["id"] if row is word else row["id"][2]
            token_of |= dict.fromkeys(range(word["id"], last + 1), len(tokens))
            tokens.append(row["form"])
    arcs = [
        Arc(token_of[word["id"]], token_of[word["head"]], word["deprel"])
        for word in words
        if word["head"] and token_of[word["id"]] != token_of[word["head"]]
    ]
    return Tree(sentence, tokens, arcs, rows.metadata.get("text"))


def _check_words(words: list[conllu.Token], where: str) -> None:
    """Raises UserError unless words are in order, with heads and relations that exist."""
    if [word["id"] for word in words] != list(range(1, len(words) + 1)):
        raise UserError(f"{where}: expected words numbered from 1, found {words[:9]}")
    for word in words:
        number, head = word["id"], word["head"]
        if head is None or not 0 <= head <= len(words):
            raise UserError(
                f"{where}: word {number} has the head {head}, expected 0 to {len(words)}; mend the "
                "tree or leave the sentence out"
            )
        fault = relation_fault(word["deprel"])
        if fault:
            raise UserError(
                f"{where}: word {number}: {fault}; take a treebank with the relations of Universal "
                "Dependencies, version 2"
            )


def _check_spans(spans: list[tuple[int, str, int]], words: int, where: str) -> None:
    """Raises UserError unless ranges of words follow one another and end with the last word."""
    before = (0, "-", 0)
    for span in spans:
        fault = ""
        if span[0] <= before[2]:
            fault = f"begins inside or before the range {before[0]}-{before[2]}"
        elif span[2] > words:
            fault = f"ends after the last word, {words}"
        if fault:
            raise UserError(
                f"{where}: the range {span[0]}-{span[2]} of a token of several words {fault}; mend "
                "the ranges or leave the sentence out"
            )
        before = span


def _check_tree(heads: dict[int, int], where: str) -> None:
    """Raises UserError unless words, whose heads exist, make one tree. Looks at each word once."""
    roots = [word for word, head in heads.items() if not head]
    if len(roots) > 1:
        raise UserError(
            f"{where}: expected one root, found {len(roots)}: words "
            f"{', '.join(map(str, roots))}; mend the tree or leave the sentence out"
        )
    reached = {0}  # words from which the way up leads to the root
    for word in heads:
        way: set[int] = set()
        while word not in reached:
            if word in way:
                raise UserError(
                    f"{where}: word {word} is in a cycle and hangs from no root; mend the tree or "
                    "leave the sentence out"
                )
            way.add(word)
            word = heads[word]
        reached |= way

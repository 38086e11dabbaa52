"""Dependency trees in CoNLL-U: read, checked, and aligned with the subwords of a model.

A token stands between spaces or punctuation. A word is a node of the tree. One token may stand for
several words (French `du`, English `don't`). The model reads tokens, so arcs are carried over to
tokens, and arcs inside a token are left out. Tokens count from 0.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from graphlib import CycleError, TopologicalSorter
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import conllu
from conllu.exceptions import ParseException

from headcount.base.errors import UserError
from headcount.base.files import write_result
from headcount.base.settings.heads import relation_fault
from headcount.data.lines import FoundText, clean_lines, write_lines
from headcount.data.sentencepieces import RunningPieces
from headcount.data.text import clean
from headcount.data.words import AnySegmenter

ARC_COLUMNS = ("relation", "offset", "count")
_MERGE = "merge the text into the treebank first, as its publisher describes"
UNFIT = {
    "empty": "it has no word",
    "wordless": f"all its words are _; {_MERGE}",
    "text": "its words do not make up its text",
    "word": "a word has nothing that the model could read",
}
"""Reasons for which a sentence is dropped, by the name of their count."""
_COLUMNS = 10  # of CoNLL-U
_SHOWN = 200  # characters of a fault, whose row may have any number of them


class Arc(NamedTuple):
    """Positions of a dependent and its governor among the tokens, and their relation."""

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
        """True if all words are `_`, as where the text may not be shared."""
        return bool(self.tokens) and set(self.tokens) == {"_"}


@dataclass(frozen=True)
class AlignedTree:
    """One sentence as a model reads it: pieces of every token, and the arcs between tokens."""

    sentence: str
    pieces: list[list[str]]
    arcs: list[Arc]


def read_trees(text: FoundText) -> Iterator[Tree]:
    """Yield every sentence of a CoNLL-U file, also without a word. Empty nodes are left out.

    Raises UserError, with the sentence, for a faulty tree, and if no sentence has a word.
    """
    has_words = False
    lines = (f"{line}\n" for line in text.lines())
    for number, block in enumerate(conllu.parse_sentences(lines), start=1):
        try:
            rows = conllu.parse_token_and_metadata(block)
        except (ParseException, ValueError) as fault:  # the latter for a number of 5000 digits
            reason = " ".join(str(fault).split())[:_SHOWN]
            raise UserError(f"{text.shown}: sentence {number}: not CoNLL-U ({reason})") from None
        sentence = rows.metadata.get("sent_id", str(number))
        if fault := next(_faults(rows), None):
            advice = "mend it or leave the sentence out"
            raise UserError(f"{text.shown}: sentence {sentence}: {fault}; {advice}")
        tree = _tree(rows, sentence)
        has_words |= bool(tree.tokens) and not tree.lacks_words
        yield tree
    if not has_words:
        raise UserError(f"{text.shown}: expected trees in CoNLL-U, found none with a word")


def _faults(rows: conllu.TokenList) -> Iterator[str]:
    """Yield the faults of a sentence in the order in which they can be checked."""
    for number, row in enumerate(rows, start=1):
        if len(row) < _COLUMNS:
            cells = " ".join(map(str, row.values()))
            yield f"expected {_COLUMNS} columns in row {number}, found {len(row)} ({cells})"
    words = [row for row in rows if isinstance(row["id"], int)]
    if [word["id"] for word in words] != list(range(1, len(words) + 1)):
        yield f"expected words numbered from 1, found {words[:9]}"
    for word in words:
        if word["head"] is None or not 0 <= word["head"] <= len(words):
            yield f"word {word['id']} has the head {word['head']}, expected 0 to {len(words)}"
        if fault := relation_fault(word["deprel"]):
            yield f"word {word['id']}: {fault}"
    before = 0
    for first, _, last in (row["id"] for row in _ranges(rows)):
        if first <= before:
            yield f"the range {first}-{last} of a token begins inside or before another range"
        if last > len(words):
            yield f"the range {first}-{last} of a token ends after the last word, {len(words)}"
        before = last
    yield from _tree_faults({word["id"]: word["head"] for word in words})


def _tree_faults(heads: dict[int, int]) -> Iterator[str]:
    """Yield a fault unless words, whose heads exist, make one tree."""
    roots = [word for word, head in heads.items() if not head]
    if len(roots) > 1:
        yield f"expected one root, found {len(roots)}: words {', '.join(map(str, roots))}"
    try:
        TopologicalSorter({word: [head] for word, head in heads.items()}).prepare()
    except CycleError as fault:
        yield f"word {fault.args[1][0]} is in a cycle and hangs from no root"


def _ranges(rows: conllu.TokenList) -> list[conllu.Token]:
    return [row for row in rows if isinstance(row["id"], tuple) and row["id"][1] == "-"]


def _tree(rows: conllu.TokenList, sentence: str) -> Tree:
    words = [row for row in rows if isinstance(row["id"], int)]
    starts = {row["id"][0]: row for row in _ranges(rows)}
    token_of: dict[int, int] = {}
    tokens: list[str] = []
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


def align_trees(
    trees: Iterable[Tree], segmenter: AnySegmenter
) -> tuple[list[AlignedTree], dict[str, int]]:
    """Return the trees whose tokens the model can read, and counts of sentences and tokens.

    Pieces of running text belong to the token in which they begin. Raises UserError if no sentence
    stays.
    """
    dropped = Counter({f"dropped_{reason}": 0 for reason in UNFIT})
    aligned, example = [], ""
    for tree in trees:
        pieces = cut_tokens(tree.tokens, segmenter, tree.text)
        if reason := _unfit(tree, pieces):
            dropped[f"dropped_{reason}"] += 1
            example = f"sentence {tree.sentence}: {UNFIT[reason]}"
        else:
            aligned.append(AlignedTree(tree.sentence, pieces, tree.arcs))
    read = len(aligned) + dropped.total()
    if not aligned:
        raise UserError(f"no sentence is left of {read}; the last: {example}")
    tokens = sum(len(tree.pieces) for tree in aligned)
    kept = {"sentences_read": read, "sentences": len(aligned), "tokens": tokens}
    return aligned, kept | dict(dropped)


def cut_tokens(
    tokens: list[str], segmenter: AnySegmenter, text: str | None = None
) -> list[list[str]]:
    """Return pieces of a sentence by token, none for a token in which no piece begins.

    Running text is cut as a whole. `text`: the sentence, if spaces between tokens differ from it.
    """
    if isinstance(segmenter, RunningPieces):
        return _cut_running(tokens, segmenter, text or " ".join(tokens))
    return [segmenter.text_pieces(clean(token)) for token in tokens]


def _cut_running(tokens: list[str], segmenter: RunningPieces, text: str) -> list[list[str]]:
    """Return pieces of running text by token.

    A piece begins with its first letter (a character that is no space) at or after its position,
    because "▁" alone stands before its word.
    """
    text = segmenter.normalise(clean(text))
    # Lower case may have more letters than upper case.
    written = (segmenter.normalise(clean(token)) for token in tokens)
    owners = [n for n, token in enumerate(written) for _ in "".join(token.split())]
    pieces: list[list[str]] = [[] for _ in tokens]
    if len("".join(text.split())) != len(owners) or not owners:
        return pieces
    before = list(accumulate((not letter.isspace() for letter in text), initial=0))
    for piece, start in segmenter.placed(text):
        pieces[owners[min(before[start], len(owners) - 1)]].append(piece)
    return pieces


def _unfit(tree: Tree, pieces: list[list[str]]) -> str | None:
    """Return the name in `UNFIT` of the reason why a model cannot read a tree."""
    letters = "".join("".join(tree.tokens).split())
    reasons = {
        "empty": not tree.tokens,
        "wordless": tree.lacks_words,
        "text": tree.text is not None and "".join(tree.text.split()) != letters,
        "word": not all(pieces),
    }
    return next((reason for reason, applies in reasons.items() if applies), None)


def conllu_text(sentence: str, text: str, words: Iterable[tuple[str, str, int, str]]) -> str:
    """Return a tree in CoNLL-U. `words`: form, part of speech, head (0: none) and relation."""
    rows = [f"# sent_id = {sentence}", f"# text = {text}"]
    for number, (form, upos, head, relation) in enumerate(words, start=1):
        rows.append(f"{number}\t{form}\t_\t{upos}\t_\t_\t{head}\t{relation}\t_\t_")
    return "\n".join(rows) + "\n\n"


def write_aligned(
    path: Path, trees: list[AlignedTree], counts: dict[str, int], about: dict[str, Any]
) -> None:
    """Write trees as JSON, one a line, and beside them arcs as `.csv` and counts as `.json`."""
    write_lines(path, (json.dumps(asdict(tree), ensure_ascii=False) for tree in trees))
    arcs = Counter((a.relation, a.dependent - a.governor) for tree in trees for a in tree.arcs)
    rows = [(*kind, count) for kind, count in sorted(arcs.items())]
    write_result(path.with_suffix(".csv"), ARC_COLUMNS, rows, {**counts, **about})


def read_aligned(path: Path) -> list[AlignedTree]:
    """Return the trees that `write_aligned` wrote."""
    trees = [AlignedTree(**json.loads(line)) for line in clean_lines(path)]
    return [replace(tree, arcs=[Arc(*arc) for arc in tree.arcs]) for tree in trees]

"""Settings of what heads attend to: confidence, positions, syntax, rare words."""

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from headcount.base.settings.names import check_corpus_name, check_file_name, nearest
from headcount.base.settings.section import LARGEST, MOST_THREADS, Section, each_once

# The universal relations of Universal Dependencies, version 2.
UNIVERSAL = (
    *("acl", "advcl", "advmod", "amod", "appos", "aux", "case", "cc", "ccomp", "clf", "compound"),
    *("conj", "cop", "csubj", "dep", "det", "discourse", "dislocated", "expl", "fixed", "flat"),
    *("goeswith", "iobj", "list", "mark", "nmod", "nsubj", "nummod", "obj", "obl", "orphan"),
    *("parataxis", "punct", "reparandum", "root", "vocative", "xcomp"),
)


def relation_fault(name: str) -> str:
    """Why a name is none of a universal relation, and the nearest; empty if it is one.

    A language's subtype, such as nsubj:pass, goes by what stands before the colon.
    """
    if name.split(":")[0] in UNIVERSAL:
        return ""
    hint = "Universal Dependencies call it obj" if name == "dobj" else nearest(name, UNIVERSAL)
    return f"no relation of Universal Dependencies is called {name!r}; {hint}"


def _check_relation(name: str) -> str:
    """A relation between two words."""
    fault = relation_fault(name)
    if name == "root":
        fault = "'root' has no governor that a head could look for; name other relations"
    if fault:
        raise ValueError(fault)
    return name


def _check_treebank(name: str) -> str:
    corpus, dot, treebank = name.partition(".")
    if not dot:
        raise ValueError(f"expected <corpus>.<treebank> as in ud.ewt_dev, found {name!r}")
    check_corpus_name(corpus)
    check_file_name(treebank)
    return name


Relation = Annotated[str, AfterValidator(_check_relation)]
TreebankName = Annotated[str, AfterValidator(_check_treebank)]


class RolesSettings(Section):
    """What each head attends to, by the key of its largest weight."""

    flag_prefix: ClassVar[str] = "roles-"

    sentences: int = Field(1000, ge=1)
    """Sentences to measure on: the first of the dev set, and of each treebank."""

    eos: Literal["drop_both", "drop_key", "drop_query", "keep"] = "drop_both"
    """The end-of-sentence symbol (and, in the decoder, the start symbol): left out as key and as
    query, as one of them, or kept. Weights are never rescaled."""

    positional_share: float = Field(0.9, gt=0, le=1)
    """A head is positional if one relative position has this share of its largest weights."""

    edges: Literal["skip", "fail", "eos_is_token"] = "skip"
    """Queries whose neighbour at that position does not exist: not counted; counted as misses;
    or EOS counts as a word."""

    trees: Annotated[list[TreebankName], AfterValidator(each_once)] = []
    """Treebanks, `<corpus>.<treebank>`, for pairs whose source has their language; labels go by the
    first. Empty: the test set's trees of a generated corpus, and none for others."""

    relations: Annotated[
        list[Relation], AfterValidator(each_once), Field(min_length=1)
    ] = ["nsubj", "obj", "amod", "advmod"]  # fmt: skip
    """Relations of Universal Dependencies, without their subtypes unless these are named."""

    margin: float = Field(0.1, ge=0)
    """A head is syntactic if its accuracy exceeds that of the positional baseline by this much."""

    margin_kind: Literal["absolute", "relative"] = "absolute"
    """The margin is a difference (0.1 = 10 points), or a part of the baseline."""

    multi: Literal["any", "per_arc"] = "any"
    """A governor with several dependents of a relation: one trial, a hit at any of them; or a
    trial for each."""

    words_to: Literal["sum", "max", "first"] = "sum"
    """Attention to a word of several subwords, from theirs."""

    words_from: Literal["mean", "first", "last"] = "mean"
    """Attention from such a word."""

    words_filter: Literal["all", "single_piece_only"] = "all"
    """Which words count in the syntactic test."""

    rare_frequent: int = Field(500, ge=0)
    """The rare-word test takes sentences whose rarest subword is not among this many most frequent
    ones of the source text."""

    rare_largest_part: float = Field(0.25, gt=0, le=1)
    """At most this part of all subwords of the source text counts as frequent."""

    rare_unit: Literal["token", "sentence"] = "token"
    """A trial of the rare-word test is a subword, or a sentence as the mean over its subwords."""

    rare_include_self: bool = True
    """Whether the rarest subword's own query is a trial."""

    rare_share: float = Field(0.5, gt=0, le=1)
    """A head is a rare-word head if this share of its largest weights is at the two rarest."""

    batch_tokens: int = Field(4096, ge=1, le=LARGEST)
    """Budget of one batch: sentences × the longest sentence on either side (subwords)."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to compute; auto takes a GPU where there is one."""

    threads: int = Field(1, ge=1, le=MOST_THREADS)
    """CPU threads of one job."""

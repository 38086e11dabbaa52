"""Settings of what heads attend to: confidence, positions, syntax, rare words."""

from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from headcount.base.settings.names import FILE, NAME, nearest
from headcount.base.settings.section import Batches, each_once

# The universal relations of Universal Dependencies, version 2.
UNIVERSAL = (
    *("acl", "advcl", "advmod", "amod", "appos", "aux", "case", "cc", "ccomp", "clf", "compound"),
    *("conj", "cop", "csubj", "dep", "det", "discourse", "dislocated", "expl", "fixed", "flat"),
    *("goeswith", "iobj", "list", "mark", "nmod", "nsubj", "nummod", "obj", "obl", "orphan"),
    *("parataxis", "punct", "reparandum", "root", "vocative", "xcomp"),
)


def relation_fault(name: str) -> str:
    """Return the reason why a name is no universal relation, or an empty text."""
    if name.split(":")[0] in UNIVERSAL:  # nsubj:pass is a language's subtype
        return ""
    hint = "Universal Dependencies call it obj" if name == "dobj" else nearest(name, UNIVERSAL)
    return f"no relation of Universal Dependencies is called {name!r}; {hint}"


def _check_relation(name: str) -> str:
    if fault := "'root' has no governor" if name == "root" else relation_fault(name):
        raise ValueError(fault)
    return name


Relation = Annotated[str, AfterValidator(_check_relation)]
TreebankName = Annotated[str, Field(pattern=rf"^{NAME}\.{FILE}$")]


class RolesSettings(Batches):
    """Roles of heads by the key with the largest weight, without special tokens."""

    flag_prefix: ClassVar[str] = "roles-"

    sentences: int = Field(1000, ge=1)
    """Sentences to measure on: the first of the dev set, and of each treebank."""
    positional_share: float = Field(0.9, gt=0, le=1)
    """A head is positional if one relative position has this share of its largest weights."""
    trees: Annotated[list[TreebankName], AfterValidator(each_once)] = []
    """Treebanks, `<corpus>.<treebank>`, for pairs whose source has their language; labels go by the
    first. Empty: the test set's trees of a generated corpus, and none for others."""
    relations: Annotated[list[Relation], AfterValidator(each_once)] = Field(
        ["nsubj", "obj", "amod", "advmod"], min_length=1
    )
    """Relations of Universal Dependencies, without their subtypes unless these are named."""
    margin: float = Field(0.1, ge=0)
    """A head is syntactic if its accuracy exceeds that of the positional baseline by this much."""
    rare_frequent: int = Field(500, ge=0)
    """The rare-word test takes sentences whose rarest subword is not among this many most frequent
    ones of the source text, nor among the most frequent quarter."""
    rare_share: float = Field(0.5, gt=0, le=1)
    """A head is a rare-word head if this share of its largest weights is at the two rarest."""

"""Settings of measures of heads, of what heads attend to, and of masking and removing them."""

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from headcount.base.settings.section import (
    FILE,
    LARGEST,
    MOST_DRAWS,
    NAME,
    Batches,
    Compute,
    Numbers,
    Percents,
    Section,
    Threads,
    each_once,
    nearest,
)


class ImportanceSettings(Batches):
    """Importance of a head: the size of ∂L/∂ξ at ξ = 1, ξ being the head's multiplier. L is the
    cross-entropy of a sentence, summed over its target tokens, without label smoothing."""

    abs: Literal["sentence", "token", "position", "batch", "none", "square"] = "sentence"
    """Quantity whose absolute value is averaged: ∂L/∂ξ of a sentence (the papers' formula), of a
    target token, a query position or a batch. `none`: −∂L/∂ξ. `square`: Fisher information."""
    data: Literal["train", "dev"] = "train"
    """The text whose sentences are drawn."""
    sentences: int = Field(1000, ge=2)
    """Sentence pairs drawn from it, the same for all runs; all of them where it has fewer."""


class MeasuresSettings(Section):
    """More measures of heads, if `ablation.measures`, with loss and sentences of `importance`."""

    points: int = Field(8, ge=1, le=10**4)
    """Integrated gradients: midpoints between no head and all heads, each as long as importance."""
    orders: int = Field(6, ge=2, le=MOST_DRAWS)
    """Shapley values: random orders in which heads are masked one by one, the same for all runs."""
    order_sentences: int = Field(64, ge=1)
    """Shapley values: sentence pairs, the first of those drawn for importance."""


class LrpSettings(Compute):
    """Relevance of heads to the model's predictions, by layer-wise relevance propagation."""

    flag_prefix: ClassVar[str] = "lrp-"

    rule: Literal["alpha_beta", "ratio"] = "alpha_beta"
    """Rule that ranks heads: relevance goes half to positive and half to negative contributions
    (the authors' later code), or is shared in proportion (the paper). Files have both."""
    max_sentences: int = Field(200, ge=1)
    """Sentences to measure on: the first of the dev set."""


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


class SilverSettings(Section):
    """Links between words that the outside command eflomal predicts."""

    flag_prefix: ClassVar[str] = "alignment-"

    silver_pairs: int = Field(100_000, ge=1)
    """Training pairs, evenly spaced, from which eflomal learns `silver` links; all if fewer."""
    threads: Threads = 1
    """CPU threads of one job."""


class AlignmentSettings(SilverSettings, Batches):
    """Alignment of words by cross-attention, on the first test set with links."""

    flag_prefix: ClassVar[str] = "alignment-"

    sentences: int = Field(1000, ge=2)
    """Sentences to measure on: the first of the test set. Every other one chooses heads."""
    links: Literal["gold", "silver"] = "gold"
    """Links that count as right: of the corpus, where it has some, or those that eflomal finds."""


class MaskingSettings(Section):
    """Translating with heads masked: in groups by importance, cumulatively, and at random."""

    groups: int = Field(8, ge=1, le=LARGEST)
    """Near-equal groups into which the ranked heads are cut."""
    draws: int = Field(3, ge=0, le=MOST_DRAWS)
    """Random rankings that are masked in the same way, as a control; 0 leaves it out."""
    test_sets: list[str] = []
    """Names of the test sets to translate, where a pair has them; empty: its first one."""
    sentences: int | None = Field(None, ge=1)
    """Translate only the first sentences of a test set, this many; without it all."""


class PruningSteps(Section):
    """Ranking and pruning of heads without further training (Michel et al.)."""

    steps: int = Field(10, ge=1, le=100)
    """Equal steps in which heads are pruned, from none to all of them."""
    draws: int = Field(3, ge=0, le=MOST_DRAWS)
    """Random orders of pruning, as a control; 0 leaves it out."""
    normalise: Literal["none", "layer_l2"] = "layer_l2"
    """Rank heads by importance as it is, or divided by the L2 norm of its layer and type."""


class AblationSettings(PruningSteps):
    """Heads of trained models removed without further training (Michel et al.)."""

    runs: Annotated[list[str], AfterValidator(each_once)] = []
    """Training runs whose models are ablated, by their names in paths, such as `baseline` or
    `random-6`, among `runs`; empty: none, and no tables."""
    test_sets: list[str] = []
    """Two test sets, where a pair has them, between which effects are compared; the first scores
    all else. The second may be `dev`. Empty: the first two; for a pair with one, this and `dev`."""
    sentences: int | None = Field(None, ge=1)
    """Translate only the first sentences of each, and of `dev`, this many; without it all."""
    signed: bool = False
    """Prune by signed importance too (`importance.abs: none`), harmful heads first."""
    measures: bool = False
    """Also prune by Fisher information, integrated gradients, Shapley values, means and norms."""
    units: bool = False
    """Also mask feed-forward units in blocks by importance, `masking.groups`, and layers."""
    updates: Numbers = []
    """Updates, of `train.keep_updates`, after which the model is pruned as well."""
    timed: Percents = [25, 50, 75]
    """Percentages of all heads that are really removed, for timing."""


class RerankSettings(ImportanceSettings):
    """Head importance, where it is measured anew."""

    flag_prefix: ClassVar[str] = "importance-"


class ClassifierSettings(PruningSteps, Compute):
    """Heads of a classifier removed without further training (Michel et al.)."""

    pairs: int | None = Field(None, ge=1)
    """Use only the first labelled pairs of each file, this many; without it all."""
    reestimate: bool = False
    """Measure importance anew after each step of pruning, on the pruned model."""

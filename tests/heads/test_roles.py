"""Roles of heads that were set by hand, with the scores that follow from how they were set."""

from typing import NamedTuple

import numpy as np
import pytest
import torch
from planted import (
    COUNTS,
    POSITIONAL,
    RARE,
    SYNTACTIC,
    TEXT,
    TO_VERB,
    TREES,
    UNIFORM,
    WORDS,
    planted_model,
)

from headcount.base.addresses import HeadGrid
from headcount.base.settings.heads import RolesSettings
from headcount.data.batches import Batch, in_order
from headcount.data.vocabulary import BOS, EOS
from headcount.heads import head_measures
from headcount.heads.head_measures import (
    NOWHERE,
    POSITION_COLUMNS,
    Confidence,
    Copies,
    Positions,
    RareWords,
    add_up,
    frequent_limit,
    pointed,
    views,
)
from headcount.heads.roles import SYNTAX_COLUMNS, Syntax, sentences_of


@pytest.fixture(scope="module")
def model():
    return planted_model()


GRID = planted_model().grid


@pytest.fixture(autouse=True)
def four_of_six_pieces_are_frequent(monkeypatch):
    monkeypatch.setattr(head_measures, "LARGEST_PART", 0.8)


class TextRoles(NamedTuple):
    confidence: Confidence
    positions: Positions
    rare: RareWords


def measured(model, budget: int = 4096) -> TextRoles:
    rare = RareWords(GRID, COUNTS, RolesSettings())
    roles = TextRoles(Confidence(GRID), Positions(GRID, TEXT.longest), rare)
    add_up(roles, model, TEXT, budget)
    return roles


def shares(roles: TextRoles, head: int) -> dict[int, tuple[int, int]]:
    """Hits and trials by relative position, of a head of the planted layer."""
    rows = [dict(zip(POSITION_COLUMNS, row, strict=True)) for row in position_rows(roles)]
    return {
        row["offset"]: (row["hits"], row["trials"])
        for row in rows
        if row["kind"] == "enc_self" and row["head"] == head
    }


def position_rows(roles: TextRoles) -> list[list]:
    return roles.positions.rows(GRID.heads(), "share", np.ones(GRID.size))


def syntax_rows(model, trees=TREES, budget: int = 4096) -> list[dict]:
    syntax = Syntax(GRID, trees, RolesSettings().relations)
    add_up([syntax], model, sentences_of(trees, WORDS), budget)
    return [dict(zip(SYNTAX_COLUMNS, r, strict=True)) for r in syntax.rows(GRID.heads(), "toy")]


def accuracies(model, head: int, trees=TREES) -> dict[tuple[str, str], dict]:
    rows = syntax_rows(model, trees)
    return {(row["relation"], row["direction"]): row for row in rows if row["head"] == head}


def test_a_planted_positional_head_is_found_with_a_share_of_one(model):
    # By subwords: the verb's −1 is `g`, part of dog, its subject, as the baseline guesses.
    row = accuracies(model, POSITIONAL)["nsubj", "to_dependent"]
    assert (row["hits"], row["head_only"], row["baseline_only"]) == (3, 0, 0)
    # Sentences of 6, 3 and 5 subwords: 5 + 2 + 4 of them have one before. A first subword looks
    # for position −1 in vain; the most similar is 5 in the long sentence, as cos 6 is nearly 1, and
    # 0 in the others.
    found = shares(measured(model), POSITIONAL)
    assert found == {-1: (11, 11), 0: (2, 14), 5: (1, 1)}


def test_a_planted_syntactic_head_scores_as_it_was_planted(model):
    # It finds the subject in two sentences of three; the baseline (−1) in all three.
    found = accuracies(model, SYNTACTIC)
    row = found["nsubj", "to_dependent"]
    assert (row["hits"], row["trials"], row["value"]) == (2, 3, 2 / 3)
    assert (row["offset"], row["baseline_hits"], row["baseline_only"]) == (-1, 3, 1)
    assert (row["half_trials"], row["half_hits"]) == (2, 1)  # sentences a and c
    assert found["nsubj", "to_governor"]["hits"] == 0  # subjects' queries are 0: a uniform row
    # In sentence c it points at the object, cat, which is at +2 as in sentence a.
    assert found["obj", "to_dependent"]["hits"] == 1
    assert found["obj", "to_dependent"]["baseline_hits"] == 2
    assert set(found) == {(r, d) for r in ("nsubj", "obj") for d in ("to_dependent", "to_governor")}


def test_a_head_planted_the_other_way_scores_as_it_was_planted(model):
    # From dog and cat to the verb, in two sentences of three; from a yak it has a uniform row. The
    # baseline guesses one after the subject, which is the verb in all three.
    found = accuracies(model, TO_VERB)
    row = found["nsubj", "to_governor"]
    assert (row["hits"], row["trials"], row["offset"], row["baseline_hits"]) == (2, 3, -1, 3)
    assert (row["head_only"], row["baseline_only"]) == (0, 1)
    # Objects: from the cat in c alone; two before the object is the verb in both.
    row = found["obj", "to_governor"]
    assert (row["hits"], row["trials"], row["offset"], row["baseline_hits"]) == (1, 2, 2, 2)


def test_a_planted_rare_word_head_scores_one(model):
    # Four pieces are frequent (30 times or more), so sentence b, whose rarest is cat (20), is
    # tested as well as a and c with yak.
    roles = measured(model)
    found = roles.rare.shares()
    assert roles.rare.sentences == 3
    assert found["rare_rarest"][RARE] == found["rare_two_rarest"][RARE] == 1
    # One rarest in each sentence; the two rarest are yak and, tied, do@@ and g in a (3 of 6),
    # cat and sees in b (2 of 3), yak and cat in c (2 of 5): chances weighted by subwords.
    assert found["rare_rarest_chance"][RARE] == pytest.approx(3 / 14)
    assert found["rare_two_rarest_chance"][RARE] == pytest.approx((3 + 2 + 2) / 14)
    # The positional head: from the subword after yak in c and cat in b, and from the first of a.
    assert found["rare_rarest"][POSITIONAL] == pytest.approx(3 / 14)


def test_frequent_pieces_are_counted_out_as_the_settings_say(model, monkeypatch):
    assert frequent_limit(COUNTS, RolesSettings(rare_frequent=2)) == 50
    assert frequent_limit(COUNTS, RolesSettings(rare_frequent=0)) > 90
    # With the cat among five frequent pieces sentence b is out.
    monkeypatch.setattr(head_measures, "LARGEST_PART", 0.9)
    assert measured(model).rare.sentences == 2
    monkeypatch.setattr(head_measures, "LARGEST_PART", 0.25)  # one of six
    assert frequent_limit(COUNTS, RolesSettings(rare_frequent=2)) == 90


def test_a_uniform_head_points_at_the_word_of_most_pieces_if_weights_are_summed(model):
    roles = measured(model)
    assert shares(roles, UNIFORM) == {} and roles.rare.shares()["rare_two_rarest"][UNIFORM] == 0
    # In sentence a the dog has 2/7, every other word 1/7: all point at it, so the verb at its
    # subject, one of three. In b and c all words share the largest weight.
    found = accuracies(model, UNIFORM)
    hits = {key: row["hits"] for key, row in found.items()}
    assert hits.pop(("nsubj", "to_dependent")) == 1 and set(hits.values()) == {0}
    row = found["nsubj", "to_dependent"]
    assert (row["value"], row["baseline_hits"]) == (1 / 3, 3)  # so it gets no label


def test_confidence_and_entropy_of_planted_heads(model):
    means = measured(model).confidence.means()
    # Weights over 7, 4 and 6 keys, EOS among them; 6, 3 and 5 queries.
    assert means["confidence"][UNIFORM] == pytest.approx((6 / 7 + 3 / 4 + 5 / 6) / 14)
    logs = 6 * np.log(7) + 3 * np.log(4) + 5 * np.log(6)
    assert means["entropy"][UNIFORM] == pytest.approx(logs / 14)
    assert means["confidence"][RARE] == pytest.approx(1)
    assert means["entropy"][RARE] == pytest.approx(0, abs=1e-6)


def test_batches_change_nothing(model):
    whole, single = measured(model), measured(model, budget=1)
    assert len(list(in_order(TEXT, 1))) == 3
    assert position_rows(whole) == position_rows(single)
    for name, values in whole.confidence.means().items():
        # The sure head's entropy is 0 but for rounding: some 1e-27 nats.
        np.testing.assert_allclose(values, single.confidence.means()[name], rtol=1e-5, atol=1e-12)
    assert syntax_rows(model, budget=1) == syntax_rows(model, budget=99)


def test_a_head_points_at_one_key_or_at_none():
    weights = torch.tensor([[[[0.2, 0.5, 0.3], [0.4, 0.4, 0.2], [0.0, 0.0, 1.0]]]])
    keys = torch.tensor([[True, True, False]])
    assert pointed(weights, keys).tolist() == [[[1, -1, -1]]]
    assert pointed(weights, torch.tensor([[True, False, True]])).tolist() == [[[2, 0, 2]]]


def test_several_dependents_are_one_trial(model):
    arcs = [*TREES[0].arcs, TREES[0].arcs[1]._replace(dependent=4)]
    tree = type(TREES[0])("d", TREES[0].pieces, arcs)
    row = accuracies(model, SYNTACTIC, [tree])["nsubj", "to_dependent"]
    assert (row["hits"], row["trials"]) == (1, 1)


def test_copies_count_rare_subwords_that_stand_once_in_the_source():
    # Source ids 4 to 7; 5 and 6 are rare and are 8 and 9 on the target side, 4 is frequent.
    counts, same = torch.tensor([0, 0, 0, 0, 9, 1, 1, 1]), torch.full((8,), NOWHERE)
    same[4:7] = torch.tensor([4, 8, 9])
    copies = Copies(
        HeadGrid({"enc_self": (1,), "dec_self": (1,), "dec_enc": (2,)}), counts, 5, same
    )
    src = torch.tensor([[4, 5, 6, EOS], [5, 6, 5, EOS]])
    out = torch.tensor([[8, 4, 9, EOS], [8, 9, 7, EOS]])
    batch = Batch([0, 1], [4, 4], [4, 4], src, torch.full_like(out, BOS), out, torch.arange(8))
    copies.start(batch, views(batch))
    # Queries 0 and 2 of the first sentence; of the second only 1, as 5 stands there twice.
    weights = torch.zeros(2, 2, 4, 4)
    weights[:, 0, :, 1] = 1.0  # head 0: always the second subword; right in 1 of 2, and in 1 of 1
    weights[:, 1, :, 0] = 1.0  # head 1: always the first, never right
    copies.add("dec_enc", 0, weights, views(batch)["dec_enc"])
    assert copies.best() == {"copy_hits": 1, "copy_trials": 1}

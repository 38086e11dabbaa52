"""Colours of locked heads: by kind of attention and layer, for as many as can be told apart."""

import numpy as np

from headcount.base.addresses import KINDS, Head
from headcount.base.settings.training_runs import RunSettings
from headcount.findings.headmask.locked_figures import layer_colours, legend_entries
from headcount.findings.headmask.locked_in import History


def made_of(heads, *locked):
    """Histories of trainings, in each of which these heads were locked in."""
    for ever in locked:
        masked = np.array([[float(head in ever) for head in heads]])
        nothing = np.zeros(masked.shape)
        of = RunSettings(method="importance", heads=2)
        yield History(
            ("multi.en-de", "impt-2", 1), of, heads, np.array([60]), masked, *[nothing] * 3
        )


def test_each_kind_and_layer_has_a_colour_while_there_are_few():
    grid = [Head(kind, layer, head) for kind in KINDS for layer in (0, 1) for head in (0, 1)]
    (one,) = made_of(grid, [("dec_self", 0, 0), ("dec_self", 0, 1), ("dec_enc", 1, 1)])
    colours = layer_colours([one])
    assert list(colours) == [(kind, layer) for kind in KINDS for layer in (0, 1)]
    assert len(set(colours.values())) == 6
    entries = legend_entries(one, colours)
    assert list(entries) == ["dec layer 0: heads 0, 1", "enc–dec layer 1: head 1"]


def test_of_many_layers_those_with_most_locked_heads_have_a_colour():
    grid = [Head(kind, layer, head) for kind in KINDS for layer in range(3) for head in (0, 1)]
    both = [head for head in grid if head.kind == "dec_self"]
    first = [*both, Head("enc_self", 2, 0), Head("enc_self", 1, 1), Head("dec_enc", 0, 1)]
    again = [*both, Head("enc_self", 2, 1), Head("dec_enc", 0, 0)]
    trainings = list(made_of(grid, first, again))
    # Of the decoder 4 heads a layer, of two others 2 each; the one of enc layer 1 has no colour.
    colours = layer_colours(trainings)
    layers = [("dec_self", layer) for layer in range(3)]
    assert list(colours) == [("enc_self", 2), *layers, ("dec_enc", 0)]
    entries = legend_entries(trainings[0], colours)
    assert list(entries)[-2:] == ["enc–dec layer 0: head 1", "heads of other layers: 1"]
    assert len(entries) == 6 and "heads of other layers: 1" not in legend_entries(
        trainings[1], colours
    )

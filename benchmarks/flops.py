"""Floating-point operations of the model's matrix products."""

from collections.abc import Sequence

from headcount.base.settings.model import ModelSettings


def forward_flops(
    settings: ModelSettings,
    vocabulary: int,
    lengths: Sequence[tuple[int, int]],
    hypotheses: int = 1,
) -> float:
    """Operations of the matrix products that sentences of (source, target) lengths need, forward.

    A product of [m, k] and [k, n] counts 2·m·k·n; lengths count EOS. Only real tokens count, and
    of decoder self-attention only positions that may be seen, so padding and masked positions
    lower the rate of whoever computes them. `vocabulary` is the target's. Beam search does all
    that belongs to target positions for each of its `hypotheses`. Backward takes twice as much.

    Letters: d width, a = heads · width of one head, S and T lengths of source and target.
    """
    d, width = settings.d_model, settings.head_width
    a = {kind: [width * heads for heads in layers] for kind, layers in settings.grid.counts.items()}
    feed_forward = 4 * d * settings.d_ff
    # Each token passes W_Q, W_K, W_V and W_O: 2·d·a each.
    per_source = sum(8 * d * w + feed_forward for w in a["enc_self"])
    per_source += sum(4 * d * w for w in a["dec_enc"])  # keys and values of the memory
    per_target = sum(8 * d * w + feed_forward for w in a["dec_self"])
    per_target += sum(4 * d * w for w in a["dec_enc"]) + 2 * d * vocabulary
    # Scores and weighted values: 2·a each for every pair of query and key.
    pairs = {kind: 4 * sum(widths) for kind, widths in a.items()}
    total = 0.0
    for s, t in lengths:
        decoder = per_target * t + pairs["dec_self"] * t * (t + 1) / 2 + pairs["dec_enc"] * s * t
        total += per_source * s + pairs["enc_self"] * s * s + hypotheses * decoder
    return total


def training_flops(
    settings: ModelSettings, vocabulary: int, lengths: Sequence[tuple[int, int]]
) -> float:
    """Operations of `forward_flops` forward and backward: three times those forward."""
    return 3 * forward_flops(settings, vocabulary, lengths)

"""Rules of layer-wise relevance propagation, one module at a time.

Every rule turns the relevance of a module's outputs into the relevance of its inputs. The sum of
sizes stays the same in a step, and in the core of attention for a head. Input i contributes
J_ji · x_i to output j, with J the Jacobian, plus an equal part of the output at zero input (the
bias).

Letters in shapes: t generation steps, p positions, i inputs, j outputs, h heads, q query positions,
k key positions, e and f width of one head.

Sources: Voita et al. 2019, appendix A (`ratio`); the authors' later code (`alpha_beta`, rescaling,
Jacobians, which the paper does not give).
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

EPSILON = 1e-5  # keeps sums of contributions away from 0
LARGEST = 1 << 24  # numbers in the contributions of several heads, beyond which heads take turns


@dataclass(frozen=True)
class Rules:
    """Rules of one way to distribute relevance, `ratio` or `alpha_beta`."""

    rule: str

    def shares(self, parts: Tensor, dim: int = -1) -> Tensor:
        """Return the shares of contributions in their outputs, of the shape of `parts`.

        Contributions to one output lie along `dim`. `ratio`: part / sum. `alpha_beta`: half of the
        positive part / positive sum, plus half of the negative part / negative sum; never negative.
        """
        if self.rule == "ratio":
            total = parts.sum(dim, keepdim=True)
            return parts / (total + EPSILON * torch.where(total < 0, -1.0, 1.0))
        above = parts.clamp(min=0)
        below = parts - above
        above *= 0.5 / (above.sum(dim, keepdim=True) + EPSILON)
        below *= 0.5 / (below.sum(dim, keepdim=True) - EPSILON)
        return above.add_(below)

    def linear(
        self, inputs: Tensor, weight: Tensor, bias: Tensor | None, relevance: Tensor
    ) -> Tensor:
        """Return the relevance [t, p, i] of inputs [p, i], given [t, p, j] of the outputs.

        `weight` is [j, i], or [p, j, i] with one matrix for each position. `bias` is [j].
        """
        parts = self.with_bias(weight * inputs[:, None, :], bias)
        of_inputs = torch.einsum("tpj,pji->tpi", relevance, self.shares(parts))
        return rescaled(of_inputs, relevance, (1, 2))

    def with_bias(self, parts: Tensor, bias: Tensor | None) -> Tensor:
        """Return contributions [.., j, i] to outputs, with an even part of a bias [j]."""
        return parts if bias is None else parts + bias[:, None] / parts.shape[-1]

    def norm(self, inputs: Tensor, norm: nn.Module, relevance: Tensor) -> Tensor:
        """Return the relevance of a layer norm's inputs [p, i], given [t, p, i] of its outputs."""
        if not isinstance(norm, nn.LayerNorm):
            return relevance
        return self.linear(inputs, norm_jacobian(inputs, norm), norm.bias, relevance)

    def residual(self, first: Tensor, second: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
        """Return the relevance [t, p, i] of both terms [p, i] of a sum."""
        terms = self.shares(torch.stack([first, second]), dim=0)[:, None] * relevance
        return tuple(rescaled(terms, relevance[None], (0, 2, 3)).unbind(0))

    def attention(
        self, queries: Tensor, keys: Tensor, values: Tensor, weights: Tensor, relevance: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the relevance of queries [t, h, q, e], keys and values [t, h, k, e].

        Arguments: [h, q, e], [h, k, e], [h, k, e], weights [h, q, k], and relevance [t, h, q, e] of
        the outputs. All inputs of a head share it, by the Jacobian of the softmax as well.
        """
        heads, length, width = queries.shape
        if heads > 1 and heads * (length * width) * (keys.shape[1] * width) > LARGEST:
            given = (queries, keys, values, weights)
            one = [
                self.attention(*(g[n : n + 1] for g in given), relevance[:, n : n + 1])
                for n in range(heads)
            ]
            return tuple(torch.cat(parts, 1) for parts in zip(*one, strict=True))
        to_values = weights[:, :, None, :] * values.transpose(1, 2)[:, None]  # [h, q, e, k]
        by_query, by_key = attention_parts(queries, keys, values, weights)
        parts = [to_values, by_query, by_key.flatten(3)]
        share = self.shares(torch.cat(parts, -1))
        values_share, query_share, key_share = share.split([p.shape[-1] for p in parts], -1)
        key_share = key_share.unflatten(-1, (keys.shape[1], keys.shape[2]))
        shared = (
            torch.einsum("thqe,hqef->thqf", relevance, query_share),
            torch.einsum("thqe,hqekf->thkf", relevance, key_share),
            torch.einsum("thqe,hqek->thke", relevance, values_share),
        )
        before = relevance.abs().sum((2, 3), keepdim=True)
        after = sum(part.abs().sum((2, 3), keepdim=True) for part in shared)
        scale = torch.where(after > 0, before / after, 0)
        return tuple(part * scale for part in shared)


def rescaled(relevance: Tensor, given: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Return relevance scaled so that its sum of sizes over `dims` equals the sum in `given`."""
    after = relevance.abs().sum(dims, keepdim=True)
    before = given.abs().sum(dims, keepdim=True)
    return relevance * torch.where(after > 0, before / after, 0)


def norm_jacobian(inputs: Tensor, norm: nn.LayerNorm) -> Tensor:
    """Return ∂ output j / ∂ input i of a layer norm at inputs [p, i]: [p, j, i]."""
    width = inputs.shape[-1]
    centred = inputs - inputs.mean(-1, keepdim=True)
    deviation = (centred.square().mean(-1, keepdim=True) + norm.eps).sqrt()
    shape = torch.eye(width, dtype=inputs.dtype, device=inputs.device) - 1 / width
    scaled = centred / deviation
    shape = shape - scaled[:, :, None] * scaled[:, None, :] / width
    return norm.weight[:, None] * shape / deviation[..., None]


def attention_parts(
    queries: Tensor, keys: Tensor, values: Tensor, weights: Tensor
) -> tuple[Tensor, Tensor]:
    """Return contributions of queries [h, q, e, f] and keys [h, q, e, k, f] to outputs, J_ji · x_i.

    With weights A and outputs c, ∂c_qe/∂score_qk = A_qk (v_ke − c_qe), and
    score_qk = Σ_f query_qf · key_kf / √width.
    """
    context = weights @ values
    spread = values.transpose(1, 2)[:, None] - context[..., None]  # [h, q, e, k]
    slope = weights[:, :, None, :] * spread / math.sqrt(queries.shape[-1])
    by_query = torch.einsum("hqek,hkf->hqef", slope, keys) * queries[:, :, None, :]
    products = queries[:, :, None, :] * keys[:, None]  # [h, q, k, f]
    return by_query, slope[..., None] * products[:, :, None]

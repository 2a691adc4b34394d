"""Energy of an alignment and number of samples of one block of attention, to first order in its scores.

To this order the overlap of a head with the target is L^(-1/2) rho (A_12 w_3 + A_13 w_2), so that the
variance of the alignment given the scores is V = v chi²_2H with v = rho² / (H L d³).
"""

from __future__ import annotations

from functools import lru_cache
from math import log, sqrt

import numpy as np

from solvable.arrays import random_stream
from solvable.models.two_layer_posterior.attention import AttentionPosterior, AttentionTarget
from solvable.models.two_layer_posterior.parameters import CurseParameters


@lru_cache(maxsize=32)
def response(dimension: int, context: int, draws: int = 60_000, *, size: float = 1.0) -> float:
    """Estimate rho = E[y sum_a x_a1 Cov_a(x_b2, x_b3)], with the covariance under the softmax of token a.

    The scores have ``size`` times their size in the prior; at size 0 the response is 1 - 1/L.
    """
    # derivative of the output with respect to A_12 / sqrt(L) at w_3 = 1   (two-layer-posterior 26)
    target = AttentionTarget(dimension, context)
    rng, heads = random_stream(0, "attention response"), 8
    products = squares = 0.0
    for _ in range(-(-draws // 400)):
        X, y = target.mirrored(50, rng)
        B = rng.standard_normal((1, heads, dimension * (dimension + 1)), dtype=np.float32)
        chances = AttentionPosterior(X, y, 1.0).chances(size * B)
        second, third = (X[:, :, k, None, None] for k in (1, 2))
        means = [np.sum(chances * x, axis=1) for x in (second, third, second * third)]
        slope = np.mean(means[2] - means[0] * means[1], axis=2)  # (n, a)
        products += float(np.sum(X[:, :, 0] * slope * y[:, None]))
        squares += float(y @ y)
    # The mean of y² is 1. Dividing by its value on the drawn samples removes most of the noise.
    return products / squares


def conjugate_field(parameters: CurseParameters, alignment: float) -> tuple[float, float]:
    """Compute the field t of an alignment and its energy E, with t = dE/d alpha."""
    # E(alpha) = sup_t t alpha + H log(1 - t² v), from E exp(t² V / 2) = (1 - t² v)^(-H)
    # (two-layer-posterior 27)
    heads, d, L = parameters.heads, parameters.dimension, parameters.context
    v = response(d, L) ** 2 / (heads * L * d**3)
    # t² v alpha + 2 H t v = alpha
    t = (sqrt((heads * v) ** 2 + alignment**2 * v) - heads * v) / (alignment * v)
    return t, t * alignment + heads * log(1 - t * t * v)


def samples_for(parameters: CurseParameters, alignment: float) -> float:
    """Predict the samples at which the target's mode alone reaches an alignment between 0 and 1."""
    return parameters.kappa * conjugate_field(parameters, alignment)[0] / (1 - alignment)


def adapted_alignment(parameters: CurseParameters) -> float:
    """Predict the alignment at a number of samples from the equations of kernel adaptation."""
    # t(alpha) = (P / kappa) (1 - alpha), where the left side grows with alpha
    low, high = 1e-9, 1 - 1e-9
    for _ in range(50):
        middle = (low + high) / 2
        if samples_for(parameters, middle) < parameters.samples:
            low = middle
        else:
            high = middle
    return low

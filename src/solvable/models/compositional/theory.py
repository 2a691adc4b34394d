"""Compositional targets: law of the first spectral step, sample sizes, and what a kernel can do.

The first layer obeys the spike law of sequential feature recovery in the eigenbasis of one small
matrix, whatever stands above it; :mod:`solvable.models.compositional.latent_layers` goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidData, InvalidParameter
from solvable.moment_spectrum.degree_two_background import QuadraticBackground, quadratic_background
from solvable.moment_spectrum.sample_kernel import SampleKernel
from solvable.moment_spectrum.spike_law import DrawnPopulation, Population, SpikeLaw
from solvable.spectra.structured_spikes import Background, compress_sample


def first_layer_law(
    *,
    weights: np.ndarray,
    kernel: SampleKernel,
    n_features: int,
    heights: np.ndarray | None = None,
    background: QuadraticBackground | None = None,
    room: float = 0.0,
) -> SpikeLaw:
    """Law of the first step from m draws of the target, in the eigenbasis of the layers above."""
    # The kernel is the corrected one for features of degree 2, whose contraction is part of the
    # background; `heights` are E[T <A_k, K A_k>] of the operator where they are not the kernel's.
    T = np.asarray(weights, dtype=float)
    if T.shape != kernel.size.shape:
        raise InvalidData(
            f"weights have shape {T.shape} and the kernel has {kernel.size.size} draws; allowed: one "
            "weight per draw."
        )
    if heights is None:
        heights = T @ kernel.diagonal / T.size  # theta_k = E[T <A_k, K A_k>]
    if background is None:
        # Without a background the mean of the bulk is no height.
        heights = heights - np.mean(T * kernel.rest) + T.mean() * kernel.rest.mean()
    sample = compress_sample(T * kernel.rest, (T**2)[:, None] * kernel.outer)
    return SpikeLaw(heights, sample, background, n_features - heights.size, room=room)


def composed_background(
    *,
    heights: np.ndarray,
    matrices: np.ndarray,
    contracted: np.ndarray | None = None,
    contraction_noise: float = 0.0,
) -> QuadraticBackground:
    """Background of order 1/d of features of degree 2, for any composition above them.

    `matrices` are the rotated features, (p, d, d) of unit norm; `contracted` is, for an operator
    without correction, E[T 2 tr((x x^T - I) M_k^2)].
    """
    # Up to the chaos of degree 4 that the moment sees, a label is (1/2) sum_k theta_k (u_k^2 - 1)
    # whatever the layers above: a single diagonal layer of weights theta_k / |theta|.
    norm = float(np.linalg.norm(heights))
    weights = heights / norm
    second = None
    if contracted is not None:
        S = np.einsum("i,iab,ibc->ac", weights, matrices, matrices, optimize=True)
        second = float(weights @ contracted / 2 / np.sum(S**2))
    return quadratic_background(
        matrices=matrices,
        weights=weights,
        # The corrected height of a label of degree 4 is sqrt(2) lambda (1 + 4 / d).
        attenuation=norm / (np.sqrt(2) * (1 + 4 / matrices.shape[1])),
        second_chaos=second,
        contraction_noise=contraction_noise,
    )


@dataclass(frozen=True)
class _Undrawn:
    """Background of a population of which operators can be drawn, without drawing them."""

    population: Population

    def at(self, n_samples: float) -> Background:
        return self.population.at(n_samples)


def crossing_samples(law: SpikeLaw, *, level: float = 0.5) -> float:
    """Samples at which the mean squared overlap reaches a level; infinite beyond 1e6 D, 0 by chance."""
    from scipy.optimize import brentq

    if not 0 < level < 1:
        raise InvalidParameter(f"level is {level}; allowed: strictly between 0 and 1.")

    if isinstance(law.background, DrawnPopulation):
        # Twenty sizes cost a second each to draw: the law of one operator stands for them.
        law = replace(law, background=_Undrawn(law.background))

    def excess(log_samples: float) -> float:
        return float(law.spikes(float(np.exp(log_samples))).squared_overlap.mean()) - level

    if law.full:
        return 0.0
    low, high = np.log(law.n_features), np.log(law.n_features) + np.log(1e6)
    if excess(high) < 0:  # some features lie inside the population matrix's own bulk
        return float("inf")
    while excess(low) > 0:
        low -= 1.0
        if low < 0:
            return 0.0
    return float(np.exp(brentq(excess, low, high, xtol=1e-3)))


def recovery_exponent(*, degree: int, epsilon: float, layers: int = 3) -> float:
    """Exponent of n ~ d^alpha at which all p ~ d^epsilon features of degree q are found."""
    check_positive(degree=degree)
    if layers not in (3, 4) or epsilon < 0:
        raise InvalidParameter(
            f"layers is {layers} and epsilon is {epsilon}; allowed: 3 or 4, and at least 0."
        )
    # Heights are the eigenvalues of E[y (h h^T - I)]. Three layers (2602.10867): sqrt(2) B / |B|_F, of
    # order p^(-1/2), thresholds D p. Four (derived, Wick): (4 / sigma) sum_jl B_jl N_j N_l, and
    # orthonormal N have N_j N_l = O(1/p): thresholds D p^2. Last layers without a preferred sign.
    return degree + (layers - 2) * epsilon


def degree_two_share(second_moment: np.ndarray, *, draws: int, label_variance: float) -> float:
    """Share of the label's variance in degree 2 of the input, from m draws of E[y (x x^T - I)].

    Any rotation-invariant kernel can learn it between d^2 / 2 and d^4 / 24 samples.
    """
    check_positive(draws=draws, label_variance=label_variance)
    d = second_moment.shape[0]
    # |E[y (x x^T - I)]|_F^2 / 2, less the noise Var(y) D_2 / m of the sample moment
    energy = np.sum(second_moment**2) / 2 - label_variance * comb(d + 1, 2) / draws
    return float(np.clip(energy / label_variance, 0.0, 1.0))

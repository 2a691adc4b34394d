"""Compositional targets: sample sizes of the first spectral step, and what a kernel can do.

The first layer obeys the spike law of sequential feature recovery in the eigenbasis of one small
matrix, whatever stands above it; :mod:`solvable.models.compositional.latent_layers` goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb

import numpy as np

from solvable.moment_spectrum.spike_law import DrawnPopulation, Population, SpikeLaw
from solvable.spectra.structured_spikes import Background


@dataclass(frozen=True)
class _Undrawn:
    """Background of a population of which operators can be drawn, without drawing them."""

    population: Population

    def at(self, n_samples: float) -> Background:
        return self.population.at(n_samples)


def crossing_samples(law: SpikeLaw) -> float:
    """Samples at which the mean squared overlap reaches one half; infinite beyond 1e6 D."""
    from scipy.optimize import brentq

    if isinstance(law.background, DrawnPopulation):
        # Twenty sizes cost a second each to draw: the law of one operator stands for them.
        law = replace(law, background=_Undrawn(law.background))

    def excess(log_samples: float) -> float:
        return float(law.spikes(float(np.exp(log_samples))).squared_overlap.mean()) - 0.5

    low, high = np.log(law.n_features), np.log(law.n_features) + np.log(1e6)
    if excess(high) < 0:  # some features lie inside the population matrix's own bulk
        return float("inf")
    while excess(low) > 0:
        low -= 1.0
    return float(np.exp(brentq(excess, low, high, xtol=1e-3)))


def recovery_exponent(*, degree: int, epsilon: float, layers: int = 3) -> float:
    """Exponent of n ~ d^alpha at which all p ~ d^epsilon features of degree q are found."""
    # Heights are the eigenvalues of E[y (h h^T - I)]. Three layers (2602.10867): sqrt(2) B / |B|_F, of
    # order p^(-1/2), thresholds D p. Four (derived, Wick): (4 / sigma) sum_jl B_jl N_j N_l, and
    # orthonormal N have N_j N_l = O(1/p): thresholds D p^2. Last layers without a preferred sign.
    return degree + (layers - 2) * epsilon


def degree_two_share(second_moment: np.ndarray, *, draws: int, label_variance: float) -> float:
    """Share of the label's variance in degree 2 of the input, from m draws of E[y (x x^T - I)]."""
    # |E[y (x x^T - I)]|_F² / 2, less the noise Var(y) D_2 / m of the sample moment. Any
    # rotation-invariant kernel can learn it between d² / 2 and d⁴ / 24 samples.
    d = second_moment.shape[0]
    energy = np.sum(second_moment**2) / 2 - label_variance * comb(d + 1, 2) / draws
    return float(np.clip(energy / label_variance, 0.0, 1.0))

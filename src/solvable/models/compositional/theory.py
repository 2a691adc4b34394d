"""Compositional targets: sample sizes of the first spectral step, and the bound on kernels.

The first layer obeys the spike law of sequential feature recovery in the eigenbasis of one small
matrix that the layers above define. Later layers: :mod:`solvable.models.compositional.latent_layers`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb

import numpy as np

from solvable.moment_spectrum.spike_law import DrawnPopulation, Population, SpikeLaw
from solvable.spectra.structured_spikes import Background


@dataclass(frozen=True)
class _Undrawn:
    """Background of a population whose operators could be drawn but are not."""

    population: Population

    def at(self, n_samples: float) -> Background:
        return self.population.at(n_samples)


def crossing_samples(law: SpikeLaw) -> float:
    """Number of samples at a mean squared overlap of 0.5; infinite above 1e6 D."""
    from scipy.optimize import brentq

    if isinstance(law.background, DrawnPopulation):
        # Drawing takes a second for each of about twenty sizes, so the law of one operator is used.
        law = replace(law, background=_Undrawn(law.background))

    def excess(log_samples: float) -> float:
        return float(law.spikes(float(np.exp(log_samples))).squared_overlap.mean()) - 0.5

    # (1 / p) sum_k c_k²(n) = 1/2   (compositional 7)
    low, high = np.log(law.n_features), np.log(law.n_features) + np.log(1e6)
    if excess(high) < 0:  # some features lie inside the population bulk
        return float("inf")
    while excess(low) > 0:
        low -= 1.0
    return float(np.exp(brentq(excess, low, high, xtol=1e-3)))


def recovery_exponent(*, degree: int, epsilon: float, layers: int = 3) -> float:
    """Exponent alpha of n ~ d^alpha at which all p ~ d^epsilon features are recovered."""
    # Heights are the eigenvalues of E[y (h h^T - I)]. Three layers: sqrt(2) B / |B|_F, of order p^(-1/2),
    # so n ~ D p   (compositional 5; arXiv:2602.10867). Four layers: (4 / sigma) sum_jl B_jl N_j N_l with
    # N_j N_l = O(1/p), so n ~ D p²   (compositional 9) (compositional 10). B must not prefer a sign.
    return degree + (layers - 2) * epsilon


def degree_two_share(second_moment: np.ndarray, *, draws: int, label_variance: float) -> float:
    """Share of the variance of the label in degree 2, from m draws of E[y (x x^T - I)]."""
    # |E[y (x x^T - I)]|_F² / (2 Var(y))   (compositional 16), with the noise Var(y) D_2 / m of the sample
    # moment subtracted from the energy
    d = second_moment.shape[0]
    energy = np.sum(second_moment**2) / 2 - label_variance * comb(d + 1, 2) / draws
    return float(np.clip(energy / label_variance, 0.0, 1.0))

"""Compositional targets: sample sizes of the first spectral step, and the bound on kernels.

The first layer follows the spike theory of sequential feature recovery, in the eigenbasis of a small
matrix that the layers above define. For later layers see
:mod:`solvable.models.compositional.latent_layers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import comb

import numpy as np

from solvable.moment_spectrum.spike_law import DrawnPopulation, Population, SpikeLaw
from solvable.spectra.structured_spikes import Background


@dataclass(frozen=True)
class _Undrawn:
    """Population background used in place of drawn operators, or the given background."""

    population: Population

    def at(self, n_samples: float) -> Background:
        return self.population.at(n_samples)


FEW_INPUTS = 22
"""Largest dimension in which operators are drawn for corrected operators and mapped labels too, and
for the crossing."""


def crossing_samples(law: SpikeLaw, *, drawn: bool = False) -> float:
    """Number of samples at which the mean squared overlap is 0.5; infinite if above 1e6 D."""
    # If operators are drawn, the crossing is that of the formula, or with `drawn` that of the
    # operators.
    if not isinstance(law.background, DrawnPopulation):
        return _crossing(law, 0.5)
    # Drawing is slow, so the search uses the formula, shifted by its error at the crossing.
    formula = replace(law, background=_Undrawn(law.background))
    found = _crossing(formula, 0.5)
    for _ in range(3 if drawn and np.isfinite(found) else 0):
        gain = np.mean(law.spikes(found).squared_overlap - formula.spikes(found).squared_overlap)
        found = _crossing(formula, 0.5 - float(gain))
    return found


def _crossing(law: SpikeLaw, level: float) -> float:
    """Number of samples at which the mean squared overlap of the formula has this value."""
    from scipy.optimize import brentq

    def excess(log_samples: float) -> float:
        return float(law.spikes(float(np.exp(log_samples))).squared_overlap.mean()) - level

    # The number n solves (1 / p) sum_k c_k²(n) = 1/2   (compositional 7).
    low, high = np.log(law.n_features), np.log(law.n_features) + np.log(1e6)
    if excess(high) < 0:  # too many features lie inside the population bulk
        return float("inf")
    while excess(low) > 0:
        low -= 1.0
    return float(np.exp(brentq(excess, low, high, xtol=1e-3)))


def recovery_exponent(*, degree: int, exponents: Sequence[float]) -> float:
    """Exponent alpha of n ~ d^alpha samples that recover the first of widths p_l ~ d^epsilon_l."""
    # The spike heights are the eigenvalues of E[y (h h^T - I)]. With three layers this matrix is
    # sqrt(2) B / |B|_F, with eigenvalues of order p^(-1/2), so n ~ D p   (compositional 5;
    # arXiv:2602.10867). Each further layer replaces the matrix M of the representation above by
    # sum_jl M_jl N_j N_l with N_j N_l = O(1/p), so n ~ D p_1² p_2 ... p_(L-1)   (compositional 9)
    # (compositional 10), provided that the eigenvalues of B do not prefer a sign.
    return degree + exponents[0] + sum(exponents[:-1])


def degree_two_share(second_moment: np.ndarray, *, draws: int, label_variance: float) -> float:
    """Fraction of the label's variance in degree 2, from a mean of y (x x^T - I) over m draws."""
    # The fraction is |E[y (x x^T - I)]|_F² / (2 Var(y))   (compositional 16). The sampling noise
    # Var(y) D_2 / m of the mean is subtracted.
    d = second_moment.shape[0]
    energy = np.sum(second_moment**2) / 2 - label_variance * comb(d + 1, 2) / draws
    return float(np.clip(energy / label_variance, 0.0, 1.0))


def degree_two_noise(labels: np.ndarray, squared_input_norm: np.ndarray, dimension: int) -> float:
    """Noise rho of a least-squares fit of degree 2; 1 if labels and norms were independent."""
    # rho = E[y² |F_2|²] / D_2, with |F_2|² = (|x|⁴ - 2 |x|² + d) / 2   (compositional 18)
    s, d = squared_input_norm, dimension
    squared_norm = (s**2 - 2 * s + d) / 2
    return float(np.mean(labels**2 * squared_norm) / (comb(d + 1, 2) * np.mean(labels**2)))

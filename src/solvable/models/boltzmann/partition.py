"""Partition function of a machine with binary visible units, and its difference from the limit."""

from __future__ import annotations

import numpy as np

from solvable.models.boltzmann.likelihood import coupling_energy, sign_energies, sign_states
from solvable.models.boltzmann.phase import Phase


def partition_gap(W: np.ndarray) -> float:
    """Limit eta_2(W^T W / d) minus log Z of binary visible units, an exact sum over hidden states."""
    d, k = W.shape
    fields = np.abs(W @ sign_states(k).T) / np.sqrt(d)
    # log Z = log E_h prod_i cosh((W h)_i / sqrt(d))   (boltzmann 17)
    energies = np.sum(fields + np.log1p(np.exp(-2 * fields)) - np.log(2), axis=0)
    top = float(energies.max())
    exact = top + float(np.log(np.mean(np.exp(energies - top))))
    return coupling_energy(W.T @ W / d, "rademacher") - exact


def predicted_gap(phase: Phase, dimension: int) -> float | None:
    """First order in 1/d of the gap at the maximum of the likelihood; None without a prediction."""
    if not phase.units or not phase.norm:
        return None
    units = phase.units * 2 if phase.shared else phase.units
    spikes = phase.spikes * 2 if phase.shared else phase.spikes
    k = len(units)
    M, Q = np.zeros((k, max(spikes) + 1)), np.diag([unit.q for unit in units])
    for row, (unit, spike) in enumerate(zip(units, spikes, strict=True)):
        M[row, spike] = unit.m
    if phase.shared:
        Q = np.full((2, 2), units[0].q)
    states, energies = sign_states(k), sign_energies(Q)
    weights = np.exp(energies - energies.max())
    # (W h)_i is a sum of signs w*_i and of a Gaussian number, with the fourth moment
    # 3 (h^T Q h)² - 2 sum_b (M^T h)_b⁴; its mean over the hidden states is divided by 12 d
    # (boltzmann 17)
    fourth = 3 * (2 * energies) ** 2 - 2 * np.sum((states @ M) ** 4, axis=1)
    return float(weights @ fourth / weights.sum() / (12 * dimension))

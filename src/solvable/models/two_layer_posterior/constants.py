r"""Constants of the wide limit: kind of feature learning of an activation, and its cost per neuron."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import factorial, inf
from typing import Literal

import numpy as np

from solvable.models.two_layer_posterior.overlap import Target, neuron_overlap

Kind = Literal["specialised", "diffuse", "condensed"]


@dataclass(frozen=True)
class Specialisation:
    """Neurons that represent a target at the lowest energy, and their energy constant R."""

    # E(alpha) -> R alpha sqrt(chi N d) / sigma_a, R = inf over u and r of omega / |c|,
    # omega² = u² + r - 1 - ln r   (two-layer-posterior 6)

    activation: str
    degree: int
    # specialised: neurons of one strength; diffuse: all neurons a little (u -> 0); condensed: a few
    # large neurons (u -> oo)
    kind: Kind
    R: float  # 0 if omega / |c| tends to 0 as the neuron grows
    u: float  # value of u at the minimum: 0 if diffuse, infinite if condensed
    r: float  # value of r at the minimum: 1 if diffuse
    # number of neurons over alpha sqrt(chi N / d) / sigma_a: infinite if diffuse, 0 if condensed
    neurons: float
    # limit of d^m E c² under the prior: lazy learning costs alpha² chi d^m / (2 gaussian)
    gaussian: float


@lru_cache(maxsize=128)
def specialisation(
    activation: str, degree: int, target: Target = "hermite", reduced: bool = False
) -> Specialisation:
    r"""Find the cheapest neuron for a target, which decides the kind of feature learning.

    Notes
    -----
    docs/derivations/two-layer-posterior, equations 5 to 8. With ``reduced`` the norm of the irrelevant
    weights is fixed, as in arXiv:2512.04165, Equations 36 and 37. A grid over (u, r) is refined around
    its minimum until R is exact to about 1e-12.
    Backed by ``tests/models/two_layer_posterior/test_constants.py``.
    """
    overlap = neuron_overlap(activation, degree, target)
    small = 1e-3
    # c ~ c_m u^m at small u and r = 1, so E c² ~ c_m² (2m-1)!! d^-m
    lowest = abs(float(overlap.value(small, 1.0))) / small**degree
    double = factorial(2 * degree) / (2**degree * factorial(degree))
    # E_lazy = alpha² chi / (2 sigma_a² E c²)   (two-layer-posterior 8)
    gaussian = lowest**2 * double

    def ratio(log_u: np.ndarray, log_r: np.ndarray) -> np.ndarray:
        u, r = np.exp(log_u)[:, None], np.exp(log_r)
        price = np.sqrt(u**2 + (np.expm1(log_r) - log_r))
        return np.asarray(price / np.maximum(np.abs(overlap.value(u, r)), 1e-300))

    low, high = float(np.log(1e-3)), float(np.log(900.0))
    log_u, log_r = np.linspace(low, high, 400), np.zeros(1) if reduced else np.linspace(-9, 1, 401)
    values = ratio(log_u, log_r)
    row, column = np.unravel_index(np.argmin(values), values.shape)
    if values[0].min() <= values.min() * (1 + 1e-9):
        # As u -> 0 with r = 1 the price is u and the overlap is c_1 u. A linear overlap, such as that
        # of ReLU with x_1, has the same price per overlap at every u, so that diffuse neurons tie.
        return Specialisation(activation, degree, "diffuse", 1 / lowest, 0.0, 1.0, inf, gaussian)
    if row == log_u.size - 1:
        far = np.log([450.0, 900.0])
        near, last = ratio(far, log_r).min(1)
        # If the overlap grows faster than linearly, the price per overlap falls to 0. Otherwise it
        # converges, with a correction of order 1/u.
        limit = 0.0 if last < 0.8 * near else float(2 * last - near)
        return Specialisation(
            activation, degree, "condensed", limit, inf, float(np.exp(log_r[column])), 0.0, gaussian
        )
    span_u, span_r = log_u[1] - log_u[0], 0.0 if reduced else log_r[1] - log_r[0]
    at_u, at_r = log_u[row], log_r[column]
    for _ in range(9):
        grid_u = at_u + span_u * np.linspace(-1, 1, 41)
        grid_r = at_r + span_r * (np.zeros(1) if reduced else np.linspace(-1, 1, 41))
        values = ratio(grid_u, grid_r)
        row, column = np.unravel_index(np.argmin(values), values.shape)
        at_u, at_r = grid_u[row], grid_r[column]
        span_u, span_r = span_u / 8, span_r / 8
    u, r = float(np.exp(at_u)), float(np.exp(at_r))
    overlap_at = abs(float(overlap.value(u, r)))
    least = float(values.min())
    # M = 1 / (omega |c|) with omega = R |c|   (two-layer-posterior 5)
    neurons = 1 / (least * overlap_at**2)
    return Specialisation(activation, degree, "specialised", least, u, r, neurons, gaussian)

r"""Constants of the wide limit: how an activation learns a feature, and at what price per neuron."""

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
    """How a layer of neurons comes to carry a target at the least weight decay."""

    # E(alpha) -> R alpha sqrt(chi N d) / sigma_a, R = inf over u and r of omega / |c|,
    # omega² = u² + r - 1 - ln r

    activation: str
    degree: int
    kind: Kind  # neurons of one strength, all neurons a little (u -> 0), or a few large ones (u -> oo)
    R: float  # 0 where it falls to 0 as the neuron grows
    u: float  # the minimiser: (0, 1) if diffuse, u infinite if condensed
    r: float
    neurons: (
        float  # number over alpha sqrt(chi N / d) / sigma_a; infinite if diffuse, 0 if condensed
    )
    gaussian: (
        float  # limit of d^m E c² under the prior: lazy learning costs alpha² chi d^m / 2 of it
    )


@lru_cache(maxsize=128)
def specialisation(
    activation: str, degree: int, target: Target = "hermite", reduced: bool = False
) -> Specialisation:
    r"""Find the cheapest neuron for a target, and so the kind of feature learning.

    Notes
    -----
    Derived from arXiv:2512.04165, eqs. 25 and 36-40; the fluctuating rest and the rule of the three
    kinds are new. A grid over (u, r), refined around its minimum until R is exact to about 1e-12.
    Backed by ``tests/models/two_layer_posterior/test_constants.py``.
    """
    overlap = neuron_overlap(activation, degree, target)
    small = 1e-3
    # c ~ c_m u^m at small u and r = 1, so E c² ~ c_m² (2m-1)!! d^-m
    lowest = abs(float(overlap.value(small, 1.0))) / small**degree
    double = factorial(2 * degree) / (2**degree * factorial(degree))
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
        # As u -> 0 with r = 1 the price is u and the overlap c_1 u. A linear overlap, as of ReLU with
        # x_1, has the same price at every u: diffuse neurons are among its best.
        return Specialisation(activation, degree, "diffuse", 1 / lowest, 0.0, 1.0, inf, gaussian)
    if row == log_u.size - 1:
        far = np.log([450.0, 900.0])
        near, last = ratio(far, log_r).min(1)
        # Faster than linear: the price per overlap falls to 0. Else it settles, like 1/u at worst.
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
    # M = 1 / (omega |c|), omega = R |c|
    neurons = 1 / (least * overlap_at**2)
    return Specialisation(activation, degree, "specialised", least, u, r, neurons, gaussian)

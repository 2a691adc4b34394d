"""Mean-field error of kernel ridge regression, with Hermite features correlated by the input norm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from solvable.errors import NotConverged


@dataclass(frozen=True)
class RidgeOnDegrees:
    """Predicted error of kernel ridge regression, and learned fraction of each degree."""

    error: float  # error on fresh inputs with noiseless labels
    learned: np.ndarray  # learned fraction of each degree
    amplification: (
        float  # amplification of label noise; 1 if noise in training labels has no effect
    )


@dataclass(frozen=True)
class _Harmonic:
    """Spherical harmonics of one order; features of different degrees have different radial parts."""

    count: int
    degrees: list[int]  # indices of the degrees that contain this order
    radial: np.ndarray  # radial parts with mean square 1, (degrees, nodes of the norm)


def harmonics(dimension: int, degrees: Sequence[int]) -> tuple[list[_Harmonic], np.ndarray]:
    """Hermite features as harmonics times radial parts, and probabilities of the norm's nodes."""
    from scipy.special import eval_genlaguerre, roots_genlaguerre

    # |x|² / 2 has a gamma distribution of shape d / 2.
    half, chance = roots_genlaguerre(40, dimension / 2 - 1)
    chance = chance / chance.sum()
    found = []
    for order in range(max(degrees) + 1):
        # Degree p contains the orders p, p - 2, ...; order l has C(d+l-1, l) - C(d+l-3, l-2) harmonics
        places = [i for i, p in enumerate(degrees) if p >= order and (p - order) % 2 == 0]
        count = comb(dimension + order - 1, order)
        count -= comb(dimension + order - 3, order - 2) if order > 1 else 0
        # The radial part is |x|^l L_((p - l) / 2)^(l + d/2 - 1)(|x|² / 2), normalised.
        parts = [
            half ** (order / 2)
            * eval_genlaguerre((degrees[i] - order) // 2, order + dimension / 2 - 1, half)
            for i in places
        ]
        if parts:
            radial = np.array([part / np.sqrt(chance @ part**2) for part in parts])
            found.append(_Harmonic(count, places, radial))
    return found, chance


def ridge_on_degrees(
    *,
    samples: int,
    dimension: int,
    degrees: Sequence[int],
    energies: np.ndarray,
    eigenvalues: np.ndarray,
    penalty: float,
    noise: float,
) -> RidgeOnDegrees:
    """Predict the error of kernel ridge for a random target with Gaussian features given the norm.

    For a fixed norm this is the theory of arXiv:2110.03922. A random norm correlates the features of an
    input, for example features of degree 3 with features of degree 1. At d = 7 this correlation doubles
    the fraction that is not learned.
    """
    parts, chance = harmonics(dimension, degrees)
    sizes = np.array([comb(dimension + p - 1, p) for p in degrees], dtype=float)
    values = [np.diag(eigenvalues[part.degrees]) for part in parts]

    def spread(matrices: Sequence[np.ndarray]) -> np.ndarray:
        """Sum over orders l of N_l u_l^T M_l u_l, at each node of the norm."""
        forms = [
            part.count * np.einsum("im,ij,jm->m", part.radial, matrix, part.radial)
            for part, matrix in zip(parts, matrices, strict=True)
        ]
        return np.asarray(np.sum(forms, axis=0))

    # q(r) is the posterior variance at norm r after n samples. The iteration decreases to the fixed
    # point.
    q = spread(values)
    for _ in range(20_000):
        weight = samples * chance / (penalty + q)
        # A_l = n E[u_l u_l^T / (penalty + q)],  S_l = (1 / eta_l + A_l)^-1
        gains = [(part.radial * weight) @ part.radial.T for part in parts]
        left = [
            value @ np.linalg.inv(np.eye(len(value)) + gain @ value)
            for value, gain in zip(values, gains, strict=True)
        ]
        before, q = q, spread(left)
        if np.abs(q - before).max() <= 1e-12 * before.max():
            break
    else:
        raise NotConverged(
            "the predicted error of kernel ridge did not converge: the number of samples is too close to "
            "the number of features of a degree. Use a larger ridge.",
            {"change": float(np.abs(q / before - 1).max())},
        )
    # Error variance at a norm: v = noise + sum_l u_l^T [N_l (1 - S A) e (1 - S A)^T + N_l S B S] u_l,
    # B = n E[u u^T v / (penalty + q)²], e the energy of a feature: linear in v
    rest = [np.eye(len(s)) - s @ a for s, a in zip(left, gains, strict=True)]
    bias = spread(
        [r @ np.diag((energies / sizes)[p.degrees]) @ r.T for r, p in zip(rest, parts, strict=True)]
    )
    square = samples * chance / (penalty + q) ** 2
    back = np.sum(
        [
            part.count * np.einsum("im,ij,jk->mk", part.radial, s, part.radial) ** 2
            for part, s in zip(parts, left, strict=True)
        ],
        axis=0,
    )
    system = np.eye(chance.size) - back * square
    variance, unit = np.linalg.solve(system, np.stack([bias + noise, np.ones(chance.size)], 1)).T
    learned = np.zeros(len(degrees))
    for part, r in zip(parts, rest, strict=True):
        learned[part.degrees] += part.count * (1 - np.diag(r)) / sizes[part.degrees]
    return RidgeOnDegrees(float(chance @ variance) - noise, learned, float(chance @ unit))

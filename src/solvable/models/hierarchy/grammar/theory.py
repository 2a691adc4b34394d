"""Label statistics of first patches of a random grammar: signal, noise and where they meet."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from solvable.errors import InvalidParameter
from solvable.models.hierarchy.rules import Ensemble

LARGEST_NUMBER = 1e300
"""Numbers of samples above this are refused, since products with them would overflow."""


def threshold_samples(*, rules: int, depth: int, classes: int) -> float:
    """Number P* of samples from which signal exceeds noise at the leaves (hierarchy 7)."""
    logarithm = np.log(classes) + depth * np.log(rules)
    if logarithm > np.log(LARGEST_NUMBER):
        raise InvalidParameter(
            f"rules is {rules} and depth is {depth}, so that P* = n_c m^L exceeds 1e300; allowed: "
            "smaller rules or depth."
        )
    # P* = n_c m^L (hierarchy 7)
    return float(classes) * float(rules) ** depth


def parents_per_level(vocabulary: int, depth: int, classes: int) -> np.ndarray:
    """Number of parents of the patches of each level l = 1 ... L, shape (L,)."""
    return np.array([classes] + [vocabulary] * (depth - 1), dtype=float)


def shared_symbol(
    *, vocabulary: int, rules: int, branching: int, parents: np.ndarray, ensemble: Ensemble
) -> np.ndarray:
    """Probability that two different rules of a level begin with the same symbol."""
    V, tuples = float(vocabulary), parents * rules
    if ensemble == "uniform":
        return np.full_like(tuples, (V ** (branching - 1) - 1) / (V**branching - 1))
    return np.asarray((tuples / V - 1) / (tuples - 1))


def contractions(
    *,
    vocabulary: int,
    rules: int,
    branching: int,
    depth: int,
    classes: int,
    ensemble: Ensemble = "first",
) -> np.ndarray:
    """Factor of the mean square of joint label statistics from each level to the next, (L - 1,).

    The statistic of symbol b is P(b, label) - P(b) / n_c, in units of the mean of P(b).
    """
    parents = parents_per_level(vocabulary, depth, classes)[:-1]
    if ensemble == "latin":
        return np.zeros(depth - 1)
    same = shared_symbol(
        vocabulary=vocabulary, rules=rules, branching=branching, parents=parents, ensemble=ensemble
    )
    # c_k = (1 - kappa_k) V / (N_k m), with N_k parents (hierarchy 4)
    return np.asarray((1 - same) * vocabulary / (parents * rules))


def joint_squares(
    *,
    vocabulary: int,
    rules: int,
    branching: int,
    depth: int,
    classes: int,
    ensemble: Ensemble = "first",
) -> np.ndarray:
    """Mean square of joint label statistics of the first patch of levels l = 1 ... L, shape (L,)."""
    factors = contractions(
        vocabulary=vocabulary, rules=rules, branching=branching, depth=depth, classes=classes,
        ensemble=ensemble,
    )  # fmt: skip
    # J_1 = 1 - 1 / n_c, J_(l + 1) = c_l J_l (hierarchy 4)
    return (1 - 1 / classes) * np.concatenate([[1.0], np.cumprod(factors)])


def squared_signal(
    *,
    vocabulary: int,
    rules: int,
    branching: int,
    depth: int,
    classes: int,
    ensemble: Ensemble = "first",
) -> np.ndarray:
    """Mean |q - q'|^2 over first patches that are not synonyms, levels l = 1 ... L, shape (L,)."""
    J = joint_squares(
        vocabulary=vocabulary, rules=rules, branching=branching, depth=depth, classes=classes,
        ensemble=ensemble,
    )  # fmt: skip
    parents = parents_per_level(vocabulary, depth, classes)
    # E|q - q'|^2 = 2 J_l N_l / (N_l - 1), which is 2 at l = 1 (hierarchy 5)
    return np.asarray(2 * J * parents / (parents - 1))


def mean_inverse_count(samples: ArrayLike, probability: ArrayLike) -> np.ndarray:
    """E[1 / n | n >= 1] of a binomial count, for any number of samples (hierarchy 6)."""
    N, p = np.broadcast_arrays(np.asarray(samples, float), np.asarray(probability, float))
    N, p = N[..., None], p[..., None]
    nodes, weights = np.polynomial.legendre.leggauss(120)
    # E[1/n; n >= 1] = int_0^1 [(1 - p x)^N - (1 - p)^N] / (1 - x) dx, with x = (e^u - 1) / (N p)
    top = np.log1p(N * p)
    u = top * (nodes + 1) / 2
    x = np.expm1(u) / (N * p)
    never = np.exp(N * np.log1p(-np.minimum(p, 1 - 1e-16)))
    value = np.exp(N * np.log1p(-np.minimum(p * x, 1 - 1e-16))) - never
    integral = (weights * value / (1 - x) * np.exp(u) / (N * p) * top / 2).sum(axis=-1)
    return np.asarray(integral / (1 - never[..., 0]))


def squared_noise(
    *,
    vocabulary: int,
    rules: int,
    branching: int,
    depth: int,
    classes: int,
    samples: float,
    ensemble: Ensemble = "first",
) -> np.ndarray:
    """Mean |q_hat - q|^2 over the first patches that occur in the samples, shape (L,)."""
    J = joint_squares(
        vocabulary=vocabulary, rules=rules, branching=branching, depth=depth, classes=classes,
        ensemble=ensemble,
    )  # fmt: skip
    patches = parents_per_level(vocabulary, depth, classes) * rules
    # E|q_hat - q|^2 = (1 - |q|^2) E[1/n], |q|^2 = 1/n_c + J_l (hierarchy 6)
    return np.asarray((1 - 1 / classes - J) * mean_inverse_count(samples, 1 / patches))


def synonymic_sensitivity(
    *,
    vocabulary: int,
    rules: int,
    branching: int,
    depth: int,
    classes: int,
    samples: float,
    ensemble: Ensemble = "first",
) -> np.ndarray:
    """Sensitivity to synonyms of one gradient step on first patches, levels l = 1 ... L, (L,)."""
    J = joint_squares(
        vocabulary=vocabulary, rules=rules, branching=branching, depth=depth, classes=classes,
        ensemble=ensemble,
    )  # fmt: skip
    patches = parents_per_level(vocabulary, depth, classes) * rules
    # S_l = [1 + (N - 1) / (N_l m - 1) J_l / (1 - 1/n_c)]^-1 (hierarchy 8)
    return np.asarray(1 / (1 + (samples - 1) / (patches - 1) * J / (1 - 1 / classes)))


def pair_detectability(
    *,
    vocabulary: int,
    rules: int,
    branching: int,
    depth: int,
    classes: int,
    samples: float,
    positions: int = 1,
    ensemble: Ensemble = "first",
) -> np.ndarray:
    """Separation d' of the distances of synonyms from those of other pairs, shape (L,)."""
    J = joint_squares(
        vocabulary=vocabulary, rules=rules, branching=branching, depth=depth, classes=classes,
        ensemble=ensemble,
    )  # fmt: skip
    parents = parents_per_level(vocabulary, depth, classes)
    signal, q = 2 * J * parents / (parents - 1), 1 / classes + J
    counts = samples / (parents_per_level(vocabulary, depth, classes) * rules)
    # d' = sqrt(k) signal n / (2 sqrt(2) |q|) (hierarchy 9)
    return np.asarray(np.sqrt(positions) * signal * counts / (2 * np.sqrt(2 * q)))

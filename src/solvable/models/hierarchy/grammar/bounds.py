"""Guarantees for the layer-wise learner as printed in arXiv:2601.19756, two of them also corrected.

They are formulas to compare with, not predictions: with every unknown constant set to 1, the guaranteed
number of samples still exceeds the measured one by many powers of ten.
"""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import ArrayLike

from solvable.errors import InvalidParameter


def bandwidth(*, separation: float, overlap: float, corrected: bool = False) -> float:
    """Largest bandwidth of the kernel for which different patches overlap by at most `overlap` / 2."""
    # With the printed bound the kernel at this separation is (overlap / 2)^(1/4).
    _positive(separation=separation, overlap=overlap)
    # sigma² <= 2 rho² / log(2 / eps_O) as printed, rho² / (2 log(2 / eps_O)) corrected (hierarchy 20)
    factor = 0.5 if corrected else 2.0
    return float(separation * np.sqrt(factor / np.log(2 / overlap)))


def feature_count(
    *, overlap: float, spread: float, separation: float, embedding: int, branching: int,
    failure: float,
) -> float:  # fmt: skip
    """Random features that keep overlaps and spreads within these tolerances, up to a constant."""
    _positive(overlap=overlap, spread=spread, separation=separation, failure=failure)
    width, finest = branching * embedding, min(overlap**2, spread**4)
    # M >= (s d / e) log(s d log(2 / eps_O) / (rho² e delta)), e = min(eps_O², eps_S^4) (hierarchy 20)
    inside = width * np.log(2 / overlap) / (separation**2 * finest * failure)
    return float(width / finest * np.log(inside))


def frequency_errors(
    samples: ArrayLike, *, patches: float, failure: float, kappa: float = 1.0,
    corrected: bool = False,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Bounds on the relative error of patch frequencies and on the error of their label laws."""
    # The printed second bound ignores that only a share of at least 1 / (kappa patches) of the samples
    # contain a given patch.
    _positive(patches=patches, failure=failure, kappa=kappa)
    N = np.asarray(samples, float)
    # |p_hat / p - 1| <= sqrt(2 kappa |P| log(4 |P| / delta) / N) (hierarchy 21)
    relative = np.sqrt(2 * kappa * patches * np.log(4 * patches / failure) / N)
    # |q_hat - q| <= sqrt(2 log(4 |P| / delta) / N) as printed, the same as above corrected (hierarchy 21)
    laws = relative if corrected else relative / np.sqrt(kappa * patches)
    return np.asarray(relative), np.asarray(laws)


def level_samples(
    *, accuracy: float, patches: float, failure: float, kappa: float = 1.0,
    corrected: bool = False,
) -> float:  # fmt: skip
    """Fresh samples for which one level is learned with this accuracy (Lemma 17)."""
    _positive(accuracy=accuracy, patches=patches, failure=failure, kappa=kappa)
    logarithm = np.log(4 * patches / failure)
    # N >= 8 max(kappa, eps^-2) log(4 |P| / delta), times kappa |P| corrected (hierarchy 21)
    if corrected:
        return float(8 * kappa * patches * accuracy**-2 * logarithm)
    return float(8 * max(kappa, accuracy**-2) * logarithm)


def descent_distance(steps: ArrayLike, *, patches: float) -> np.ndarray:
    """Bound on the distance of gradient descent from the ridge solution (Lemma 15)."""
    _positive(patches=patches)
    # |W_T - W_*| <= |P| exp(-T / |P|) (hierarchy 22)
    return np.asarray(patches * np.exp(-np.asarray(steps, float) / patches))


def descent_steps(*, accuracy: float, patches: float, classes: int, kappa: float = 1.0) -> float:
    """Steps of gradient descent for which one level is learned with this accuracy (Lemma 17)."""
    _positive(accuracy=accuracy, patches=patches, kappa=kappa)
    # T >= |P| log(100 |P| kappa sqrt(n_c) / eps) (hierarchy 22)
    return float(patches * np.log(100 * patches * kappa * np.sqrt(float(classes)) / accuracy))


def separation_bound(*, rules: int, depth: int) -> np.ndarray:
    """Least distance of label laws of non-synonyms at levels l = 1 ... L, shape (L,) (Proposition 19)."""
    # |q - q'| >= (20 m)^(-(l - 1) / 2) (hierarchy 22)
    return np.asarray((20.0 * rules) ** (-np.arange(depth) / 2))


def distinct_share(*, vocabulary: int, rules: int, depth: int) -> np.ndarray:
    """Share of grammars whose symbols all have different label laws at levels 1 to L, shape (L,)."""
    # The first symbols are equally frequent (ensemble `first`), and there are as many labels as
    # symbols. Not a number from level 2 on for more than 256 rules.
    V, m = vocabulary, rules
    if m > 256:
        return np.array([1.0] + [np.nan] * (depth - 1))
    # B(x) = sum_k C(m, k) C(m - k, k) x^k counts the ways to place k balls of each of two colours in a
    # bin of m slots; b_n are the coefficients of B^V (hierarchy 33)
    a = [comb(m, k) * comb(m - k, k) for k in range(m + 1)]
    b = [1]
    for n in range(1, m + 1):
        b.append(sum((k * V - (n - k)) * a[k] * b[n - k] for k in range(1, n + 1)) // n)
    equal = b[m] / (comb(V * m, m) * comb(V * m - m, m))
    return np.array([1.0] + [(1 - equal) ** comb(V, 2)] * (depth - 1))


def guaranteed_samples(
    *, vocabulary: int, rules: int, branching: int, depth: int, failure: float,
    kappa: float = 1.0, separation: float | None = None, constant: float = 1.0,
) -> np.ndarray:  # fmt: skip
    """Fresh samples for levels l = 1 ... L that guarantee learning, shape (L,) (Theorem 7)."""
    # `separation` is K of the assumption |q - q'| >= K m^(-l / 2); by default that of Proposition 19.
    _positive(failure=failure, kappa=kappa, constant=constant)
    levels = np.arange(1, depth + 1)
    # K = sqrt(m) 20^(-(L - 1) / 2) from Proposition 19 (hierarchy 22)
    K2 = rules / 20.0 ** (depth - 1) if separation is None else separation**2
    logarithm = np.log(float(vocabulary) * rules * kappa / failure)
    # N_l = C kappa V² m² s L log²(V m kappa / delta) m^l / K² (hierarchy 22)
    common = constant * kappa * (float(vocabulary) * rules) ** 2 * branching * depth * logarithm**2
    return np.asarray(common * float(rules) ** levels / K2)


def _positive(**values: float) -> None:
    """Raise unless all values are positive."""
    for name, value in values.items():
        if not value > 0:
            raise InvalidParameter(f"{name} is {value}; allowed: positive numbers.")
